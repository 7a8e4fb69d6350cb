"""Options of commands: each is declared once, checked before any work, and reaches the notebook or the processes of a
batch as it was given.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from commandline import called

from gpudiag.cli._options import Inputs, Judging, ReadingOptions, as_typed
from gpudiag.report import batch
from gpudiag.report._notebook import runner
from gpudiag.report.index import Index

GIVEN = ["--columns", "time,gpu,util_pct", "--period", "5", "--timezone", "Asia/Taipei", "--preset", "jobstats"]
LIMITS = ["--set", "gpu-unused.max_util_pct=2", "--set", "trial-gaps.max_gap_s=10, memory-near-limit.high_pct=95"]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What was asked of the runner of notebooks, and of the batch."""
    kept: list[tuple[Any, ...]] = []

    def notebook(name: str, folder: Path, parameters: dict[str, Any], *, full: bool = False) -> runner.ReportFiles:
        kept.append((name, runner.check_parameters(runner.find_notebook(name), parameters)))
        return runner.ReportFiles(folder / "report.html", folder / "report.md", folder / "report.ipynb")

    def many(jobs: list[Any], output: Path, options: list[str], **more: Any) -> Index:
        kept.append((jobs, list(options)))
        return Index.of([])

    monkeypatch.setattr(runner, "run_notebook", notebook)
    monkeypatch.setattr(batch, "report_all", many)
    return kept


@pytest.mark.parametrize("notebook", ["run_report", "gpu_report"])
def test_a_report_reads_and_judges_as_it_was_told(
    seen: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, notebook: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert called(monkeypatch, "report", "--telemetry", "a.csv", "--notebook", notebook, *GIVEN, *LIMITS) == 0
    ((name, parameters),) = seen
    assert name == notebook
    assert parameters["telemetry"] == ["a.csv"]
    assert (parameters["columns"], parameters["period_s"]) == (["time", "gpu", "util_pct"], 5.0)
    assert (parameters["timezone"], parameters["preset"]) == ("Asia/Taipei", "jobstats")
    assert parameters["thresholds"] == LIMITS[1::2]


def test_a_notebook_of_single_inputs_gets_what_run_toml_says(
    seen: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "run.toml").write_text('telemetry = ["a.csv"]\ncolumns = ["time", "util_pct"]\nperiod_s = 2\n')
    assert called(monkeypatch, "report", tmp_path, "-o", tmp_path / "out", "--notebook", "gpu_report") == 0
    ((_, parameters),) = seen
    assert (parameters["columns"], parameters["period_s"]) == (["time", "util_pct"], 2.0)


def test_a_batch_hands_on_every_option(
    seen: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, samples: Path
) -> None:
    for name in ("one", "two"):
        shutil.copytree(samples / "healthy", tmp_path / name)
    more = ["--study", "s", "--rules", "mine.py", "-p", "theme=dark"]
    runs = [tmp_path / "one", tmp_path / "two"]
    assert called(monkeypatch, "report", *runs, "-o", tmp_path / "out", *GIVEN, *LIMITS, *more) == 0
    ((jobs, options),) = seen
    assert [job.run for job in jobs] == runs
    assert options == [
        *("--notebook=run_report", "--study=s", "--timezone=Asia/Taipei", "--columns=time,gpu,util_pct"),
        *("--period=5.0", "--preset=jobstats", f"--set={LIMITS[1]}", f"--set={LIMITS[3]}", "--rules=mine.py"),
        "--parameter=theme=dark",
    ]


def test_what_was_not_given_is_not_handed_on() -> None:
    assert as_typed(Inputs(), ReadingOptions(), Judging()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("diagnose", "--format", "jsn"),
            "--format must be one of text, json, md, junit, github, gitlab, sarif, but got 'jsn'",
        ),
        (("diagnose", "--fail-on", "warn"), "did you mean 'warning'?"),
        (("report", "--fail-on", "warn"), "did you mean 'warning'?"),
        (("compare", ".", ".", "--fail-on", "worse"), "--fail-on must be one of regression, invalid, never"),
        (("whatif", "--format", "junit"), "--format must be one of text, json, md, but got 'junit'"),
        (("plans", ".", "--format", "md"), "--format must be one of text, json, but got 'md'"),
        (("rules", "list", "--format", "html"), "--format must be one of text, json, md, but got 'html'"),
        (("inspect", ".", "--format", "md"), "--format must be one of text, json, but got 'md'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_choice_that_is_none_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    arguments: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert called(monkeypatch, *arguments) == 2
    assert said in capsys.readouterr().err


def test_the_former_name_of_a_level_is_taken(
    seen: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert called(monkeypatch, "report", "--telemetry", "a.csv", "--fail-on", "info") == 0


@pytest.mark.parametrize(
    "flag",
    [
        *("--telemetry", "--trials", "--artifacts", "--study", "--timezone", "--columns", "--period"),
        *("--preset", "--set", "--suppress", "--rules", "--strict", "--debug"),
    ],
)
def test_an_option_of_several_commands_is_declared_once(root: Path, flag: str) -> None:
    files = sorted((root / "gpudiag" / "cli").glob("*.py"))
    found = [path.name for path in files for _ in re.findall(rf'Option\(\s*"{flag}"', path.read_text())]
    assert found == ["_options.py"]
