"""The same trials are known again in a copy, and others are not taken for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import smallruns

from gpudiag.alignment import apply_clock
from gpudiag.fleets.study_copies import trials_of
from gpudiag.run import Run


def run_of(starts: np.ndarray, study: str = "s", **columns: object) -> Run:
    rows = [("COMPLETE", float(start), float(start) + 50) for start in starts]
    return smallruns.run(trials=smallruns.trials(rows, study, **columns))


STARTS = np.random.default_rng(4).uniform(0, 9000, 30).round(6)
WHOLE = trials_of(run_of(STARTS))


def test_a_copy_on_another_clock_and_one_taken_earlier_have_the_same_trials() -> None:
    assert len(WHOLE) == 4
    run = run_of(STARTS)
    moved = apply_clock(run, replace(run.info.clock, applied_s=-3600.25))
    assert not moved.trials["start"].equals(run.trials["start"]) and trials_of(moved) == WHOLE
    shuffled = replace(run, trials=run.trials.sample(frac=1, random_state=1))
    assert trials_of(shuffled) == WHOLE
    assert trials_of(run_of(STARTS[:29]))[:3] == WHOLE[:3] and trials_of(run_of(STARTS[:29]))[3] != WHOLE[3]


def test_other_trials_are_others() -> None:
    assert not set(trials_of(run_of(STARTS, "t"))) & set(WHOLE)
    assert not set(trials_of(run_of(STARTS + 0.001))) & set(WHOLE)


def test_starts_that_others_may_share_tell_nothing() -> None:
    """Four workers that a scheduler starts in the same second have nothing of their own; eight different seconds do."""
    assert trials_of(run_of(np.zeros(4))) == ()
    assert trials_of(run_of(np.arange(7) * 60.0)) == ()
    assert len(trials_of(run_of(np.arange(8) * 60.0))) == 1
    assert len(trials_of(run_of(np.array([0.5, 60.25])))) == 1
    assert trials_of(smallruns.run()) == ()
