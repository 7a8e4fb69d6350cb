"""One GPU over several logs: by uuid, then bus id, then index."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudiag.readers._shape.identity import GpuIdentity, resolve, same_model, short_bus_id
from gpudiag.readers._shape.merge_telemetry import merge
from gpudiag.readers.base import Telemetry
from gpudiag.schema import TABLES, conform

A, B = "GPU-aaaaaaaa", "GPU-bbbbbbbb"


def part(
    seconds: list[int], gpu: str = "0", reader: str = "x", values: dict[str, list[Any]] | None = None, **known: str
) -> Telemetry:
    time = pd.to_datetime(seconds, unit="s", utc=True).astype("datetime64[us, UTC]")
    frame = pd.DataFrame(
        {"time": time, "gpu": [gpu] * len(seconds), **(values or {"util_pct": [float(s) for s in seconds]})}
    )
    gpus = pd.DataFrame({"gpu": [gpu], **{key: [value] for key, value in known.items()}})
    return Telemetry(gpu=conform(frame, TABLES["gpu"]), gpus=conform(gpus, TABLES["gpus"]), reader=reader, clock="utc")


@pytest.mark.parametrize(
    ("identities", "ids"),
    [
        ([GpuIdentity("0", A), GpuIdentity("0", A)], ["0", "0"]),
        ([GpuIdentity("0", A), GpuIdentity("1", A)], ["0", "0"]),
        ([GpuIdentity("0", A), GpuIdentity("0", B)], ["0", "0b"]),
        ([GpuIdentity("0"), GpuIdentity("0", A)], ["0", "0"]),
        ([GpuIdentity("0", A), GpuIdentity("0", B), GpuIdentity("0")], ["0", "0b", "0"]),
        ([GpuIdentity("0", bus_id="00000000:01:00.0"), GpuIdentity("3", bus_id="0000:01:00.0")], ["0", "0"]),
        ([GpuIdentity("0", A, "0000:01:00.0"), GpuIdentity("0", B, "0000:01:00.0")], ["0", "0b"]),
        ([GpuIdentity(uuid=A), GpuIdentity(uuid=B)], ["0", "1"]),
        ([GpuIdentity("1", A), GpuIdentity(uuid=B)], ["1", "0"]),
        ([GpuIdentity("10"), GpuIdentity("2")], ["10", "2"]),
    ],
)
def test_which_identities_are_one_gpu(identities: list[GpuIdentity], ids: list[str]) -> None:
    found, notes = resolve(identities)
    assert found == ids
    assert len(notes) == len({label for label in ids if label[-1] == "b"})


def test_bus_ids_of_both_lengths_are_equal() -> None:
    assert short_bus_id("00000000:3B:00.0") == short_bus_id("0000:3b:00.0") != short_bus_id("00000001:3B:00.0")


def test_samples_in_two_logs_count_once() -> None:
    merged = merge([part([1, 2, 3]), part([3, 4])])
    assert merged.gpu["util_pct"].tolist() == [1, 2, 3, 4]
    assert [(p.kind, p.count) for p in merged.problems] == [("duplicate sample", 1)]
    assert any("1 sample stands in more than one log" in note for note in merged.notes)


def test_logs_complete_each_other() -> None:
    merged = merge([part([1, 2]), part([2, 3], values={"power_w": [20.0, 30.0]})])
    assert merged.gpu[["util_pct", "power_w"]].fillna(-1).to_numpy().tolist() == [[1, -1], [2, 20], [-1, 30]]


def test_another_board_at_the_same_index_is_another_gpu() -> None:
    merged = merge([part([1, 2], uuid=A), part([1, 2], uuid=B)])
    assert merged.gpus[["gpu", "uuid"]].to_numpy().tolist() == [["0", A], ["0b", B]]
    assert merged.gpu["gpu"].tolist() == ["0", "0", "0b", "0b"] and any("index 0" in note for note in merged.notes)


def test_two_machines_of_other_boards_stay_two_gpus() -> None:
    busy = part([1, 2, 3], values={"util_pct": [95.0] * 3}, name="NVIDIA A100-SXM4-40GB")
    idle = part([2, 3, 4], values={"util_pct": [5.0] * 3}, name="NVIDIA GeForce RTX 4090")
    merged = merge([busy, idle])
    assert merged.gpu.groupby("gpu")["util_pct"].agg(["count", "mean"]).to_numpy().tolist() == [[3, 95], [3, 5]]
    assert merged.gpus["gpu"].tolist() == ["0", "0b"]
    assert any("index 0 (NVIDIA A100-SXM4-40GB and NVIDIA GeForce RTX 4090)" in note for note in merged.notes)


@pytest.mark.parametrize(("totals", "gpus"), [((40960.0, 24564.0), ["0", "0b"]), ((40960.0, 40537.0), ["0"])])
def test_boards_of_other_sizes_are_two_gpus(totals: tuple[float, float], gpus: list[str]) -> None:
    parts = [part([k], values={"mem_total_mib": [total]}) for k, total in enumerate(totals)]
    parts = [replace(one, gpus=one.gpus.assign(mem_total_mib=total)) for one, total in zip(parts, totals, strict=True)]
    merged = merge(parts)
    assert merged.gpus["gpu"].tolist() == gpus
    told = "Two different GPUs have index 0 (of 24564 and 40960 MiB); the one seen later is called 0b."
    assert (told in merged.notes) == (len(gpus) == 2)


def test_logs_that_differ_at_the_same_instants_are_of_two_gpus() -> None:
    merged = merge([part([*range(10)], values={"util_pct": [u] * 10}) for u in (95.0, 5.0)])
    assert merged.gpu["gpu"].value_counts().to_dict() == {"0": 10, "0b": 10} and not merged.problems
    assert any("differ in 10 of the 10 samples" in note for note in merged.notes)


def test_logs_of_one_gpu_that_take_turns_stay_one() -> None:
    merged = merge([part([*range(k, 20, 2)], values={"util_pct": [u] * 10}) for k, u in enumerate((95.0, 5.0))])
    assert merged.gpu["gpu"].tolist() == ["0"] * 20 and merged.gpu["util_pct"].tolist() == [95.0, 5.0] * 10


def course(seconds: list[float], values: list[float], column: str = "mem_used_mib") -> Telemetry:
    one = part([*range(len(seconds))], values={column: values})
    time = pd.to_datetime(seconds, unit="s", utc=True).astype("datetime64[us, UTC]")
    return replace(one, gpu=one.gpu.assign(time=time))


def noisy(low: float, high: float, seed: int, n: int = 400) -> list[float]:
    return np.random.default_rng(seed).uniform(low, high, n).round().tolist()


@pytest.mark.parametrize(
    ("column", "one", "other", "gpus"),
    [
        ("util_pct", noisy(80, 100, 0), noisy(5, 30, 1), 2),
        ("util_pct", noisy(0, 100, 0), noisy(0, 100, 1), 1),
        ("util_pct", noisy(80, 100, 0)[:18], noisy(5, 30, 1)[:18], 1),
        ("mem_used_mib", [30_000.0] * 400, [30_120.0] * 400, 2),
        ("mem_used_mib", [30_000.0] * 400, [30_001.0] * 400, 1),
        ("mem_used_mib", [*range(0, 40_000, 100)], [*range(30, 40_030, 100)], 1),
        ("mem_used_mib", [*range(0, 40_000, 100)], [*range(40_000, 0, -100)], 2),
    ],
)
def test_logs_that_take_turns_are_of_two_gpus_where_each_lies_beyond_the_other(
    column: str, one: list[float], other: list[float], gpus: int
) -> None:
    """Ten seconds between samples of each, four seconds from one log to the other. Noise alone is not enough."""
    parts = [
        course([10.0 * k + late for k in range(len(one))], one_of, column) for late, one_of in ((0, one), (4, other))
    ]
    for order in (parts, parts[::-1]):
        merged = merge(order)
        assert merged.gpu["gpu"].nunique() == gpus and len(merged.gpu) == len(one) + len(other)
        assert any("beyond all that the other has shortly" in note for note in merged.notes) is (gpus == 2)
        assert any("name GPU 0 by number alone" in note for note in merged.notes) is (gpus == 1)


def test_two_tools_may_mean_different_things_and_a_sparse_log_fits_a_dense_one() -> None:
    dense = course([*range(4000)], noisy(80, 100, 0, 4000), "util_pct")
    sparse = course([60.0 * k + 0.5 for k in range(60)], noisy(5, 30, 1, 60), "util_pct")
    assert set(merge([dense, sparse]).gpu["gpu"]) == {"0", "0b"}
    other = merge([dense, replace(sparse, reader="another")])
    assert set(other.gpu["gpu"]) == {"0"} and not other.notes
    fitting = course([60.0 * k + 0.5 for k in range(60)], noisy(80, 100, 2, 60), "util_pct")
    assert set(merge([fitting, dense]).gpu["gpu"]) == {"0"}


@pytest.mark.parametrize(("overlap_s", "told"), [(-5, False), (60, False), (61, True)])
def test_logs_that_overlap_for_long_are_told_where_nothing_names_the_board(overlap_s: int, told: bool) -> None:
    later = [500.5 - overlap_s + k for k in range(500)]  # the first ends at 499
    one, other = (course(each, [50.0] * 500, "util_pct") for each in ([*map(float, range(500))], later))
    one = replace(one, gpu=one.gpu.assign(time=one.gpu["time"] + pd.Timedelta("1.5s")))
    assert any("by number alone" in note for note in merge([other, one]).notes) is told
    named = [replace(log, gpus=log.gpus.assign(uuid=A)) for log in (one, other)]
    assert not any("by number alone" in note for note in merge(named).notes)


STEPS = [500.0 * (k // 4) for k in range(40)]
"""What a GPU holds at 40 half seconds; it steps up every two seconds, so that half of the steps are within one."""


def test_logs_in_whole_seconds_that_sample_a_gpu_half_a_second_apart_are_of_one() -> None:
    merged = merge([course([*range(19)], STEPS[0:38:2]), course([*range(19)], STEPS[3:41:2])])
    assert set(merged.gpu["gpu"]) == {"0"}, "each differs from the other in half of the seconds"
    other = [9000.0 - step for step in STEPS[0:38:2]]
    merged = merge([course([*range(19)], STEPS[0:38:2]), course([*range(19)], other)])
    assert set(merged.gpu["gpu"]) == {"0", "0b"}


def test_a_second_and_a_fraction_of_it_are_not_the_same_instant() -> None:
    fine = course([0.25, 1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0, 50.0])
    coarse = course([*range(5)], [15.0, 25.0, 35.0, 45.0, 55.0])
    assert set(merge([fine, coarse]).gpu["gpu"]) == {"0"}


def processes(uuid: str) -> Telemetry:
    """A log of one process that knows the GPU by its uuid and numbers it itself."""
    time = pd.to_datetime([1], unit="s", utc=True).astype("datetime64[us, UTC]")
    table = conform(pd.DataFrame({"time": time, "gpu": ["0"], "pid": [7]}), TABLES["processes"])
    return Telemetry(processes=table, gpus=conform(pd.DataFrame({"gpu": ["0"], "uuid": [uuid]}), TABLES["gpus"]))


@pytest.mark.parametrize("turn", [False, True])
def test_processes_of_a_uuid_are_of_the_gpu_that_has_it(turn: bool) -> None:
    parts = [processes(B), part([1], gpu="0", uuid=A), part([1], gpu="1", uuid=B)]
    merged = merge(parts[::-1] if turn else parts)
    assert merged.processes["gpu"].tolist() == ["1"] and merged.gpus["gpu"].tolist() == ["0", "1"]


def test_processes_of_a_uuid_that_nobody_else_states() -> None:
    assert merge([processes(A), part([1])]).processes["gpu"].tolist() == ["0"], "there is one GPU only"
    merged = merge([processes(A), part([1], gpu="0"), part([1], gpu="1")])
    assert merged.processes["gpu"].tolist() == ["2"], "which of the two it is nobody knows"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("NVIDIA A100 80GB PCIe", "A100-PCIE-80GB", True),
        ("GeForce RTX 208...", "NVIDIA GeForce RTX 2080 Ti", True),
        ("Tesla V100-SXM2-16GB", "V100", True),
        ("", "RTX 4090", True),
        ("A10", "A100", False),
        ("RTX 3090", "RTX 4090", False),
    ],
)
def test_names_of_one_product(one: str, other: str, same: bool) -> None:
    assert same_model(one, other) is same_model(other, one) is same


def test_ten_comes_after_two() -> None:
    merged = merge([part([1], gpu="10"), part([1], gpu="2")])
    assert merged.gpu["gpu"].tolist() == merged.gpus["gpu"].tolist() == ["2", "10"]


def test_one_log_stays_and_none_is_empty() -> None:
    one = part([1])
    assert merge([one]) is one and merge([]).rows == 0


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 8)), min_size=2, max_size=4))
def test_merging_is_a_sorted_union(spans: list[tuple[int, int]]) -> None:
    logs = [[*range(first, first + n)] for first, n in spans]
    merged = merge([part(log) for log in logs])
    assert merged.gpu["time"].is_monotonic_increasing
    assert merged.gpu["util_pct"].tolist() == sorted({second for log in logs for second in log})
    counted = sum(p.count for p in merged.problems if p.kind == "duplicate sample")
    assert counted == sum(map(len, logs)) - len(merged.gpu)
