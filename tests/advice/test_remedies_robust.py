"""No remedy fails for want of data: every one is asked about every kind of run, whether it applies or not."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from sampleruns import diagnosed as diagnosed_sample
from sampleruns import sample
from toyrun import toy_run

from gpudiag.advice import REMEDIES
from gpudiag.advice._engine.advise import advise
from gpudiag.advice._engine.remedy import Remedy
from gpudiag.advice._engine.situation import Situation
from gpudiag.analysis import Analysis
from gpudiag.diagnosis import Diagnosis, diagnose
from gpudiag.manifest import DataLoader, Settings
from gpudiag.rules import RULES
from gpudiag.rules._engine.verdict import Status
from gpudiag.run import Run

STATED = Settings(parallel=2, cpu_cores=16, ram_gib=64, pruner="median()")
LOADER = DataLoader(num_workers=2, prefetch_factor=2, persistent_workers=False, pin_memory=False, batch_size=8)
RUNS = {
    "empty": Run(),
    "trials only": toy_run(samples=0),
    "telemetry only": toy_run(trials=0),
    "one sample": toy_run(samples=1, trials=1),
    "toy": toy_run(),
}
CASES = {"case 1": "hpo-aggressive-pruning", "case 4": "memory-exhaustion"}


@pytest.fixture(scope="module", params=[*RUNS, *CASES], ids=str)
def diagnosed(request: pytest.FixtureRequest) -> Diagnosis:
    if request.param in CASES:
        return diagnosed_sample(CASES[request.param])
    run = RUNS[request.param]
    return diagnose(replace(run, info=replace(run.info, settings=STATED, dataloader=LOADER)))


@pytest.mark.many
@pytest.mark.slow
@pytest.mark.parametrize("item", REMEDIES, ids=lambda item: item.id)
def test_a_remedy_proposes_something_sound_or_nothing(item: Remedy, diagnosed: Diagnosis) -> None:
    everything = [replace(v, status=Status.FOUND) for v in diagnosed.verdicts]
    proposal = item.propose(Situation.of(diagnosed.analysis, diagnosed.profiles, everything))
    if proposal is None:
        return
    assert proposal.changes and proposal.assumption and all(change.code for change in proposal.changes)
    assert "nan" not in proposal.assumption.split() and "inf" not in proposal.assumption.split()
    if proposal.gain is not None:
        assert math.isfinite(proposal.gain.low) and proposal.gain.low <= proposal.gain.high < math.inf


@pytest.mark.slow
def test_with_every_finding_at_once_the_advice_stays_known_numbers(diagnosed: Diagnosis) -> None:
    everything = [replace(v, status=Status.FOUND, summary="Found.") for v in diagnosed.verdicts]
    advice = advise(diagnosed.analysis, diagnosed.profiles, everything)
    for one in advice.recommendations:
        assert all(math.isfinite(check.value) for check in one.verify)
        assert one.rules and one.why
    answered = {rule for one in advice.recommendations for rule in one.rules}
    assert answered >= {rule.id for rule in RULES if rule.remedy}
    computed = [one for one in advice.recommendations if not one.is_the_rules_own]
    assert all(one.safety and one.effort and one.assumption and one.changes for one in computed)
    assert all(one.rollback and one.refute for one in computed if one.tier)


@pytest.mark.slow
def test_little_observed_is_verified_first() -> None:
    run = toy_run()
    first = run.gpu["time"].min()
    cut = replace(run, gpu=run.gpu[(run.gpu["time"] - first).dt.total_seconds() < 900].reset_index(drop=True))
    cut = replace(cut, info=replace(cut.info, settings=STATED, dataloader=LOADER))
    given = diagnose(cut)
    (workers,) = [one for one in given.recommendations if one.id == "loader-workers"]
    assert "was observed, so its utilization is not known well" in workers.verify_first
    assert "loader-workers" not in given.to_dict()["advice"]["plan"]


@pytest.mark.slow
def test_a_large_study_gets_bounds_in_place_of_forecasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpudiag.advice._engine.situation.MAX_FORECAST_TRIALS", 1)
    now = Situation.of(Analysis(sample(CASES["case 1"])), {}, ())
    assert now.capacity is None and now.forecast(5) is None
    monkeypatch.undo()
    told = Situation.of(Analysis(sample(CASES["case 1"])), {}, ()).forecast(5)
    assert told is not None and told.at(5).gain.low <= told.at(5).gain.high
