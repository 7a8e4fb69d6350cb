"""What is advised where trials start up for long: what has not been done already, and nothing that can slow a run."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest
from sampleruns import diagnosed

from gpudiag.advice._engine.gains import GainBounds
from gpudiag.advice._engine.situation import Situation
from gpudiag.advice.startup import prepare_once, warm_worker
from gpudiag.measures.costs import CostsProfile
from tests.advice.situations import checks, gain_of, situation, use
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


def test_no_third_trial_beside_two_that_wait_for_the_cpu() -> None:
    document = diagnosed("real-h100/two-workers").document
    ids = [one.id for one in document.recommendations]
    assert "Prepare the data once per worker" in document.headline.sentences[2]
    assert "cpu-bound-input" in {one.rule for one in document.findings} and "more-workers" not in ids
