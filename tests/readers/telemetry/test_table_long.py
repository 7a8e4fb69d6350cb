"""Tables with a reading a row: units, what is twice, missing or garbled, and whose a reading is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpudiag.errors import InputError, UnknownInput
from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry

EPOCH_S = 1_772_359_200


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def read(header: str, *rows: str, **options: Any) -> Telemetry:
        (tmp_path / "long.csv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
        return read_telemetry(tmp_path / "long.csv", **({"timezone": "UTC"} | options))

    return read


def column(telemetry: Telemetry, name: str) -> list[float]:
    return telemetry.gpu[name].tolist()


def kinds(telemetry: Telemetry) -> dict[str, tuple[int, bool]]:
    return {problem.kind: (problem.count, problem.lost) for problem in telemetry.problems}


@pytest.mark.parametrize(
    ("metric", "unit", "value", "column_name", "expected"),
    [
        ("memory_used", "GB", "2.5", "mem_used_mib", 2560),
        ("memory_used_bytes", "", str(3 * 2**20), "mem_used_mib", 3),
        ("power", "mW", "90500", "power_w", 90.5),
        ("utilization.memory", "%", "7", "mem_util_pct", 7),
        ("nvidia_smi_utilization_gpu_ratio", "", "0.25", "util_pct", 25),
        ("nvidia_gpu_power_usage_milliwatts", "", "90500", "power_w", 90.5),
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "", "5000", "energy_j", 5),
        ("Temperature", "", "55 C", "temp_c", 55),
    ],
)
def test_a_unit_is_that_of_the_metric(
    metric: str, unit: str, value: str, column_name: str, expected: float, read: Any
) -> None:
    rows = [f"{EPOCH_S + k},0,{metric},{value},{unit}\n{EPOCH_S + k},0,gpu_util_pct,{k},%" for k in range(5)]
    if column_name == "util_pct":
        rows = [row.split("\n")[0] for row in rows]
    assert column(read("time,gpu,metric,value,unit", *rows), column_name) == [expected] * 5


def test_what_is_missing_or_garbled_costs_itself(read: Any) -> None:
    rows = [f"{EPOCH_S + k},0,util,{k}" for k in range(9) if k != 3]
    rows += [f"{EPOCH_S + k},0,power_w,{'4x' if k == 7 else 90 + k}" for k in range(9)]
    telemetry = read("time,gpu,metric,value", *rows, f"{EPOCH_S + 9},0,pow", "Killed", f"{EPOCH_S},0,loss,0.1")
    assert str(column(telemetry, "util_pct")) == str([0.0, 1.0, 2.0, float("nan"), *map(float, range(4, 9))])
    assert str(column(telemetry, "power_w")) == str([*(90.0 + k for k in range(7)), float("nan"), 98.0])
    told = {"value that is no number": (1, True), "torn row": (1, True), "line that is no sample": (1, False)}
    assert kinds(telemetry) == told and telemetry.problems[0].line == 17


def test_what_is_there_twice_is_counted_and_samples_of_one_second_are_spread(read: Any) -> None:
    rows = [f"{EPOCH_S + k},0,{name},{k}" for name in ("gpu_util", "power_w") for k in range(6)]
    telemetry = read("time,gpu,metric,value", *rows[:3], f"{EPOCH_S + 2},0,gpu_util,9", *rows[3:])
    assert column(telemetry, "util_pct") == [0, 1, 9, 3, 4, 5] and column(telemetry, "power_w") == list(range(6))
    assert kinds(telemetry) == {"duplicate sample": (1, False), "duplicate sample with other values": (1, False)}
    seconds = [f"{EPOCH_S + k // 2},0,{name},{k}" for name in ("gpu_util", "power_w") for k in range(6)]
    telemetry = read("time,gpu,metric,value", *seconds)
    assert column(telemetry, "util_pct") == column(telemetry, "power_w") == list(range(6)) and not telemetry.problems
    assert (telemetry.gpu["time"].diff().dropna().dt.total_seconds() == 0.5).all()


@pytest.mark.parametrize("by_run", [True, False])
def test_rows_of_one_time_that_another_column_tells_apart_are_not_made_one_gpu(by_run: bool, read: Any) -> None:
    rows = [f"{EPOCH_S + k},run{n},{m},{9 * n + k}" for k in range(9) for n in (0, 1) for m in ("gpu_util", "power_w")]
    rows = sorted(rows, key=lambda row: row.split(",")[1]) if by_run else rows
    with pytest.raises(InputError, match="differ in column 'run_id'"):
        read("timestamp,run_id,key,value", *rows)
    assert column(read("timestamp,host,key,value", *rows), "util_pct") == [*range(9), *range(9, 18)]


def test_steps_within_one_second_and_labels_of_one_value_tell_nothing_apart(read: Any) -> None:
    rows = [f"{EPOCH_S + k // 2},0,{k},{k // 3},{name},{k}" for k in range(18) for name in ("gpu_util", "power_w")]
    assert column(read("time,gpu,step,epoch,metric,value", *rows), "util_pct") == list(range(18))
    rows = [f"{EPOCH_S + k},0,{pod},gpu_util,{k}" for k in range(9) for pod in ("a", "b")]
    assert column(read("time,gpu,pod,metric,value", *rows), "util_pct") == list(range(9))


def test_times_of_each_metric_are_in_order_though_each_begins_anew(read: Any) -> None:
    rows = [f"{EPOCH_S + k + at / 10},0,{name},{k}" for at, name in enumerate(("util", "power_w")) for k in range(99)]
    telemetry = read("time,gpu,metric,value", *rows)
    assert telemetry.gpu["time"].is_monotonic_increasing and not telemetry.problems
    back = read("time,gpu,metric,value", *rows, *(f"{EPOCH_S + 30 + k + 0.05},0,util,7" for k in range(9)))
    assert any(kind.startswith("time goes back into what is covered") for kind in kinds(back))


def test_each_reading_of_a_repeated_hour_is_of_its_own_pass(read: Any) -> None:
    clock = [f"2025-10-26 {hour}:{minute:02d}:00" for hour in ("01", "02", "02", "03") for minute in range(60)]
    rows = [f"{time},0,{name},{k % 101}" for name in ("gpu_util", "power_w") for k, time in enumerate(clock)]
    telemetry = read("time,gpu,metric,value", *rows, timezone="Europe/Berlin")
    assert column(telemetry, "util_pct") == column(telemetry, "power_w") == [k % 101 for k in range(240)]
    assert (telemetry.gpu["time"].diff().dropna().dt.total_seconds() == 60).all()


def test_what_is_of_an_instance_of_a_disk_or_of_a_training_is_of_no_gpu(read: Any) -> None:
    of_instances = [
        f"{EPOCH_S + k},{name},n1,0,{instance},{value}"
        for k in range(5)
        for name, instance, value in (
            ("DCGM_FI_DEV_POWER_USAGE", "", 90),
            ("DCGM_FI_DEV_POWER_USAGE", "1", 90),
            ("DCGM_FI_DEV_FB_USED", "1", 500),
            ("DCGM_FI_DEV_FB_USED", "2", 700),
        )
    ]
    telemetry = read("Time,__name__,Hostname,gpu,GPU_I_ID,Value", *of_instances)
    assert column(telemetry, "power_w") == [90] * 5 and "mem_used_mib" not in telemetry.gpu
    assert kinds(telemetry)["reading of a MIG instance"] == (10, False)
    measured = [("nvidia_smi", "utilization_gpu", 30), ("mem", "used_percent", 70), ("disk", "used", 9)]
    rows = [f"{EPOCH_S + k},{name},{of},n1,{value}" for k in range(5) for of, name, value in measured]
    telemetry = read("_time,_field,_measurement,host,_value", *rows)
    assert set(telemetry.gpu) == {"time", "gpu", "util_pct"} and not telemetry.problems
    with pytest.raises(UnknownInput):
        read("step,time,metric,value", *(f"{k},{EPOCH_S + k},loss,{k}" for k in range(5)))


def test_metrics_that_are_not_read_are_named(read: Any) -> None:
    rows = [f"{EPOCH_S},0,{name},1" for name in ("gpu_util", "train_loss", *(f"m{k}x" for k in range(8)))]
    said = "Metrics that are not known as those of a GPU were not read: {}."
    assert said.format("m0x, m1x, m2x, m3x, m4x and 4 more") in read("time,gpu,metric,value", *rows).notes
    assert said.format("train_loss") in read("time,gpu,metric,value", *rows[:2]).notes
    assert not any("not read" in note for note in read("time,gpu,metric,value", *rows[:1]).notes)


def test_metrics_that_name_their_gpu_stand_beside_what_the_host_does(read: Any) -> None:
    metrics = [("cpu_percent", 20), ("gpu0_util", 30), ("gpu1_util", 40)]
    telemetry = read("time,variable,value", *(f"{EPOCH_S + k},{name},{at}" for name, at in metrics for k in range(5)))
    assert telemetry.gpu.groupby("gpu")["util_pct"].unique().apply(list).to_dict() == {"0": [30], "1": [40]}
    assert telemetry.host["cpu_pct"].tolist() == [20] * 5


def test_a_header_below_with_other_columns_holds_from_there(read: Any) -> None:
    rows = [f"{EPOCH_S + k},gpu_util,0,{k}" for k in range(5)]
    other = [f"{k},0,{EPOCH_S + k},power_w" for k in range(5)]
    telemetry = read("time,metric,gpu,value", *rows, "", "value,gpu,time,metric", *other)
    assert column(telemetry, "util_pct") == column(telemetry, "power_w") == list(range(5))


@pytest.mark.parametrize(
    ("best", "lesser"),
    [
        ("nvidia_smi_power_draw_watts", "nvidia_smi_power_draw_average_watts"),
        ("DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_POWER_USAGE_INSTANT"),
    ],
)
def test_of_several_sources_the_best_is_read(best: str, lesser: str, read: Any) -> None:
    rows = [f"{EPOCH_S + k},GPU-a,{name},{at + k}" for k in range(5) for name, at in ((lesser, 300), (best, 90))]
    telemetry = read("Time,uuid,__name__,Value", *rows)
    assert column(telemetry, "power_w") == [90 + k for k in range(5)] and not telemetry.problems
