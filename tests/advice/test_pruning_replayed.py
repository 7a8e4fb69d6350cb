"""What a laxer pruner is predicted to prune comes from replaying the recorded curves, where they reach far enough."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gpudiag as gd
from gpudiag.advice.pruning import WIDEST_PCT, pruner_warmup
from gpudiag.advice.remedy import Prediction
from gpudiag.advice.situation import Situation


def situation(pruner: str) -> Situation:
    run = gd.simulate(seed=3, pruner=pruner, n_trials=60).run
    settings = run.info.settings.model_copy(update={"pruner": pruner})
    run = replace(run, info=replace(run.info, settings=settings))
    diagnosis = gd.diagnose(run)
    return Situation.of(run, diagnosis.profiles, diagnosis.verdicts)


def rate(now: Situation) -> Prediction:
    proposal = pruner_warmup.propose(now)
    assert proposal is not None
    (found,) = [p for p in proposal.predictions if p.measure == "pruning.of_decided_pct"]
    return found


def test_a_mild_pruner_is_replayed_and_the_laxer_one_never_prunes_more() -> None:
    now = situation("percentile(percentile=94.0,n_startup_trials=10)")
    logged = now.fact("pruning.of_decided_pct")
    assert 0 < logged <= WIDEST_PCT
    found = rate(now)
    assert found.low is not None and 0 <= found.low <= found.high <= logged
    assert "Replayed over the recorded curves" in found.note


def test_where_most_curves_were_cut_nothing_is_predicted_from_them() -> None:
    now = situation("percentile(percentile=75.0,n_startup_trials=3)")
    assert now.fact("pruning.of_decided_pct") > WIDEST_PCT
    found = rate(now)
    assert found.low is None and found.high == pytest.approx(found.baseline)
