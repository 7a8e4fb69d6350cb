"""A comparison that was made, as the files of a report: nothing runs again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gpudiag._load.own_outputs import check_own
from gpudiag.report._notebook.parameters import Given, as_code
from gpudiag.report._notebook.redact import redacted
from gpudiag.report._notebook.runner import COMPARISON, DOCUMENT, write_report

if TYPE_CHECKING:
    from nbformat import NotebookNode

INJECTED = "injected-parameters"
"""Tag of the cell that papermill would put behind that of the defaults."""


def write_files(
    notebook: NotebookNode, folder: Path, parameters: Mapping[str, Given], document: str
) -> tuple[Path, ...]:
    """Write report.html, report.md with its pictures, report.ipynb, whose parameters make the same report again, and
    comparison.json with the document; return their paths.

    All is rendered before the first file is written. Passwords of storage URLs stay out of it.
    """
    import nbformat

    plain = {name: as_code(name, value) for name, value in parameters.items()}
    source = "\n".join(f"{name} = {value!r}" for name, value in plain.items())
    cell = nbformat.v4.new_code_cell(source, id=INJECTED, metadata={"tags": [INJECTED]})
    defaults = next(i for i, one in enumerate(notebook.cells) if "parameters" in one.metadata.get("tags", []))
    notebook.cells.insert(defaults + 1, cell)
    redacted(notebook, plain)
    other, own = folder / DOCUMENT, folder / COMPARISON
    check_own(other)
    check_own(own)
    return (*filter(None, write_report(notebook, folder, {other: None, own: document.encode()}, full=True)), own)
