"""Two runs on one GPU at the same time: neither had it alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from batchruns import batch, with_telemetry

from gpudiag.comparison.compare import Comparison, compare
from gpudiag.run import Run
from gpudiag.schema import GPU, GPUS, conform

A = np.random.default_rng(5).normal(60, 5, 30)
UUIDS = ("GPU-9999aaaa-0000-0000-0000-000000000001", "GPU-9999aaaa-0000-0000-0000-000000000002")
WITHHELD = ("gpu_time", "gpu_time_per_item", "energy", "energy_per_item")


def run(name: str, begin_s: float, uuid: str | None = UUIDS[0], seed: int = 0, gpu: str = "0") -> Run:
    """Half an hour of trials on a GPU that is busy all the time."""
    made = batch(name, A + 0.1 * seed, named=False, params={"lr": 0.1}, begin_s=begin_s)
    made = with_telemetry(made, np.random.default_rng(seed).normal(80, 4, 500))
    gpus = made.gpus.assign(gpu=gpu, uuid=pd.Series([uuid], dtype="string"))
    return replace(made, gpu=conform(made.gpu.assign(gpu=gpu), GPU), gpus=conform(gpus, GPUS))


def compared(one: Run, other: Run) -> Comparison:
    found = compare(one, other)
    assert isinstance(found, Comparison)
    found.to_json()
    return found


def check(found: Comparison) -> tuple[str, str]:
    return next((c.status, str(c.evidence)) for c in found.gate if c.check == "not-a-subset")


@pytest.mark.slow
def test_two_runs_on_one_gpu_at_a_time_are_no_comparison() -> None:
    found = compared(run("a", 0), run("b", 600, seed=1, gpu="cuda0"))
    shared = (A.sum() - 600) / A.sum()
    status, evidence = check(found)
    assert status == "fail" and evidence.startswith("Both ran on GPU 0 at the same time")
    assert f"{100 * shared:.0f}" in evidence and found.verdict == "invalid"
    assert "both ran on one GPU at the same time" in found.headline["verdict"]
    assert found.headline["sentences"][2].startswith("Run one after the other")
    for name in WITHHELD:
        held = found.quantity(name)
        assert np.isnan([held.baseline, held.experiment, held.ratio]).all() and held.verdict == "invalid"
    assert found.quantity("utilization").verdict == "invalid" and found.ledger == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    "other",
    [run("b", 7200, seed=1), run("b", 600, UUIDS[1], seed=1), run("b", 600, None, seed=1), run("b", 1750, seed=1)],
    ids=["later", "another GPU", "unknown", "a short while"],
)
def test_runs_that_had_their_gpu_alone_are_compared(other: Run) -> None:
    found = compared(run("a", 0), other)
    assert check(found)[0] == "pass" and not found.invalid and found.ledger
    assert found.quantity("gpu_time_per_item").ratio == pytest.approx(other_mean(other) / A.mean(), rel=0.02)


def other_mean(other: Run) -> float:
    return float((other.trials["end"] - other.trials["start"]).dt.total_seconds().mean())


@pytest.mark.slow
def test_without_a_uuid_the_samples_tell_that_it_is_one_gpu() -> None:
    """The same recording lies in both folders; of the second, trials of ten minutes later."""
    one = run("a", 0, None)
    other = replace(run("b", 600, None, seed=1), gpu=one.gpu)
    assert check(compared(one, other))[0] == "fail"


@pytest.mark.slow
def test_where_nothing_says_on_which_of_two_gpus_a_run_was_it_is_a_doubt() -> None:
    def on_two(one: Run) -> Run:
        gpus = conform(pd.concat([one.gpus, one.gpus.assign(gpu="1", uuid=UUIDS[1])], ignore_index=True), GPUS)
        both = pd.concat([one.gpu, one.gpu.assign(gpu="1")], ignore_index=True)
        return replace(one, gpu=conform(both.sort_values("time"), GPU), gpus=gpus)

    found = compared(on_two(run("a", 0)), on_two(run("b", 600, seed=1)))
    assert check(found)[0] == "unknown" and "Nothing says surely" in check(found)[1]
    assert not found.invalid and np.isnan(found.quantity("gpu_time").baseline)
    stated = [on_two(run(n, b, seed=s)) for n, b, s in (("a", 0, 0), ("b", 600, 1))]
    stated = [replace(one, trials=one.trials.assign(gpu=k)) for one, k in zip(stated, "01", strict=True)]
    assert check(compared(*stated))[0] == "pass"
