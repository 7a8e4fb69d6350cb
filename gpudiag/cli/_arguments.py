"""Arguments as typed, as arguments of the library."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gpudiag.errors import ConfigError, InputNotFound, nearest
from gpudiag.files import is_device
from gpudiag.readers._io.url import is_url, shown
from gpudiag.scratch import scratch

MANY = ("--telemetry", "--artifacts")


def folder_name(name: str) -> str:
    """A run's name as the name of one folder, whatever characters it has."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "run"


def check_output(folder: Path) -> None:
    """Raise ConfigError before any work is done if nothing can be written there."""
    if shown(folder) != str(folder):
        raise ConfigError(f"{shown(folder)}: is a storage URL, not a folder; choose another -o.")
    there = next(part for part in (folder, *folder.absolute().parents) if part.exists())
    if not there.is_dir():
        raise ConfigError(f"{folder}: cannot be written to, because {there} is not a folder; choose another -o.")
    try:
        with scratch(there):  # permissions alone say little to root and in /proc
            pass
    except OSError as error:
        why = "is read-only" if not os.access(there, os.W_OK) else f"takes no files ({error.strerror})"
        raise ConfigError(f"{folder}: cannot be written to, because {there} {why}; choose another -o.") from error


def check_file(path: Path) -> None:
    """Raise ConfigError before any work is done if no file can be written at that path."""
    if path.is_dir():
        raise ConfigError(f"{path}: is a folder; give the name of a file in it.")
    if not is_device(path):
        check_output(path.parent)


def existing_run(run: str | None) -> str | None:
    """The run, for typer; raises InputNotFound at once where there is nothing, before seconds of imports."""
    if run is not None and not is_url(run) and not Path(run).exists():
        raise InputNotFound.run(shown(run))
    return run


def existing_runs(runs: list[str] | None) -> list[str]:
    """The runs, as :func:`existing_run`; never None, which some versions of typer do not take back."""
    for run in runs or []:
        existing_run(run)
    return runs or []


def check_given(*inputs: object) -> None:
    """Raise ConfigError where none of the inputs was given."""
    if not any(inputs):
        raise ConfigError(
            "no run given; expected a run folder, a run.toml, files or a storage URL, "
            "or --telemetry FILE and --trials FILE."
        )


def given_inputs(kinds: Iterable[Any]) -> list[Any]:
    """The inputs one by one, of kinds that are a list, a single one or nothing."""
    return [one for kind in kinds for one in (kind if isinstance(kind, list) else [kind]) if one]


def suppression_file(given: Path | None, run: list[str] | None) -> str:
    """The gpudiag.toml in force: the one given, else beside run.toml or the files, else here; '' for none."""
    if given is not None:
        return str(given)
    paths = [Path(one) for one in run or [] if not is_url(one)]
    found = (
        folder / "gpudiag.toml" for folder in (*(path if path.is_dir() else path.parent for path in paths), Path())
    )
    return next((str(path) for path in found if path.is_file()), "")


def assignments(items: list[str]) -> dict[str, str]:
    """``name=value`` items of -p; the notebook's own defaults say which type a value has."""
    out: dict[str, str] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"-p {item}: expected NAME=VALUE.")
        out[name.strip()] = value.strip()
    return out


def one_of(option: str, value: str, legal: tuple[str, ...]) -> None:
    if value not in legal:
        hint = nearest(value, legal)
        meant = f"; {hint}" if hint.endswith("?") else "."
        raise ConfigError(f"{option} must be one of {', '.join(legal)}, but got '{value}'{meant}")


def rule_modules(named: list[str] | None) -> str:
    """The modules of --rules as text; files by their whole path, for a notebook runs in a process of its own."""
    return ", ".join(str(Path(name).resolve()) if name.endswith(".py") else name for name in named or [])


def names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def expand(arguments: list[str]) -> list[str]:
    """``--telemetry a b`` as ``--telemetry a --telemetry b``, so that shell globs work; a command after -- is left."""
    out: list[str] = []
    current = ""
    taken = 0
    end = arguments.index("--") if "--" in arguments else len(arguments)
    for argument in arguments[:end]:
        if argument.startswith("-") and argument != "-":
            current, taken = (argument if argument in MANY else ""), 0
            out.append(argument)
        elif current:
            out += [argument] if taken == 0 else [current, argument]
            taken += 1
        else:
            out.append(argument)
    return out + arguments[end:]
