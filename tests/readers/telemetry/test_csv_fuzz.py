"""Random logs in the grammar of query CSV: what was written is read back; damage costs only what it hits."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from drawn import few_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpudiag.errors import InputError
from gpudiag.readers.telemetry import read_telemetry
from gpudiag.schema import TABLES, in_range

RELAXED = settings(deadline=None, max_examples=few_of(80), suppress_health_check=[HealthCheck.function_scoped_fixture])
MISSING = ["[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "ERR!", "-"]
START = pd.Timestamp("2026-02-15 06:12:48", tz="UTC")

COLUMNS = {
    "util_pct": ("utilization.gpu [%]", "%", st.integers(0, 100)),
    "mem_util_pct": ("utilization.memory [%]", "%", st.integers(0, 100)),
    "mem_used_mib": ("memory.used [MiB]", "MiB", st.integers(0, 81559)),
    "power_w": ("power.draw [W]", "W", st.integers(0, 99999).map(lambda centi: centi / 100)),
    "temp_c": ("temperature.gpu", "", st.integers(10, 110)),
    "sm_clock_mhz": ("clocks.current.sm [MHz]", "MHz", st.integers(0, 3000)),
    "pstate": ("pstate", "", st.integers(0, 15)),
}


def cell(name: str, value: float | str, units: bool) -> str:
    if isinstance(value, str):
        return value
    unit = COLUMNS[name][1]
    text = f"{value:.2f}" if name == "power_w" else f"P{value}" if name == "pstate" else f"{value}"
    return f"{text} {unit}" if units and unit else text


@st.composite
def logs(draw: st.DrawFn) -> tuple[str, pd.DataFrame]:
    """The text of a log and the table it means."""
    names = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=7, unique=True))
    gpus, ticks, units = draw(st.integers(1, 4)), draw(st.integers(1, 8)), draw(st.booleans())
    again = draw(st.booleans())
    known = [draw(st.booleans()) for _ in names]
    header = ", ".join(["timestamp", "index", *(COLUMNS[name][0] for name in names)])
    lines, rows = [header], []
    for tick in range(ticks):
        for gpu in range(gpus):
            timestamp = START + pd.Timedelta(milliseconds=1003 * tick + gpu)
            options = [
                COLUMNS[n][2] if k else COLUMNS[n][2] | st.sampled_from(MISSING)
                for n, k in zip(names, known, strict=True)
            ]
            values = [draw(option) for option in options]
            cells = [cell(name, value, units) for name, value in zip(names, values, strict=True)]
            lines.append(", ".join([timestamp.strftime("%Y/%m/%d %H:%M:%S.%f")[:-3], str(gpu), *cells]))
            rows.append([timestamp, str(gpu), *(math.nan if isinstance(v, str) else float(v) for v in values)])
        if again and tick == 0:
            lines.append(header)
    truth = pd.DataFrame(rows, columns=["time", "gpu", *names]).sort_values(["gpu", "time"], ignore_index=True)
    return "\n".join(lines) + "\n", truth


def read(text: str | bytes, folder: Path) -> Any:
    path = folder / "fuzz.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_telemetry(path, timezone="UTC")


@pytest.mark.slow
@given(logs())
@RELAXED
def test_what_was_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, log: tuple[str, pd.DataFrame]) -> None:
    text, truth = log
    gpu = read(text, tmp_path_factory.getbasetemp()).gpu
    assert gpu["gpu"].tolist() == truth["gpu"].tolist() and gpu["time"].tolist() == truth["time"].tolist()
    for name in truth.columns[2:]:
        found = gpu[name].astype("float64") if name in gpu else pd.Series(math.nan, index=gpu.index)
        pd.testing.assert_series_equal(found, truth[name], check_names=False)


@pytest.mark.slow
@given(logs(), st.data())
@RELAXED
def test_damage_costs_only_what_it_hits(
    tmp_path_factory: pytest.TempPathFactory, log: tuple[str, pd.DataFrame], data: st.DataObject
) -> None:
    text, truth = log
    lines = text.rstrip("\n").split("\n")
    hit = data.draw(st.integers(1, len(lines) - 1))
    lines[hit] = lines[hit][: data.draw(st.integers(0, len(lines[hit])))]
    noise = data.draw(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30))
    lines.insert(data.draw(st.integers(1, len(lines))), noise)
    try:
        gpu = read("\n".join(lines) + "\n", tmp_path_factory.getbasetemp()).gpu
    except InputError:
        assert len(truth) == 1
        return
    written = set(zip(truth["time"], truth["gpu"], strict=True))
    assert len(written - set(zip(gpu["time"], gpu["gpu"], strict=True))) <= 1


@pytest.mark.slow
@given(logs(), st.binary(max_size=40), st.integers(0, 2000))
@RELAXED
def test_no_bytes_raise_anything_but_input_error(
    tmp_path_factory: pytest.TempPathFactory, log: tuple[str, pd.DataFrame], junk: bytes, at: int
) -> None:
    data = log[0].encode()
    at = min(at, len(data))
    try:
        telemetry = read(data[:at] + junk + data[at:], tmp_path_factory.getbasetemp())
    except InputError:
        return
    for column in telemetry.gpu.columns:
        assert in_range(telemetry.gpu[column], TABLES["gpu"][column]).all()
    assert not telemetry.gpu.duplicated(["gpu", "time"]).any()


NAMES = [
    "timestamp",
    "gpu",
    "gpu_util",
    "memory_used_mb",
    "power_w",
    "temp_c",
    "gpu_mem_util",
    "x",
    "",
    "GPU0",
    "context",
]
CELLS = st.sampled_from(
    ["", "0", "7", "1736203508", "3.5", "-", "a", "GPU 1", "5 %", '"q', "1,5", "2025-01-01 00:00:0", "nan", "inf"]
)


@pytest.mark.slow
@given(
    st.lists(st.sampled_from(NAMES), min_size=2, max_size=6),
    st.lists(st.lists(CELLS, min_size=1, max_size=7), max_size=8),
    st.sampled_from([",", ";", "\t", "  "]),
)
@RELAXED
def test_no_table_raises_anything_but_input_error(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], rows: list[list[str]], separator: str
) -> None:
    text = "\n".join(separator.join(row) for row in [names, *rows])
    try:
        telemetry = read(text, tmp_path_factory.getbasetemp())
    except InputError as error:
        assert "fuzz.csv" in str(error)
        return
    for column in telemetry.gpu.columns:
        assert in_range(telemetry.gpu[column], TABLES["gpu"][column]).all()
