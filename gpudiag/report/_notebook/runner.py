"""papermill runs a notebook; the executed copy becomes report.ipynb, report.html and report.md.

papermill alone would run a misspelt parameter with the default, fail on a Path and fail on braces in
a path; this runner refuses the first and copes with the others. Nothing is written before all is made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gpudiag import errors
from gpudiag._load.own_outputs import check_own, is_own
from gpudiag.errors import ConfigError, InputError, ReportError
from gpudiag.files import Content, write, write_all
from gpudiag.report._notebook import pages
from gpudiag.report._notebook.locate import find_notebook, is_shipped, read_notebook
from gpudiag.report._notebook.parameters import Given, Parameters, check_parameters, has_parameter
from gpudiag.report._notebook.redact import redacted
from gpudiag.scratch import scratch

if TYPE_CHECKING:
    from nbformat import NotebookNode
    from papermill.exceptions import PapermillExecutionError

JSON_PARAMETER = "diagnosis_json"
DOCUMENT, COMPARISON, NOTEBOOK = "diagnosis.json", "comparison.json", "report.ipynb"


class ReportFiles(NamedTuple):
    """Where a report was written; pictures of the Markdown are in ``report_files`` beside it. Without a notebook
    ``ipynb`` is None.
    """

    html: Path
    md: Path
    ipynb: Path | None = None


def run_notebook(
    name_or_path: str | Path,
    output_dir: str | Path,
    parameters: Mapping[str, Given],
    *,
    full: bool = False,
) -> ReportFiles:
    """Execute a notebook with these parameters and write the report into ``output_dir``.

    A notebook that has a parameter ``diagnosis_json`` leaves its diagnosis there: it becomes diagnosis.json beside
    the report, so that scripts need not read the notebook.

    Args:
        name_or_path: a shipped notebook ("run_report") or the path of another one.
        output_dir: made where it does not exist; files of an earlier report are replaced.
        parameters: by the names in the notebook's parameters cell. Text is read as the type of the default.
        full: no section of the Markdown report is folded.

    Raises:
        ConfigError: no such notebook, an unknown parameter, a value of the wrong type, or a diagnosis.json there that
            somebody else wrote.
        InputError, ConfigError: raised by gpudiag inside the notebook, as they would be outside. Nothing was written.
        ReportError: any other failure of a cell; the executed copy is kept and named.
    """
    check_own(Path(output_dir) / DOCUMENT)
    notebook = find_notebook(name_or_path)
    given = check_parameters(notebook, parameters)
    wants_json = has_parameter(notebook, JSON_PARAMETER) and JSON_PARAMETER not in given
    with scratch() as private:
        document = private / DOCUMENT
        asked = given | ({JSON_PARAMETER: str(document)} if wants_json else {})
        executed = _execute(notebook, asked, private, Path(output_dir))
        left = document.read_bytes() if document.is_file() else None
    if wants_json:
        _forget_json(executed)
    beside: dict[Path, bytes | None] = {}
    if left is not None or JSON_PARAMETER not in given:  # without one, an earlier report's goes: it is of another run
        beside[Path(output_dir) / DOCUMENT] = left
    return write_report(executed, Path(output_dir), beside, full=full)


def _forget_json(notebook: NotebookNode) -> None:
    """Take our own parameter, and the path of the scratch folder in it, out of the executed copy."""
    for cell in notebook.cells:
        if "injected-parameters" in cell.metadata.get("tags", []):
            cell.source = "\n".join(x for x in cell.source.split("\n") if not x.startswith(f"{JSON_PARAMETER} ="))
    notebook.metadata.papermill.get("parameters", {}).pop(JSON_PARAMETER, None)


class _Watch:
    """The notebook as it is executed, and the cell that runs: known even if the kernel dies."""

    def __init__(self, notebook: NotebookNode) -> None:
        self.notebook = notebook
        self.cell = 0
        self.has_kernel = False

    def started(self, notebook: NotebookNode) -> None:
        self.notebook, self.has_kernel = notebook, True

    def entered(self, cell: NotebookNode, cell_index: int) -> None:
        self.cell = cell_index


def _execute(notebook: Path, parameters: Parameters, scratch: Path, output_dir: Path) -> NotebookNode:
    import papermill
    from papermill.exceptions import PapermillExecutionError

    from gpudiag.report._notebook.kernel import kernel_for

    watch = _Watch(read_notebook(notebook))
    try:
        with kernel_for(scratch, own_modules=not is_shipped(notebook)) as given:
            executed = papermill.execute_notebook(
                watch.notebook,
                None,
                parameters,
                kernel_name="python3",
                progress_bar=False,
                **given,
                shutdown_kernel="immediate",
                on_notebook_start=watch.started,
                on_cell_execute=watch.entered,
            )
    except PapermillExecutionError as failure:
        raise _explain(failure, notebook.stem, watch, output_dir) from failure
    except RuntimeError as failure:  # nbclient's, for a kernel that died or never came up
        if not watch.has_kernel:
            raise ReportError(f"notebook {notebook.stem}: the kernel did not start ({failure}).") from failure
        cause = "the kernel died (often because memory ran out)"
        raise _failed(notebook.stem, watch, cause, output_dir) from failure
    return _neutral(executed, notebook.name)


def _explain(failure: PapermillExecutionError, name: str, watch: _Watch, output_dir: Path) -> Exception:
    """Our own complaint about input or configuration as it is; anything else as a ReportError."""
    own = getattr(errors, failure.ename, None)
    if isinstance(own, type) and issubclass(own, InputError | ConfigError):
        return own(failure.evalue)
    watch.cell = failure.cell_index
    return _failed(name, watch, f"{failure.ename}: {failure.evalue}", output_dir)


def _failed(name: str, watch: _Watch, cause: str, output_dir: Path) -> ReportError:
    import nbformat

    copy = output_dir / "report.failed.ipynb"
    cells = [cell for cell in watch.notebook.cells if "papermill-error-cell-tag" not in cell.metadata.get("tags", [])]
    write(copy, nbformat.writes(_neutral(watch.notebook, f"{name}.ipynb")))
    number = sum(cell.cell_type == "code" for cell in cells[: watch.cell + 1])
    section = _heading(cells[: watch.cell])
    where = f"cell {number} ({section})" if section else f"cell {number}"
    return ReportError(f"notebook {name}, {where}: {cause}; executed copy kept at {copy}")


def _heading(cells: list[NotebookNode]) -> str:
    """The last heading before a cell."""
    titles = [t for cell in cells if cell.cell_type == "markdown" for t in re.findall(r"^#+ (.+)$", cell.source, re.M)]
    return titles[-1].strip() if titles else ""


def _neutral(notebook: NotebookNode, name: str) -> NotebookNode:
    """Without passwords of storage URLs, and without this machine's paths in papermill's notes."""
    clean = deepcopy(notebook)
    redacted(clean, notebook.metadata.get("papermill", {}).get("parameters", {}))
    clean.metadata.setdefault("papermill", {}).update(input_path=name, output_path=NOTEBOOK)
    return clean


def write_report(
    notebook: NotebookNode,
    output_dir: Path,
    beside: Mapping[Path, bytes | None],
    *,
    full: bool = False,
    executed: bool = True,
) -> ReportFiles:
    """Write an executed notebook as a report, with the files ``beside`` it (None: one that is to go). One that was not
    ``executed`` is shown and not kept. What an earlier comparison left there goes.

    All is rendered before the first file is written; report.html comes last: where it lies, the others do.
    """
    import nbformat

    html = pages.html_page(notebook)
    text = nbformat.writes(notebook) if executed else None
    kept, failed = output_dir / NOTEBOOK, output_dir / "report.failed.ipynb"
    files = ReportFiles(output_dir / "report.html", output_dir / "report.md", kept if executed else None)
    compared = output_dir / COMPARISON
    earlier: dict[Path, bytes | None] = {compared: None} if is_own(compared) else {}
    others = earlier | dict(beside)
    more: list[tuple[Path, Content]] = [*others.items(), (kept, text), (failed, None), (files.html, html)]
    write_all(output_dir, chain(pages.markdown_files(files.md, notebook, full=full), more))
    return files
