"""Parameters of notebooks: what the cell of one has, and values as that cell takes them."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypedDict

from gpudiag.errors import ConfigError, nearest
from gpudiag.plain_data import Json, JsonObject
from gpudiag.report._notebook.locate import read_notebook

Parameter = Json
"""A value that papermill can write as code: text, numbers, truth values and None, lists and mappings of them."""
Parameters = JsonObject
Given = Parameter | Path | Sequence[Path | str]
"""A value as people give it: paths become text."""


class KnownParameter(TypedDict):
    """What papermill says of a parameter."""

    name: str
    inferred_type_name: str
    default: str
    help: str


def check_parameters(notebook: Path, given: Mapping[str, Given]) -> Parameters:
    """The parameters as the notebook's cell takes them. Raises ConfigError before anything runs."""
    legal = {name: known["default"] for name, known in known_parameters(notebook).items()}
    for name in given:
        if name not in legal:
            hint = nearest(name, legal) if legal else "it has none"
            raise ConfigError(f"notebook {notebook.stem} has no parameter '{name}'; {hint}")
    return {name: _typed(name, as_code(name, value), legal[name]) for name, value in given.items()}


def has_parameter(notebook: Path, name: str) -> bool:
    """Whether the notebook's parameters cell has one of this name."""
    return name in known_parameters(notebook)


def known_parameters(notebook: Path) -> Mapping[str, KnownParameter]:
    """The parameters cell as papermill sees it; given the content, braces in the path mean nothing."""
    import papermill

    known: Mapping[str, KnownParameter] = papermill.inspect_notebook(read_notebook(notebook))
    return known


def as_code(name: str, value: Given) -> Parameter:
    """A value that papermill can write as code. Raises ConfigError for any other."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, list | tuple):
        return [as_code(name, item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): as_code(name, item) for key, item in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ConfigError(f"parameter '{name}' must be text, a number, a list or a mapping, but got {value!r}.")


def _typed(name: str, value: Parameter, default: str) -> Parameter:
    """Text for a parameter whose default is a number or a truth value is read as JSON, for a list split at commas."""
    try:
        kind = type(ast.literal_eval(default))
    except (ValueError, SyntaxError):
        return value
    if kind is str and isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str) or kind in (str, type(None)):
        return value
    if kind is list and not value.lstrip().startswith("["):
        return [item.strip() for item in value.split(",") if item.strip()]
    read: Parameter = None
    with suppress(json.JSONDecodeError):
        read = json.loads(value.lower() if kind is bool else value)
    if type(read) is kind or (kind is float and type(read) is int):
        return read
    raise ConfigError(f"parameter '{name}' must be like {default}, but got {value!r}.")
