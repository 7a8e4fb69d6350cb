"""What a laxer pruner is predicted to prune comes from replaying the recorded curves, where they reach far enough."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sampleruns import diagnosed

import gpudiag as gd
from gpudiag.advice._engine.proposal import Prediction
from gpudiag.advice._engine.situation import Situation
from gpudiag.advice.pruning import WIDEST_PCT, pruner_patience, pruner_warmup
from gpudiag.measures.pruning import PruningProfile
from gpudiag.report.kinds.recommendations import TEST_FIRST, gain


def situation(pruner: str) -> Situation:
    run = gd.simulate(seed=3, pruner=pruner, n_trials=60).run
    settings = run.info.settings.model_copy(update={"pruner": pruner})
    run = replace(run, info=replace(run.info, settings=settings))
    diagnosis = gd.diagnose(run)
    return Situation.of(diagnosis.analysis, diagnosis.profiles, diagnosis.verdicts)


def rate(now: Situation) -> Prediction:
    proposal = pruner_warmup.propose(now)
    assert proposal is not None
    (found,) = [p for p in proposal.predictions if p.measure == "pruning.of_decided_pct"]
    return found


@pytest.mark.slow
def test_a_mild_pruner_is_replayed_and_the_laxer_one_never_prunes_more() -> None:
    now = situation("percentile(percentile=94.0,n_startup_trials=10)")
    logged = now.fact(PruningProfile.of_decided_pct)
    assert 0 < logged <= WIDEST_PCT
    found = rate(now)
    assert found.low is not None and 0 <= found.low <= found.high <= logged
    assert "Replayed over the recorded curves" in found.note


@pytest.mark.slow
def test_where_most_curves_were_cut_nothing_is_predicted_from_them() -> None:
    now = situation("percentile(percentile=75.0,n_startup_trials=3)")
    assert now.fact(PruningProfile.of_decided_pct) > WIDEST_PCT
    found = rate(now)
    assert found.low is None and found.high == pytest.approx(found.baseline)


@pytest.mark.slow
def test_a_laxer_pruner_is_priced_by_its_replay_and_never_sold_as_a_speed_up() -> None:
    diagnosis = diagnosed("hpo-aggressive-pruning")
    run = diagnosis.run
    proposal = pruner_patience.propose(Situation.of(diagnosis.analysis, diagnosis.profiles, diagnosis.verdicts))
    assert proposal is not None and proposal.gain is not None
    (change,) = proposal.changes
    replay = gd.replay_pruner(run, run.info.settings.pruner.replace(f"patience={change.present}", "patience=5"))
    assert change.proposed == 5 and proposal.gain.unit == "GPU-h"
    assert (proposal.gain.low, proposal.gain.high) == (replay.saved_gpu_h.low, replay.saved_gpu_h.high)
    assert proposal.gain.low < 0
    assert not [p for p in proposal.predictions if p.measure == "utilization.mean_pct"]
    assert "fewer end per hour" in proposal.assumption
    assert gain(proposal.gain) == TEST_FIRST
