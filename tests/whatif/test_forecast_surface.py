"""The command, the figure and the notebook of forecasts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

import gpudiag as gd
from gpudiag.cli import app
from gpudiag.errors import ConfigError
from gpudiag.plots.forecast import THROUGHPUT
from gpudiag.report.forecast import schema
from gpudiag.whatif.forecast import Forecast

CASE = "hpo-aggressive-pruning"


@pytest.fixture(scope="module")
def made() -> Forecast:
    return gd.what_if(gd.simulate(seed=3, n_trials=60, startup_s=(5.0, 9.0)).run, [2, 6])


def test_command_prints_json_that_keeps_its_schema(samples: Path) -> None:
    result = CliRunner().invoke(app, ["whatif", str(samples / CASE), "--parallel", "2, 6", "--format", "json"])
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    jsonschema.validate(document, schema())
    assert [row["k"] for row in document["parallel"]] == [2, 4, 6]


@pytest.mark.slow
def test_command_prints_text_and_markdown(samples: Path) -> None:
    text = CliRunner().invoke(app, ["whatif", str(samples / CASE), "--parallel", "6"]).stdout
    assert "Back-test" in text and "Forecast for" in text
    markdown = CliRunner().invoke(app, ["whatif", str(samples / CASE), "--parallel", "6", "--format", "md"]).stdout
    assert "| At once |" in markdown


@pytest.mark.parametrize(
    "arguments", [["--parallel", "two"], ["--parallel", "0"], ["--format", "xml"], ["--pruner", "x("]]
)
def test_command_refuses_what_it_does_not_understand(samples: Path, arguments: list[str]) -> None:
    result = CliRunner().invoke(app, ["whatif", str(samples / CASE), *arguments])
    assert isinstance(result.exception, ConfigError)


def test_figure_holds_the_numbers_of_the_forecast(made: Forecast) -> None:
    picture = THROUGHPUT.picture("throughput", {"forecast": made})
    left, right = picture.figure.axes
    dots = {tuple(point) for collection in left.collections for point in collection.get_offsets().tolist()}
    for scenario in made.parallel:
        assert (scenario.k, scenario.throughput.value) in dots
    assert (made.now, made.rate.value) in dots
    assert "trials/h" in left.get_ylabel() and "%" in right.get_ylabel()
    assert "4 trials at once now" in picture.alt and picture.svg() == picture.svg()


def test_figure_of_bounds_has_boxes() -> None:
    run = gd.simulate(seed=3, n_trials=20).run
    bounds = gd.what_if(replace(run, gpu=run.gpu.drop(columns="util_pct")), [6])
    left, _ = THROUGHPUT.picture("throughput", {"forecast": bounds}).figure.axes
    heights = sorted(patch.get_height() for patch in left.patches)
    assert heights == pytest.approx(sorted(s.throughput.high - s.throughput.low for s in bounds.parallel))


@pytest.mark.slow
def test_notebook_becomes_a_report(samples: Path, tmp_path: Path) -> None:
    from gpudiag.report.notebooks import run_notebook

    files = run_notebook("capacity_report", tmp_path, {"run_path": samples / "memory-exhaustion", "parallel": "2,4"})
    text = files.md.read_text()
    assert "Traceback" not in text and "| At once |" in text
    assert "Throughput in trials per hour" in files.html.read_text()
