"""The command, the figure and the notebook of forecasts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from documents import fits
from sampleruns import sample
from typer.testing import CliRunner

import gpudiag as gd
from gpudiag.cli import app
from gpudiag.errors import ConfigError
from gpudiag.forecast.parallelism.what_if import Forecast
from gpudiag.plots.forecast import THROUGHPUT
from gpudiag.simulation import Gpu

CASE = "hpo-aggressive-pruning"


@pytest.fixture(scope="module")
def made() -> Forecast:
    return gd.what_if(gd.simulate(seed=3, n_trials=60, startup_s=(5.0, 9.0)).run, [2, 6])


@pytest.fixture
def loaded_once(monkeypatch: pytest.MonkeyPatch, samples: Path) -> None:
    """The command asks the samples that other tests have read, which keep what is made of them."""

    def load(source: str, **_: object) -> gd.Run:
        return sample(Path(source).relative_to(samples).as_posix())

    monkeypatch.setattr("gpudiag.load.load_run", load)


@pytest.mark.slow
def test_command_prints_json_that_keeps_its_schema(samples: Path) -> None:
    result = CliRunner().invoke(app, ["whatif", str(samples / CASE), "--parallel", "2, 6", "--format", "json"])
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    fits(document, "forecast-2")
    assert [row["k"] for row in document["parallel"]] == [2, 4, 6]


@pytest.mark.slow
def test_command_prints_text_and_markdown(samples: Path, loaded_once: None) -> None:
    text = CliRunner().invoke(app, ["whatif", str(samples / CASE), "--parallel", "6"]).stdout
    assert "Back-test" in text and "Forecast for" in text
    markdown = CliRunner().invoke(app, ["whatif", str(samples / CASE), "--parallel", "6", "--format", "md"]).stdout
    assert "| At once |" in markdown


@pytest.mark.parametrize(
    "arguments", [["--parallel", "two"], ["--parallel", "0"], ["--format", "xml"], ["--pruner", "x("]]
)
def test_command_refuses_what_it_does_not_understand(samples: Path, loaded_once: None, arguments: list[str]) -> None:
    result = CliRunner().invoke(app, ["whatif", str(samples / CASE), *arguments])
    assert isinstance(result.exception, ConfigError)


@pytest.mark.slow
def test_more_at_once_than_memory_is_looked_at_for_is_a_gap(made: Forecast) -> None:
    run = gd.simulate(seed=3, n_trials=30, startup_s=(5.0, 9.0), gpus=(Gpu(mem_total_mib=1_000_000),)).run
    many = gd.what_if(run, [2, 33, 40])
    assert [s.k for s in many.parallel] == [2, 4, 33, 40] and many.capacity is not None
    assert many.capacity.table["k"].max() == 32
    reason = dict(many.gaps)["memory"]
    assert "up to 32 trials" in reason and "33, 40 over 1 GPU." in reason and reason in repr(many).replace("\n", " ")
    assert many.at(33).overflow.reason == reason and not many.at(33).overflow.known and many.at(2).overflow.known
    assert "33 at once would be" not in repr(many) and "memory" not in dict(made.gaps)
    fits(json.loads(many.to_json()), "forecast-2")


@pytest.mark.slow
def test_out_of_range_names_the_option(samples: Path) -> None:
    result = CliRunner().invoke(app, ["whatif", str(samples / CASE), "--parallel", "2,65"])
    assert str(result.exception) == "parallel (--parallel) must hold whole numbers from 1 to 64, but got '65'."


@pytest.mark.slow
def test_a_pipe_gets_every_column(samples: Path, loaded_once: None) -> None:
    text = CliRunner().invoke(app, ["whatif", str(samples / CASE), "--parallel", "2"], env={"COLUMNS": "60"}).stdout
    heads = [line for line in text.splitlines() if line.lstrip().startswith("At once  ")]
    assert any(line.endswith("COMPLETE/h") for line in heads) and max(map(len, text.splitlines())) <= 60
    prose = [line for line in text.splitlines() if line and not line.startswith(" ")]
    assert max(map(len, prose)) <= 60


@pytest.mark.slow
def test_the_base_of_the_ratio_is_said(samples: Path) -> None:
    made = gd.what_if(sample("memory-exhaustion"), [1])
    here, one = made.at(made.now), made.at(1)
    assert one.gain.value == pytest.approx(one.throughput.value / here.throughput.value, rel=1e-6)
    assert here.throughput.value == pytest.approx(made.rate.value)  # what was measured, so that no sentence is needed
    said = " ".join(repr(made).split())
    assert "that the model expects of 2 at once" not in said
    assert "2 (now)" in said
    assert f"Now: 2 trials at once. While 2 ran at once, {made.rate.value:.1f} (" in said


@pytest.mark.slow
def test_the_present_number_of_bounds_is_once_the_present(samples: Path) -> None:
    made = gd.what_if(sample(CASE), [2])
    row = next(line.split() for line in repr(made).splitlines() if "4 (now)" in line)
    assert row[:4] == ["4", "(now)", "53–108", "1"]
    said = " ".join(repr(made).split())
    assert "The bounds of 4 at once hold both what was measured of it and the 53.8 trials/h of the second half" in said


@pytest.mark.slow
def test_figure_holds_the_numbers_of_the_forecast(made: Forecast) -> None:
    picture = THROUGHPUT.picture("throughput", {"forecast": made})
    left, right = picture.figure.axes
    dots = {tuple(point) for collection in left.collections for point in collection.get_offsets().tolist()}
    for scenario in made.parallel:
        assert (scenario.k, scenario.throughput.value) in dots
    assert (made.now, made.rate.value) in dots
    assert "trials/h" in left.get_ylabel() and "%" in right.get_ylabel()
    assert "4 trials at once now" in picture.alt and picture.svg() == picture.svg()


@pytest.mark.slow
def test_figure_of_bounds_has_boxes() -> None:
    run = gd.simulate(seed=3, n_trials=20).run
    bounds = gd.what_if(replace(run, gpu=run.gpu.drop(columns="util_pct")), [6])
    left, _ = THROUGHPUT.picture("throughput", {"forecast": bounds}).figure.axes
    heights = sorted(patch.get_height() for patch in left.patches)
    assert heights == pytest.approx(sorted(s.throughput.high - s.throughput.low for s in bounds.parallel))


def test_sections_of_a_run_without_trials_are_one_line_each() -> None:
    from gpudiag.report._sections.forecast import SECTIONS, shown

    run = gd.simulate(seed=3, n_trials=8).run
    sections = shown(replace(run, trials=run.trials.iloc[:0], reports=run.reports.iloc[:0]))
    for name in SECTIONS.keys() - {"masthead"}:
        (line,) = filter(None, getattr(sections, name)._repr_markdown_().splitlines())
        assert "trial" in line
    assert "Capacity of" in sections.masthead._repr_markdown_()


@pytest.mark.slow
def test_the_answer_comes_first(samples: Path, loaded_once: None) -> None:
    """How many to run at once, before any table; where nothing tells, that."""
    said = CliRunner().invoke(app, ["whatif", str(samples / CASE), "--parallel", "2, 6"]).stdout
    _, first, *_ = said.splitlines()
    assert first.startswith(("Stay at 4 trials at once", "Run 2 trials at once instead of 4"))
    assert "`gpudiag whatif`" not in said and "gpudiag whatif says" not in said
    few = CliRunner().invoke(app, ["whatif", str(samples / "real-h100/one-worker"), "--parallel", "2"]).stdout
    assert few.splitlines()[1].startswith("Which number of trials at once is fastest does not follow from this log;")


@pytest.mark.slow
def test_one_screen_has_the_answer_and_the_numbers_at_once(samples: Path, loaded_once: None) -> None:
    few, whole = (
        CliRunner().invoke(app, ["whatif", str(samples / CASE), "--parallel", "2,6", *more]).stdout
        for more in ([], ["--all"])
    )
    assert 3 * len(few.splitlines()) < len(whole.splitlines()) and len(few.splitlines()) < 30
    assert whole.startswith(few.partition("Back-test")[0].partition("What crashes")[0])
    assert "--all" in few and "Memory capacity" not in few and "Memory capacity" in whole and "--all" not in whole
