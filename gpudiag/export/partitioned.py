"""Telemetry as a Parquet data set, `day=YYYY-MM-DD/host=NAME/*.parquet`: `gpudiag convert --partition`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import tzinfo
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from gpudiag.errors import ConfigError, InputError
from gpudiag.export.convert import read_logs
from gpudiag.files import write_all
from gpudiag.readers._datasets.partitions import folder_of
from gpudiag.readers.base import ReadOptions, Telemetry
from gpudiag.readers.telemetry.parquet import to_arrow
from gpudiag.timezones import parse_zone
from gpudiag.units import FIRST_YEAR

if TYPE_CHECKING:
    import pandas as pd

_OURS = re.compile(r"day=\d{4}-\d\d-\d\d/host=[^/]+/telemetry-[0-9a-f]{16}\.parquet")
TIMED = ("gpu", "processes", "host", "events")


def convert_partitioned(
    paths: Sequence[str | Path],
    output: str | Path,
    *,
    host: str = "",
    timezone: str | tzinfo | None = None,
    columns: tuple[str, ...] = (),
    period_s: float | None = None,
    progress: Callable[[str], None] = lambda path: None,
) -> Telemetry:
    """Read logs of GPU metrics as one telemetry and add it to a data set partitioned by UTC day and host.

    Each file of the data set is telemetry as :func:`gpudiag.export.convert.convert` writes it. All files come, or none.
    The same logs once more replace what they wrote; other logs add files, and a sample that is then there twice counts
    once when the data set is read.

    Args:
        paths: the logs, of one host, or of several where the log names them (a recording, Prometheus, gpustat).
        output: folder of the data set, made where it does not exist.
        host: name of the host of GPUs of which the logs name none.
        timezone: IANA name of the zone of timestamps that carry none; default: this machine's.
        columns: column names for logs that have no header line.
        period_s: sampling period in seconds of logs that have no timestamps.
        progress: called with each path before it is read.

    Returns:
        What was written.

    Raises:
        InputError: an input cannot be read, is no telemetry, or has no sample of a GPU with a date.
        ConfigError: the output holds other files, or no host is known.
    """
    output = Path(output)
    _check(output)
    options = ReadOptions(parse_zone(timezone), columns, period_s)
    whole, notes = read_logs(paths, options, progress, given=timezone is not None)
    if whole.gpu.empty:
        raise InputError(f"{paths[0]}: holds no sample of a GPU; a data set by day and host is made of such.")
    digest = sha256("\n".join([*notes, host]).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    if whole.gpu["time"].isna().any() or whole.gpu["time"].dt.year.min() < FIRST_YEAR:
        raise InputError(f"{paths[0]}: has samples without a date, so that they belong to no day.")
    hosts = list(_by_host(whole, host))
    parts = ((day, name, part) for name, own in hosts for day, part in _by_day(own))
    file = f"telemetry-{digest}.parquet"
    write_all(output, ((output / folder_of(day, name) / file, _bytes(part, notes)) for day, name, part in parts))
    return whole


def _check(output: Path) -> None:
    """Raise ConfigError for what is no folder, or one that holds something else."""
    if output.exists() and not output.is_dir():
        raise ConfigError(
            f"{output}: is a file; expected a folder for the data set (a file is written without --partition)."
        )
    for path in output.rglob("*"):
        inside = path.relative_to(output)
        if path.is_file() and not inside.parts[0].startswith(".") and not _OURS.fullmatch(inside.as_posix()):
            raise ConfigError(f"{path}: was not written by gpudiag convert --partition; choose an empty or new folder.")


def _by_host(whole: Telemetry, host: str) -> Iterator[tuple[str, Telemetry]]:
    """The telemetry of each host, with GPUs called as on their host. A GPU ``node1/0`` of a log of several is GPU 0."""
    labels = list(dict.fromkeys([*whole.gpu["gpu"].dropna(), *whole.gpus["gpu"].dropna()]))
    known = dict(zip(whole.gpus["gpu"], whole.gpus["host"].fillna(""), strict=True)) if "host" in whole.gpus else {}
    place = {
        label: label.rpartition("/")[::2] if "/" in label else (known.get(label) or host, label) for label in labels
    }
    if any(not name for name, _ in place.values()):
        raise ConfigError("the logs do not say of which host they are; name it with --host.")
    hosts = list(dict.fromkeys(name for name, _ in place.values()))
    names = {label: gpu for label, (_, gpu) in place.items()}
    for name in hosts:
        own = [label for label, (on, _) in place.items() if on == name]
        tables = {kind: _of_gpus(getattr(whole, kind), own, names, rest=len(hosts) == 1) for kind in (*TIMED, "gpus")}
        yield name, replace(whole, problems=() if name != hosts[0] else whole.problems, **tables)


def _of_gpus(table: pd.DataFrame, own: list[str], names: dict[str, str], *, rest: bool) -> pd.DataFrame:
    """The rows of these GPUs; ``rest``: and those of no GPU, which only a log of one host has an owner for."""
    if "gpu" not in table:
        return table if rest else table.iloc[:0]
    chosen = table[table["gpu"].isin(own) | (table["gpu"].isna() & rest)]
    return chosen.assign(gpu=chosen["gpu"].map(names).astype(table["gpu"].dtype)).reset_index(drop=True)


def _by_day(own: Telemetry) -> Iterator[tuple[str, Telemetry]]:
    """By UTC day of its samples, each part with all GPUs' identity; rows without a date belong to no day."""
    days = {kind: getattr(own, kind)["time"].dt.strftime("%Y-%m-%d") for kind in TIMED}
    for at, day in enumerate(sorted(set(days["gpu"].dropna()))):
        tables = {kind: getattr(own, kind)[(days[kind] == day).to_numpy(bool)] for kind in TIMED}
        yield day, replace(own, problems=() if at else own.problems, **tables)


def _bytes(part: Telemetry, notes: tuple[str, ...]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(to_arrow(part, notes), sink, compression="zstd", write_page_checksum=True)
    return sink.getvalue().to_pybytes()
