"""The recorder's own file format: what its writer and its reader must agree on.

    # gpudiag-record 1 {"gpudiag": "0.1.0", "host": "node7", "driver": "570.86", "zone": "Asia/Taipei", ...}
    # gpu {"gpu": "0", "uuid": "GPU-...", "name": "NVIDIA H200", ...}
    time,mono_s,gpu,util_pct,...,record
    2026-03-01T10:00:00.000120Z,5123.000114,0,85,...,gpu

One line is one row of one table; the last cell says of which, so that a torn line can never pass for a
whole one. An empty cell is unknown. Every start of a recorder appends a new header: a session.
This module imports nothing heavy, because the recorder runs beside a training.
"""

from __future__ import annotations

from gpudiag.schema import GPU, HOST, PROCESSES

MAGIC = "# gpudiag-record "
VERSION = 1
GPU_LINE = "# gpu "
PARQUET_KEY = b"gpudiag-record"
"""Where the footer of a recording in Parquet holds the headers of its sessions, as a JSON list."""
KINDS = ("gpu", "process", "host", "event")
"""None is the beginning of another."""

NUMBERS = tuple(
    dict.fromkeys(
        column.name for table in (GPU, PROCESSES, HOST) for column in table.columns if column.kind in ("float", "int")
    )
)
TEXTS = ("gpu", "name", "kind", "detail")
COLUMNS = ("time", "mono_s", "gpu", *NUMBERS, "trial", "name", "kind", "detail", "record")
"""``time`` is UTC, ``mono_s`` a clock that nobody sets (seconds since boot); the others are the schema's."""

SETTINGS_KIND = "settings"
SETTINGS = ("num_workers", "prefetch_factor", "persistent_workers", "pin_memory", "batch_size", "val_batch_size")
"""What an event of that kind holds as a JSON object, and of what: the keys of [dataloader] in run.toml."""

START, CUT = "record_start", "record_cut"
"""Kinds of events that readers add: a start of a recorder, and where its rows stop without an end."""
WITH_COMMAND, BY_ITSELF = "with a command", "by itself"
