"""What is advised where trials start up for long: what has not been done already, and nothing that can slow a run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sampleruns import diagnosed
from smallruns import gpu as gpu_of
from smallruns import gpus as gpus_of
from smallruns import run as run_of
from smallruns import trials as trials_of

import gpudiag as gd
from gpudiag.advice._engine.gains import BETWEEN_TRIALS, GainBounds, combine
from gpudiag.advice._engine.proposal import Gain
from gpudiag.advice._engine.situation import Situation
from gpudiag.advice.startup import prepare_once, warm_worker
from gpudiag.measures.costs import CostsProfile
from gpudiag.measures.parallelism import ParallelismProfile
from gpudiag.measures.search import SearchProfile
from gpudiag.simulation.spec import Spec, override
from tests.advice.situations import checks, gain_of, predicted, situation, trials, use
from tests.rules.small_profiles import profile


@pytest.fixture(params=[True, False])
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(Situation, "keeps_processes", property(lambda now: request.param))
    return bool(request.param)


def starting(share: float = 37.0, only: float = 20.0, rules: tuple[str, ...] = ("startup-dominated",)) -> Any:
    bounds = GainBounds(busy_pct=19.0, startup_pct=share, startup_only_pct=only, parallel=1.0)
    costs = profile(CostsProfile, startup_only_pct=only, startup_share_pct=share)
    return situation(use(19.0), costs, rules=rules, bounds=bounds)


def test_one_of_the_two_is_advised_by_whether_processes_outlive_their_trials(kept: bool) -> None:
    assert (prepare_once.propose(starting()) is not None) is kept
    assert (warm_worker.propose(starting()) is not None) is not kept
    assert prepare_once.propose(starting(rules=())) is None


@pytest.mark.parametrize(("n", "n_workers", "offered"), [(1, 1, False), (2, 1, True), (4, 4, False), (5, 4, True)])
def test_a_start_up_that_never_came_again_cannot_be_kept(n: int, n_workers: int, offered: bool) -> None:
    costs = profile(CostsProfile, n_workers=n_workers, trials=pd.DataFrame(index=range(n)))
    bounds = GainBounds(busy_pct=19.0, startup_pct=37.0, startup_only_pct=20.0, parallel=1.0)
    assert (warm_worker.propose(situation(use(19.0), costs, bounds=bounds)) is not None) is offered


def test_preparing_once_brings_the_start_ups_back_at_most(kept: bool) -> None:
    if not kept:
        return
    made = prepare_once.propose(starting())
    assert gain_of(made) == (1.0, pytest.approx(1 / 0.63), "x", "idle") and made is not None and not made.verify_first
    assert checks(made)[0] == ("costs.startup_share_pct", "<", 18.5)
    unseen = prepare_once.propose(starting(share=math.nan))
    assert gain_of(unseen) is None and checks(unseen) == [("costs.startup_only_pct", "<", 10.0)]


@pytest.mark.slow
def test_no_third_trial_beside_two_that_wait_for_the_cpu() -> None:
    document = diagnosed("real-h100/two-workers").document
    ids = [one.id for one in document.recommendations]
    assert "Prepare the data once per worker" in document.headline.sentences[2]
    assert "cpu-bound-input" in {one.rule for one in document.findings} and "more-workers" not in ids


def between(gaps_s: list[float], *more: str, busy_pct: float = 40.0, first_s: float = math.nan) -> Any:
    """Two workers that trained for 3,000 s between them, 20 % of it in start-ups, and waited so long between trials."""
    gaps = profile(
        ParallelismProfile,
        gaps=pd.DataFrame({"gap_s": gaps_s}),
        effective=1.5,
        busy_s=2000.0,
        mean_gap_s=sum(gaps_s) / len(gaps_s),
    )
    bounds = GainBounds(busy_pct=80.0, busy_all_pct=busy_pct, startup_pct=20.0, startup_only_pct=5.0, parallel=2.0)
    lasted = trials({"COMPLETE": {"median_s": 60.0, "total_worker_s": 3000.0}})
    given = (use(busy_pct), gaps, profile(SearchProfile, gap_first_s=first_s), lasted)
    return situation(*given, rules=("trial-gaps", *more), bounds=bounds)


def test_starts_of_processes_between_trials_are_part_of_what_they_cost() -> None:
    """1,000 s of gaps beside 2,400 s of work: 4,000 s of the workers become 2,400."""
    made = warm_worker.propose(between([20.0] * 50))
    assert gain_of(made) == (1.0, pytest.approx(4000 / 2400), "x", "between trials")
    assert made is not None and "25 % of the workers' time in gaps goes too" in made.assumption and not made.leaves
    assert ("parallelism.mean_gap_s", "<", 10.0) in checks(made)
    low, high = predicted(made)["trials.state.COMPLETE.median_s"][1:]
    assert (low, high) == (pytest.approx(60 * 2400 / 4000), pytest.approx(60 * 4000 / 3000)), "others run beside it"
    assert gain_of(warm_worker.propose(between([20.0] * 50, busy_pct=70.0)))[1] == pytest.approx(1 / 0.7)
    plain = between([20.0] * 50)
    no_gaps = situation(*plain.profiles.values(), rules=("startup-dominated",), bounds=plain.bounds)
    assert gain_of(warm_worker.propose(no_gaps)) == (1.0, pytest.approx(1.25), "x", "idle")


def test_what_gaps_grow_by_is_no_start_of_a_process() -> None:
    """Of gaps of 2 to 40 s starts take no more than the 10 s of the first third: 22 s of a thousand and more."""
    grown = between([2.0, 10.0, 30.0, 40.0] * 10, "startup-dominated", "trial-gap-growth", first_s=10.0)
    made = warm_worker.propose(grown)
    assert made is not None and made.leaves == ("trial-gaps",)
    assert gain_of(made)[1] == pytest.approx((3000 + 320) / (0.8 * 3000))
    assert "parallelism.mean_gap_s" not in {measure for measure, _, _ in checks(made)}


def test_time_between_trials_is_beyond_the_ceiling_of_the_time_within() -> None:
    bounds = GainBounds(busy_pct=80.0, busy_all_pct=50.0)
    for source, most in (("idle", 1.25), (BETWEEN_TRIALS, 1.6)):
        made = combine([Gain(1.0, 1.6, "x", source)], bounds)
        assert made is not None and made.high == pytest.approx(most)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_no_start_ups_and_no_gaps_bring_no_more_than_was_said(workers: int) -> None:
    """The loop closed: the same search with neither."""
    spec = {"n_trials": 60, "workers": workers, "startup_s": (9.0, 11.0), "gap_s": (18.0, 22.0), "epoch_s": (3.0, 5.0)}
    run = gd.simulate(override(Spec(), spec), seed=5).run
    one = {one.id: one for one in gd.diagnose(run).recommendations}["warm-worker"]
    assert "trial-gaps" in one.rules and one.gain is not None
    without = gd.simulate(override(Spec(), spec | {"startup_s": (0.0, 0.01), "gap_s": (0.0, 0.01)}), seed=5).run
    took = [(r.trials["end"].max() - r.trials["start"].min()).total_seconds() for r in (run, without)]
    assert 1.3 < took[0] / took[1] <= one.gain.high


@pytest.mark.slow
def test_gaps_that_grow_are_told_before_any_start_of_a_process() -> None:
    """One worker of trials of 60 s, and the pause after each a half second longer than the one before."""
    starts = np.cumsum([0.0, *(60.0 + 0.5 * np.arange(79))])
    seconds = np.arange(0.0, starts[-1] + 60.0, 2.0)
    at = np.searchsorted(starts, seconds, "right") - 1
    since = seconds - starts[at]
    util = np.where((since > 12.0) & (since < 60.0), 40.0, 0.0)
    run = run_of(
        gpu=gpu_of(seconds, util_pct=util, mem_used_mib=np.where(since < 60.0, 2000.0, 500.0)),
        gpus=gpus_of(gpu=["0"], name="G", mem_total_mib=24000.0),
        trials=trials_of([("COMPLETE", float(start), float(start) + 60.0) for start in starts]),
    )
    given = gd.diagnose(run)
    causes = {v.rule: v.caused_by for v in given.verdicts if v.status.value == "found"}
    assert causes["trial-gaps"] == "trial-gap-growth" and "startup-dominated" in causes
    assert "sampler" in given.document.headline.sentences[2]
    assert all("trial-gaps" not in one.rules for one in given.recommendations if one.id == "warm-worker")
