"""Notebooks that ship: stripped, commented, without logic of their own, and they run."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import nbformat
import papermill
import pytest
from notebookchain import run_chain
from sampleruns import diagnosed, report_of

import gpudiag as gd
from gpudiag.report._notebook import pages
from gpudiag.report._notebook.runner import run_notebook
from gpudiag.report.sections import SECTIONS

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SAMPLES = [
    path.parent.relative_to(ROOT / "data" / "samples").as_posix()
    for path in sorted((ROOT / "data" / "samples").rglob("run.toml"))
]


def code(path: Path) -> list[nbformat.NotebookNode]:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_not_committed(path: Path) -> None:
    for cell in code(path):
        assert cell.outputs == [] and cell.execution_count is None
    assert set(nbformat.read(path, as_version=4).metadata) == {"kernelspec", "language_info"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_are_calls_not_programs(path: Path) -> None:
    for cell in code(path):
        if "parameters" not in cell.metadata.get("tags", []):
            assert len(cell.source.splitlines()) <= 2, cell.source
        for node in ast.walk(ast.parse(cell.source)):
            assert not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda | ast.For | ast.If), cell.source


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_parameter_is_explained(path: Path) -> None:
    (cell,) = [cell for cell in code(path) if "parameters" in cell.metadata.get("tags", [])]
    parameters = papermill.inspect_notebook(path)
    assert list(parameters) == re.findall(r"^(\w+) = ", cell.source, re.MULTILINE)
    assert all(known["help"] for known in parameters.values())
    assert all(known["inferred_type_name"] != "None" for known in parameters.values())


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_section_has_a_heading_and_prose_says_something(path: Path) -> None:
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            heading, _, prose = cell.source.partition("\n\n")
            assert re.match(r"#{1,2} \S", heading) and (not prose or len(prose) > 20)


def test_run_report_shows_every_section_in_order() -> None:
    shown = re.findall(
        r"diagnosis\.show\.(\w+)", "\n".join(cell.source for cell in code(ROOT / "notebooks/run_report.ipynb"))
    )
    assert shown == list(SECTIONS)


@pytest.mark.many
@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_run_report_fits_every_sample(name: str) -> None:
    """Filled in without a kernel; that execution shows the same is tested on one sample below."""
    made = report_of(name)
    assert (made / "report.html").stat().st_size < 5_000_000
    text = (made / "report.md").read_text(encoding="utf-8")
    assert "Traceback" not in text and re.search(r"\bnan\b", text) is None
    for path in re.findall(r"\]\(([^)#]+)\)", text):
        assert (made / path).exists()


FOR = {
    "gpu_report": ["tiny-batch-laptop"],
    "compare_report": ["tiny-batch-laptop"],
    "hpo_report": ["hpo-aggressive-pruning"],
    "capacity_report": ["memory-exhaustion"],
    "tour": ["real-h100/two-workers"],
    "ad_hoc": ["healthy"],
}


@pytest.mark.slow
def test_a_notebook_runs_on_what_it_is_for_and_on_what_has_data_for_it(
    samples: Path, tmp_path: Path, kept_kernel: None
) -> None:
    """The laptop's run has no trials: a notebook about trials is not made for it."""
    asked = {
        name: {run.replace("/", "-"): samples / run for run in {*runs, "tiny-batch-laptop"}}
        for name, runs in FOR.items()
    }
    said = run_chain(asked, tmp_path)
    assert set(said) == {(name, run.replace("/", "-")) for name, runs in FOR.items() for run in runs}
    for about, case in said.items():
        assert case.complaints == [] and case.stderr == "", about
        assert len(case.text) > 2000 and case.pictures >= 1, about


@pytest.mark.slow
def test_the_batch_index_lists_what_is_below_a_folder(tmp_path: Path, kept_kernel: None) -> None:
    diagnosis = diagnosed("healthy")
    diagnosis.save(tmp_path / "reports" / "mine" / "diagnosis.json")
    files = run_notebook("batch_index", tmp_path / "out", {"reports_path": tmp_path / "reports"})
    assert "| healthy |" in files.md.read_text()


@pytest.mark.slow
def test_a_report_without_a_notebook_is_the_same(samples: Path, tmp_path: Path, gpudiag, kept_kernel: None) -> None:
    """What execution shows is what the diagnosis shows without a kernel; of a run with trials. In tests/test_readme.py,
    papermill shows all sections.
    """
    sample, out = str(samples / "healthy"), tmp_path / "report"
    given = (
        "report",
        sample,
        "-o",
        str(out),
        "-p",
        "title=<b>A</b> title",
        "-p",
        "theme=dark",
        "-p",
        "minimal=true",
        "--set",
        "gpu-unused.max_util_pct=2",
    )
    assert gpudiag(*given)[0] == 0
    names = ("report.html", "report.md", "diagnosis.json")
    executed = {name: (out / name).read_bytes() for name in names}
    code, _, err = gpudiag(*given, "--no-notebook")
    assert code == 0 and "report.ipynb" not in err
    assert [name for name in names if (out / name).read_bytes() != executed[name]] == []
    assert not (out / "report.ipynb").exists(), "it is of the report before"


def test_a_report_without_a_notebook_asks_for_none(samples: Path, tmp_path: Path, gpudiag) -> None:
    sample = str(samples / "tiny-batch-laptop")
    code, _, err = gpudiag("report", sample, "--no-notebook", "--notebook", "gpu_report")
    assert code == 2 and err == "gpudiag: got --no-notebook and --notebook gpu_report; give one or the other.\n"
    code, _, err = gpudiag("report", sample, "--no-notebook", "-o", str(tmp_path / "r"), "-p", "titel=x")
    assert code == 2 and "did you mean 'title'?" in err and not (tmp_path / "r").exists()


@pytest.mark.slow
def test_the_fleet_report_shows_what_the_table_shows_without_a_kernel(
    samples: Path, tmp_path: Path, kept_kernel: None
) -> None:
    table = gd.fleet(samples / "idle-second-gpu", tmp_path / "fleet")
    files = run_notebook("fleet_report", tmp_path / "out", {"fleet_path": tmp_path / "fleet", "by": "host"})
    text = files.md.read_text(encoding="utf-8")
    assert text == pages.markdown_page(pages.filled("fleet_report", table.divided_by("host").show)).text
    assert "A GPU was idle while another one worked" in text
