"""What the table of all trials sends to the page: read back as a browser reads it, and compared with the run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sampleruns import diagnosed
from test_timeline_data import unpacked
from toyrun import toy_run, whole_toy_diagnosis

from gpudiag.analysis import Analysis
from gpudiag.diagnosis import diagnose
from gpudiag.measures.trials import measure_trials
from gpudiag.report._notebook import pages
from gpudiag.report._notebook.redact import redacted
from gpudiag.report._render import fragments, markdown, terminal
from gpudiag.report._render.show import TRIALS
from gpudiag.report.trial_table import packed as packing
from gpudiag.report.trial_table.columns import NO_END
from gpudiag.report.trial_table.packed import packed
from gpudiag.report.trial_table.section import trial_table
from gpudiag.run import Run
from gpudiag.schema import TRIALS as SCHEMA
from gpudiag.schema import conform

SAMPLE = "memory-exhaustion"


@pytest.fixture(scope="module")
def trials() -> pd.DataFrame:
    return diagnosed(SAMPLE).run.trials


@pytest.fixture(scope="module")
def columns() -> dict[str, Any]:
    return by_name(packed(diagnosed(SAMPLE).analysis))


def by_name(text: str) -> dict[str, Any]:
    return {column["name"]: column for column in unpacked(text)["columns"]}


def texts(column: Any) -> list[str]:
    return [column["texts"][at] for at in column["at"]]


def with_columns(run: Run, **columns: Any) -> Run:
    return replace(run, trials=conform(run.trials.assign(**columns), SCHEMA))


def test_every_trial_is_a_row_in_the_order_of_the_table(trials: pd.DataFrame, columns: dict[str, Any]) -> None:
    assert texts(columns["trial"]) == [str(trial) for trial in trials["trial"]]
    dead = diagnosed(SAMPLE).analysis.get(measure_trials).open_trials.query("abandoned")["trial"]
    expected = trials["state"].mask(trials["trial"].isin(dead), "ABANDONED")
    assert texts(columns["state"]) == expected.tolist() and len(dead)


def test_values_keep_all_digits_and_parameters_seven(trials: pd.DataFrame, columns: dict[str, Any]) -> None:
    value = [float(text or "nan") for text in texts(columns["value"])]
    np.testing.assert_array_equal(value, trials["value"].to_numpy(float))
    rate = [float(text) for text in texts(columns["lr"])]
    np.testing.assert_allclose(rate, trials["params.lr"], rtol=5e-7)
    assert columns["lr"]["kind"] == "number" and columns["model"]["kind"] == "text"
    assert texts(columns["batch_size"])[:3] == [str(int(size)) for size in trials["params.batch_size"][:3]]


def test_starts_and_durations_are_those_of_the_trials(trials: pd.DataFrame, columns: dict[str, Any]) -> None:
    origin = unpacked(packed(diagnosed(SAMPLE).analysis))["start"]
    start = columns["start"]["ticks"] * columns["start"]["tick"] + origin
    expected = (trials["start"] - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
    np.testing.assert_allclose(start, expected, atol=0.001)
    lasted = (trials["end"] - trials["start"]).dt.total_seconds().to_numpy()
    ticks = columns["duration"]["ticks"]
    unknown = np.isnan(lasted)
    assert (ticks[unknown] == 2**32 - 1).all() and unknown.any()
    np.testing.assert_allclose(ticks[~unknown] * columns["duration"]["tick"], lasted[~unknown], atol=0.001)


def test_why_a_trial_ended_is_said(trials: pd.DataFrame, columns: dict[str, Any]) -> None:
    said = pd.Series(texts(columns["ended"])).groupby(trials["state"].to_numpy()).agg(set)
    assert said["RUNNING"] == {NO_END} and "out of memory" in said["FAIL"] and said["COMPLETE"] == {""}


def test_user_attributes_stay_at_home_and_empty_columns_too() -> None:
    found = by_name(packed(Analysis(toy_run())))
    assert "hunter2" not in str(found) and {"value", "gpu", "name"}.isdisjoint(found)


def test_a_trial_without_a_start_is_there() -> None:
    run = toy_run()
    run.trials.loc[3, ["state", "start", "end"]] = ["WAITING", pd.NaT, pd.NaT]
    found = by_name(packed(Analysis(run)))
    assert texts(found["state"])[3] == "WAITING" and found["start"]["ticks"][3] == 2**32 - 1
    nothing = toy_run(samples=0)
    nothing.trials.loc[:, ["start", "end"]] = pd.NaT
    assert len(by_name(packed(Analysis(nothing)))["trial"]["at"]) == 12


def test_a_parameter_keeps_its_prefix_where_a_column_of_ours_has_its_name() -> None:
    run = with_columns(toy_run(), **{"params.state": "x", "params.lr": 1e-300, "params.mixed": [1, "a"] * 6,
                                     "params.flag": True, "params.huge": np.inf})  # fmt: skip
    found = by_name(packed(Analysis(run)))
    assert set(texts(found["params.state"])) == {"x"} and "FAIL" in texts(found["state"])
    assert set(texts(found["lr"])) == {"1e-300"} and set(texts(found["huge"])) == {"inf"}
    assert found["mixed"]["kind"] == "text" and set(texts(found["flag"])) == {"True"}


@pytest.mark.slow
def test_parameters_are_left_out_until_it_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    run = toy_run()
    more = pd.DataFrame(rng.random((12, 100)), run.trials.index, [f"params.p{i}" for i in range(100)])
    run = replace(run, trials=pd.concat([run.trials, more], axis=1))
    content = unpacked(packed(Analysis(run)))
    assert content["left_out"] == 36 and "p63" in [one["name"] for one in content["columns"]]
    monkeypatch.setattr(packing, "MOST_CHARS", 2000)
    text = packed(Analysis(run))
    assert 0 < len(text) <= 2000 and unpacked(text)["left_out"] > 36
    monkeypatch.setattr(packing, "MOST_CHARS", 10)
    assert packed(Analysis(run)) == ""


def test_passwords_are_taken_out_of_what_is_packed() -> None:
    run = with_columns(toy_run(), detail="postgresql://ann:correct%20horse@db/study cannot be reached")
    output = {"data": {TRIALS: packed(Analysis(run))}}
    after = redacted(output, ["postgresql://ann:correct%20horse@db/study"])["data"][TRIALS]
    assert "horse" not in str(unpacked(after)) and "cannot be reached" in str(unpacked(after))


def test_without_a_script_there_are_the_best_the_longest_and_the_last_that_failed(trials: pd.DataFrame) -> None:
    (block,) = trial_table(diagnosed(SAMPLE).analysis)
    rows = {row[0]: row for row in block.still.rows}
    lasted = (trials["end"] - trials["start"]).dt.total_seconds()
    longest = trials.loc[lasted.nlargest(3).index, "trial"].astype(str).tolist()
    failed = trials.loc[trials["state"] == "FAIL", "trial"].astype(str).tolist()[-3:]
    complete = trials[trials["state"] == "COMPLETE"]
    direction = diagnosed(SAMPLE).run.studies["directions"][0]
    best = complete["value"].idxmin() if direction == "MINIMIZE" else complete["value"].idxmax()
    assert set(rows) == {*longest, *failed, str(trials.at[best, "trial"])}
    assert "best" in rows[str(trials.at[best, "trial"])][1] and "failed" in rows[failed[-1]][1]
    html = fragments.render([block])
    assert "Some of 452 trials" in html and block.packed not in html


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_it_stands_in_the_page_alone() -> None:
    (block,) = trial_table(Analysis(toy_run()))
    assert markdown.render([block]) == "" == terminal.render([block])
    assert trial_table(Analysis(toy_run(trials=0))) == []
    notebook = pages.filled("run_report", whole_toy_diagnosis().show)
    assert pages.html_page(notebook).count('class="gd-trials"') == 1
    assert "Some of 12 trials" not in pages.markdown_page(notebook, full=True).text


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_names_are_escaped(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    run = with_columns(toy_run(), **{"params.x": evil, "detail": evil, "worker": evil})
    html = diagnose(run).save(tmp_path / "x.html").read_text(encoding="utf-8")
    assert evil not in html
