"""What is advised for the work of a step: the batch by memory, precision by busy time, kernels by idle time."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from gpudiag.advice._engine.gains import GainBounds
from gpudiag.advice._engine.situation import NO_UTILIZATION
from gpudiag.advice.compute import batch_size, compile_model, mixed_precision, tf32
from gpudiag.measures.causes import CausesProfile
from gpudiag.measures.feed import FeedProfile
from gpudiag.report.format import at_most
from tests.advice.situations import HALF, checks, gain_of, memory, predicted, situation, trials, use
from tests.rules.small_profiles import profile

TOTAL, LEAST = 20_000.0, 1_000.0  # 90 % of the total less the least is 17,000


def row(most: float, *, total: float = TOTAL, least: float = LEAST) -> dict[str, float]:
    return {"min_mib": least, "max_mib": most, "total_mib": total, "max_used_pct": 100 * most / total}


def batch(*gpus: dict[str, float], rules: tuple[str, ...] = ("memory-headroom",), present: int | None = 32) -> Any:
    seen = memory(max(gpu["max_used_pct"] for gpu in gpus), **{f"g{i}": gpu for i, gpu in enumerate(gpus)})
    now = situation(seen, use(40.0), trials(fail_high_pct=5.0), rules=rules, bounds=HALF, batch_size=present)
    return batch_size.propose(now)


@pytest.mark.parametrize(
    ("work", "factor"),
    [(8_501.0, None), (8_500.0, 2), (4_251.0, 2), (4_250.0, 4), (2_125.0, 8), (1_000.0, 8), (500.0, 8)],
)
def test_a_batch_grows_by_powers_of_two_within_memory(work: float, factor: int | None) -> None:
    made = batch(row(LEAST + work))
    assert (made and made.changes[0].proposed) == (factor and 32 * factor)
    if factor is None:
        return
    assert made.changes[0].present == 32 and f"batch_size={32 * factor})  # was 32;" in made.changes[0].code
    high = factor  # 40 % utilization bounds nothing: larger kernels need not take longer
    assert gain_of(made) == (1.0, high, "x", "batch")
    assert f"Memory has room for {factor} times the batch" in made.assumption and at_most(high) in made.assumption
    assert [check[0] for check in checks(made)] == ["utilization.mean_pct", "trials.fail_pct", "memory.max_used_pct"]
    used = 100 * (LEAST + work) / TOTAL
    assert predicted(made) == {
        "utilization.mean_pct": (40.0, 40.0, min(100.0, 40.0 * high)),
        "memory.max_used_pct": (used, used, pytest.approx(100 * (LEAST + factor * work) / TOTAL)),
    }


def test_the_gpu_with_least_room_counts_and_one_without_work_does_not() -> None:
    small, large, idle = row(2_000.0), row(5_500.0), row(LEAST)
    assert batch(small, large, idle).changes[0].proposed == 32 * 2
    assert batch(small, idle).changes[0].proposed == 32 * 8
    assert batch(idle) is None
    assert batch(small, row(2_000.0, total=math.nan)) is None, "nobody knows the room on the second"


def test_a_batch_needs_its_present_size_and_a_finding() -> None:
    for rule in ("batch-or-kernels-small", "launch-bound", "gpu-busy-but-light", "gpu-low-utilization"):
        assert batch(row(2_000.0), rules=(rule,)) is not None
    assert batch(row(2_000.0), rules=("io-wait",)) is None
    assert batch(row(2_000.0), present=None) is None
    assert batch_size.propose(situation(rules=("memory-headroom",), bounds=HALF, batch_size=32)) is None


@pytest.mark.parametrize(("used", "said"), [(0.0, False), (math.nan, False), (0.5, True)])
def test_memory_is_predicted_only_from_what_was_used(used: float, said: bool) -> None:
    now = situation(memory(used, g0=row(2_000.0)), rules=("memory-headroom",), bounds=GainBounds(), batch_size=32)
    made = batch_size.propose(now)
    assert ("memory.max_used_pct" in predicted(made)) is said
    assert gain_of(made) == (1.0, 8, "x", "batch") and made is not None, "whatever the utilization"
    assert all(p.note.startswith("Upper end") for p in made.predictions)


@pytest.mark.parametrize(
    ("busy", "high"), [(40.0, 1 / 0.6), (0.0, 1.0), (99.5, 200.0), (100.0, None), (math.nan, None)]
)
def test_precision_shrinks_the_busy_time_only(busy: float, high: float | None) -> None:
    now = situation(trials(fail_high_pct=5.0), bounds=GainBounds(busy_pct=busy))
    assert gain_of(tf32.propose(now)) == gain_of(mixed_precision.propose(now))
    made = mixed_precision.propose(now)
    assert gain_of(made) == (None if high is None else (1.0, pytest.approx(high), "x", "work"))
    assert checks(made) == [("trials.fail_pct", "<=", 5.0)]
    assert predicted(made) == {}
    assert made is not None and "one trial" in made.verify_first and made.changes[0].present is None


def test_precision_is_held_to_what_it_is_for() -> None:
    light = situation(trials(fail_high_pct=5.0), rules=("gpu-busy-but-light",), bounds=HALF)
    assert checks(mixed_precision.propose(light)) == [("trials.fail_pct", "<=", 5.0)]
    full = situation(memory(99.0), bounds=HALF)
    assert ("memory.max_used_pct", "<", 90.0) in checks(mixed_precision.propose(full))


@pytest.mark.parametrize(
    ("rules", "busy", "made"),
    [
        (("memory-headroom",), 92.0, False),  # a tenth to gain at most where work stays as it is, and no small work
        (("memory-headroom",), 90.0, True),
        (("memory-headroom",), math.nan, True),
        (("memory-headroom", "gpu-busy-but-light"), 99.0, True),
        (("gpu-low-utilization",), 92.0, True),
    ],
)
def test_free_memory_alone_is_no_reason_beside_a_busy_gpu(rules: tuple[str, ...], busy: float, made: bool) -> None:
    now = situation(
        memory(10.0, g0=row(2_000.0)), rules=rules, bounds=GainBounds(busy_pct=busy, coverage_pct=100.0), batch_size=8
    )
    assert (batch_size.propose(now) is not None) is made


def test_a_larger_batch_brings_what_hardware_showed() -> None:
    """A transformer on an H200: 8 items in 43.7 ms at 44 % utilization, 32 in 57.0 ms, both with the GPU as the limit
    but for launches.
    """
    now = situation(
        memory(4.0, g0=row(2_000.0)), rules=("launch-bound",), bounds=GainBounds(busy_pct=43.7), batch_size=8
    )
    made = batch_size.propose(now)
    assert made is not None and made.changes[0].proposed == 64
    assert made.gain is not None and made.gain.high > (32 / 57.0) / (8 / 43.7) > 1 / 0.437


@pytest.mark.parametrize(
    ("rules", "stated_wait_pct", "proposed"),
    [
        (("batch-or-kernels-small",), math.nan, False),
        (("batch-or-kernels-small",), 2.0, True),
        (("batch-or-kernels-small", "launch-bound"), math.nan, True),
    ],
)
def test_nothing_is_compiled_where_a_slow_storage_looks_like_small_steps(
    rules: tuple[str, ...], stated_wait_pct: float, proposed: bool
) -> None:
    feed: FeedProfile = profile(FeedProfile, stated_wait_pct=stated_wait_pct)
    assert (compile_model.propose(situation(use(40.0), feed, rules=rules, bounds=HALF)) is not None) is proposed
    made = batch(row(2_000.0), rules=("batch-or-kernels-small",))
    assert made is not None and "a slow input looks alike" in made.verify_first


def test_compiled_kernels_have_no_known_bound() -> None:
    made = compile_model.propose(situation(use(40.0), bounds=HALF))
    assert gain_of(made) is None and predicted(made) == {}
    assert made is not None and at_most(2.5) in made.assumption and "may bring more" in made.assumption
    assert checks(made) == [("utilization.mean_pct", ">=", 46.0)]
    unknown = compile_model.propose(situation(use(40.0), bounds=GainBounds()))
    assert unknown is not None and unknown.assumption == NO_UTILIZATION and unknown.verify_first


@pytest.mark.parametrize(("waited_gpu_h", "proposed"), [(0.5, True), (0.0, False)])
def test_nothing_is_compiled_where_profiled_steps_do_not_wait_for_launches(waited_gpu_h: float, proposed: bool) -> None:
    told = pd.DataFrame({"source": ["trace"], "high_gpu_s": [3600 * waited_gpu_h]}, index=["launch"])
    seen: CausesProfile = profile(CausesProfile, by_cause=told, observed_gpu_s=3600.0)
    made = compile_model.propose(situation(use(40.0), seen, bounds=HALF))
    assert (made is not None) is proposed
    if made is not None:
        assert at_most(2.0) in made.assumption
