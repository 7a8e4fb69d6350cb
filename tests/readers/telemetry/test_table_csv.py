"""Home-made tables: what is decided from the numbers, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gpudiag.errors import ConfigError, InputError, UnknownInput
from gpudiag.readers._delimited import grid, sweep
from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry

EPOCH_S = 1_736_203_508
START = pd.Timestamp(EPOCH_S, unit="s", tz="UTC")


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def read(header: str, row: Callable[[int], str], rows: int = 6, **options: Any) -> Telemetry:
        text = "\n".join([header, *map(row, range(rows))]) + "\n"
        (tmp_path / "gpu.csv").write_text(text, encoding="utf-8")
        return read_telemetry(tmp_path / "gpu.csv", **({"timezone": "UTC"} | options))

    return read


@pytest.mark.parametrize("factor", [1, 1000, 10**6, 10**9])
def test_epochs_are_told_by_magnitude(factor: int, read: Any) -> None:
    telemetry = read("time,gpu_util", lambda k: f"{(EPOCH_S + k) * factor},{k}", timezone="Asia/Taipei")
    assert telemetry.gpu["time"].tolist() == [START + pd.Timedelta(seconds=k) for k in range(6)]
    assert telemetry.clock == "utc"


@pytest.mark.parametrize(
    ("timestamp", "utc"),
    [
        ("2025-09-24T03:48:33.493Z", "2025-09-24 03:48:33.493"),
        ("2025-09-24T03:48:33.493123+00:00", "2025-09-24 03:48:33.493123"),
        ("2025-09-24 11:48:33+08:00", "2025-09-24 03:48:33"),
        ("2025-09-24T11:48:33", "2025-09-24 03:48:33"),
        ("2025/09/24 11:48:33.5", "2025-09-24 03:48:33.5"),
        ("2025-09-24_11:48:33", "2025-09-24 03:48:33"),
        ("2025-09-24 11:48", "2025-09-24 03:48:00"),
        ("24-09-2025 11:48:33", "2025-09-24 03:48:33"),
        ("9/24/2025 11:48:33 AM", "2025-09-24 03:48:33"),
        ("20250924 11:48:33", "2025-09-24 03:48:33"),
        ("Wed Sep 24 11:48:33 2025", "2025-09-24 03:48:33"),
        ("Wed Sep  3 11:48:33 UTC 2025", "2025-09-03 11:48:33"),
        ("Wed Sep 24 11:48:33 CST 2025", "2025-09-24 03:48:33"),
    ],
)
def test_timestamps(timestamp: str, utc: str, read: Any) -> None:
    telemetry = read("time,gpu_util", lambda k: f"{timestamp},{k}", rows=1, timezone="Asia/Taipei")
    assert telemetry.gpu["time"].tolist() == [pd.Timestamp(utc, tz="UTC")]


def test_columns_under_the_names_of_dcgm_exporter_are_in_its_units(read: Any) -> None:
    """As a table of a scrape that somebody turned on its side: ratios up to 1, energy in mJ, PCIe in bytes a second."""
    columns = {
        "DCGM_FI_DEV_GPU_UTIL": 80,
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 0.75,
        "DCGM_FI_PROF_SM_ACTIVE": 0.31,
        "DCGM_FI_DEV_FB_USED": 500,
        "DCGM_FI_DEV_FB_FREE": 81420,
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 5_000_000,
        "DCGM_FI_PROF_PCIE_TX_BYTES": 3 * 2**20,
        "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": 4,
        "DCGM_FI_DEV_XID_ERRORS": 0,
    }
    cells = ",".join(map(str, columns.values()))
    telemetry = read("timestamp," + ",".join(columns) + ",gpu", lambda k: f"{EPOCH_S + k},{cells},{k % 2}")
    assert len(telemetry.gpu) == 6 and sorted(telemetry.gpus["gpu"]) == ["0", "1"]
    first = telemetry.gpu.iloc[0]
    expected = {"util_pct": 80, "sm_active_pct": 31, "mem_used_mib": 500, "mem_total_mib": 81920, "energy_j": 5000,
                "pcie_tx_mib_s": 3, "throttle_reasons": 4}  # fmt: skip
    assert {name: first[name] for name in expected} == pytest.approx(expected)


def test_fractions_come_and_go(read: Any) -> None:
    """Python's isoformat leaves a fraction of zero out."""
    gpu = read("time,gpu_util", lambda k: f"2025-09-24T03:48:0{k}{'' if k == 2 else '.250000'},{k}").gpu
    assert gpu["time"].dt.microsecond.tolist() == [250_000, 250_000, 0, 250_000, 250_000, 250_000]


def test_day_and_month_are_told_by_the_days(read: Any) -> None:
    later = read("Date,Time,GPU Util", lambda k: f"{k + 9:02d}-03-2021,13:32:39,{k}")
    assert later.gpu["time"].iloc[-1] == pd.Timestamp("2021-03-14 13:32:39", tz="UTC")
    us = read("Date,Time,GPU Util", lambda k: f"03-{k + 9:02d}-2021,13:32:39,{k}")
    assert us.gpu["time"].iloc[-1] == pd.Timestamp("2021-03-14 13:32:39", tz="UTC")
    unclear = read("Date,Time,GPU Util", lambda k: f"04-03-2021,13:32:3{k},{k}")
    assert any("day first was assumed" in note for note in unclear.notes)


def test_day_and_month_are_told_beyond_the_head(read: Any) -> None:
    """The first hundred rows leave both readings open; later ones do not."""
    gpu = read(
        "time,gpu_util", lambda k: f"04/{1 + k // 100:02d}/2021 13:{k % 60:02d}:{k // 60:02d},{k % 100}", rows=2000
    ).gpu
    assert gpu["time"].max() == pd.Timestamp("2021-04-20 13:59:32", tz="UTC") and len(gpu) == 2000


def test_memory_share_that_equals_used_over_total_is_fullness(read: Any) -> None:
    telemetry = read(
        "time,gpu_mem_util,memory_used_mb,memory_total_mb", lambda k: f"{EPOCH_S + k},{10 * k},{k * 100},1000"
    )
    assert "mem_util_pct" not in telemetry.gpu and any("how full" in note for note in telemetry.notes)


def test_memory_share_that_differs_is_nvml_utilization(read: Any) -> None:
    telemetry = read("time,gpu_mem_util,memory_used_mb,memory_total_mb", lambda k: f"{EPOCH_S + k},{k},900,1000")
    assert telemetry.gpu["mem_util_pct"].tolist() == [0, 1, 2, 3, 4, 5]


def test_memory_share_alone(read: Any) -> None:
    whole = read("time,gpu_mem_util", lambda k: f"{EPOCH_S + k},{k}")
    assert whole.gpu["mem_util_pct"].max() == 5 and any("NVML" in note for note in whole.notes)
    filled = read("time,gpu_util,gpu_mem_percent,gpu_memory_total", lambda k: f"{EPOCH_S + k},{k},{k}.5,1000")
    assert filled.gpu["mem_used_mib"].tolist() == [5, 15, 25, 35, 45, 55]


@pytest.mark.parametrize(
    ("maximum", "is_size"),
    [(lambda k: 8000, True), (lambda k: 4005, False), (lambda k: 4000 + k, False), (lambda k: 8000 - k, False)],
    ids=["a size", "the peak", "the peak so far", "a peak of each time"],
)
def test_a_maximum_is_a_limit_only_if_it_stays_and_is_not_reached(maximum: Any, is_size: bool, read: Any) -> None:
    header = "time,gpu_util,gpu_mem_mb_mean,gpu_mem_mb_max,gpu_power_w,gpu_power_max_w"
    row = lambda k: f"{EPOCH_S + k},50,{4000 + k},{maximum(k)},{300 + k},{304 if is_size else 310 + k}"  # noqa: E731
    gpu, notes = (telemetry := read(header, row)).gpu, telemetry.notes
    assert gpu["mem_used_mib"].tolist() == [4000 + k for k in range(6)]
    assert ({"mem_total_mib", "power_limit_w"} <= {*gpu}) is is_size
    if is_size:
        assert gpu["mem_total_mib"].unique().tolist() == [8000] and gpu["power_limit_w"].unique().tolist() == [304]
    else:
        assert {"mem_total_mib", "power_limit_w"}.isdisjoint(gpu) and any("maximum" in note for note in notes)


@pytest.mark.parametrize(("most", "is_limit"), [(305, False), (304, True), (400, True)])
def test_a_maximum_of_power_is_its_limit_unless_it_is_the_most_that_was_measured(
    most: int, is_limit: bool, read: Any
) -> None:
    telemetry = read("time,gpu_util,gpu_power_w,gpu_power_max_w", lambda k: f"{EPOCH_S + k},50,{300 + k},{most}")
    assert ("power_limit_w" in telemetry.gpu) is is_limit
    assert any("maximum of power_w" in note for note in telemetry.notes) is not is_limit


def test_milliwatts_labelled_watts(read: Any) -> None:
    telemetry = read("time,gpu_power_w", lambda k: f"{EPOCH_S + k},{4939 + k}.00")
    assert telemetry.gpu["power_w"].iloc[0] == 4.939 and any("milliwatts" in note for note in telemetry.notes)


def test_utilization_from_0_to_1(read: Any) -> None:
    telemetry = read("time,gpu_load", lambda k: f"{EPOCH_S + k},0.{k}")
    assert telemetry.gpu["util_pct"].tolist() == pytest.approx([0, 10, 20, 30, 40, 50])
    idle = read("time,gpu_util", lambda k: f"{EPOCH_S + k},{k % 2}")
    assert idle.gpu["util_pct"].max() == 1, "whole numbers are per cent"
    gaps = read("time,gpu_util", lambda k: f"{EPOCH_S + k},{k % 2 if k else chr(45)}")
    assert gaps.gpu["util_pct"].max() == 1


def test_energy_that_falls_is_no_counter(read: Any) -> None:
    counter = read("time,gpu_power_w,gpu_energy_j", lambda k: f"{EPOCH_S + k},5.5,{100 * k}")
    single = read("time,gpu_power_w,gpu_energy_j", lambda k: f"{EPOCH_S + k},5.5,{k % 2}")
    assert counter.gpu["energy_j"].max() == 500 and "energy_j" not in single.gpu


def test_host_columns_beside_gpu_columns(read: Any) -> None:
    header = "time,total_memory_mb,used_memory_mb,gpu_memory_mb,cpu_usage_percent,gpu_usage_percent"
    telemetry = read(header, lambda k: f"{EPOCH_S + k},32051,{4000 + k},77,{k},50")
    assert telemetry.gpu["mem_used_mib"].tolist() == [77] * 6 and "mem_total_mib" not in telemetry.gpu
    host = telemetry.host
    assert (host["ram_used_mib"].max(), host["ram_total_mib"].max(), host["cpu_pct"].max()) == (4005, 32051, 5)


def test_event_rows_among_samples(read: Any) -> None:
    short = read(
        "timestamp_ms,gpu_util,gpu_memory_mb,context",
        lambda k: f'{k * 1000},,"EVENT: s, t"' if k == 2 else f"{k * 1000},{k},7,run",
    )
    full = read(
        "timestamp_ms,gpu_util,gpu_memory_mb,context",
        lambda k: f'{k * 1000},,,"EVENT: s, t"' if k == 2 else f"{k * 1000},{k},7,run",
    )
    for telemetry in (short, full):
        assert len(telemetry.gpu) == 5 and telemetry.events["detail"].tolist() == ["EVENT: s; t"]
        assert telemetry.events["time"].tolist() == [pd.Timestamp(2, unit="s", tz="UTC")]


def test_a_gpu_column_that_holds_names(read: Any) -> None:
    telemetry = read("Time,GPU,Util (%)", lambda k: f"{EPOCH_S + k},NVIDIA GeForce RTX 3070 Laptop GPU,{k}")
    assert telemetry.gpus["name"].tolist() == ["NVIDIA GeForce RTX 3070 Laptop GPU"]


def test_an_index_that_counts_rows_is_no_gpu(read: Any) -> None:
    assert read("index,time,gpu_util", lambda k: f"{k},{EPOCH_S + k},{k}", rows=40).gpus["gpu"].tolist() == ["0"]
    assert read("index,time,gpu_util", lambda k: f"{k % 3},{EPOCH_S + k // 3},{k}", rows=39).gpus["gpu"].tolist() == [
        "0",
        "1",
        "2",
    ]


def test_line_breaks_in_cells(read: Any) -> None:
    telemetry = read("elapsed_sec,gpu_util_pct,power_w", lambda k: f'{k}.25,{k},"26.1{k}\n0"')
    assert telemetry.gpu["power_w"].tolist() == [26.10, 26.11, 26.12, 26.13, 26.14, 26.15]
    assert any("line breaks" in note for note in telemetry.notes)


def test_numbers_of_bare_columns_decide_or_ask(read: Any) -> None:
    watts = read("timestamp,GPU0,GPU1", lambda k: f"{EPOCH_S + k},{199.5 + k},{256.5 + k}")
    util = read("timestamp,GPU0,GPU1", lambda k: f"{EPOCH_S + k},{20 * k},{100 - k}")
    assert watts.gpu["power_w"].iloc[0] == 199.5 and util.gpu["util_pct"].max() == 100
    assert any("GPU0, GPU1" in note for note in watts.notes)
    with pytest.raises(InputError, match=r"--columns, .* timestamp,gpu0_power_w"):
        read("timestamp,GPU0,GPU1", lambda k: f"{EPOCH_S + k},{k}.5,{k}.25")
    named = read(
        "timestamp,GPU0,GPU1", lambda k: f"{EPOCH_S + k},{k}.5,{k}.25", columns=("time", "gpu0_power_w", "gpu1_power_w")
    )
    assert named.gpu.groupby("gpu")["power_w"].max().tolist() == [5.5, 5.25]


@pytest.mark.parametrize(
    "header",
    ["timestamp,n1_watts,n2_watts", "time,value", "epoch,loss,gpu_mem_mb,acc,lr", "time,temperature,humidity",
     "time,cpu_percent,memory_used_mb", "number,state,params_x", "metric,gpu_index,value,unit"],
)  # fmt: skip
def test_what_is_no_gpu_log_is_not_claimed(header: str, read: Any) -> None:
    with pytest.raises(UnknownInput, match=header.split(",")[1]):
        read(header, lambda k: ",".join([str(EPOCH_S + k), *(str(k) for _ in header.split(",")[1:])]))


def test_no_header_asks_for_names(read: Any) -> None:
    with pytest.raises(InputError, match="--columns"):
        read("22.50, 41", lambda k: f"{k}.5, 4{k}")
    with pytest.raises(ConfigError, match="none of the columns given"):
        read("22.50, 41", lambda k: f"{k}.5, 4{k}", columns=("a", "b"))
    assert len(read("22.50, 41", lambda k: f"{k}.5, 4{k}", columns=("power_w", "temp_c")).gpu) == 7


def test_torn_rows_are_counted(read: Any) -> None:
    telemetry = read(
        "time,gpu,gpu_util,power_w", lambda k: f"{EPOCH_S + k},0,{k},1.5" if k != 3 else f"{EPOCH_S + k},0"
    )
    assert len(telemetry.gpu) == 5
    assert [(p.kind, p.count, p.line) for p in telemetry.problems] == [("torn row", 1, 5)]


@pytest.mark.parametrize(
    ("used", "total", "mib", "unit"),
    [
        (20_500_000_000, None, 20_500_000_000 / 2**20, "taken as bytes"),
        (20_500_000_000, 25_769_803_776, 20_500_000_000 / 2**20, "taken as bytes"),
        (20_500_000_000, 24_576, 20_500_000_000 / 2**20, "mem_total_mib in MiB"),
        (4_000_000, 25_769_803_776, 4_000_000 / 2**20, "taken as bytes"),
        (20_019_531, 25_165_824, 20_019_531 / 2**10, "taken as KiB"),
        (20_000, 24_576, 20_000.0, "mem_used_mib in MiB"),
    ],
)
def test_memory_without_a_unit_is_told_by_its_size(
    used: int, total: int | None, mib: float, unit: str, read: Any
) -> None:
    names, more = ("", "") if total is None else (",gpu_memory_total", f",{total}")
    telemetry = read(f"time,gpu_util,gpu_memory_used{names}", lambda k: f"{EPOCH_S + k},{k},{used}{more}")
    assert telemetry.gpu["mem_used_mib"].tolist() == pytest.approx([mib] * 6)
    assert any(unit in note for note in telemetry.notes)
    if total is not None:
        assert telemetry.gpu["mem_total_mib"].tolist() == pytest.approx([24_576.0] * 6)


def test_a_unit_in_the_name_is_taken_at_its_word(read: Any) -> None:
    telemetry = read("time,gpu_util,gpu_memory_mb,power_w", lambda k: f"{EPOCH_S + k},{k},{k},100")
    assert not any("unit" in note for note in telemetry.notes)


def test_names_of_nvidia_smi_above_times_of_somebody(read: Any) -> None:
    head = "timestamp,memory.used,memory.total,utilization.gpu"
    gpu = read(head, lambda k: f"{EPOCH_S + k},{1000 + k}, 24576, {k}").gpu
    assert gpu["time"].tolist()[5] == START + pd.Timedelta(seconds=5) and gpu["util_pct"].tolist()[5] == 5
    head = "timestamp, name, utilization.gpu [%], memory.used [MiB], temperature.gpu"
    telemetry = read(head, lambda k: f"03-11-2026 15:{13 + k}:16, Orin, 9{k}, 2610{k}, 45.2", rows=6)
    assert telemetry.gpu["mem_used_mib"].tolist()[5] == 26105 and telemetry.gpu["temp_c"].tolist()[0] == 45.2
    assert any("day first or month first, and nothing in the log decides" in note for note in telemetry.notes)


def test_times_of_no_known_form_are_refused_unless_a_period_is_given(read: Any) -> None:
    row: Callable[[int], str] = lambda k: f"Q{k}/24 week {k},{k}"  # noqa: E731
    with pytest.raises(InputError, match=r"column 'time' holds 'Q0/24 week 0'.*--period"):
        read("time,gpu_util", row)
    assert read("time,gpu_util", row, period_s=2.0).gpu["time"].diff().dt.total_seconds().tolist()[1:] == [2.0] * 5


def test_power_and_its_maximum_without_a_time_are_no_log(read: Any) -> None:
    with pytest.raises(UnknownInput):
        read("RUN,PWR_CPU_AVG,PWR_GPU_MAX,PWR_GPU_AVG", lambda k: f"{k},1612.4,610.0,{259 + k}.4")


def test_rows_of_numbers_below_times_of_day_are_read_with_names(read: Any) -> None:
    text: Callable[[int], str] = lambda k: f"1623, 2308, 4096, {k}\n13:25:5{k}"  # noqa: E731
    with pytest.raises(InputError, match="its 4 columns of numbers cannot be told apart"):
        read("13:25:49", text)
    gpu = read("13:25:49", text, columns=("memory_used", "memory_free", "memory_total", "gpu_util")).gpu
    assert gpu["util_pct"].tolist() == [0, 1, 2, 3, 4, 5] and gpu["mem_used_mib"].tolist() == [1623] * 6
    assert gpu["time"].dt.second.tolist() == [49, 50, 51, 52, 53, 54]


@pytest.mark.parametrize(
    ("used", "total", "in_mib"),
    [
        ("20.5", "80.0", (20992.0, 81920.0)),
        ("0.25", "4", (256.0, 4096.0)),
        ("20", "80", (20480.0, 81920.0)),
        ("286.1", "288", (292966.4, 294912.0)),
        ("300", "16384", (300.0, 16384.0)),
        ("20500", "80.0", (20500.0, 81920.0)),
    ],
)
def test_a_total_too_small_for_a_board_is_in_gib(used: str, total: str, in_mib: tuple[float, float], read: Any) -> None:
    telemetry = read("time,gpu,util,memory_used,memory_total", lambda k: f"{EPOCH_S + k},0,{k},{used},{total}")
    assert set(zip(telemetry.gpu["mem_used_mib"], telemetry.gpu["mem_total_mib"], strict=True)) == {in_mib}
    assert any("taken as GiB" in note for note in telemetry.notes) == (in_mib[1] != float(total))


def test_a_unit_in_the_name_holds_beside_a_total_without_one(read: Any) -> None:
    telemetry = read("time,gpu,memory_used_mb,memory_total", lambda k: f"{EPOCH_S + k},0,40.5,80")
    assert set(telemetry.gpu["mem_used_mib"]) == {40.5} and set(telemetry.gpu["mem_total_mib"]) == {81920.0}


@pytest.mark.parametrize("tiles", [1, 2])
def test_tiles_of_a_device_are_gpus_of_their_own(tiles: int, read: Any) -> None:
    """As ``xpu-smi dump -t`` writes them: what each tile draws is no second reading of the other."""
    telemetry = read(
        "Timestamp, DeviceId, TileId, GPU Utilization (%), GPU Power (W)",
        lambda k: f"2022-07-13T20:41:{k // (2 * tiles):02}.046Z, {k // tiles % 2}, {k % tiles}, {k % tiles}.00, 126.50",
        rows=40 * tiles,
    )
    names = ["0:0", "0:1", "1:0", "1:1"] if tiles == 2 else ["0", "1"]
    assert telemetry.gpu.groupby("gpu").size().to_dict() == dict.fromkeys(names, 20)
    assert telemetry.gpu.groupby("time")["power_w"].sum().tolist() == [2 * tiles * 126.5] * 20
    assert telemetry.problems == () and any("tile 1 of device 0" in n for n in telemetry.notes) == (tiles == 2)


@pytest.mark.parametrize(
    "columns", ["date,time,gpu,pwr,gtemp,-,sm,mem,mclk", "date,time,gpu,power_w,temp_c,-,util_pct,mem_util_pct,-"]
)
@pytest.mark.parametrize("day", ["20260310", "2026-03-10"])
def test_a_table_without_a_header_may_hold_the_date_apart(columns: str, day: str, tmp_path: Path) -> None:
    """As ``nvidia-smi dmon -o DT --format csv,noheader`` writes it, under its names or ours."""
    rows = [f"{day}, 08:00:{k:02}, {gpu}, 252, 54, -, {k}, 34, 1593" for k in range(20) for gpu in range(2)]
    (tmp_path / "gpu.csv").write_text("\n".join(rows) + "\n")
    telemetry = read_telemetry(tmp_path / "gpu.csv", timezone="UTC", columns=tuple(columns.split(",")))
    assert len(telemetry.gpu) == 40 and telemetry.problems == ()
    assert telemetry.gpu["time"].max() == pd.Timestamp("2026-03-10 08:00:19", tz="UTC")
    own = telemetry.gpu[telemetry.gpu["gpu"] == "1"]
    assert own["util_pct"].tolist() == [*range(20)] and set(own["mem_util_pct"]) == {34.0}
    assert set(own["power_w"]) == {252.0} and set(own["temp_c"]) == {54.0} and "mem_used_mib" not in own
    with pytest.raises(InputError, match="name them in order with --columns"):
        read_telemetry(tmp_path / "gpu.csv", timezone="UTC")


@pytest.mark.parametrize(
    ("name", "cell", "column", "value"),
    [
        ("memory_used_mb", "19.5 GiB", "mem_used_mib", 19968.0),
        ("memory_used_gb", "512 MiB", "mem_used_mib", 512.0),
        ("power_mw", "251.5 W", "power_w", 251.5),
        ("memory_used", "19.5 GiB", "mem_used_mib", 19968.0),
    ],
)
def test_a_unit_in_the_cells_outweighs_that_of_the_name(
    name: str, cell: str, column: str, value: float, read: Any
) -> None:
    telemetry = read(f"time,gpu,gpu_util,{name}", lambda k: f"{EPOCH_S + k},0,{k},{cell}")
    assert set(telemetry.gpu[column]) == {value}


SERIES = '"DCGM_FI_DEV_{}{{gpu=""{}"", Hostname=""{}""}}"'


@pytest.mark.parametrize("cell", ["19968", "19.5 GiB"])
def test_series_of_dcgm_above_the_columns_of_grafana(cell: str, read: Any) -> None:
    names = [SERIES.format(field, gpu, "node1") for field in ("FB_USED", "POWER_USAGE") for gpu in (0, 1)]
    telemetry = read(",".join(["Time", *names]), lambda k: f"{(EPOCH_S + k) * 1000},{cell},{cell},{k},{100 + k}")
    assert telemetry.gpu.groupby("gpu")["power_w"].max().to_dict() == {"0": 5.0, "1": 105.0}
    assert set(telemetry.gpu["mem_used_mib"]) == {19968.0} and len(telemetry.gpu) == 12


def test_series_of_several_hosts_are_not_taken_for_those_of_one(read: Any) -> None:
    names = [SERIES.format("POWER_USAGE", gpu, host) for host in ("node1", "node2") for gpu in (0, 1)]
    with pytest.raises(UnknownInput):
        read(",".join(["Time", *names]), lambda k: f"{(EPOCH_S + k) * 1000},1,2,3,4")


DAY = "2026-03-01 10:00"


@pytest.mark.parametrize("name", ["job_start", "last_update", "when"])
def test_dates_that_stay_or_are_of_something_else_are_no_times(name: str, read: Any) -> None:
    telemetry = read(f",gpu_util,power_w,{name}", lambda k: f"{k},{k},150.5,{DAY}:00")
    assert any("carry no time" in note for note in telemetry.notes)
    telemetry = read(f",gpu_util,power_w,{name}", lambda k: f"{DAY}:{5 * k:02d},{k},150.5,{DAY}:00")
    assert telemetry.gpu["time"].diff().dropna().dt.total_seconds().eq(5).all()
    telemetry = read(f"elapsed_s,gpu_util,power_w,{name}", lambda k: f"{5 * k},{k},150.5,{DAY}:{k:02d}")
    assert telemetry.gpu["time"].diff().dropna().dt.total_seconds().eq(5).all()


def test_levels_of_numbers_are_gpus_and_of_statistics_nothing(read: Any) -> None:
    pivot = read(",util,util,mem_used_mib,mem_used_mib\n,0,1,0,1", lambda k: f"{DAY}:{k:02d},{k},{90 + k},100,200")
    assert pivot.gpu.groupby("gpu")[["util_pct", "mem_used_mib"]].max().to_numpy().tolist() == [[5, 100], [95, 200]]
    for lower in ("max,mean,max,mean", "node1,node2,node1,node2"):
        with pytest.raises(UnknownInput):
            read(f",gpu_util,gpu_util,power_w,power_w\n,{lower}", lambda k: f"{DAY}:{k:02d},{k},{k},100,90")


@pytest.mark.parametrize(
    "header", ["run,started,avg_gpu_util,max_mem_gb", "trial,seconds,gpu_util,loss", "trial,finished_at,lr,gpu_util"]
)
def test_runs_and_trials_are_no_samples(header: str, read: Any) -> None:
    with pytest.raises(UnknownInput):
        read(header, lambda k: f"{k},{DAY}:{k:02d},30,2.5")


def test_lists_of_numbers_in_cells_are_not_unknown_values(read: Any) -> None:
    row = lambda k: f'{EPOCH_S + k},"[{k}, 90]","[{1000 + k}, 500]"'  # noqa: E731
    with pytest.raises(InputError, match="6 x torn row"):
        read("time,gpu_utils,gpu_mems", row)
    words = read("time,gpu_util,gpu_mem", lambda k: f"{EPOCH_S + k},{k},[Not Supported]")
    assert words.gpu["util_pct"].tolist() == [*range(6)] and not words.problems


@pytest.mark.parametrize(
    ("name", "unit_s"),
    [
        *((name, 60) for name in ("elapsed_min", "Elapsed (minutes)", "time_min", "minutes", "uptime_mins")),
        *((name, 3600) for name in ("elapsed_h", "elapsed_hours", "time_hrs", "hours")),
        *((name, 1) for name in ("elapsed_s", "seconds", "time_sec")),
        ("elapsed_ms", 0.001),
    ],
)
def test_what_has_passed_is_in_the_unit_of_its_name(name: str, unit_s: float, read: Any) -> None:
    telemetry = read(f"{name},gpu_util,gpu_util_min", lambda k: f"{4 * k / unit_s:.9f},{50 + k},3", rows=40)
    since_s = (telemetry.gpu["time"] - telemetry.gpu["time"].iloc[0]).dt.total_seconds()
    assert since_s.tolist() == pytest.approx([4 * k for k in range(40)], abs=1e-4)
    assert telemetry.gpu["util_pct"].tolist() == [50 + k for k in range(40)]
    assert not any("carry no time" in note for note in telemetry.notes)


@pytest.mark.parametrize("written", ["{h}:{m:02d}:00", '"{d} days, {r}:{m:02d}:00"', "{d}-{r:02d}:{m:02d}:00.0"])
def test_hours_and_minutes_that_have_passed_go_on_after_a_day(written: str, read: Any) -> None:
    def row(k: int) -> str:
        h, m = divmod(20 * k, 60)
        return f"{written.format(h=h, d=h // 24, r=h % 24, m=m)},{k % 100},90"

    telemetry = read("elapsed,gpu_util,power_w", row, rows=150)
    assert (telemetry.gpu["time"].diff().dropna().dt.total_seconds() == 1200).all()
    assert len(telemetry.gpu) == 150 and telemetry.clock == "count" and not telemetry.problems


def test_gpu_hours_are_no_time(read: Any) -> None:
    telemetry = read("gpu_util,gpu_power_w,gpu_hours", lambda k: f"{50 + k},90,{k / 10}", rows=40)
    assert any("carry no time" in note for note in telemetry.notes)


def test_the_hour_and_the_minute_of_a_clock_are_no_time_since_the_start(read: Any) -> None:
    with pytest.raises(UnknownInput):
        read("hour,minute,gpu_util", lambda k: f"10,{10 + k},{50 + k}", rows=40)


def test_headers_that_differ_in_what_is_not_read_cost_as_much_as_one(monkeypatch: Any, read: Any) -> None:
    times: list[int] = []

    def counted(lines: Any, layout: Any) -> Any:
        times.append(len(lines))
        return grid.parse(lines, layout)

    monkeypatch.setattr(sweep, "parse", counted)
    telemetry = read("time,gpu_util,x", lambda k: f"{EPOCH_S + k},{k},1\ntime,gpu_util,x{k}", rows=100)
    assert telemetry.gpu["util_pct"].tolist() == [float(k) for k in range(100)]
    assert len(times) < 10


def test_a_value_of_now_goes_before_its_average(read: Any) -> None:
    gpu = read("time,gpu_avg_power_w,gpu_power_w,gpu_mean_util", lambda k: f"{EPOCH_S + k},150,{90 + k},{k}").gpu
    assert gpu["power_w"].tolist() == [90 + k for k in range(6)] and gpu["util_pct"].tolist() == list(range(6))


def test_utilization_that_is_a_sum_over_gpus_is_none(read: Any) -> None:
    few, often = (
        read("time,gpu_util,power_w", lambda k, n=n: f"{EPOCH_S + k},{200 if k < n else 70},90", 100) for n in (9, 30)
    )
    assert few.gpu["util_pct"].count() == 91 and few.gpu["util_pct"].max() == 70
    assert "util_pct" not in often.gpu and any("above 100 in 30 rows" in note for note in often.notes)
    of = [*map(str, range(8)), "all"]  # at each instant of 20 a row of each GPU at 85, and one of their sum
    gpu = read(
        "time,gpu,util_pct", lambda k: f"{EPOCH_S + k // 9},{of[k % 9]},{680 if of[k % 9] == 'all' else 85}", 9 * 20
    ).gpu
    assert gpu.groupby("gpu")["util_pct"].sum().to_dict() == {name: 1700 for name in of[:8]} | {"all": 0}


@pytest.mark.parametrize("mem", [33, 12000])
def test_memory_of_a_host_without_a_unit_is_none_where_it_is_too_small(mem: int, read: Any) -> None:
    telemetry = read("time,cpu,mem,gpu_util,gpu_mem", lambda k: f"{EPOCH_S + k},90,{mem},{50 + k},1{k}00")
    assert telemetry.gpu["util_pct"].tolist() == [50 + k for k in range(6)]
    assert telemetry.host.get("ram_used_mib", pd.Series()).tolist() == ([12000] * 6 if mem == 12000 else [])
    assert any("host's memory" in note for note in telemetry.notes) == (mem == 33)


@pytest.mark.parametrize("pids", [1, 2])
def test_memory_of_several_processes_is_not_the_gpus(pids: int, read: Any) -> None:
    rows = "\n".join(f"{{time}},0,{pid},50{pid},{{util}}" for pid in range(pids))
    telemetry = read("time,gpu,pid,used_memory_mb,gpu_util", lambda k: rows.format(time=EPOCH_S + k, util=50 + k))
    assert telemetry.gpu["util_pct"].tolist() == [50 + k for k in range(6)]
    assert ("mem_used_mib" in telemetry.gpu) == (pids == 1)
    assert any("used_memory_mb is of processes" in note for note in telemetry.notes) == (pids == 2)


@pytest.mark.parametrize(
    ("turns", "gpus"),
    [([16, 17], {"16": 40, "17": 70}), ([40, 41, 41, 41, 40, 41], {"0": None}), ([*range(40, 51)], {"0": None})],
    ids=["GPUs of a job", "steady per cents", "many per cents"],
)
def test_numbers_beyond_the_gpus_of_a_node_are_gpus_where_few_take_turns(
    turns: list[int], gpus: dict[str, int | None], read: Any
) -> None:
    def row(k: int) -> str:
        return f"{EPOCH_S + k},{turns[k % len(turns)]},{(40, 70)[k % 2]},90"

    gpu = read("time,gpu,util_pct,power_w", row, rows=60).gpu
    found = {name: own["util_pct"].tolist() for name, own in gpu.groupby("gpu")}
    assert found == {name: [util] * 30 if util else [40, 70] * 30 for name, util in gpus.items()}
