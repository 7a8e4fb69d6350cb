"""Reports of Nsight Systems, exported to SQLite, as the events of a Chrome trace.

Tables and columns are those of "SQLite Schema Reference" in NVIDIA's manual; times are nanoseconds since
the session began. A table of what was not traced is absent.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from typing import Any

import polars as pl

from gpudiag.errors import InputError
from gpudiag.readers._io.source import Source
from gpudiag.readers._io.sqlite_database import ViewFound, refuse_views
from gpudiag.readers._io.sqlite_file import open_readonly

KERNEL, MEMCPY, MEMSET, GRAPH, RUNTIME = (
    f"CUPTI_ACTIVITY_KIND_{what}" for what in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE", "RUNTIME")
)
NVTX, MEMORY_KINDS = "NVTX_EVENTS", "ENUM_CUDA_MEM_KIND"
NAMED = "LEFT JOIN StringIds s ON s.id = t."
SQL = {
    KERNEL: f"SELECT start, end, deviceId, streamId, correlationId, s.value FROM {KERNEL} t {NAMED}demangledName",
    MEMCPY: f"SELECT start, end, deviceId, streamId, correlationId, copyKind, srcKind, dstKind FROM {MEMCPY}",
    MEMSET: f"SELECT start, end, deviceId, streamId, correlationId, 'Memset' FROM {MEMSET}",
    GRAPH: f"SELECT start, end, deviceId, streamId, correlationId, 'CUDA graph' FROM {GRAPH}",
    RUNTIME: f"SELECT start, end, globalTid, NULL, correlationId, s.value FROM {RUNTIME} t {NAMED}nameId",
    NVTX: f"SELECT start, end, globalTid, NULL, NULL, COALESCE(t.text, s.value) FROM {NVTX} t {NAMED}textId "
    "WHERE end IS NOT NULL",
}
CATEGORIES = {
    KERNEL: "kernel", MEMCPY: "gpu_memcpy", MEMSET: "gpu_memset", GRAPH: "kernel", RUNTIME: "cuda_runtime",
}  # fmt: skip
TABLES = (*SQL, "StringIds", MEMORY_KINDS, "TARGET_INFO_GPU", "TARGET_INFO_SESSION_START_TIME")
COPIES = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}
"""``copyKind`` as CUPTI numbers it (CUpti_ActivityMemcpyKind)."""
STEP = re.compile(r"(?i)(?:(?:train(?:ing)?|global)[ _]?)?(?:step|iter|iteration)[ _:#]*(\d{1,15})")
"""What people call the NVTX range of a step: ``step 12``, ``train_step_12``, ``iteration 12``."""
ROWS = 200_000
SCHEMA = {
    "cat": pl.String, "name": pl.String, "pid": pl.String, "tid": pl.String, "dur": pl.Float64,
    "ts_ns": pl.Int64, "device": pl.Int64, "stream": pl.Int64, "correlation": pl.Int64,
}  # fmt: skip


class NsightReport:
    """One export; ``beside`` is what the head of a Chrome trace says of the machine and the time."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.beside: dict[str, Any] = {}

    def frames(self) -> Iterator[pl.DataFrame]:
        """Frames of events. Raises InputError for a database of another tool, and where it is damaged."""
        try:
            with open_readonly(self.source.path) as connection:
                there = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
                if "StringIds" not in there or not {KERNEL, GRAPH, RUNTIME} & there:
                    raise InputError(
                        f"{self.source.path}: is an SQLite database, but none that `nsys export --type sqlite` wrote "
                        "with CUDA traced (`nsys profile --trace cuda,nvtx`)."
                    )
                refuse_views(connection, *TABLES)
                self.beside = _beside(connection, there)
                pageable = _pageable(connection, there)
                for table in sorted(SQL.keys() & there):
                    cursor = connection.execute(SQL[table])
                    while rows := cursor.fetchmany(ROWS):
                        yield _frame(table, rows, pageable)
        except (sqlite3.Error, ViewFound) as error:
            raise InputError(f"{self.source.path}: cannot be read as a report of Nsight Systems ({error}).") from error


def _beside(connection: sqlite3.Connection, tables: set[str]) -> dict[str, Any]:
    held: dict[str, Any] = {}
    if "TARGET_INFO_SESSION_START_TIME" in tables:
        row = connection.execute("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME").fetchone()
        held["baseTimeNanoseconds"] = row[0] if row else None
    if "TARGET_INFO_GPU" in tables:
        names = [row[0] for row in connection.execute("SELECT name FROM TARGET_INFO_GPU ORDER BY id")]
        if len(set(names)) == 1:  # CUDA may number them in another order
            held["deviceProperties"] = [{"name": name} for name in names]
    return held


def _pageable(connection: sqlite3.Connection, tables: set[str]) -> object:
    """The number of memory that is not pinned, by the export's own table; a number that none has where it is absent."""
    if MEMORY_KINDS not in tables:
        return None
    rows = connection.execute(f"SELECT id, label FROM {MEMORY_KINDS}").fetchall()
    return next((number for number, label in rows if str(label).lower() == "pageable"), None)


def _frame(table: str, rows: list[tuple[Any, ...]], pageable: object) -> pl.DataFrame:
    on_gpu = table in (KERNEL, MEMCPY, MEMSET, GRAPH)
    rows = [row for row in rows if isinstance(row[0], int) and isinstance(row[1], int)]
    names = [_copy(row, pageable) if table == MEMCPY else _name(table, row[5]) for row in rows]
    return pl.DataFrame(
        {
            "cat": [CATEGORIES.get(table) or _range_category(name) for name in names],
            "name": names,
            "pid": [None if on_gpu or not isinstance(row[2], int) else str(row[2] >> 24) for row in rows],
            "tid": [None if on_gpu else str(row[2]) for row in rows],
            "dur": [(row[1] - row[0]) / 1000 for row in rows],
            "ts_ns": [row[0] for row in rows],
            "device": [_whole(row[2]) if on_gpu else None for row in rows],
            "stream": [_whole(row[3]) for row in rows],
            "correlation": [_whole(row[4]) for row in rows],
        },
        schema=SCHEMA,
    )


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and abs(value) < 2**62 else None


def _copy(row: tuple[Any, ...], pageable: object) -> str:
    """The name as torch.profiler gives it."""
    kind, source, target = row[5:]
    ends = {(1, source): " (Pageable -> Device)", (2, target): " (Device -> Pageable)"}
    return f"Memcpy {COPIES.get(kind, '')}".strip() + ("" if pageable is None else ends.get((kind, pageable), ""))


def _name(table: str, name: object) -> str:
    text = name if isinstance(name, str) else ""
    found = STEP.fullmatch(text.strip()) if table == NVTX else None
    return f"ProfilerStep#{found[1]}" if found else text


def _range_category(name: str) -> str:
    """An operator of PyTorch (``emit_nvtx``) says that the host prepares kernels; other ranges are notes of people."""
    return "cpu_op" if name.startswith(("aten::", "torch::", "autograd::")) else "user_annotation"
