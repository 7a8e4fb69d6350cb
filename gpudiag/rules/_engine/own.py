"""Rules of somebody's own module, named by its import path or file: imported because a person said so, never found.

A module is code and runs when it is imported. So one that lies in the folder of the run's data is refused unless its
file is named: a folder of somebody else's logs must not be able to bring code along.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from gpudiag.errors import ConfigError, GpudiagError, expected
from gpudiag.rules import RULES
from gpudiag.rules._engine.rule import Rule

T = TypeVar("T")


def chosen_rules(
    given: Iterable[Rule] | str | None, in_run: Iterable[str] = (), data_folder: Path | None = None
) -> tuple[Rule, ...]:
    """The rules to judge by: those given, or gpudiag's with those of the modules that text or run.toml names.

    Raises ConfigError for what is no rule, for two rules of one id, and as :func:`own_rules` does.
    """
    if given is None or isinstance(given, str):
        named = [part.strip() for part in (given or "").split(",")]
        return (*RULES, *own_rules([*filter(None, named), *in_run], data_folder))
    if not isinstance(given, Iterable):
        raise expected("rules, or text that names modules with rules", given)
    rules = tuple(given)
    for one in rules:
        if not isinstance(one, Rule):
            raise expected("rules made with the decorator gpudiag.rules.rule", one)
    for rule_id, n in Counter(rule.id for rule in rules).items():
        if n > 1:
            raise ConfigError(f"rules: there are {n} rules '{rule_id}'; give each a name of its own.")
    return rules


def own_rules(named: Iterable[str], data_folder: Path | None = None) -> tuple[Rule, ...]:
    """The rules of the modules named, in their order; gpudiag's own that they import are left out.

    Args:
        named: import paths (``mypackage.rules``) or files (``./my_rules.py``).
        data_folder: where the run's data lie; a module that is imported by name must not come from there.

    Raises:
        ConfigError: there is no such module, it cannot be imported, it holds no rule, or one whose id is taken.
    """
    places = {rule.id: "gpudiag" for rule in RULES}
    found: list[Rule] = []
    for name in dict.fromkeys(named):
        module = _of_file(Path(name)) if name.endswith(".py") else _of_name(name, data_folder)
        rules = [value for value in vars(module).values() if isinstance(value, Rule) and value not in RULES]
        if not rules:
            raise ConfigError(
                f"--rules {name}: holds no rule; expected functions with the decorator gpudiag.rules.rule."
            )
        for rule in dict.fromkeys(rules):
            if rule in found:  # imported by another of the modules
                continue
            if rule.id in places:
                raise ConfigError(
                    f"--rules {name}: there is a rule '{rule.id}' in {places[rule.id]} already; rename the function."
                )
            places[rule.id] = name
            found.append(rule)
    return tuple(found)


def _of_name(name: str, data_folder: Path | None) -> ModuleType:
    parts = name.split(".")
    if not all(part.isidentifier() for part in parts):
        raise ConfigError(
            f"--rules {name}: expected an import path such as mypackage.rules, or a file that ends in .py."
        )
    for n in range(1, len(parts) + 1):
        _check_place(name, ".".join(parts[:n]), data_folder)
    return _imported(name, lambda: importlib.import_module(name))


def _check_place(name: str, module: str, data_folder: Path | None) -> None:
    """Raise ConfigError where there is no such module, or one in the folder of the data. It is found, not run; the
    packages above it, whose places were looked at before, are run.
    """
    spec = _imported(name, lambda: importlib.util.find_spec(module))
    if spec is None:
        raise ConfigError(
            f"--rules {name}: there is no module '{module}'; install it, set PYTHONPATH, or name its file."
        )
    places = [spec.origin, *(spec.submodule_search_locations or ())]
    if data_folder is not None and any(_within(place, data_folder) for place in places):
        raise ConfigError(
            f"--rules {name}: module '{module}' lies in the folder of the run ({data_folder}), from which nothing is "
            "imported by name; name its file if you trust it."
        )


def _of_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ConfigError(f"--rules {path}: no such file.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"--rules {path}: is no Python file.")
    module, loader = importlib.util.module_from_spec(spec), spec.loader

    def run() -> ModuleType:
        loader.exec_module(module)
        return module

    return _imported(str(path), run)


def _imported(name: str, run: Callable[[], T]) -> T:
    try:
        return run()
    except GpudiagError:
        raise
    except Exception as error:
        raise ConfigError(f"--rules {name}: cannot be imported ({type(error).__name__}: {error}).") from error


def _within(place: str | None, folder: Path) -> bool:
    return place is not None and Path(place).resolve().is_relative_to(folder.resolve())
