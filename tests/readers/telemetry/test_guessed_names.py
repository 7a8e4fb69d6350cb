"""Logs of --query-gpu without a header: columns in an unusual order are put right by their numbers, or left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry

TOTAL = 81_920
UNITS = {"util": "%", "mutil": "%", "used": "MiB", "free": "MiB", "total": "MiB"}
Row = Mapping[str, int]


def read(rows: Sequence[Row], order: Sequence[str], folder: Path) -> Telemetry:
    lines = [
        f"2026/03/10 08:{k // 60:02}:{k % 60:02}.123, " + ", ".join(f"{row[name]} {UNITS[name]}" for name in order)
        for k, row in enumerate(rows)
    ]
    (folder / "gpu.csv").write_text("\n".join(lines) + "\n")
    return read_telemetry(folder / "gpu.csv", timezone="UTC")


def row(util: int, used: int) -> Row:
    return {"util": util, "mutil": util * 3 // 5, "used": used, "free": TOTAL - used, "total": TOTAL}


def job_after_idle(k: int) -> Row:
    return row(0, 3) if k < 20 else row(60 + k % 40, 70_000 + k % 7)


def job_beside_a_desktop(k: int) -> Row:
    return row(0, 1_300 + k % 9) if k < 20 else row(90 + k % 5, 60_000)


def full_at_work(k: int) -> Row:
    return row(95 + k % 5, TOTAL - 2 - k % 3)


def kept_at_rest(k: int) -> Row:
    """For a moment a process keeps all memory without using it."""
    return row(0, TOTAL - 11) if 100 <= k < 105 else row(0, 2)


def no_hint(k: int) -> Row:
    """The same memory in use with and without work."""
    return row(0 if k // 10 % 4 == 3 else 70 + k % 25, 30_000 + 11 * (k % 90))


def table(kind: Callable[[int], Row]) -> list[Row]:
    return [kind(k) for k in range(200)]


MEMORY = [("used", "free", "total"), ("free", "used", "total"), ("total", "free", "used"), ("total", "used", "free")]


@pytest.mark.parametrize("order", [*MEMORY, ("used", "free"), ("free", "used")])
@pytest.mark.parametrize("kind", [job_after_idle, job_beside_a_desktop, full_at_work, kept_at_rest])
def test_memory_in_use_is_told_by_the_work(kind: Callable[[int], Row], order: Sequence[str], tmp_path: Path) -> None:
    rows = table(kind)
    telemetry = read(rows, ("util", "mutil", *order), tmp_path)
    assert telemetry.gpu["mem_used_mib"].tolist() == [one["used"] for one in rows]
    assert set(telemetry.gpu["mem_total_mib"]) == {TOTAL}


@pytest.mark.parametrize("order", [*MEMORY, ("used", "free"), ("free", "used")])
def test_what_nothing_tells_is_left_out_with_a_note(order: Sequence[str], tmp_path: Path) -> None:
    telemetry = read(table(no_hint), ("util", "mutil", *order), tmp_path)
    assert "mem_used_mib" not in telemetry.gpu and set(telemetry.gpu["mem_total_mib"]) == {TOTAL}
    assert [note for note in telemetry.notes if "used and which is free cannot be told" in note]


@pytest.mark.parametrize("kind", [job_after_idle, no_hint])
@pytest.mark.parametrize("order", [("util", "mutil"), ("mutil", "util")])
def test_the_memory_is_not_busier_than_the_gpu(
    kind: Callable[[int], Row], order: Sequence[str], tmp_path: Path
) -> None:
    rows = table(kind)
    telemetry = read(rows, (*order, "used", "total"), tmp_path)
    assert telemetry.gpu["util_pct"].tolist() == [one["util"] for one in rows]
    assert telemetry.gpu["mem_util_pct"].tolist() == [one["mutil"] for one in rows]


def test_a_second_percentage_that_is_no_utilization_swaps_nothing(tmp_path: Path) -> None:
    """A fan turns at 40 % while the GPU hardly works."""
    rows = [{**row(k % 3, 1_000), "mutil": 40 + k % 4} for k in range(200)]
    telemetry = read(rows, ("util", "mutil", "used", "total"), tmp_path)
    assert not {"util_pct", "mem_util_pct"} & set(telemetry.gpu)
    assert [note for note in telemetry.notes if "utilization.gpu cannot be told" in note]


def test_the_order_that_nvidia_documents_stands(tmp_path: Path) -> None:
    rows = table(no_hint)
    text = "".join(
        f"2026/03/10 08:{k // 60:02}:{k % 60:02}.123, NVIDIA A100, 00000000:17:00.0, 535.104.05, P0, 4, 4, 51, "
        f"{one['util']} %, {one['mutil']} %, {TOTAL} MiB, {one['free']} MiB, {one['used']} MiB\n"
        for k, one in enumerate(rows)
    )
    (tmp_path / "gpu.csv").write_text(text)
    telemetry = read_telemetry(tmp_path / "gpu.csv", timezone="UTC")
    np.testing.assert_array_equal(telemetry.gpu["mem_used_mib"], [one["used"] for one in rows])
