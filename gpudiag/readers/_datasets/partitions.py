"""Hive partitions of a data set: which files hold the telemetry of which host (``day=2026-03-01/host=node7``)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

import polars as pl

from gpudiag.readers._datasets.cloud import files_below, is_cloud, parquet_source
from gpudiag.readers._datasets.telemetry_columns import known_columns
from gpudiag.readers._io.record_format import PARQUET_KEY

DAY, HOST = ("day", "date", "dt"), ("host", "node", "hostname")
"""Names of partitions, in lower case."""
SUFFIX = ".parquet"
_NO_NAME = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class TelemetryDataset:
    """``hosts``: by host its files, in the order of their paths, which is that of time where days are partitions."""

    root: str
    hosts: dict[str, tuple[str, ...]]


def folder_of(day: str, host: str) -> str:
    """``day=2026-03-01/host=node7``; characters that no name of a folder can have everywhere are written as %2F."""
    plain = quote(host, safe="", errors="surrogateescape").replace("~", "%7E")
    return f"day={day}/host={plain}"


def telemetry_dataset(root: str | Path) -> TelemetryDataset | None:
    """The data set in a folder, or below an URL in an object store; None where it is none.

    A data set has its Parquet files, and no others, below folders that name the day and the host, in any order. What
    ``gpudiag record`` wrote into such folders are runs, each of which is worth a diagnosis of its own.
    """
    hosts: dict[str, list[str]] = {}
    for inside, path in _in_cloud(root) if isinstance(root, str) and is_cloud(root) else _files(Path(root)):
        keys = dict(part.split("=", 1) for part in inside)
        host = next((unquote(keys[name], errors="surrogateescape") for name in keys if name.lower() in HOST), None)
        if host is None or not any(name.lower() in DAY for name in keys) or not path.endswith(SUFFIX):
            return None
        hosts.setdefault("" if host == _NO_NAME else host, []).append(path)
    if not any(_is_telemetry(path) for path in _some(hosts)):
        return None
    return TelemetryDataset(str(root), {host: tuple(sorted(hosts[host])) for host in sorted(hosts)})


def _files(folder: Path, inside: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Files below folders named ``key=value``, each with these; hidden ones and marks (_SUCCESS) are no data."""
    try:
        entries = sorted(os.scandir(folder), key=lambda one: one.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith((".", "_")):
            continue
        if entry.is_dir():
            yield from _files(Path(entry.path), (*inside, entry.name)) if "=" in entry.name else [((), entry.path)]
        elif inside or entry.name.endswith(SUFFIX):
            yield inside, entry.path


def _in_cloud(root: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """The same below a URL. Raises InputError where it cannot be listed."""
    above = root.rstrip("/").count("/") + 1
    for file in files_below(root):
        *inside, name = file.split("/")[above:]
        if not any(part.startswith((".", "_")) for part in (*inside, name)):
            yield (tuple(inside) if all("=" in part for part in inside) else ()), file


def _some(hosts: dict[str, list[str]]) -> list[str]:
    """A file of a few hosts, which stand for all."""
    return [files[0] for files in list(hosts.values())[:8]]


def _is_telemetry(path: str) -> bool:
    try:
        # not pl.read_parquet_schema: it takes [ in a path for a pattern
        names = pl.scan_parquet(parquet_source(path), hive_partitioning=False, glob=False).collect_schema()
        marks = pl.read_parquet_metadata(parquet_source(path))
        return PARQUET_KEY.decode() not in marks and known_columns(names) is not None
    except (pl.exceptions.PolarsError, OSError):
        return False
