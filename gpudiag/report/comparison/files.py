"""A comparison that was made, as the files of a report: nothing runs again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gpudiag._load.own_outputs import check_own
from gpudiag.files import Content, write_all
from gpudiag.report._notebook import pages
from gpudiag.report._notebook.parameters import Given, as_code
from gpudiag.report._notebook.redact import redacted
from gpudiag.report._notebook.runner import DOCUMENT

if TYPE_CHECKING:
    from nbformat import NotebookNode

INJECTED = "injected-parameters"
"""Tag of the cell that papermill would put behind that of the defaults."""


def write_files(notebook: NotebookNode, folder: Path, parameters: Mapping[str, Given]) -> tuple[Path, Path, Path]:
    """Write report.html, report.md with its pictures and report.ipynb, whose parameters make the same report again.

    All is rendered before the first file is written. Passwords of storage URLs stay out of it.
    """
    import nbformat

    plain = {name: as_code(name, value) for name, value in parameters.items()}
    source = "\n".join(f"{name} = {value!r}" for name, value in plain.items())
    cell = nbformat.v4.new_code_cell(source, id=INJECTED, metadata={"tags": [INJECTED]})
    defaults = next(i for i, one in enumerate(notebook.cells) if "parameters" in one.metadata.get("tags", []))
    notebook.cells.insert(defaults + 1, cell)
    redacted(notebook, plain)
    html, text = pages.html_page(notebook), nbformat.writes(notebook)
    paths = folder / "report.html", folder / "report.md", folder / "report.ipynb"
    failed = folder / "report.failed.ipynb"
    more: list[tuple[Path, Content]] = [(folder / DOCUMENT, None), (paths[2], text), (failed, None), (paths[0], html)]
    check_own(folder / DOCUMENT)
    write_all(folder, (item for part in (pages.markdown_files(paths[1], notebook), more) for item in part))
    return paths
