"""Results and copies that were added to a study: a pruner sees them, a replay counts neither them nor their time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from replayruns import hand_run

import gpudiag as gd
from gpudiag.run import Run
from gpudiag.schema import TRIALS, conform

CURVES = {n: np.linspace(1.0, 0.4 + 0.05 * (n % 7), 4 + n % 3).tolist() for n in range(24)}
STATES = {n: ("COMPLETE", "PRUNED", "FAIL")[n % 3] for n in CURVES}
COPIED = 12
PRUNER = "threshold(upper=0.7,n_warmup_steps=2)"


def whole() -> Run:
    return hand_run(CURVES, STATES, pruner=PRUNER, max_steps=8)


def with_copies() -> Run:
    run = whole()
    added = np.where(run.trials["trial"] < COPIED, "copy", None)
    return replace(run, trials=conform(run.trials.assign(added=added), TRIALS))


def without_copies() -> Run:
    run = whole()
    own = run.trials["trial"] >= COPIED
    told = run.reports["trial"] >= COPIED
    return replace(run, trials=run.trials[own], reports=run.reports[told])


@pytest.mark.parametrize("pruner", [PRUNER, "threshold(upper=0.5,n_warmup_steps=1)", "nop()"])
def test_what_is_counted_is_what_ran(pruner: str) -> None:
    """These pruners look at one trial alone, so that the copies change nothing but what is counted."""
    made, expected = gd.replay_pruner(with_copies(), pruner), gd.replay_pruner(without_copies(), pruner)
    names = ("n_trials", "n_left_out", "identified_pct", "logged_pruned_pct", "logged_steps", "backtests", "level")
    assert {name: getattr(made, name) for name in names} == {name: getattr(expected, name) for name in names}
    for name in ("pruned_pct", "steps", "saved_steps", "saved_worker_h"):
        a, b = getattr(made, name), getattr(expected, name)
        assert (a.value, a.low, a.high) == pytest.approx((b.value, b.low, b.high), nan_ok=True), name


def test_the_pruner_still_compares_with_copies() -> None:
    """A median of the copies prunes the first trial that ran here; without them nothing could."""
    made = gd.replay_pruner(with_copies(), "median(n_startup_trials=4)").trials.set_index("trial")["outcome"]
    alone = gd.replay_pruner(without_copies(), "median(n_startup_trials=4)").trials.set_index("trial")["outcome"]
    assert made.loc[COPIED:].eq("pruned").sum() > alone.eq("pruned").sum()


@pytest.mark.parametrize(("pruner", "can"), [("nop()", False), ("patient(nop(),patience=2)", False), (PRUNER, True)])
def test_a_pruner_that_never_prunes_prunes_nothing_beyond_the_record_either(pruner: str, can: bool) -> None:
    found = gd.replay_pruner(whole(), pruner).pruned_pct
    assert (found.high > 0) is can
    assert can or (found.value, found.low) == (0, 0)
