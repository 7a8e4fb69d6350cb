"""The widget's kernel: what it answers is the run's samples, small, and nothing where there is nothing to answer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_timeline_data import large, unpacked
from toyrun import toy_run

from gpudiag.analysis import Analysis
from gpudiag.errors import ConfigError
from gpudiag.report.timeline import page
from gpudiag.report.timeline.finer import MOST_BUCKETS, MOST_VALUES, finer
from gpudiag.report.timeline.lanes import Detail, Lanes, lanes_of
from gpudiag.report.timeline.packed import MOST_CHARS
from gpudiag.report.timeline.sealed import sealed
from gpudiag.report.timeline.view import timeline_view
from gpudiag.run import Run

COARSE = Detail(values=3000)
"""So little that the page shows an hour's samples in 200 buckets."""
COLUMNS = {"GPU utilization": ("util_pct", 1.0), "GPU memory": ("mem_used_mib", 1024.0), "GPU power": ("power_w", 1.0)}


@pytest.fixture(scope="module")
def run() -> Run:
    return large(trials=40, gpus=2, samples=7200, period_s=1.0)


@pytest.fixture(scope="module")
def lanes(run: Run) -> Lanes:
    return lanes_of(Analysis(run), (), COARSE)


@pytest.fixture(scope="module")
def made(run: Run) -> Iterator[Any]:
    analysis = Analysis(run)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpudiag.report.timeline.view.packed", lambda *_: (lanes_of(analysis, (), COARSE), "packed"))
        widget = timeline_view(analysis).widget()
        patch.setattr(type(widget), "send", lambda self, content, buffers=None: self.sent.append(content))
        yield widget
    widget.close()


@pytest.fixture
def widget(made: Any) -> Any:
    """A widget that lists in ``sent`` what it would send."""
    made.sent = []
    return made


@pytest.mark.slow
def test_each_sample_of_a_stretch_has_a_bucket_of_its_own(run: Run, lanes: Lanes) -> None:
    assert lanes.raster.width_us >= 20_000_000
    a, b = 1000.0, 1400.0
    told = unpacked(sealed(finer(lanes, a, b) or {}))
    assert told["exact"] and told["width"] <= 0.5 and told["finest"] == 1.0
    assert told["from"] <= a < b <= told["to"]
    gpus = run.gpu["gpu"].unique().tolist()
    for channel in told["channels"]:
        column, scale = COLUMNS[channel["name"]]
        for row in channel["rows"]:
            mine = run.gpu[run.gpu["gpu"] == gpus[row["gpu"]]]
            at_s = mine["time"].astype("int64") / 1e6 - lanes.start_us / 1e6
            inside = (at_s >= a) & (at_s <= b)
            bucket = ((at_s[inside] - told["from"]) // told["width"]).astype(int)
            assert inside.sum() >= 400 and (row["seen"][bucket] == 255).all()
            assert row["mean"][bucket] * channel["factor"] == pytest.approx(
                mine[column][inside] / scale, abs=channel["factor"]
            )
            assert not row["above"][bucket].any() and not row["below"][bucket].any()


@pytest.mark.slow
@settings(max_examples=40)
@given(a=st.floats(-100, 8000), wide=st.floats(0.001, 8000))
def test_an_answer_is_finer_than_the_page_and_small(lanes: Lanes, a: float, wide: float) -> None:
    told, span_s = finer(lanes, a, a + wide), (lanes.end_us - lanes.start_us) / 1e6
    if told is None:
        assert a + wide <= 0 or a >= span_s
        return
    assert told["width"] < lanes.raster.width_us / 1e6
    assert told["from"] <= max(a, 0) and min(a + wide, span_s) <= told["to"]
    for channel in told["channels"]:
        assert all(len(row["mean"]) <= MOST_BUCKETS for row in channel["rows"])
    assert len(sealed(told)) < MOST_CHARS / 4


@pytest.mark.slow
def test_many_gpus_share_one_answer() -> None:
    run = large(trials=8, gpus=64, samples=900, period_s=1.0)
    lanes = lanes_of(Analysis(run), (), Detail(values=1))
    told = finer(lanes, 0.0, 400.0)
    assert told is not None
    values = sum(3 * len(row["mean"]) for channel in told["channels"] for row in channel["rows"])
    assert 50_000 < values <= MOST_VALUES and len(sealed(told)) < MOST_CHARS


@pytest.mark.slow
@pytest.mark.parametrize(
    "message",
    [
        {"a": 50.0, "b": 40.0}, {"a": 40.0, "b": 40.0}, {"a": float("nan"), "b": 40.0}, {"a": 0.0, "b": float("inf")},
        {"a": -50.0, "b": -40.0}, {"a": 1e9, "b": 2e9}, {"a": 1e-12, "b": 2e-12}, {"a": "0", "b": "9"}, {"a": 1.0},
        {"a": [1], "b": {}}, {}, None, "a", [1.0, 2.0],
    ],
)  # fmt: skip
def test_what_names_no_stretch_is_not_answered(widget: Any, message: object) -> None:
    widget._handle_custom_msg(message, [])
    assert widget.sent == []


@pytest.mark.slow
def test_a_message_is_answered_with_packed_samples(widget: Any, lanes: Lanes) -> None:
    widget._handle_custom_msg({"a": 100, "b": 160.5}, [])
    (answer,) = widget.sent
    assert unpacked(answer["packed"])["width"] == (finer(lanes, 100, 160.5) or {})["width"]


def test_what_the_page_shows_already_is_not_sent() -> None:
    whole = lanes_of(Analysis(large(trials=8, gpus=1, samples=900, period_s=1.0)))
    assert whole.raster.width_us < 1_000_000 and finer(whole, 100.0, 160.0) is None


def test_where_nothing_was_sampled_nothing_is_known(run: Run) -> None:
    moved = run.gpu["time"] + pd.to_timedelta(np.where(run.gpu.index % 7200 >= 3600, 3600, 0), unit="s")
    apart = lanes_of(Analysis(replace(run, gpu=run.gpu.assign(time=moved))), (), COARSE)
    assert finer(apart, 4500.0, 5000.0) is None
    across = unpacked(sealed(finer(apart, 3550.0, 3700.0) or {}))
    seen = across["channels"][0]["rows"][0]["seen"]
    until = int((3600 - across["from"]) / across["width"])
    assert seen[:until].all() and not seen[until + 20 :].any()


def test_without_telemetry_there_is_nothing_to_answer() -> None:
    assert finer(lanes_of(Analysis(toy_run(samples=0))), 0.0, 60.0) is None


@pytest.mark.slow
def test_front_ends_without_widgets_show_the_timeline_as_before(widget: Any) -> None:
    data, _ = widget._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == widget.model_id
    assert data["text/html"].startswith("<iframe ") and data["text/plain"].startswith("Timeline of ")


def test_its_script_is_that_of_the_page() -> None:
    own = page.widget_script()
    assert all(page.asset(name) in own for name in page.SCRIPTS) and own.count("export default") == 1
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "fetch("):
        assert way not in page.asset("widget.js"), way
    assert page.PREFERS_DARK not in page.widget_style() and page.DARK_NOTEBOOK in page.widget_style()


def test_without_the_extra_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "gpudiag.report.timeline.widget", raising=False)
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(ConfigError, match=r"widget\(\) needs anywidget; .*pip install 'gpudiag\[widget\]'"):
        timeline_view(Analysis(toy_run())).widget()
