"""The report of one run without a kernel: what its notebook would show, made in this process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from papermill.parameterize import parameterize_notebook

from gpudiag._load.own_outputs import check_own
from gpudiag.diagnosis import diagnose
from gpudiag.errors import ConfigError
from gpudiag.load import load_run
from gpudiag.report._notebook import pages
from gpudiag.report._notebook.locate import find_notebook
from gpudiag.report._notebook.parameters import Given, Parameters, check_parameters
from gpudiag.report._notebook.redact import redacted
from gpudiag.report._notebook.runner import DOCUMENT, JSON_PARAMETER, ReportFiles, write_report

if TYPE_CHECKING:
    from nbformat import NotebookNode

LOADS = ("telemetry", "trials", "artifacts", "study", "timezone", "columns", "period_s", "between", "gpus")
JUDGES = ("rules", "thresholds", "preset", "suppress")
"""Parameters of the notebook that are arguments of load_run, and those of diagnose."""


def report_directly(
    notebook: str, output_dir: Path, parameters: Mapping[str, Given], *, full: bool = False
) -> ReportFiles:
    """Write report.html, report.md and diagnosis.json, the same as :func:`run_notebook` does; no notebook. It takes
    what run_report takes.

    Raises InputError and ConfigError as load_run and diagnose do. Nothing was written then.
    """
    check_own(output_dir / DOCUMENT)
    given = check_parameters(find_notebook(notebook), parameters)
    if JSON_PARAMETER in given:
        raise ConfigError(f"'{JSON_PARAMETER}' is for notebooks; without one, {DOCUMENT} lies beside the report.")
    values: dict[str, Any] = {name: value for name, value in given.items() if value}
    run = load_run(values.get("run_path", ""), **{name: values[name] for name in LOADS if name in values})
    judged = {name: values[name] for name in JUDGES if name in values}
    diagnosis = diagnose(run, name=values.get("title", ""), **judged)
    shown = diagnosis.showing(values.get("sections", ""), minimal=values.get("minimal", False))
    made = _as_executed(pages.filled(notebook, shown.show), given)
    beside: dict[Path, bytes | None] = {output_dir / DOCUMENT: shown.to_json().encode()}
    return write_report(made, output_dir, beside, full=full, executed=False)


def _as_executed(notebook: NotebookNode, parameters: Parameters) -> NotebookNode:
    """With the cell of parameters, the numbers of cells and the language that execution leaves, which a page shows."""
    notebook.metadata.setdefault("papermill", {})  # papermill looks for this, and for tags of each cell
    for cell in notebook.cells:
        cell.metadata.setdefault("tags", [])
    made = parameterize_notebook(notebook, parameters)
    made.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    for number, cell in enumerate((cell for cell in made.cells if cell.cell_type == "code"), 1):
        cell.execution_count = number
    return redacted(made, parameters)
