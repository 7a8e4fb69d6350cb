"""A search whose workers stopped early while their GPUs stood idle, and one that had no trial left for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gpudiag as gd
from gpudiag.manifest import Settings
from gpudiag.rules._engine.verdict import Severity
from gpudiag.simulation.simulator import simulate
from gpudiag.simulation.spec import Gpu, ModelSpec, Spec, Trial

pytestmark = pytest.mark.slow


def search(n_gpus: int, n_trials: int, models: tuple[ModelSpec, ...], share_pct: float = 80.0) -> Spec:
    """One worker on each GPU."""
    return Spec(
        n_trials=n_trials,
        workers=n_gpus,
        gpus=(Gpu(),) * n_gpus,
        trial=Trial(gpu_share_pct=(share_pct, share_pct), models=models),
        settings=Settings(parallel=n_gpus),
    )


def span_s(run: gd.Run) -> float:
    return float((run.trials["end"].max() - run.trials["start"].min()).total_seconds())


@pytest.mark.parametrize(("n_gpus", "gone", "at"), [(2, 1, 0.4), (4, 3, 0.1)])
def test_starting_missing_workers_brings_what_is_told(n_gpus: int, gone: int, at: float) -> None:
    """GPUs that lost their worker stood idle: 1/u of those that worked, 1.3 here, is no bound."""
    whole = search(n_gpus, 20 * n_gpus, (ModelSpec(),))
    meant_s = span_s(simulate(whole, seed=5).run)
    run = simulate(replace(whole, workers=((0.0, n_gpus), (at * meant_s, n_gpus - gone))), seed=5).run
    true = span_s(run) / meant_s
    diagnosis = gd.diagnose(run)
    advised = {one.id: one for one in diagnosis.recommendations}
    gain = advised["restart-workers"].gain
    assert gain is not None and true > 1.35
    assert gain.low <= true <= gain.high <= 1.1 * true
    assert not {"more-workers", "pin-gpu"} & set(advised)
    said = " ".join([diagnosis.headline, *(finding.remedy for finding in diagnosis.findings)])
    assert " rank " not in said and "py-spy" not in said


@pytest.mark.parametrize("seed", [0, 7])
def test_an_end_without_trials_is_no_missing_worker(seed: int) -> None:
    """One trial in seven is twelve times as long, and the last of them runs alone."""
    models = (ModelSpec("small", 6, 0.5), ModelSpec("huge", 1, 6.0))
    diagnosis = gd.diagnose(simulate(search(2, 12, models), seed=seed).run)
    found = {one.rule: one for one in diagnosis.findings}
    idle = found["idle-without-trial"]
    assert idle.severity is Severity.NOTE and "after the last trial had begun" in idle.summary
    assert "Keep the workers running" not in idle.remedy and "longest trials first" in idle.remedy
    assert "Keep the workers running" not in diagnosis.headline


def test_a_worker_that_stopped_is_told_by_what_began_without_it() -> None:
    whole = search(2, 30, (ModelSpec(),))
    run = simulate(replace(whole, workers=((0.0, 2), (1000.0, 1))), seed=3).run
    (idle,) = (one for one in gd.diagnose(run).findings if one.rule == "idle-without-trial")
    assert idle.severity is Severity.WARNING and idle.remedy.startswith("Keep the workers running")
    assert "had begun" not in idle.summary
