"""What a terminal shows fits it: no line is wider, and nothing is cut, in any command over any sample."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import cycle
from pathlib import Path

import pytest
from commandline import called
from sampleruns import diagnosed

from gpudiag.report._render.terminal import render
from gpudiag.report.sections import SECTIONS
from gpudiag.report.text import brief, screen, whole
from gpudiag.rules import RULES

RUNS = (
    "healthy",
    "hpo-aggressive-pruning",
    "starved-input-pipeline/before",
    "starved-input-pipeline/after",
    "idle-second-gpu/baseline",
    "idle-second-gpu/experiment",
    "memory-exhaustion",
    "tiny-batch-laptop",
)
REAL = (
    "optuna/sqlite/Sergey-Baranenkov__mag-diploma__example-study@2cf13960.db",
    "telemetry/homemade-csv/karpathy__nanoGPT__gpu_metrics.8gpu-baseline.csv",
    "telemetry/homemade-csv/AkshayRoyal__gpu-usage__gpu_usage_cleaned.csv",
    "telemetry/homemade-csv/UdonsiKalu__logs__gpu_monitor.prose.log",
    "telemetry/homemade-csv/Unshapendwarf__SlowFast__watt_gpu_baseline.keyvalue.out",
    "telemetry/dcgm-exporter/NVIDIA__dcgm-exporter__README-excerpt.prom",
    "telemetry/gpustat/alifarahani1998__IO-Workload-Characterization__gpustat.txt",
    "telemetry/homemade-csv/ilapetrovic__best-llm-finder-pipeline__gpu_usage_log.csv",
)
WIDTHS = (60, 80, 120)


def too_wide(text: str, width: int, code: Iterable[str] = ()) -> list[str]:
    """Lines beyond the width that are neither made so by one long word, such as a path, nor code to copy."""
    copied = {line.strip() for block in code for line in block.splitlines()}
    wide = [line for line in text.splitlines() if len(line) > width and line.strip() not in copied]
    return [line for line in wide if max(map(len, line.split())) <= width // 2]


def code_of(name: str) -> list[str]:
    return [change.code for one in diagnosed(name).document.recommendations for change in one.changes]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", RUNS)
def test_a_diagnosis_fits(name: str, width: int) -> None:
    document = diagnosed(name).document
    for blocks in (brief(document), screen(document), whole(document)):
        text = render(blocks, width)
        assert too_wide(text, width) == [] and "…" not in text


@pytest.mark.parametrize("width", WIDTHS[::2])
@pytest.mark.parametrize("name", RUNS)
def test_the_whole_report_in_a_terminal_fits(name: str, width: int) -> None:
    """Each section as a notebook without HTML prints it, with its code whole."""
    diagnosis = diagnosed(name)
    for name_of, section in SECTIONS.items():
        text = render(section(diagnosis.document), width)
        assert too_wide(text, width, code_of(name)) == [] and "…" not in text, name_of


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(width: int, *arguments: object) -> str:
        monkeypatch.setenv("COLUMNS", str(width))
        called(monkeypatch, *arguments)
        return capsys.readouterr().out  # an error is one line, which a log can search

    return run


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS[::2])
def test_commands_without_a_run_fit(printed: Callable[..., str], width: int) -> None:
    for command in (("rules", "list"), ("notebooks", "list"), ("demo", "--list"), ("--help",), ("diagnose", "--help")):
        assert too_wide(printed(width, *command), width) == [], command
    for rule in RULES:
        assert too_wide(printed(width, "rules", "explain", rule.id), width) == [], rule.id


@pytest.mark.slow
@pytest.mark.parametrize(("name", "width"), [*zip(RUNS, cycle(WIDTHS))])
def test_inspect_fits(printed: Callable[..., str], samples: Path, name: str, width: int) -> None:
    assert too_wide(printed(width, "inspect", samples / name), width) == []


@pytest.mark.many
@pytest.mark.slow
@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("name", RUNS)
def test_a_forecast_fits(printed: Callable[..., str], samples: Path, name: str, width: int) -> None:
    text = printed(width, "whatif", samples / name, "--parallel", "1,2,3,4")
    code = [line for line in text.splitlines() if re.search(r"_MIB\b|trial\.params|raise optuna", line)]
    assert too_wide(text, width, code) == [] and "…" not in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pair", "width"), [(("starved-input-pipeline/before", "starved-input-pipeline/after"), 60),
                        (("idle-second-gpu/baseline", "idle-second-gpu/experiment"), 80)]
)  # fmt: skip
def test_a_comparison_fits(printed: Callable[..., str], samples: Path, pair: tuple[str, str], width: int) -> None:
    text = printed(width, "compare", *(samples / name for name in pair))
    assert too_wide(text, width) == [] and "…" not in text


@pytest.mark.many
@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_files_fit(printed: Callable[..., str], corpus: Path, name: str) -> None:
    for width in (60, 80):
        for command in (("diagnose",), ("diagnose", "--all"), ("inspect",)):
            text = printed(width, *command, corpus / name)
            assert too_wide(text, width) == [] and "…" not in text, command


@pytest.mark.slow
def test_what_is_written_is_said_in_lines_that_fit(printed: Callable[..., str], samples: Path, tmp_path: Path) -> None:
    run = samples / "tiny-batch-laptop"
    assert too_wide(printed(80, "convert", run / "gpu.csv", "-o", tmp_path / "gpu.parquet"), 80) == []
    for form in ("perfetto", "parquet", "csv", "openmetrics"):
        assert too_wide(printed(80, "export", run, "--to", form, "-o", tmp_path / form), 80) == []
    assert too_wide(printed(80, "diagnose", run, "--plan-out", tmp_path / "plan.json"), 80) == []
    assert too_wide(printed(80, "plans", tmp_path), 80) == []
