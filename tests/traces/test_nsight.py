"""Reports of Nsight Systems in SQLite: the same tables and shares as of a Chrome trace of the same work."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from writtentrace import BASE_US, SHARES, WrittenTrace, training

import gpudiag as gd
from gpudiag.readers._traces.breakdown import STATES

SCHEMA = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, busLocation TEXT, uuid TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
    streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
    streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER,
    dstKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER,
    correlationId INTEGER, nameId INTEGER, returnValue INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, textId INTEGER);
"""


def exported(made: WrittenTrace, path: Path) -> Path:
    """The same events as ``nsys export --type sqlite`` would write them: nanoseconds since the session began."""
    with closing(sqlite3.connect(path)) as db:
        db.executescript(SCHEMA)
        ids: dict[str, int] = {}
        db.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?, '', '')", (BASE_US * 1000,))
        db.executemany("INSERT INTO TARGET_INFO_GPU VALUES (?, 'NVIDIA H100', '', '')", [(0,), (1,)])
        for number, event in enumerate(made.events):
            start = round((event["ts"] - BASE_US) * 1000)
            end = start + round(event["dur"] * 1000)
            name = event["name"].replace("ProfilerStep#", "train_step ")
            text = ids.setdefault(name, len(ids) + 1)
            thread, call = event["pid"] << 24 | event["tid"], event["args"].get("correlation", number)
            if event["cat"] == "kernel":
                row = (start, end, event["args"]["device"], 1, event["tid"], call, 0, text, text)
                db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,?,?,?,?,?,?)", row)
            elif event["cat"] == "gpu_memcpy":
                row = (start, end, event["args"]["device"], 1, event["tid"], call, 0, 8, 1, 0, 2)
                db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?,?,?,?,?,?,?,?,?,?,?)", row)
            elif event["cat"] == "cuda_runtime":
                text = ids.setdefault(f"{name}_v7000", len(ids) + 1)
                row = (start, end, 0, thread, call, text, 0)
                db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,?,?,?,?,?)", row)
            else:
                written = (None, text) if number % 2 else (name, None)
                row = (start, end, 59, written[0], thread, written[1])
                db.execute("INSERT INTO NVTX_EVENTS VALUES (?,?,?,?,?,?)", row)
        db.execute("INSERT INTO NVTX_EVENTS VALUES (5, NULL, 34, 'a mark', 1, NULL)")
        db.executemany("INSERT INTO StringIds VALUES (?, ?)", [(number, name) for name, number in ids.items()])
        db.commit()
    return path


def test_the_shares_are_those_that_were_written(tmp_path: Path) -> None:
    made = gd.read_trace(exported(training(), tmp_path / "report.sqlite")).breakdown
    (gpu,) = made.gpus
    assert {name: getattr(gpu, name) for name in STATES} == pytest.approx(SHARES)
    assert (made.n_steps, gpu.name, made.begin) == (4, "NVIDIA H100", "2023-11-14T22:13:20+00:00")
    assert [one.n for one in made.kernels] == [8, 4, 4] and made.waits[0].operator == "aten::item"
    assert gd.read_trace(tmp_path / "report.sqlite").steps["step"].tolist() == [100, 101, 102, 103]


def test_what_was_not_traced_is_absent(tmp_path: Path) -> None:
    path = exported(training(), tmp_path / "report.sqlite")
    with closing(sqlite3.connect(path)) as db:
        for table in ("NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_MEMCPY", "TARGET_INFO_GPU", "TARGET_INFO_SESSION_START_TIME"):
            db.execute(f"DROP TABLE {table}")
        db.commit()
    made = gd.read_trace(path).breakdown
    (gpu,) = made.gpus
    assert (made.n_steps, gpu.name, made.begin, gpu.data_pct, gpu.copy_pct) == (0, "", None, 0.0, 0.0)
    assert gpu.compute_pct == pytest.approx(100 * 4 * 300 / (3850 - 300))  # from the first call to the last


def test_a_graph_is_work_and_a_copy_to_pageable_memory_a_wait(tmp_path: Path) -> None:
    path = exported(training(1), tmp_path / "report.sqlite")
    with closing(sqlite3.connect(path)) as db:
        db.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER,"
            " graphId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER)"
        )
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (900000, 1000000, 0, 1, 1, 7, 77, 0)")
        db.execute("CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER, name TEXT, label TEXT)")
        db.execute("INSERT INTO ENUM_CUDA_MEM_KIND VALUES (0, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE', 'Pageable')")
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (0, 0, 0, 1, 7, 4242, 0, 4, 2, 2, 0)")
        db.execute("INSERT INTO StringIds VALUES (999, 'cudaMemcpyAsync_v3020')")
        thread = db.execute("SELECT globalTid FROM CUPTI_ACTIVITY_KIND_RUNTIME").fetchone()[0]
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (860000, 900000, 0, ?, 4242, 999, 0)", (thread,))
        db.commit()
    (gpu,) = gd.read_trace(path).breakdown.gpus
    assert gpu.compute_pct == pytest.approx(SHARES["compute_pct"] + 10.0)
    assert gpu.sync_pct == pytest.approx(SHARES["sync_pct"] + 4.0)


def test_a_copy_from_pageable_memory_is_known_by_its_source(tmp_path: Path) -> None:
    made = WrittenTrace()
    made.step(1, 0, 100)
    made.launched("Memcpy HtoD", 10, 50, 60, cat="gpu_memcpy")
    made.events[-1]["dur"] = 50
    made.launched("gemm", 60, 60, 100)
    path = exported(made, tmp_path / "report.sqlite")
    shares = []
    for label in ("Pinned", "Pageable"):
        with closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE IF NOT EXISTS ENUM_CUDA_MEM_KIND (id INTEGER, name TEXT, label TEXT)")
            db.execute("DELETE FROM ENUM_CUDA_MEM_KIND")
            db.execute("INSERT INTO ENUM_CUDA_MEM_KIND VALUES (0, '', ?)", (label,))
            db.commit()
        shares.append(gd.read_trace(path).breakdown.gpus[0].pageable_pct)
    assert shares == pytest.approx([0.0, 40.0])


def test_unlike_gpus_have_no_name(tmp_path: Path) -> None:
    path = exported(training(), tmp_path / "report.sqlite")
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE TARGET_INFO_GPU SET name = 'NVIDIA T400' WHERE id = 1")
        db.commit()
    assert gd.read_trace(path).breakdown.gpus[0].name == ""


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("CREATE TABLE trials (id INTEGER)", "none that `nsys export"),
        ("CREATE TABLE StringIds (id, value); CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT 1", "is a view"),
        ("CREATE TABLE StringIds (id, value); CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start)", "cannot be read"),
    ],
)
def test_other_databases_are_refused(tmp_path: Path, sql: str, said: str) -> None:
    path = tmp_path / "x.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(sql)
    before = path.read_bytes()
    with pytest.raises(gd.InputError, match=said):
        gd.read_trace(path)
    assert path.read_bytes() == before
