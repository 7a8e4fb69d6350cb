"""Faults of gpudiag itself that a written report tells of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from gpudiag import __version__
from gpudiag.errors import InputError
from gpudiag.faults import Fault
from gpudiag.report._notebook.runner import DOCUMENT, NOTEBOOK


class _Noted(BaseModel):
    error: Fault | None = None


class _Metadata(BaseModel):
    gpudiag: _Noted = _Noted()


class _Output(BaseModel):
    metadata: _Metadata = _Metadata()


class _Cell(BaseModel):
    outputs: tuple[_Output, ...] = ()


class _Executed(BaseModel):
    """What is read of an executed notebook."""

    cells: tuple[_Cell, ...] = ()


class _Document(BaseModel):
    """What is read of a diagnosis."""

    errors: tuple[Fault, ...] = ()


M = TypeVar("M", bound=BaseModel)


def errors_of(folder: Path) -> list[Fault]:
    """Faults that the report in a folder tells of: those of its diagnosis, its sections and its figures.

    Raises InputError where a file of it is not as gpudiag writes it.
    """
    outputs = [output for cell in _read(folder / NOTEBOOK, _Executed).cells for output in cell.outputs]
    shown = [output.metadata.gpudiag.error for output in outputs]
    return [*_read(folder / DOCUMENT, _Document).errors, *(fault for fault in shown if fault is not None)]


def _read(path: Path, kind: type[M]) -> M:
    """The file's content, as empty where there is none."""
    if not path.is_file():
        return kind()
    try:
        # Python's own JSON: the path of a run whose name is not UTF-8 holds what pydantic's refuses.
        return kind.model_validate(json.loads(path.read_bytes()))
    except (ValidationError, ValueError) as error:
        raise InputError(f"{path}: is no file of a report as gpudiag {__version__} writes it.") from error
