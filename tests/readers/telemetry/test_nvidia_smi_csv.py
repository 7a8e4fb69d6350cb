"""nvidia-smi --query-gpu CSV: what each form means, and what torn and mixed logs keep."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gpudiag.errors import ConfigError, InputError
from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry

HEAD = "timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W]"


def row(second: int, gpu: int = 0, util: str = "5 %", used: str = "100 MiB", power: str = "70.25 W") -> str:
    return f"2026/02/15 06:12:{second:02d}.455, {gpu}, {util}, {used}, 40960 MiB, {power}"


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def read(*lines: str, **options: Any) -> Telemetry:
        (tmp_path / "gpu.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return read_telemetry(tmp_path / "gpu.csv", **({"timezone": "UTC"} | options))

    return read


def problems(telemetry: Telemetry) -> dict[str, tuple[int, int | None]]:
    return {problem.kind: (problem.count, problem.line) for problem in telemetry.problems}


def test_values_and_utc(read: Any) -> None:
    gpu = read(HEAD, row(1), row(2, util="100 %"), timezone="Asia/Taipei").gpu
    assert gpu["time"].iloc[0] == pd.Timestamp("2026-02-14 22:12:01.455", tz="UTC")
    assert gpu.loc[1, ["util_pct", "mem_used_mib", "mem_total_mib", "power_w"]].tolist() == [100, 100, 40960, 70.25]


def test_what_the_board_may_do_at_most(read: Any) -> None:
    head = HEAD + ", clocks.current.sm [MHz], clocks.max.sm [MHz], power.limit [W], power.default_limit [W]"
    gpu = read(head, *(f"{row(second)}, 1050 MHz, 1980 MHz, 350.00 W, 700.00 W" for second in (1, 2))).gpu
    columns = ["sm_clock_mhz", "sm_clock_max_mhz", "power_limit_w", "power_default_w"]
    assert gpu.loc[1, columns].tolist() == [1050, 1980, 350, 700]


@pytest.mark.parametrize(
    "cell",
    [
        "[N/A]",
        "N/A",
        "[Not Supported]",
        "[Unknown Error]",
        "ERR!",
        "",
        "-",
        "nan",
        "NaN",
        "[Requested functionality ...]",
        "[Err 5]",
    ],
)
def test_an_unknown_cell_is_missing_never_zero(cell: str, read: Any) -> None:
    telemetry = read(HEAD, row(1, util=cell), row(2))
    assert math.isnan(telemetry.gpu["util_pct"].iloc[0]) and telemetry.gpu["util_pct"].iloc[1] == 5
    assert not telemetry.problems


@pytest.mark.parametrize("every", [3, 20])
def test_cells_that_went_through_pandas_are_missing(every: int, read: Any) -> None:
    """``every``: rows with a nan in them are the most of a block, or so few that the short way holds for the rest."""
    cells = [("nan", "[N/A]", "100 MiB")[at % every] if at % every < 3 else f"{at} MiB" for at in range(60)]
    telemetry = read(
        HEAD, *(row(at, used=cell, power="NaN" if at == 5 else "70.25 W") for at, cell in enumerate(cells))
    )
    used = [float(cell.split()[0]) if cell.endswith("MiB") else math.nan for cell in cells]
    assert telemetry.gpu["mem_used_mib"].tolist() == pytest.approx(used, nan_ok=True) and not telemetry.problems
    assert telemetry.gpu["power_w"].isna().sum() == 1 and math.isnan(telemetry.gpu["power_w"].iloc[5])


@pytest.mark.parametrize("cell", ["[N/A]", "nan"])
def test_a_column_unknown_throughout_is_absent(cell: str, read: Any) -> None:
    assert "util_pct" not in read(HEAD, row(1, util=cell), row(2, util=cell)).gpu


@pytest.mark.parametrize(
    "torn",
    [
        "2026/02/15 06:12:05.455, 0, 5 %, 100 MiB, 409",
        "2026/02/15 06:12:05.455, 0, 5 %, 100 MiB, 40960 MiB, 70.2",
        "26/02/15 06:12:05.455, 0, 5 %, 100 MiB, 40960 MiB, 70.25 W",
        "2026/02/15 06:12:05.455, 0, 5, 100 MiB, 40960 MiB, 70.25 W",
        "2026/02/15 06:12:05.455, 0, 5 %, 100 MiB, 40960 MiB, 70.25 W, 7",
        "00 MiB, 40960 MiB, 70.25 W",
    ],
)
def test_a_torn_row_is_dropped_and_counted_with_its_line(torn: str, read: Any) -> None:
    telemetry = read(HEAD, row(1), row(2), torn, row(6))
    assert len(telemetry.gpu) == 3 and problems(telemetry) == {"torn row": (1, 4)}
    assert telemetry.problems[0].lost


def test_of_two_rows_run_together_the_whole_one_is_kept(read: Any) -> None:
    telemetry = read(HEAD, row(1), row(2)[:40] + row(3, util="77 %"), row(4))
    assert telemetry.gpu["util_pct"].tolist() == [5, 77, 5]


def test_a_value_out_of_bounds_is_unknown_and_an_odd_one_stays(read: Any) -> None:
    telemetry = read(HEAD, row(1, util="101 %"), row(2, power="590.00 W"))
    assert telemetry.gpu["util_pct"].isna().tolist() == [True, False]
    assert telemetry.gpu["power_w"].tolist() == [70.25, 590], "590 W on a laptop is odd, not impossible"
    assert problems(telemetry) == {"util_pct out of bounds": (1, 2)}


def test_prose_prompts_and_separators_between_rows(read: Any) -> None:
    noise = ["Begin time .....", "====", "", "C:\\> nvidia-smi --query-gpu=index", "Done: 3, 4"]
    telemetry = read("hello", "", HEAD, row(1), *noise, row(2))
    assert len(telemetry.gpu) == 2
    assert problems(telemetry)["line that is no sample"] == (4, 1)


def test_two_writers_with_other_columns(read: Any) -> None:
    """Rows of a second process, whose header stands once, between rows of the first."""
    second = "timestamp, index, power.draw [W]"
    lines = [HEAD, row(1), second]
    for k in range(2, 10):
        lines += [row(k), f"2026/02/15 06:12:{k:02d}.700, 0, {k}.00 W"]
    telemetry = read(*lines)
    assert len(telemetry.gpu) == 17 and not any(problem.lost for problem in telemetry.problems)
    assert telemetry.gpu["util_pct"].notna().sum() == 9


def test_swapped_columns_of_a_restart_are_read_by_their_new_header(read: Any) -> None:
    first = "timestamp, utilization.gpu [%], utilization.memory [%]"
    second = "timestamp, utilization.memory [%], utilization.gpu [%]"
    cells = "2026/02/15 06:12:{:02d}.455, 90 %, 10 %"
    gpu = read(first, cells.format(1), second, cells.format(2), first, cells.format(3)).gpu
    assert gpu["util_pct"].tolist() == [90, 10, 90] and gpu["mem_util_pct"].tolist() == [10, 90, 10]


def test_time_going_back_is_sorted_and_told(read: Any) -> None:
    telemetry = read(HEAD, row(5), row(6), row(1), row(2))
    assert telemetry.gpu["time"].is_monotonic_increasing
    assert problems(telemetry) == {"time goes back": (1, 4)}


def test_duplicates_keep_the_last_known_value(read: Any) -> None:
    telemetry = read(HEAD, row(1, util="7 %", power="1.00 W"), row(1, util="[N/A]", power="2.00 W"))
    assert telemetry.gpu[["util_pct", "power_w"]].to_numpy().tolist() == [[7, 2]]
    assert problems(telemetry) == {"duplicate sample": (1, 3), "duplicate sample with other values": (1, None)}


def test_gpus_of_one_tick_are_not_aligned(read: Any) -> None:
    lines = [f"2026/02/15 06:12:0{t}.{455 + g}, {g}, 5 %, 1 MiB, 2 MiB, 3.00 W" for t in range(4) for g in range(3)]
    gpu = read(HEAD, *lines).gpu
    assert sorted(set(gpu["time"].dt.microsecond)) == [455_000, 456_000, 457_000]


def test_reasons_from_flags_and_from_counters(read: Any) -> None:
    names = "timestamp, clocks_event_reasons.sw_power_cap, clocks_event_reasons.hw_thermal_slowdown"
    timestamp = "2026/02/15 06:12:0{}.455"
    flags = read(names, f"{timestamp.format(1)}, Active, Active", f"{timestamp.format(2)}, Not Active, [N/A]").gpu
    assert flags["throttle_reasons"].tolist() == [0x44, 0]
    assert flags["throttle_known"].tolist() == [0x44, 0x4]
    names = "timestamp, index, clocks_event_reasons_counters.sw_power_cap [us]"
    rows = [f"{timestamp.format(k)}, {g}, {us} us" for k, us in enumerate([7, 7, 9]) for g in range(2)]
    telemetry = read(names, *rows)
    assert telemetry.gpu["throttle_reasons"].tolist() == [pd.NA, 0, 4, pd.NA, 0, 4]
    assert set(telemetry.gpu["throttle_known"]) == {4}
    assert any("counters" in note for note in telemetry.notes)


def test_the_better_of_several_columns_is_read(read: Any) -> None:
    names = "timestamp, power.draw [W], power.draw.instant [W], power.limit [W], enforced.power.limit [W]"
    cells = "2026/02/15 06:12:01.455, [N/A], 61.00 W, 450.00 W, 400.00 W"
    gpu = read(names, cells).gpu
    assert gpu.loc[0, ["power_w", "power_limit_w"]].tolist() == [61, 400]


def test_one_gpu_by_uuid_whatever_its_index(read: Any) -> None:
    names = "timestamp, index, uuid, utilization.gpu [%]"
    uuid = "GPU-{0}{0}{0}{0}{0}{0}{0}{0}-1111-2222-3333-444444444444"
    timestamp = "2026/02/15 06:12:0{}.455"
    moved = read(
        names,
        f"{timestamp.format(1)}, 0, {uuid.format('a')}, 1 %",
        f"{timestamp.format(2)}, 1, {uuid.format('a')}, 2 %",
    )
    assert moved.gpu["gpu"].tolist() == ["0", "0"]
    other = read(
        names,
        f"{timestamp.format(1)}, 0, {uuid.format('a')}, 1 %",
        f"{timestamp.format(1)}, 0, {uuid.format('b')}, 2 %",
    )
    assert other.gpus["gpu"].tolist() == ["0", "0b"] and len(other.gpu) == 2
    assert any("index 0" in note for note in other.notes)


def test_a_masked_uuid_is_none(read: Any) -> None:
    names = "timestamp, index, uuid, utilization.gpu [%]"
    masked = "GPU-00000000-0000-0000-0000-000000000000"
    telemetry = read(names, *(f"2026/02/15 06:12:01.455, {g}, {masked}, {g} %" for g in range(2)))
    assert telemetry.gpus["gpu"].tolist() == ["0", "1"] and "uuid" not in telemetry.gpus


def test_a_lost_gpu_is_an_event(read: Any) -> None:
    lost = row(3, util="[GPU is lost]", used="[GPU is lost]")
    telemetry = read(HEAD, row(1), row(2), lost, lost.replace("12:03", "12:04"), "GPU 0000:01:00.0: GPU is lost")
    event = telemetry.events.iloc[0]
    assert (event["kind"], event["gpu"], event["line"]) == ("gpu_lost", "0", 4)
    assert event["time"] == pd.Timestamp("2026-02-15 06:12:03.455", tz="UTC")
    assert len(telemetry.events) == 2 and len(telemetry.gpu) == 4


@pytest.mark.parametrize("cell", ["[Unknown Error]", "Unknown Error", "ERR!"])
def test_a_gpu_of_which_each_number_is_an_unknown_error_is_lost(cell: str, read: Any) -> None:
    dead = [f"2026/02/15 06:12:{second:02d}.455, 1, {cell}, {cell}, {cell}, {cell}" for second in (3, 4)]
    telemetry = read(HEAD, *(row(second, gpu) for second in (1, 2) for gpu in (0, 1)), row(3), dead[0], row(4), dead[1])
    (event,) = telemetry.events.to_dict("records")
    assert (event["kind"], event["gpu"], event["line"], event["detail"]) == ("gpu_lost", "1", 7, "[Unknown Error]")
    assert not telemetry.problems and telemetry.gpu["util_pct"].isna().sum() == 2


def test_unknown_errors_of_some_numbers_are_unknown_and_tell_of_no_loss(read: Any) -> None:
    some = row(2, util="[Unknown Error]", used="[Unknown Error] MiB", power="[Unknown Error]")
    telemetry = read(HEAD, row(1), some, row(3))
    assert telemetry.events.empty and not telemetry.problems
    assert telemetry.gpu[["util_pct", "mem_used_mib", "power_w"]].isna().all(axis=1).tolist() == [False, True, False]
    sensor = read("timestamp, index, power.draw [W]", *(f"2026/02/15 06:12:0{k}.455, 0, ERR!" for k in (1, 2)))
    assert sensor.events.empty, "one number may be that of one sensor"


def test_samples_without_time_count_from_1970(read: Any) -> None:
    names = "index, utilization.gpu [%]"
    rows = [f"{g}, {k} %" for k in range(3) for g in range(2)]
    assumed, told = read(names, *rows), read(names, *rows, period_s=5, timezone="Asia/Taipei")
    assert assumed.gpu["time"].iloc[2] == pd.Timestamp(2, unit="s", tz="UTC") and "assumed" in assumed.notes[0]
    assert told.gpu["time"].iloc[2] == pd.Timestamp(10, unit="s", tz="UTC") and "5 s" in told.notes[0]
    assert told.clock == "count", "such timestamps prove nothing"


@pytest.mark.parametrize("count", [2, 5])
def test_gpus_told_by_their_order_in_a_block(count: int, read: Any) -> None:
    lines = [
        line for k in range(6) for line in (f"2025-09-21 16:12:{k:02d}", *(f"{g} %, {k} MiB" for g in range(count)))
    ]
    telemetry = read(*lines)
    assert telemetry.gpus["gpu"].tolist() == [str(g) for g in range(count)]
    assert telemetry.gpu.groupby("gpu")["util_pct"].first().tolist() == list(range(count))
    assert telemetry.gpu["time"].max() == pd.Timestamp("2025-09-21 16:12:05", tz="UTC")


def two_writers(random: np.random.Generator, rounds: int, torn: float) -> list[str]:
    """Lines of two loops of nvidia-smi over 8 GPUs, the last one idle; some rounds of one run into the other's."""
    lines: list[str] = []
    for _ in range(rounds):
        first, second = (["utilization.gpu [%]", *(f"{90 + g if g < 7 else 0} %" for g in range(8))] for _ in range(2))
        if random.random() < torn:
            cut = int(random.integers(1, 9))
            lines += [*first[:cut], *second[:4], first[cut] + second[4], *second[5:], *first[cut + 1 :]]
        else:
            lines += [*first, *second]
    return lines


@pytest.mark.parametrize(("torn", "told"), [(0.04, False), (0.3, True)])
def test_two_programs_that_write_one_file_leave_the_whole_blocks(torn: float, told: bool, read: Any) -> None:
    lines = two_writers(np.random.default_rng(1), 200, torn)
    telemetry = read(*lines)
    assert telemetry.gpu.groupby("gpu")["util_pct"].median().tolist() == [90, 91, 92, 93, 94, 95, 96, 0]
    assert telemetry.gpu.groupby("gpu").size().nunique() == 1
    left = problems(telemetry)["row of a block that is not whole"][0]
    rows = sum(line.count("%") == 1 and line[0].isdigit() for line in lines)
    assert left == rows - len(telemetry.gpu) > 50
    assert any(f"but for {left:,} rows" in note for note in telemetry.notes) == told


def test_rows_in_blocks_of_all_sizes_are_assumed_to_be_of_one_gpu_aloud(read: Any) -> None:
    random = np.random.default_rng(2)
    lines = [
        line for _ in range(60) for line in ("utilization.gpu [%]", *["50 %"] * int(random.choice([2, 3, 4, 5, 7, 9])))
    ]
    telemetry = read(*lines)
    assert telemetry.gpus["gpu"].tolist() == ["0"]
    assert any("assumed to be of one GPU" in note for note in telemetry.notes)
    assert not any("of one GPU" in note for note in read(*["utilization.gpu [%]", "50 %"] * 60).notes)
    again = [line for _ in range(5) for line in ("utilization.gpu [%]", *["50 %"] * int(random.integers(50, 90)))]
    assert not any("of one GPU" in note for note in read(*again).notes), "a log that was begun anew"
    parts = read("utilization.gpu [%]", *["50 %"] * 8, "a note", *["50 %"] * 9)
    assert parts.gpus["gpu"].tolist() == ["0"] and not any("of one GPU" in note for note in parts.notes)


@pytest.mark.parametrize("rows", [6_000, 30_000])
def test_a_gpu_of_another_model_at_one_index_is_another_gpu(rows: int, read: Any) -> None:
    """Two machines write one file; two of their rows ran together within the name."""
    row = "0, Tesla {}, {} %, {} MiB"
    lines = [
        row.format(*(("V100-PCIE-32GB", 90, 100) if k // 60 % 2 else ("V100-SXM2-32GB", 10, 200))) for k in range(rows)
    ]
    lines[1000], lines[2000] = row.format("V100-PCIE-a V100-PCIE-32GB", 90, 100), row.format("Vsla V100-PCIE", 90, 100)
    date = "Sun Nov 21 14:02:20 2021"
    telemetry = read(date, "index, name, utilization.gpu [%], memory.used [MiB]", *lines)
    found = telemetry.gpu.groupby("gpu")["util_pct"].agg(["min", "max"])
    assert sorted(found.index) == ["0", "0b"] and telemetry.gpus["name"].nunique() == 2
    sxm = telemetry.gpus.set_index("gpu")["name"].str.contains("SXM2")
    assert telemetry.gpu.loc[telemetry.gpu["gpu"] == sxm.idxmax(), "util_pct"].mean() < 11
    assert any("V100-PCIE" in note and "is called 0b" in note for note in telemetry.notes)
    assert any("counted from the date above them with a period of 1 s assumed" in note for note in telemetry.notes)


def test_names_of_one_product_written_in_two_ways_are_one_gpu(read: Any) -> None:
    rows = [f"0, {name}, 90 %, 5 MiB" for name in ["GeForce RTX 3090"] * 40 + ["NVIDIA GeForce RTX 3090", "[N/A]"] * 20]
    telemetry = read("index, name, utilization.gpu [%], memory.used [MiB]", *rows)
    assert telemetry.gpus["gpu"].tolist() == ["0"] and len(telemetry.gpu) == len(rows)


def test_windows_prompt_writes_day_and_time_apart(read: Any) -> None:
    lines = [line for k in range(4) for line in ("Mon 09/28/2020 ", f"12:1{k} AM", f"{k} %, 588 MiB", "")]
    assert read(*lines).gpu["time"].tolist() == [
        pd.Timestamp(f"2020-09-28 00:1{k}", tz="UTC") for k in range(4)
    ]  # fmt: skip


def test_zones_of_date_lines(read: Any) -> None:
    lines = ["Wed Feb 26 01:50:18 PM {} 2025", "0 %, 7042 MiB"]
    assert read(lines[0].format("EST"), lines[1]).gpu["time"].iloc[0] == pd.Timestamp("2025-02-26 18:50:18", tz="UTC")
    unclear = read(lines[0].format("CST"), lines[1], timezone="Asia/Shanghai")
    assert unclear.gpu["time"].iloc[0] == pd.Timestamp("2025-02-26 05:50:18", tz="UTC")
    assert any("CST" in note for note in unclear.notes)


def test_no_header_and_no_units_asks_for_names(read: Any) -> None:
    line = "2026/02/15 06:12:01.455, NVIDIA GeForce RTX 3080 Ti, 3, 0, 12288, 12043, 2"
    with pytest.raises(InputError, match="--columns"):
        read(line)
    names = ("timestamp", "name", "gpu_util", "-", "memory.total", "memory.free", "memory.used")
    telemetry = read(line, columns=names)
    assert telemetry.gpu.loc[0, ["util_pct", "mem_total_mib", "mem_used_mib"]].tolist() == [3, 12288, 2]
    with pytest.raises(ConfigError, match="none of the columns given"):
        read(line, columns=("a", "b"))


def test_a_header_alone_is_told(read: Any) -> None:
    with pytest.raises(InputError, match="no usable sample"):
        read(HEAD)


def test_a_torn_row_does_not_hide_what_columns_without_a_header_are(read: Any) -> None:
    telemetry = read(*["2 %, 588 MiB"] * 9, "2, 588 MiB", "588 MiB, 2 %", *["3 %, 590 MiB"] * 14)
    assert telemetry.gpu["util_pct"].tolist()[:9] == [2.0] * 9
    assert telemetry.gpu["mem_used_mib"].max() == 590


def test_rows_that_all_lack_their_gpu_are_refused_with_the_reason(read: Any) -> None:
    with pytest.raises(InputError, match="names no GPU"):
        read("index, utilization.gpu [%], power.draw [W]", "[N/A], 5 %, 9.00 W", "[N/A], 6 %, 9.50 W")


@pytest.mark.slow
def test_many_blocks_are_one_log(read: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Blocks of a few rows, dirt in some of them, a new header in the middle: the same as read in one piece."""
    start = pd.Timestamp("2026-02-15 06:12:00.455")
    timestamps = [(start + pd.Timedelta(seconds=k)).strftime("%Y/%m/%d %H:%M:%S.%f")[:-3] for k in range(3000)]
    lines = [HEAD]
    for k, timestamp in enumerate(timestamps):
        if k == 2000:
            lines.append("timestamp, index, power.draw [W]")
        lines.append(
            f"{timestamp}, {k % 3}, {k % 100} %, {k} MiB, 9 MiB, 1.50 W"
            if k < 2000
            else f"{timestamp}, {k % 3}, {k}.00 W"
        )
        if k % 53 == 0:  # no regular row, but a good one
            lines[-1] = lines[-1].replace(", ", " ,  ")
        lines += [f"{timestamp}, {k % 3}, 4"] if k % 101 == 0 else []
        lines += ["--- new run ---"] if k % 700 == 0 else []
    whole = read(*lines)
    monkeypatch.setattr("gpudiag.readers._io.source.HEAD_BYTES", 2000)
    monkeypatch.setattr("gpudiag.readers._io.source.Source.blocks", _small_blocks)
    pieces = read(*lines)
    pd.testing.assert_frame_equal(whole.gpu, pieces.gpu)
    assert len(whole.gpu) == 3000 and problems(whole) == problems(pieces)


def _small_blocks(self: Any) -> Any:
    from gpudiag.readers._io.source import LineBlock

    text = self.path.read_bytes().split(b"\n")[:-1]
    for at in range(0, len(text), 37):
        yield LineBlock(b"\n".join(text[at : at + 37]) + b"\n", at + 1)


README = (
    "timestamp,index,name,uuid,utilization.gpu,memory.used,memory.total,power.draw,power.limit,power.default_limit,"
    "temperature.gpu,clocks.sm,clocks.max.sm,clocks_event_reasons.active"
)


def _headless(units: bool) -> str:
    """Two H100, the second held back by its power limit."""
    rows = [
        f"2026/03/10 09:00:{at:02d}.00{gpu}, {gpu}, NVIDIA H100 80GB HBM3, GPU-0000000{gpu}-aa-bb-cc-00, "
        f"{90 + at % 5} %, 20000 MiB, 81559 MiB, {500 + at}.25 W, 700.00 W, 700.00 W, {40 + at % 3}, "
        f"{1900 + 8 * gpu} MHz, 1980 MHz, 0x000000000000000{4 * gpu:X}"
        for at in range(30)
        for gpu in range(2)
    ]
    text = "\n".join(rows) + "\n"
    return text if units else re.sub(r" (?:%|MiB|W|MHz)(?=,)", "", text)


@pytest.mark.parametrize("units", [True, False])
def test_the_query_of_the_readme_without_its_header(units: bool, tmp_path: Path) -> None:
    path = tmp_path / "gpu.csv"
    path.write_text(_headless(units))
    named = read_telemetry(path, timezone="UTC", columns=tuple(README.split(",")))
    assert named.gpu.groupby("gpu")["throttle_reasons"].max().tolist() == [0, 4] and not named.problems
    assert named.gpu["sm_clock_mhz"].max() == 1908 and named.gpus["sm_clock_max_mhz"].tolist() == [1980, 1980]
    if not units:
        with pytest.raises(InputError, match="its 14 columns cannot be told apart; name them in order with --columns"):
            read_telemetry(path, timezone="UTC")
        return
    guessed = read_telemetry(path, timezone="UTC")
    assert guessed.gpu.groupby("gpu")["throttle_reasons"].max().tolist() == [0, 4]
    assert guessed.gpu["sm_clock_mhz"].max() == 1908
    assert "mem_clock_mhz" not in guessed.gpu  # 1980 throughout may be the most that the SM clock can be


@pytest.mark.parametrize(
    "mask",
    ["0x00000000000001FF", "0x0000000000000004, 0x0000000000000001", "0x20B210DE"],
    ids=["known", "two", "short"],
)
def test_a_mask_that_may_be_another_is_not_read(mask: str, tmp_path: Path) -> None:
    path = tmp_path / "gpu.csv"
    path.write_text("".join(f"2026/03/10 09:00:{at:02d}.000, 0, {90 + at % 5} %, {mask}\n" for at in range(30)))
    telemetry = read_telemetry(path, timezone="UTC")
    assert len(telemetry.gpu) == 30 and "throttle_reasons" not in telemetry.gpu


def test_states_and_versions_may_be_among_the_cells(tmp_path: Path) -> None:
    path = tmp_path / "gpu.csv"
    row = "NVIDIA A100-SXM4-80GB, 00000000:01:00.0, 535.104.05, Enabled, Default, P0, 3"
    path.write_text("".join(f"2026/03/10 09:00:{at:02d}.000, {row}, {90 + at % 5} %, 512 MiB\n" for at in range(30)))
    telemetry = read_telemetry(path, timezone="UTC")
    assert telemetry.gpus[["gpu", "bus_id"]].to_numpy().tolist() == [["0", "00000000:01:00.0"]]
    assert (telemetry.gpu["util_pct"].mean(), telemetry.gpu["mem_used_mib"].max()) == (92.0, 512.0)


@pytest.mark.parametrize("swapped", [True, False])
def test_a_gpu_whose_index_changes_is_followed_by_its_uuid(swapped: bool, tmp_path: Path) -> None:
    uuids = [f"GPU-0000000{gpu}-aaaa-bbbb-cccc-000000000000" for gpu in range(2)]
    lines = ["timestamp, index, uuid, utilization.gpu [%]"]
    for at in range(60):
        order = uuids[::-1] if swapped and at >= 30 else uuids
        lines += [
            f"2026/03/10 09:00:{at:02d}.000, {index}, {uuid}, {90 if uuid == uuids[0] else 20} %"
            for index, uuid in enumerate(order)
        ]
    (tmp_path / "gpu.csv").write_text("\n".join(lines) + "\n")
    telemetry = read_telemetry(tmp_path / "gpu.csv", timezone="UTC")
    assert telemetry.gpu.groupby("gpu")["util_pct"].agg(["min", "max"]).to_numpy().tolist() == [[90, 90], [20, 20]]
    assert telemetry.gpus["uuid"].tolist() == uuids and not telemetry.problems
    assert [note for note in telemetry.notes if "index" in note] == (
        ["The index of GPU 0, 1 changes: each keeps its first one, told by its uuid or bus id."] if swapped else []
    )
