"""The document, its renderings and its figures."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
from batchruns import batch, with_telemetry
from documents import fits

from gpudiag.comparison.compare import Comparison, compare
from gpudiag.errors import ConfigError, NotMeasurable
from gpudiag.plots.comparison import COMPARISON_PLOTS
from gpudiag.report._notebook import pages
from gpudiag.report._notebook.runner import run_notebook
from gpudiag.report._render.terminal import render
from gpudiag.report.comparison import SECTIONS, summary, text
from gpudiag.report.comparison.document import QuantityEntry
from gpudiag.report.comparison.headline import headline
from gpudiag.report.comparison.sections import signed
from gpudiag.run import Run, RunInfo
from gpudiag.schema import GPU, conform

A = np.random.default_rng(41).lognormal(3, 0.4, 30)
UNIT = re.compile(r"\[.+\]$")


def make(name: str, factor: float, **more: object) -> Run:
    return with_telemetry(batch(name, factor * A, workers=2, params={"p": 1}, **more), [80, 95, 60])  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def pair() -> Comparison:
    found = compare(make("before", 1.0), make("after", 0.8))
    assert isinstance(found, Comparison)
    return found


@pytest.fixture(scope="module")
def odd() -> Comparison:
    """Unnamed items of a run without telemetry, with a hostile name."""
    a = batch("a <b>|x| $y$\n\x1b[31m", A, named=False)
    b = batch("a <b>|x| $y$\n\x1b[31m", A[:3], named=False)
    found = compare(a, b)
    assert isinstance(found, Comparison)
    return found


@pytest.mark.slow
def test_the_document_is_of_its_schema(pair: Comparison, odd: Comparison) -> None:
    for found in (pair, odd):
        document = json.loads(found.to_json())
        fits(document, "comparison-1")
        assert document == found.to_dict()
        assert set(document) >= {"gate", "verdict", "quantities", "ledger", "plan"}


@pytest.mark.slow
def test_the_same_runs_give_the_same_document(pair: Comparison) -> None:
    again = compare(make("before", 1.0), make("after", 0.8))
    assert again.to_json() == pair.to_json() and again.summary() == pair.summary()


@pytest.mark.slow
def test_the_verdict_stands_with_its_interval(pair: Comparison) -> None:
    held = pair.quantity("duration")
    line = pair.headline["verdict"]
    assert line.startswith(f"FASTER: after is {1 / held.ratio:.2f}× faster (")
    low, high = map(float, re.findall(r"[0-9.]+", line.partition("(")[2].partition(")")[0]))
    assert (low, high) == pytest.approx((1 / held.high, 1 / held.low), abs=0.011)
    assert len(pair.headline["sentences"]) == 3
    assert f"{held.ratio:.2f}" in summary(pair.document)


@pytest.mark.parametrize(
    ("others", "said"),
    [
        (0, "No other quantity could be tested."),
        (1, "No difference shows in 1 other quantity that was tested."),
        (3, "No difference shows in 3 other quantities that were tested."),
    ],
)
def test_what_was_tested_beside_the_quantity_of_the_verdict_is_counted(
    pair: Comparison, others: int, said: str
) -> None:
    known = pair.document
    held = next(q for q in known.quantities if q.name == known.leader)
    alike = [replace(held, name=f"q{n}", verdict="no evidence", p=0.5) for n in range(others)]
    quantities = (replace(held, verdict="no evidence", p=0.5), *alike, replace(held, name="untested", p=None))
    unmoved = tuple(replace(q, verdict="no evidence") for q in quantities)
    assert headline(replace(known, quantities=unmoved, consistency=())).sentences[1] == said


def test_throughput_that_differs_is_said_where_another_time_leads(pair: Comparison) -> None:
    """And what is a difference by itself, where none is among all tests."""
    held = next(q for q in pair.document.quantities if q.name == pair.document.leader)
    led = replace(held, verdict="no evidence")
    hourly = replace(
        held, name="throughput", title="Items per hour", unit="1/h", baseline=40.0, experiment=80.0, ratio=2.0,
        low=1.5, high=2.6, verdict="faster", method="",
    )  # fmt: skip
    each = replace(hourly, name="time_per_item", title="Time per item")
    failed = replace(
        held, name="failures", title="FAIL", unit="%", baseline=0.0, experiment=10.0, p=0.007, p_adjusted=0.08,
        verdict="no evidence",
    )  # fmt: skip

    def said(*quantities: QuantityEntry) -> str:
        return headline(replace(pair.document, quantities=(led, *quantities), consistency=())).sentences[1]

    assert said(each, hourly).startswith("Faster by items per hour: 2.00 (1.50–2.60) times (40 1/h to 80 1/h).")
    assert "by itself, but not among so many tests: FAIL (0 % to 10 %, p = 0.007)." in said(failed)
    assert "by itself" not in said(replace(failed, p=0.06)) + said(replace(failed, p_adjusted=0.04))


@pytest.mark.slow
def test_a_summary_fits_a_comment(pair: Comparison, samples: Path) -> None:
    folder = samples / "idle-second-gpu"
    for found in (pair, compare(folder / "baseline", folder / "experiment")):
        told = found.summary()
        assert len(told) < 5000 and len(told.splitlines()) < 40
        assert told.startswith("**") and "| quantity |" in told


@pytest.mark.slow
def test_hostile_names_are_text_everywhere(odd: Comparison) -> None:
    for told in (render(text(odd.document)), odd.summary(), odd.to_markdown()):
        assert "\x1b" not in told
    assert "<b>" not in odd.summary() and "<b>" not in odd.show.verdict._repr_html_()
    assert max(map(len, render(text(odd.document), 60).splitlines())) <= 110


@pytest.mark.slow
def test_a_median_of_ratios_is_not_called_that_of_the_means() -> None:
    slow = np.where(np.arange(len(A)) == 4, 300, 0.7) * A
    plain, outlier = (compare(batch("a", A, named=False), batch("b", b, named=False)) for b in (0.7 * A, slow))
    held = next(q for q in outlier.document.quantities if q.name == "duration")
    assert held.method == "Hodges-Lehmann (median of pairwise ratios), unpaired"
    for made, told in ((outlier, True), (plain, False)):
        for said in (made.to_markdown(), made.summary(), render(text(made.document)), made.to_json()):
            assert ("median of pairwise ratios" in " ".join(said.split())) is told


def test_colour_only_where_asked(pair: Comparison) -> None:
    assert "\x1b" in render(text(pair.document), color=True) and "\x1b" not in render(text(pair.document))


@pytest.mark.parametrize("name", list(SECTIONS))
def test_every_section_shows_itself(name: str, pair: Comparison, odd: Comparison) -> None:
    for found in (pair, odd):
        shown = getattr(found.show, name)
        assert "nan" not in re.findall(r"\w+", shown._repr_markdown_())
        assert list(shown.outputs()) or name == "course"


@pytest.mark.slow
@pytest.mark.parametrize("name", list(COMPARISON_PLOTS))
def test_figures_have_units_words_and_equal_bytes(name: str, pair: Comparison) -> None:
    picture = pair.picture(name)
    labels = [label for ax in picture.figure.axes for label in (ax.get_xlabel(), ax.get_ylabel()) if label]
    assert labels and all(UNIT.search(label) for label in labels)
    assert re.search(r"\d", picture.alt) and picture.caption
    assert picture.svg() == pair.picture(name).svg()


@pytest.mark.slow
def test_figures_show_the_numbers(pair: Comparison) -> None:
    dots = pair.picture("durations").figure.axes[0].collections[0].get_offsets()
    assert np.allclose(np.sort(dots[:, 1] / dots[:, 0]), 0.8, rtol=1e-4)
    bars = pair.picture("ledger_change").figure.axes[0].patches
    total = sum(cell.baseline_gpu_h for cell in pair.ledger)
    assert bars[0].get_width() == pytest.approx(total)
    assert bars[-1].get_width() == pytest.approx(sum(cell.experiment_gpu_h for cell in pair.ledger))
    top, *_ = pair.picture("timelines").figure.axes
    assert top.get_xlim()[1] * 60 == pytest.approx(1.01 * pair.baseline.wall_s, rel=1e-3)


@pytest.mark.slow
def test_a_figure_without_data_is_left_out(odd: Comparison) -> None:
    for name in ("ledger_change", "distributions"):
        with pytest.raises(NotMeasurable):
            odd.picture(name)
    bare = compare(replace(make("a", 1.0), trials=Run().trials), replace(make("b", 1.0), trials=Run().trials))
    with pytest.raises(NotMeasurable):
        bare.picture("timelines")


@pytest.mark.slow
def test_without_trials_an_idle_gpu_is_idle_and_no_difference_is_none() -> None:
    """Two recordings of one hour: busy for 50 minutes of it, then for 40."""
    first, second = (_alone(name, busy_s) for name, busy_s in (("a", 3000), ("b", 2400)))
    bare = compare(first, second)
    rows = bare.show.ledger._repr_markdown_()
    assert "| idle | 0.17 GPU-h | 0.33 GPU-h | +0.17 GPU-h |" in rows and "no trial" not in rows


def _alone(name: str, busy_s: int) -> Run:
    """An hour of one GPU every 10 s, at 80 % first and then at 0."""
    seconds = np.arange(0, 3600, 10.0)
    time = pd.Timestamp("2026-03-01 10:00", tz="UTC") + pd.to_timedelta(seconds, unit="s")
    util = np.where(seconds < busy_s, 80.0, 0.0)
    frame = pd.DataFrame({"time": time, "gpu": name, "util_pct": util})
    return Run(gpu=conform(frame, GPU), info=RunInfo(name=name))


def test_what_is_left_of_sums_is_no_difference() -> None:
    assert signed(0.1 + 0.2 - 0.3) == signed(0.0) == "0 GPU-h"
    assert signed(1e-5) == "+0.04 GPU-s" and signed(-2.0) == "−2 GPU-h"


@pytest.mark.slow
def test_save_tells_the_format_by_the_suffix(pair: Comparison, tmp_path: Path) -> None:
    assert json.loads(pair.save(tmp_path / "c.json").read_text(encoding="utf-8"))["verdict"] == "faster"
    page = pair.save(tmp_path / "c.html").read_text(encoding="utf-8")
    assert "<title>after against before" in page and "http" not in re.findall(r'src="(\w+)', page)
    told = pair.save(tmp_path / "c.md").read_text(encoding="utf-8")
    for path in re.findall(r"\]\(([^)#]+)\)", told):
        assert (tmp_path / path).exists()
    with pytest.raises(ConfigError, match="expected a name that ends in"):
        pair.save(tmp_path / "c.pdf")


def test_the_notebook_shows_every_section_in_order(root: Path) -> None:
    cells = nbformat.read(root / "notebooks" / "compare_report.ipynb", as_version=4).cells
    shown = re.findall(r"comparison\.show\.(\w+)", "\n".join(c.source for c in cells if c.cell_type == "code"))
    assert shown == list(SECTIONS)


@pytest.mark.slow
def test_execution_shows_what_the_comparison_shows_without_a_kernel(samples: Path, tmp_path: Path) -> None:
    folder = samples / "starved-input-pipeline"
    parameters = {"baseline_path": folder / "before", "experiment_path": folder / "after"}
    files = run_notebook("compare_report", tmp_path, parameters)
    found = compare(folder / "before", folder / "after")
    assert isinstance(found, Comparison)
    assert files.md.read_text(encoding="utf-8") == pages.markdown_page(pages.filled("compare_report", found.show)).text
