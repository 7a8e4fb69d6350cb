"""Trials that hold several of the recorded GPUs, or none of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from smallruns import gpu, gpus, run, trials

from gpudiag.diagnosis import diagnose
from gpudiag.errors import NotMeasurable
from gpudiag.forecast.memory.boards import FLAT, UNPLACED, board, no_falls
from gpudiag.forecast.memory.signal import Memory
from gpudiag.forecast.parallelism.observed import observe
from gpudiag.measures.attribution import measure_attribution
from gpudiag.measures.costs import measure_costs
from gpudiag.run import Run

SECONDS = 3600
PERIOD = 4


def lives(seed: int, workers: int) -> list[list[tuple[int, int]]]:
    """Trials of unlike length, back to back but for some seconds, by worker."""
    rng = np.random.default_rng(seed)
    out = []
    for worker in range(workers):
        own, at = [], 20 + 37 * worker
        while at < SECONDS - 400:
            end = at + int(rng.integers(90, 260))
            own.append((at, end))
            at = end + int(rng.integers(2, 6))
        out.append(own)
    return out


def made(by_worker: list[list[tuple[int, int]]], on: dict[str, list[int]], *, keeps: bool = False) -> Run:
    """Telemetry of the GPUs, each with the trials of these workers; memory that it ``keeps`` shows none of them."""
    t = np.arange(0, SECONDS, PERIOD)
    logs = []
    for name, workers in on.items():
        used, busy = np.full(len(t), 450.0), np.zeros(len(t))
        for worker in workers:
            for place, (start, end) in enumerate(by_worker[worker]):
                used += np.where((t >= start + 5) & (t < end), 3000.0 + 150 * (place % 7), 0.0)
                busy += np.where((t >= start + 12) & (t < end - 1), 45.0, 0.0)
        used = np.full(len(t), 21_000.0) if keeps else used
        logs.append(gpu(t, name, util_pct=np.minimum(busy, 100.0), mem_used_mib=used, mem_total_mib=40_000.0))
    rows = sorted((start, end) for own in by_worker for start, end in own)
    boards = gpus(gpu=list(on))
    return run(gpu=pd.concat(logs), gpus=boards, trials=trials([("COMPLETE", *life) for life in rows]))


def true_workers(by_worker: list[list[tuple[int, int]]]) -> list[int]:
    """The worker of each trial, in the order of ``made``."""
    return [w for _, _, w in sorted((a, b, w) for w, own in enumerate(by_worker) for a, b in own)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", (1, 2))
def test_trials_of_a_worker_on_an_unrecorded_gpu_are_not_placed_on_the_only_one(seed: int) -> None:
    own = lives(seed, 2)
    found = measure_attribution(made(own, {"0": [0]}))
    here = [worker == 0 for worker in true_workers(own)]
    assert found.trials["gpu"].notna().tolist() == here
    assert found.n_elsewhere == len(here) - sum(here)
    assert set(found.trials["confidence"]) == {"weak", "unknown"} and found.maybe.empty


@pytest.mark.slow
@pytest.mark.parametrize("keeps", (False, True))
@pytest.mark.parametrize("workers", (1, 2, 3))
def test_trials_on_the_only_gpu_stay_there_whether_or_not_memory_shows_them(workers: int, keeps: bool) -> None:
    found = measure_attribution(made(lives(3, workers), {"0": list(range(workers))}, keeps=keeps))
    assert set(found.trials["method"]) == {"only GPU"} and found.n_elsewhere == 0 and found.n_inferred == 0


@pytest.mark.slow
def test_of_two_recorded_gpus_none_has_the_trials_of_two_others() -> None:
    own = lives(4, 4)
    found = measure_attribution(made(own, {"0": [0], "1": [1]}))
    true = true_workers(own)
    placed = found.trials["gpu"].fillna("").tolist()
    assert all(gpu in ("", str(worker)) for gpu, worker in zip(placed, true, strict=True))
    assert sum(gpu != "" for gpu in placed) >= 0.9 * sum(worker < 2 for worker in true)


@pytest.mark.slow
def test_a_forecast_says_that_a_part_of_the_study_ran_elsewhere() -> None:
    half = made(lives(1, 2), {"0": [0]})
    with pytest.raises(NotMeasurable, match="left no mark on a recorded GPU"):
        observe(half)
    own = len(lives(1, 2)[1])
    assert f"*{own} of {len(half.trials)} trials left no mark on a recorded GPU" in diagnose(half).to_markdown()


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "each"), [(1, 2), (2, 2), (1, 4)])
def test_trials_on_several_gpus_are_placed_on_all_of_them_and_cost_them(workers: int, each: int) -> None:
    own = lives(5, workers)
    of = {str(each * worker + place): [worker] for worker in range(workers) for place in range(each)}
    whole = made(own, of)
    expected = [",".join(str(each * worker + place) for place in range(each)) for worker in true_workers(own)]
    found = measure_attribution(whole).trials
    assert all(name in (want, "") for name, want in zip(found["gpu"].fillna(""), expected, strict=True))
    assert found["gpu"].notna().mean() >= 0.9
    if found["gpu"].notna().all():
        gpu_s = each * sum(end - start for rows in own for start, end in rows)
        assert measure_costs(whole).trial_gpu_h == pytest.approx(gpu_s / 3600)


@pytest.mark.slow
def test_gpus_that_others_use_hold_no_trial() -> None:
    """Two workers of this study, two of another one that nobody gave: four GPUs are busy, two trials run."""
    everyone = lives(6, 4)
    own = everyone[:2]
    whole = made(everyone, {"0": [0], "1": [1], "2": [2], "3": [3]})
    rows = sorted((start, end) for rows in own for start, end in rows)
    ours = run(gpu=whole.gpu, gpus=whole.gpus, trials=trials([("COMPLETE", *life) for life in rows]))
    found = measure_attribution(ours).trials["gpu"].fillna("").tolist()
    assert all(gpu in (str(worker), "") for gpu, worker in zip(found, true_workers(own), strict=True))
    assert sum(gpu != "" for gpu in found) >= 0.8 * len(found)


@pytest.mark.slow
@pytest.mark.parametrize(("rise_mib", "reason"), [(5000.0, UNPLACED), (0.0, FLAT)])
def test_memory_that_rises_with_trials_of_unknown_gpu_is_not_said_to_be_flat(rise_mib: float, reason: str) -> None:
    time = np.arange(0.0, 1000.0, 2.0)
    start = np.arange(20.0, 900.0, 100.0)
    end = start + 80
    used = 450.0 + rise_mib * ((time[:, None] >= start + 5) & (time[:, None] < end)).any(axis=1)
    memory = Memory(time, used, start, end, np.ones(len(start), bool), np.zeros(len(start)))
    assert no_falls([memory], [board(memory, np.arange(len(start)))], np.full(len(start), np.nan)) == reason
