"""The plan of a search and ``what_if`` name the same number of trials at once, and the world says what it brings."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.advice._engine.plan import load_plan
from gpudiag.advice._engine.processes import AT_ONCE
from gpudiag.manifest import Settings
from gpudiag.report.kinds.forecast import tell
from gpudiag.simulation.simulator import simulate
from gpudiag.simulation.spec import Gpu, Spec, Trial

pytestmark = pytest.mark.slow


def search(n_gpus: int, workers: int, room_mib: int, share_pct: float) -> Spec:
    """Trials of 1.6 to 3.4 GiB, by workers that stay on their GPU."""
    return Spec(
        n_trials=max(80, 10 * workers),
        workers=workers,
        gpus=(Gpu(mem_total_mib=room_mib),) * n_gpus,
        trial=Trial(epochs=(6, 14), gpu_share_pct=(share_pct, share_pct)),
        settings=Settings(parallel=workers),
    )


def ends_well_h(spec: Spec, workers: int) -> tuple[float, float]:
    """Trials per hour that end well with so many workers, until the last one starts, and the share that fails."""
    trials = simulate(replace(spec, workers=workers, n_trials=40 * workers), seed=91).run.trials
    last = trials["start"].max()
    well = (trials["state"] != "FAIL") & (trials["end"] <= last)
    return well.sum() / ((last - trials["start"].min()).total_seconds() / 3600), (trials["state"] == "FAIL").mean()


@pytest.mark.parametrize(
    ("n_gpus", "workers", "room_mib", "share_pct", "advised"),
    [(2, 6, 8150, 85.0, 2), (1, 4, 12350, 25.0, None), (3, 12, 10750, 45.0, 6)],
)
def test_both_advise_what_fits_unless_the_present_number_ends_more_trials_well(
    n_gpus: int, workers: int, room_mib: int, share_pct: float, advised: int | None
) -> None:
    spec = search(n_gpus, workers, room_mib, share_pct)
    diagnosis = gd.diagnose(simulate(spec, seed=3).run)
    forecast = gd.what_if(diagnosis.analysis.run)  # what both need is made once
    planned = [c.proposed for one in diagnosis.recommendations for c in one.changes if c.what == AT_ONCE]
    said = re.match(r"(?:Run|Stay at) (\d+) trial", tell(forecast)[1].text)
    assert planned == ([advised] if advised else [])
    assert said is not None and int(said[1]) == (advised or workers)
    assert forecast.capacity is not None
    fits = int(forecast.capacity.hard_fit_k)
    gain = forecast.capacity.gains.by_k[fits]
    (now, failed), (then, fails) = ends_well_h(spec, workers), ends_well_h(spec, fits * n_gpus)
    assert gain.low <= then / now <= gain.high and fails < failed
    assert gain.value == pytest.approx(then / now, rel=0.2)
    assert (gain.high < 1) is (advised is None)


def test_a_plan_of_one_more_at_once_promises_what_the_remedy_does(tmp_path: Path) -> None:
    """Workers wait as long as a trial takes for the next one: the pauses are filled too, and are no time of trials."""
    spec = Spec(n_trials=60, workers=1, trial=Trial(epochs=(8, 12), gap_s=(100.0, 200.0), gpu_share_pct=(85.0, 85.0)))
    made = gd.diagnose(simulate(spec, seed=4).run)
    gain = next(one for one in made.to_dict()["recommendations"] if one["id"] == "more-workers")["gain"]
    plan = load_plan(made.save_plan(tmp_path / "plan.json", ["more-workers"]))
    assert plan.combined is not None
    assert (plan.combined.low, plan.combined.high) == pytest.approx((gain["low"], gain["high"]))
    rates = [len(run.trials) / (run.trials["end"].max() - run.trials["start"].min()).total_seconds() for run in
             (simulate(replace(spec, workers=n, n_trials=240), seed=9).run for n in (1, 2))]  # fmt: skip
    assert plan.combined.low <= rates[1] / rates[0] <= plan.combined.high
