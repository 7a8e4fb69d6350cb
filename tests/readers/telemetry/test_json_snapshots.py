"""JSON with one array, or one list of GPUs, a tick: its members are GPUs, numbered by their place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gpudiag.errors import InputError, UnknownInput
from gpudiag.readers._io.source import HEAD_BYTES
from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry

TICKS = 50
START_S = 1_736_203_508


def read(text: str, folder: Path, **options: Any) -> Telemetry:
    (folder / "gpu.json").write_text(text)
    return read_telemetry(folder / "gpu.json", timezone="UTC", **options)


def nvtop(gpu: int, tick: int, **also: object) -> dict[str, object]:
    """One device as ``nvtop --snapshot`` prints it."""
    return {
        "device_name": "AMD Radeon RX 7900 XTX",
        "gpu_clock": f"{1200 + tick}MHz",
        "mem_clock": "1249MHz",
        "temp": f"{50 + gpu}C",
        "fan_speed": "14%",
        "power_draw": f"{100 * (gpu + 1)}W",
        "gpu_util": f"{tick}%",
        "mem_util": "28%",
        **also,
    }


def in_use(telemetry: Telemetry, column: str) -> dict[str, list[float]]:
    return {str(gpu): own[column].tolist() for gpu, own in telemetry.gpu.groupby("gpu")}


@pytest.mark.parametrize("gpus", [2, 3, 8])
@pytest.mark.parametrize("indent", [None, 1])
def test_arrays_of_one_tick_each_number_their_gpus(gpus: int, indent: int | None, tmp_path: Path) -> None:
    arrays = [[nvtop(gpu, tick) for gpu in range(gpus)] for tick in range(TICKS)]
    telemetry = read("\n".join(json.dumps(one, indent=indent) for one in arrays), tmp_path, period_s=2.0)
    assert in_use(telemetry, "power_w") == {str(gpu): [100.0 * (gpu + 1)] * TICKS for gpu in range(gpus)}
    assert in_use(telemetry, "util_pct") == {str(gpu): [*range(TICKS)] for gpu in range(gpus)}
    assert telemetry.gpu["time"].max() - telemetry.gpu["time"].min() == pd.Timedelta(seconds=2 * (TICKS - 1))
    assert "mem_util_pct" not in telemetry.gpu, "the share of memory in use is not how busy it was"


def test_date_lines_between_arrays_are_their_times(tmp_path: Path) -> None:
    start = pd.Timestamp("2026-03-10 08:00:00")
    texts = [
        f"{start + pd.Timedelta(seconds=5 * tick):%a %b %d %H:%M:%S UTC %Y}\n"
        + json.dumps([nvtop(0, tick), nvtop(1, tick)])
        for tick in range(TICKS)
    ]
    telemetry = read("\n".join(texts) + "\n", tmp_path)
    for _, own in telemetry.gpu.groupby("gpu"):
        assert own["time"].dt.tz_localize(None).tolist() == [start + pd.Timedelta(seconds=5 * k) for k in range(TICKS)]


@pytest.mark.parametrize("speed", ["CPU Fan", "1179RPM", None])
@pytest.mark.parametrize("alone", [False, True])
def test_a_value_that_is_no_quantity_costs_no_row(speed: str | None, alone: bool, tmp_path: Path) -> None:
    """An integrated GPU has the fan of the CPU."""
    arrays = [[nvtop(0, tick, fan_speed=speed), *([] if alone else [nvtop(1, tick)])] for tick in range(TICKS)]
    telemetry = read("\n".join(map(json.dumps, arrays)), tmp_path)
    assert in_use(telemetry, "util_pct") == {str(gpu): [*range(TICKS)] for gpu in range(2 - alone)}
    assert not any(problem.lost for problem in telemetry.problems)
    if not alone:
        assert in_use(telemetry, "fan_pct")["1"] == [14.0] * TICKS


def test_sizes_of_later_versions_are_bytes(tmp_path: Path) -> None:
    sizes = {"mem_total": str(24 * 2**30), "mem_used": str(6 * 2**30), "mem_free": str(18 * 2**30), "processes": []}
    arrays = [[nvtop(gpu, tick, **sizes) for gpu in range(2)] for tick in range(TICKS)]
    telemetry = read("\n".join(map(json.dumps, arrays)), tmp_path)
    assert set(telemetry.gpu["mem_used_mib"]) == {6144.0} and set(telemetry.gpu["mem_total_mib"]) == {24576.0}


def test_a_list_inside_an_object_numbers_its_gpus_too(tmp_path: Path) -> None:
    objects = [{"gpus": [{"gpu_util": gpu, "memory_used_mb": tick} for gpu in range(4)]} for tick in range(TICKS)]
    telemetry = read("\n".join(map(json.dumps, objects)), tmp_path)
    assert in_use(telemetry, "util_pct") == {str(gpu): [float(gpu)] * TICKS for gpu in range(4)}


def test_a_batch_of_samples_of_one_gpu_is_no_snapshot(tmp_path: Path) -> None:
    batches = [
        [{"timestamp": 1_700_000_000 + 10 * at + k, "gpu_util": k, "memory_used_mb": at} for k in range(10)]
        for at in range(TICKS)
    ]
    telemetry = read("\n".join(map(json.dumps, batches)), tmp_path)
    assert set(telemetry.gpu["gpu"]) == {"0"} and len(telemetry.gpu) == 10 * TICKS


def test_small_fractions_as_json_writes_them_are_numbers(tmp_path: Path) -> None:
    objects = [{"timestamp": 1_700_000_000 + k, "gpu_util": 1e-05 + k, "power_w": 1e-05} for k in range(TICKS)]
    assert json.dumps(1e-05) == "1e-05"
    telemetry = read("\n".join(map(json.dumps, objects)), tmp_path)
    assert len(telemetry.gpu) == TICKS and telemetry.problems == () and telemetry.gpu["power_w"].max() == 1e-05


def test_small_fractions_in_a_table_are_numbers_too(tmp_path: Path) -> None:
    rows = [f"{1_700_000_000 + k},{k},1e-05" for k in range(TICKS)]
    telemetry = read("\n".join(["time,gpu_util,power_w", *rows]), tmp_path)
    assert set(telemetry.gpu["power_w"]) == {1e-05}


N_LARGE, N_SHORTER = 30_000, 20_000
"""So many numbers are longer than the head of a file, which is all that readers are told by."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "document",
    [
        {"about": {"host": "n1"}, "samples": [{"timestamp": START_S + k, "gpu_util": k % 101} for k in range(N_LARGE)]},
        {"timestamp": [START_S + k for k in range(N_LARGE)], "gpu_util": [k % 101 for k in range(N_LARGE)]},
        {"gpu_util": [k % 101 for k in range(N_LARGE)], "timestamp": [START_S + k for k in range(N_LARGE)]},
        {"gpu": {"util": [k % 101 for k in range(N_LARGE)]}, "timestamp": [START_S + k for k in range(N_LARGE)]},
        {"gpu_util": [k % 101 for k in range(N_SHORTER)], "timestamp": [START_S + k for k in range(N_SHORTER)]},
    ],
    ids=["objects", "times first", "times last", "a group", "cut in the second"],
)
def test_a_document_larger_than_the_head_is_read_as_a_small_one(document: dict[str, Any], tmp_path: Path) -> None:
    text = json.dumps(document)
    assert len(text) > HEAD_BYTES
    gpu = read(text, tmp_path).gpu
    assert len(gpu) in (N_LARGE, N_SHORTER) and gpu["util_pct"].tolist() == [k % 101 for k in range(len(gpu))]
    assert gpu["time"].iloc[-1] == pd.Timestamp(START_S + len(gpu) - 1, unit="s", tz="UTC")


def test_lists_that_are_no_samples_are_not_claimed(tmp_path: Path) -> None:
    times = [START_S + k for k in range(N_LARGE)]
    for other in ({"loss": times}, {"gpu_util": times[:-1]}, {"gpu_util": times, "time": times}):
        with pytest.raises(UnknownInput):
            read(json.dumps({"timestamp": times, **other}), tmp_path)


def test_values_by_kind_are_no_values_by_gpu(tmp_path: Path) -> None:
    line = {"timestamp": START_S, "utilization": {"gpu": 35, "memory": 10}}
    with pytest.raises(UnknownInput):
        read(json.dumps(line), tmp_path)
    by_time = {"gpu_util": {str(1000 * (START_S + 2 * k)): k for k in range(20)}}
    gpu = read(json.dumps(by_time), tmp_path).gpu
    assert gpu["util_pct"].tolist() == [*range(20)]
    assert gpu["time"].iloc[-1] == pd.Timestamp(START_S + 38, unit="s", tz="UTC")


def test_bare_gpus_are_told_by_their_numbers_or_refused(tmp_path: Path) -> None:
    lines = [json.dumps({"timestamp": START_S + k, "GPU0": k, "GPU1": 100 - k}) for k in range(101)]
    telemetry = read("\n".join(lines), tmp_path)
    assert in_use(telemetry, "util_pct") == {"0": [*range(101)], "1": [*range(100, -1, -1)]}
    assert any("they were taken as util_pct" in note for note in telemetry.notes)
    with pytest.raises(InputError, match="columns GPU0, GPU1 do not say what they measure"):
        read("\n".join(lines[40:60]), tmp_path)


def lines(*objects: dict[str, Any]) -> str:
    return "".join(json.dumps({"ts": START_S + 5 * k} | one) + "\n" for k, one in enumerate(objects))


def test_rows_below_one_time_are_the_gpus_that_they_name(tmp_path: Path) -> None:
    telemetry = read(lines(*({"gpu_util": {"5": 70, "3": k}} for k in range(20))), tmp_path)
    assert in_use(telemetry, "util_pct") == {"3": [*range(20)], "5": [70] * 20}


def test_a_list_of_anything_else_makes_no_gpu(tmp_path: Path) -> None:
    telemetry = read(lines(*({"gpu_util": k, "power_w": 150, "fan_speed": [40, 41]} for k in range(20))), tmp_path)
    assert in_use(telemetry, "power_w") == {"0": [150] * 20}


def test_lists_of_which_one_is_short_cost_that_object(tmp_path: Path) -> None:
    telemetry = read(lines(*({"gpu_util": [k, 70][k == 7 :]} for k in range(20))), tmp_path)
    assert in_use(telemetry, "util_pct") == {"0": [k for k in range(20) if k != 7], "1": [70] * 19}
    assert [(problem.count, problem.lost) for problem in telemetry.problems] == [(1, True)]


def test_lists_beside_one_time_may_be_of_gpus_or_of_moments(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="lists beside one time"):
        read(lines({"interval_s": 5, "gpu_util": [*range(40)]}), tmp_path)


def test_times_stand_beside_the_lists_of_each_gpu(tmp_path: Path) -> None:
    times = [START_S + 5 * k for k in range(20)]
    for gpus in (
        {str(gpu): {"util": [gpu] * 20} for gpu in range(2)},
        [{"index": g, "util": [g] * 20} for g in range(2)],
    ):
        telemetry = read(json.dumps({"time": times, "gpus": gpus}), tmp_path)
        assert in_use(telemetry, "util_pct") == {"0": [0] * 20, "1": [1] * 20}
        assert telemetry.gpu["time"].max() == pd.Timestamp(times[-1], unit="s", tz="UTC")


@pytest.mark.parametrize("above", [{}, {"memory": {"used_mb": 64_000, "total_mb": 128_000}, "cpu": {"percent": 5}}])
@pytest.mark.parametrize("keyed", [False, True])
def test_groups_of_values_below_a_gpu_are_of_it(keyed: bool, above: dict[str, Any], tmp_path: Path) -> None:
    def gpu(n: int, k: int) -> dict[str, Any]:
        memory = {"used_mb": 1000 * n + k, "total_mb": 24_576}
        return {"utilization": {"gpu": 10 * n + k, "memory": 7}, "memory": memory, "power": {"draw_w": 100 + n}}

    def gpus(k: int) -> dict[str, Any]:
        if keyed:
            return {f"gpu{n}": gpu(n, k) for n in range(2)}
        return {"gpus": [{"index": n, **gpu(n, k)} for n in range(2)]}

    lines = [json.dumps({"timestamp": f"2026-03-01T10:00:{k:02d}", **above, **gpus(k)}) for k in range(9)]
    (tmp_path / "gpu.jsonl").write_text("\n".join(lines), encoding="utf-8")
    found = read_telemetry(tmp_path / "gpu.jsonl", timezone="UTC").gpu
    assert found["mem_used_mib"].tolist() == [1000 * n + k for n in range(2) for k in range(9)]
    assert found["util_pct"].tolist() == [10 * n + k for n in range(2) for k in range(9)]
    assert found["power_w"].unique().tolist() == [100, 101] and found["mem_total_mib"].unique().tolist() == [24_576]


def test_lists_and_groups_of_other_things_are_left_alone(tmp_path: Path) -> None:
    others = {"loadavg": [0.5, 0.6, 0.7], "meta": {"run": "a", "seed": 3}, "losses": {"train": [3.0], "val": [4.0]}}
    lines = [
        json.dumps({"timestamp": f"2026-03-01T10:00:{k:02d}", "gpu_util": [k, 90], "gpu_mem_mb": [500, 600], **others})
        for k in range(9)
    ]
    gpu = read("\n".join(lines), tmp_path).gpu
    assert gpu["util_pct"].tolist() == [*range(9), *[90] * 9] and gpu["gpu"].unique().tolist() == ["0", "1"]
