"""Rules of somebody's own module, named by its import path or file: imported because a person said so, never found.

A module is code and runs when it is imported. So one that lies in the folder of the run's data is refused unless its
file is named: a folder of somebody else's logs must not be able to bring code along.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType

from gpudiag.errors import ConfigError, GpudiagError
from gpudiag.rules.engine import Rule


def own_rules(named: Iterable[str], data_folder: Path | None = None) -> tuple[Rule, ...]:
    """The rules of the modules named, in their order.

    Args:
        named: import paths (``mypackage.rules``) or files (``./my_rules.py``).
        data_folder: where the run's data lie; a module that is imported by name must not come from there.

    Raises:
        ConfigError: there is no such module, it cannot be imported, or it holds no rule.
    """
    found: list[Rule] = []
    for name in dict.fromkeys(named):
        module = _of_file(Path(name)) if name.endswith(".py") else _of_name(name, data_folder)
        rules = [value for value in vars(module).values() if isinstance(value, Rule)]
        if not rules:
            raise ConfigError(
                f"--rules {name}: holds no rule; expected functions with the decorator gpudiag.rules.rule."
            )
        found += rules
    return tuple(dict.fromkeys(found))


def _of_name(name: str, data_folder: Path | None) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise ConfigError(
            f"--rules {name}: expected an import path such as mypackage.rules, or a file that ends in .py."
        )
    root = name.partition(".")[0]
    spec = importlib.util.find_spec(root)  # of a name without dots it is found, not run
    if spec is None:
        raise ConfigError(f"--rules {name}: there is no module '{root}'; install it, set PYTHONPATH, or name its file.")
    places = [spec.origin, *(spec.submodule_search_locations or ())]
    if data_folder is not None and any(_within(place, data_folder) for place in places):
        raise ConfigError(
            f"--rules {name}: module '{root}' lies in the folder of the run ({data_folder}), from which nothing is "
            "imported by name; name its file if you trust it."
        )
    return _imported(name, lambda: importlib.import_module(name))


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


def _imported(name: str, run: Callable[[], ModuleType]) -> ModuleType:
    try:
        return run()
    except GpudiagError:
        raise
    except Exception as error:
        raise ConfigError(f"--rules {name}: cannot be imported ({type(error).__name__}: {error}).") from error


def _within(place: str | None, folder: Path) -> bool:
    return place is not None and Path(place).resolve().is_relative_to(folder.resolve())
