"""A clock that is set within a study: found by what the telemetry shows before and after, put right or withheld."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from poolrun import Pool, make, shift_trials

from gpudiag.alignment import apply_clock, establish_clock, stepped
from gpudiag.alignment.apply import as_stated
from gpudiag.alignment.steps import _path
from gpudiag.analysis import Analysis
from gpudiag.errors import NotMeasurable
from gpudiag.measures.stalls import measure_stalls
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.rule import check_thresholds
from gpudiag.rules._engine.verdict import Severity, Status
from gpudiag.rules.clock import clocks_apart, clocks_differ
from gpudiag.run import Run

HOUR = 3600.0
POOL = Pool(hours=2, workers=2, work_s=100)
ONE = Pool(hours=2, workers=1, work_s=100)
RULES = (clocks_differ, clocks_apart)
TIMES = ["start", "end"]


def set_by(run: Run, size_s: float, share: float = 0.6) -> Run:
    """The run with a trials' clock that is set forward by so much after that share of the study."""
    first, last = run.trials["start"].min(), run.trials["end"].max()
    at, by = first + share * (last - first), pd.Timedelta(size_s, "s")
    moved = {name: run.trials[name].where(run.trials[name] < at, run.trials[name] + by) for name in TIMES}
    return replace(run, trials=run.trials.assign(**moved))


def settled(run: Run) -> Run:
    return apply_clock(run, establish_clock(run))


@pytest.mark.slow
@pytest.mark.parametrize("offset_h", [0, -8])
def test_a_step_forward_of_an_hour_is_taken_out(offset_h: int) -> None:
    run, _ = make(1, POOL)
    stated = shift_trials(set_by(run, HOUR), offset_h * HOUR)
    done = settled(stated)
    clock = done.info.clock
    assert clock.step is not None and clock.step.moved and clock.step.size_s == HOUR
    assert (clock.applied_s, clock.confidence, clock.joined) == (-offset_h * HOUR, "strong", True)
    assert "The trials' clock was set forward by about 1 h near 2025-06-0" in str(clock.evidence)
    pd.testing.assert_frame_equal(done.trials[TIMES], run.trials[TIMES])
    pd.testing.assert_frame_equal(as_stated(done.trials, ("start", "end"), clock)[TIMES], stated.trials[TIMES])


@pytest.mark.slow
def test_a_step_of_which_the_size_is_estimated_is_taken_out_and_nothing_is_joined() -> None:
    run, _ = make(2, POOL)
    done = settled(set_by(run, 1217.0))
    clock = done.info.clock
    assert (clock.confidence, clock.joined, clock.applied_s) == ("undetermined", False, 0)
    off_s = np.abs((done.trials[TIMES] - run.trials[TIMES]).stack().dt.total_seconds())
    assert off_s.max() <= 5 and "trials and telemetry are not joined" in str(clock.evidence)


@pytest.mark.slow
@pytest.mark.parametrize("size_s", [-90.0, -300.0])
def test_a_clock_that_was_set_back_is_said_and_nothing_is_moved(size_s: float) -> None:
    run = set_by(make(3, ONE)[0], size_s)
    done = settled(run)
    clock = done.info.clock
    assert clock.step is not None and not clock.step.moved and abs(clock.step.size_s - size_s) <= 5
    assert (clock.confidence, clock.joined) == ("undetermined", False)
    assert "The trials' clock was set back by about" in str(clock.evidence)
    pd.testing.assert_frame_equal(done.trials, run.trials)
    with pytest.raises(NotMeasurable, match="set within the study"):
        measure_stalls(done)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [4, 5])
def test_a_study_that_fits_at_no_one_place_is_moved_nowhere(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no step can be told, the first or last trials still fit elsewhere; on one clock they do not."""
    run, _ = make(seed, POOL)
    monkeypatch.setattr(stepped, "find_steps", lambda places: [])
    clock = establish_clock(set_by(run, HOUR, 0.25))
    assert (clock.confidence, clock.applied_s, clock.offset_s) == ("undetermined", 0, 0)
    assert "trials do not fit there, and fit elsewhere" in str(clock.evidence)
    assert establish_clock(shift_trials(run, -8 * HOUR)).confidence == "strong"


@pytest.mark.slow
def test_seconds_that_a_step_leaves_are_told_as_without_it() -> None:
    run = shift_trials(make(1, POOL)[0], 40)
    clock, plain = establish_clock(set_by(run, HOUR)), establish_clock(run)
    assert clock.step is not None and clock.step.moved and clock.joined and not clock.exact
    assert (clock.confidence, clock.offset_s, clock.doubt_s) == ("weak", plain.offset_s, plain.doubt_s)
    assert max(clock.candidates, key=lambda one: one[1]) == max(plain.candidates, key=lambda one: one[1])
    assert "The trials' clock was set forward" in str(clock.evidence) and "Memory falls" in str(clock.evidence)


@pytest.mark.slow
def test_the_check_of_the_clocks_says_it() -> None:
    moved, withheld = settled(set_by(make(1, POOL)[0], HOUR)), settled(set_by(make(3, ONE)[0], -90))
    for run, severity in ((moved, Severity.NOTE), (withheld, Severity.WARNING)):
        differ, apart = judge_all(RULES, Analysis(run), check_thresholds(RULES, {}))
        assert (differ.status, differ.severity, apart.status) == (Status.FOUND, severity, Status.OK)
        assert "The trials' clock was set" in differ.summary and "nothing was moved" not in differ.summary


@pytest.mark.slow
@pytest.mark.parametrize("method", ["given", "utc"])
def test_what_is_stated_of_the_clocks_does_not_hide_a_step(method: str) -> None:
    run = set_by(make(1, POOL)[0], HOUR)
    if method == "given":
        clock = establish_clock(replace(run, info=replace(run.info, given_offset_s=0.0)))
        assert (clock.method, clock.confidence, clock.joined) == ("given", "undetermined", False)
    else:
        inputs = tuple(replace(one, clock="utc") for one in run.info.inputs)
        clock = establish_clock(
            replace(run, studies=run.studies.assign(clock="utc"), info=replace(run.info, inputs=inputs))
        )
        assert clock.step is not None and clock.joined


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_night_without_trials_is_no_step(seed: int) -> None:
    """Whether the recorder went on or not."""
    run, _ = make(seed, POOL)
    at, by = run.trials["start"].iloc[len(run.trials) // 2], pd.Timedelta(9, "h")
    whole = run.trials[(run.trials["end"] < at) | (run.trials["start"] >= at)]
    trials = whole.assign(**{name: whole[name].where(whole[name] < at, whole[name] + by) for name in TIMES})
    gpu = run.gpu.assign(time=run.gpu["time"].where(run.gpu["time"] < at, run.gpu["time"] + by))
    clock = establish_clock(replace(run, trials=trials, gpu=gpu))
    assert (clock.step, clock.confidence, clock.joined) == (None, "strong", True)


def test_too_few_trials_show_no_step() -> None:
    run = set_by(make(1, POOL)[0], HOUR)
    assert establish_clock(replace(run, trials=run.trials.head(9))).step is None


def test_a_change_of_place_must_gain_more_than_one_stretch_has() -> None:
    """Two places; the later stretches lie at the second."""
    one, two = [1.0, 0.0], [0.0, 1.0]
    assert _path(np.array([one, one, one, two])) == (3.0, [0, 0, 0, 0])
    assert _path(np.array([one, one, two, two])) == (4 - 1.25, [0, 0, 1, 1])
