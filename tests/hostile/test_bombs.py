"""Files that are small and would become large, or would be read without end."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
import sqlite3
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import gpudiag as gd
from gpudiag.readers._io import source, unpacked

SAMPLES = Path(__file__).resolve().parent.parent.parent / "data" / "samples"
ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)"


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("table", ["trial_user_attributes", "trial_heartbeats", "trial_params"])
def test_a_view_in_place_of_a_table_is_not_run(
    table: str, large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpudiag.readers.trials import optuna_sqlite

    shutil.copy(SAMPLES / "healthy" / "optuna.db", tmp_path / "o.db")
    with sqlite3.connect(tmp_path / "o.db") as held:
        names = [row[1] for row in held.execute(f"PRAGMA table_info({table})")]
        held.execute(f"ALTER TABLE {table} RENAME TO kept")
        held.execute(f"CREATE VIEW {table} AS {ENDLESS} SELECT {', '.join(f'n AS {name}' for name in names)} FROM c")
    if large:
        monkeypatch.setattr(optuna_sqlite, "LARGE_BYTES", 0)
    with pytest.raises(gd.InputError, match=f"'{table}' is a view"):
        gd.load_run(tmp_path / "o.db")


@pytest.mark.parametrize(
    "pack", [gzip.compress, partial(pa.compress, codec="zstd", asbytes=True), lzma.compress, bz2.compress],
    ids=["gzip", "zstd", "xz", "bzip2"],
)  # fmt: skip
@pytest.mark.parametrize("limit", ["UNPACKED_BYTES", "WHOLE_BYTES"])
def test_a_log_that_unpacks_to_too_much_is_refused(
    limit: str, pack: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source if hasattr(source, limit) else unpacked, limit, 2**20)
    head = b"number,state,value,datetime_start\n0,COMPLETE,1.0,2026-03-01 10:00:00\n"
    text = head + b"\n" * (2**20 + 1)
    (tmp_path / "t.csv.gz").write_bytes(pack(text))
    with pytest.raises(gd.InputError, match="unpacks to more than 1 MiB; unpack it yourself"):
        gd.load_run(tmp_path / "t.csv.gz", timezone="UTC")


def test_a_log_that_unpacks_to_less_is_read(tmp_path: Path) -> None:
    shutil.copy(SAMPLES / "tiny-batch-laptop" / "gpu.csv", tmp_path)
    (tmp_path / "g.csv.gz").write_bytes(gzip.compress((tmp_path / "gpu.csv").read_bytes()))
    assert len(gd.load_run(tmp_path / "g.csv.gz", timezone="UTC").gpu) == 90


@pytest.mark.slow
@pytest.mark.parametrize("long", ["2026/03/01 10:00:05, 0, 9", "2026/03/01 10:00:05, 0, 50 %, ", "", '"'])
@pytest.mark.parametrize("size", [9_000_000, 20_000_000])
def test_a_line_of_many_megabytes_costs_itself(long: str, size: int, tmp_path: Path) -> None:
    rows = [f"2026/03/01 10:00:{second:02}.000, 0, 50 %\n" for second in range(0, 60, 10)]
    head = "timestamp, index, utilization.gpu [%]\n"
    text = head + "".join(rows[:3]) + long + "7" * size + "\n" + "".join(rows[3:])
    (tmp_path / "gpu.csv").write_text(text)
    began = time.process_time()
    run = gd.load_run(tmp_path, timezone="UTC")
    assert len(run.gpu) == 6 and sum(one.count for one in run.info.inputs[0].problems) == 1
    assert time.process_time() - began < 5
