"""The truth: exact, complete, and the same when it is added up another way."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpudiag as gd
from gpudiag.simulation import Foreign, Gpu, Simulated
from gpudiag.simulation.truth import CELLS

QUICK: dict[str, Any] = {
    "epochs": 3,
    "epoch_s": (5.0, 9.0),
    "startup_s": (4.0, 8.0),
    "tail_s": (3.0, 6.0),
    "dip_s": (2.0, 4.0),
}


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    workers=st.integers(1, 4),
    gpus=st.integers(1, 3),
    abandoned=st.sampled_from([0.0, 0.3]),
    declares=st.sampled_from([(), ("worker", "gpu")]),
    outage=st.floats(0, 60),
)
def test_cells_sum_to_the_window(
    seed: int, workers: int, gpus: int, abandoned: float, declares: Any, outage: float
) -> None:
    done = gd.simulate(
        seed=seed, n_trials=9, workers=workers, gpus=(Gpu(),) * gpus, abandoned_rate=abandoned, fail_rate=0.1,
        declares=declares, outages_s=((outage, 2 * outage),), foreign=(Foreign(0, 10.0, 30.0),), **QUICK,
    )  # fmt: skip
    ledger = done.truth.ledger
    assert ledger["cell"].to_list() == list(CELLS) * gpus
    assert (ledger["gpu_s"] >= 0).all()
    sums = ledger.groupby("gpu")["gpu_s"].sum()
    assert sums.to_list() == pytest.approx([done.truth.window_s] * gpus, abs=1e-6)
    assert done.truth.levels["time_s"].sum() == pytest.approx(done.truth.window_s, abs=1e-6)


def label_at(done: Simulated, gpu: int, at: float) -> str:
    """The cell of one instant, from first principles: a loop over trials and a sum over steps."""
    lives = [life for life in done.history.lives if life.gpu == gpu and life.start_s <= at < life.end_s]
    trace = [(-1e9, 0.0), *done.history.busy[gpu], (1e9, 0.0)]
    start = at - done.spec.telemetry.window_s
    util = sum(v * max(0.0, min(b, at) - max(a, start)) for (a, v), (b, _) in itertools.pairwise(trace))
    util *= 100 / done.spec.telemetry.window_s
    if not lives:
        return "foreign" if util > 10 else "idle_no_trial"
    if util > 10:
        return "busy" if util >= 50 else "busy_low"
    if all(not life.spans or at < life.spans[0][0] for life in lives):
        return "startup_only"
    if all(life.spans and at >= life.spans[-1][1] for life in lives):
        return "tail_only"
    return "stalled"


@pytest.mark.parametrize("seed", [1, 2])
def test_cells_match_a_walk_through_time(seed: int) -> None:
    foreign = (Foreign(1, 5.0, 12.0, 70.0), Foreign(1, 60.0, 70.0, 30.0))
    done = gd.simulate(
        seed=seed, n_trials=5, workers=3, gpus=(Gpu(), Gpu()), assign=0, gap_s=(4.0, 9.0), foreign=foreign, **QUICK
    )
    step = 0.05
    instants = np.arange(step / 2, done.truth.window_s, step)
    for gpu in (0, 1):
        walked = dict.fromkeys(CELLS, 0.0)
        for at in instants:
            walked[label_at(done, gpu, float(at))] += step
        truth = done.truth.ledger[done.truth.ledger["gpu"] == str(gpu)].set_index("cell")["gpu_s"]
        assert truth.to_dict() == pytest.approx(walked, abs=1.0)
    assert {"startup_only", "tail_only", "stalled", "busy_low", "foreign"} <= set(
        done.truth.ledger[done.truth.ledger["gpu_s"] > 0]["cell"]
    )


@pytest.mark.slow
def test_overlapping_startups_hide_each_other() -> None:
    """METHODS 0: the GPU's start-up-only share falls like F^k, F the share of start-up in a trial's life."""
    shares = []
    for workers in (1, 2, 4):
        done = gd.simulate(
            seed=1, n_trials=400, workers=workers, startup_s=(30, 50), dip_s=(0, 0), tail_s=(0, 0), gap_s=(0, 0),
            epochs=4, gpu_share_pct=(20, 20), gpus=(Gpu(sharing="saturating"),),
        )  # fmt: skip
        trials = done.truth.trials
        lived = (trials["end"] - trials["start"]).dt.total_seconds()
        share = float(trials["startup_s"].sum() / lived.sum())
        ledger = done.truth.ledger.set_index("cell")["gpu_s"]
        shares.append((share**workers, ledger["startup_only"] / done.truth.window_s))
    for expected, found in shares:
        assert found == pytest.approx(expected, abs=0.02)


def test_effective_parallelism_is_worker_time_over_occupied_time() -> None:
    done = gd.simulate(seed=4, n_trials=20, workers=3, **QUICK)
    trials = done.truth.trials
    lived = (trials["end"] - trials["start"]).dt.total_seconds().sum()
    levels = done.truth.levels.set_index("level")["time_s"]
    assert done.truth.effective == pytest.approx(lived / levels[levels.index > 0].sum(), rel=1e-6)


def test_truth_becomes_plain_json() -> None:
    done = gd.simulate(seed=1, n_trials=5, waiting=1, abandoned_rate=0.3)
    text = json.dumps(done.truth.to_dict(), allow_nan=False)
    back = json.loads(text)
    assert len(back["trials"]) == 6
    assert back["trials"][-1]["start"] is None
    assert back["window_s"] == pytest.approx(done.truth.window_s, abs=0.001)
