"""The short way gives what the long way gives, or leaves it to that."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_csv_fuzz import logs

from gpudiag.readers._delimited import fast_rows, sweep
from gpudiag.readers._delimited.cell_words import CellWords
from gpudiag.readers._delimited.grid import Layout, parse, split_lines
from gpudiag.readers._fields.nvidia_fields import layout_of, split_header
from gpudiag.readers.telemetry import read_telemetry

ROW = "2026/02/15 06:12:{:02d}.455, {}, GPU-aaaa{}, [N/A], 5 %, 100 MiB, 70.25 W, P0, 0x00000000000000{:02X}"
HEAD = (
    "timestamp, index, uuid, fan.speed [%], utilization.gpu [%], memory.used [MiB], power.draw [W], pstate, "
    "clocks_event_reasons.active"
)


def layout(rows: list[str], head: str = HEAD) -> Layout:
    return layout_of(split_header(head), rows)


def both(rows: list[str], head: str = HEAD) -> tuple[fast_rows.FastRows, pd.DataFrame, np.ndarray]:
    """The short way, and the rows and good lines of the long way."""
    data, form = ("\n".join(rows) + "\n").encode(), layout(rows, head)
    assert fast_rows.takes(form)
    short = fast_rows.read(data, form)
    assert short is not None
    long = parse(split_lines(data), form)
    good = np.arange(len(rows)) if long.bad is None else np.flatnonzero(~long.bad.to_numpy())
    return short, long.rows.to_pandas(), good


def same(short: fast_rows.FastRows, long: pd.DataFrame) -> None:
    for name, values in short.columns.items():
        np.testing.assert_array_equal(values, long[name].to_numpy()[short.rows].astype(values.dtype), err_msg=name)


@pytest.mark.slow
@given(logs())
@settings(deadline=None, max_examples=80)
def test_both_ways_agree_on_random_logs(log: tuple[str, pd.DataFrame]) -> None:
    head, *rows = log[0].rstrip("\n").split("\n")
    rows = [row for row in rows if row != head]
    form = layout(rows, head)
    data = ("\n".join(rows) + "\n").encode()
    short = fast_rows.read(data, form)
    if short is not None:
        long = parse(split_lines(data), form)
        assert long.bad is None and len(short.rows) + len(short.bad) == len(rows)
        same(short, long.rows.to_pandas())


def test_regular_rows_take_the_short_way() -> None:
    rows = [ROW.format(k, k % 3, k % 3, k) for k in range(50)]
    short, long, _ = both(rows)
    assert len(short.rows) == 50 and not len(short.bad)
    assert set(short.columns) == {"time", "index", "util_pct", "mem_used_mib", "power_w", "pstate", "throttle_reasons"}
    same(short, long)
    assert short.text(2, 4) == "GPU-aaaa1"
    code = short.columns["index"].astype(np.int16)
    assert short.stays(2, np.array([0, 1, 2]), code) and not short.stays(2, np.array([0]), np.zeros(50, dtype=np.int16))


DAMAGE = {
    "year": lambda row: row[1:],
    "day": lambda row: row.replace("02/15", "02/31"),
    "hour": lambda row: row.replace(" 06:", " 26:"),
    "colon": lambda row: row.replace("06:12", "06012"),
    "point": lambda row: row.replace(".455", ":455"),
    "letter": lambda row: row.replace("5 %", "x %"),
    "unit": lambda row: row.replace("5 %", "5"),
    "other-unit": lambda row: row.replace("MiB", "GiB"),
    "sign": lambda row: row.replace("5 %", "-5 %"),
    "empty": lambda row: row.replace("5 %", " %"),
    "nine-digits": lambda row: row.replace("100 MiB", "123456789 MiB"),
    "other-decimals": lambda row: row.replace("70.25", "70.2"),
    "no-blank": lambda row: row.replace(", 5 %", ",5 %"),
    "prefix": lambda row: row.replace("P0", "Q0"),
    "hex": lambda row: row.replace("0x0000", "0x000g"),
    "high-mask": lambda row: row.replace("0x0000", "0xF000"),
    "known-fan": lambda row: row.replace("[N/A]", "30 %"),
    "one-more": lambda row: row + ", 1",
    "one-less": lambda row: row.rsplit(", ", 1)[0],
    "blank-line": lambda row: "",
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("at", [0, 7, 29])
def test_an_irregular_row_is_left_and_its_neighbours_are_not(damage: str, at: int) -> None:
    rows = [ROW.format(k, k % 3, k % 3, k) for k in range(30)]
    form = layout(rows)
    rows[at] = DAMAGE[damage](rows[at])
    short = fast_rows.read(("\n".join(rows) + "\n").encode(), form)
    assert short is not None and short.bad.tolist() == [at]
    long = parse(split_lines(("\n".join(rows) + "\n").encode()), form)
    same(short, long.rows.to_pandas())


def test_only_torn_rows_of_a_regular_log_are_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [ROW.format(k, k % 3, k % 3, k) for k in range(60)]
    torn = {0: rows[0][:17], 7: "", 30: rows[30][:60], 59: rows[59][:40]}
    (tmp_path / "gpu.csv").write_text("\n".join([HEAD, *(torn.get(at, row) for at, row in enumerate(rows)), ""]))
    monkeypatch.setattr(sweep, "split_lines", lambda data: pytest.fail("all lines were split"))
    log = read_telemetry(tmp_path / "gpu.csv", timezone="UTC")
    assert len(log.gpu) == 56 and [(one.kind, one.count, one.line) for one in log.problems] == [
        ("line that is no sample", 1, 2),
        ("torn row", 2, 32),
    ]


def test_too_much_dirt_and_other_layouts_go_the_long_way() -> None:
    rows = [ROW.format(k, k % 3, k % 3, k) for k in range(30)]
    form = layout(rows)
    assert fast_rows.read("\n".join(["dirt"] * 10 + rows).encode(), form) is None
    assert fast_rows.read(b"", form) is None
    assert not fast_rows.takes(form.relaxed())
    assert not fast_rows.takes(layout(["2026/02/15 06:12:01.455, Active"], "timestamp, clocks_event_reasons.gpu_idle"))


@given(st.lists(st.integers(-5, 10**9), min_size=1, max_size=30))
def test_digits(numbers: list[int]) -> None:
    cells = CellWords.of("".join(f"{number}, x\n" for number in numbers).encode(), 2)
    assert cells is not None
    found, valid = cells.digits(cells.starts(0), cells.ends(0))
    assert valid.tolist() == [0 <= number < 10**8 for number in numbers]
    assert found[valid].tolist() == [number for number in numbers if 0 <= number < 10**8]
