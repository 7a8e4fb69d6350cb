"""Logs of GPU metrics. A new dialect is one file here and one name in READERS."""

from __future__ import annotations

from dataclasses import replace
from datetime import tzinfo
from functools import lru_cache
from pathlib import Path

from gpudiag.readers._io.source import Source
from gpudiag.readers.base import Reader, ReadOptions, Telemetry, choose, read_by, refuse
from gpudiag.readers.telemetry import (
    alps_jobreport,
    amd_smi,
    amd_smi_json,
    dcgmi,
    gpudiag_csv,
    gpudiag_parquet,
    gpustat,
    gpustat_json,
    gputil,
    json_lines,
    mlflow,
    npu_smi,
    nvidia_smi_apps,
    nvidia_smi_csv,
    nvidia_smi_dmon,
    nvidia_smi_pmon,
    nvidia_smi_q,
    nvidia_smi_table,
    nvidia_smi_xml,
    nvitop,
    parquet,
    prometheus_json,
    prometheus_nameless,
    prometheus_text,
    prose,
    rocm_smi,
    smi_messages,
    table_csv,
    table_long,
    table_parquet,
    tegrastats,
    wandb_binary,
    wandb_csv,
    wandb_jsonl,
)
from gpudiag.timezones import parse_zone

EXPECTED = (
    "a log of GPU metrics (of gpudiag record, nvidia-smi, nvitop, gpustat, GPUtil, DCGM, Prometheus, rocm-smi, "
    "amd-smi, W&B or MLflow, or a home-made table, JSON or text with utilization, memory or power)"
)


def _asked_once(reader: Reader[Telemetry]) -> Reader[Telemetry]:
    """The reader with its last answers kept: for itself, and for those who take what no tool claims."""
    return replace(reader, recognises=lru_cache(maxsize=2)(reader.recognises))


_RECORDED = _asked_once(gpudiag_csv.READER)


def _of_others(reader: Reader[Telemetry]) -> Reader[Telemetry]:
    """The reader of a tool for what is no recording of ours, whatever else may stand in that."""
    return replace(reader, recognises=lambda source: reader.recognises(source) and not _RECORDED.recognises(source))


_TOOLS: tuple[Reader[Telemetry], ...] = (
    _RECORDED,
    *(
        _asked_once(_of_others(reader))
        for reader in (
            gpudiag_parquet.READER,
            parquet.READER,
            nvidia_smi_csv.READER,
            nvidia_smi_apps.READER,
            nvidia_smi_dmon.READER,
            nvidia_smi_pmon.READER,
            nvidia_smi_table.READER,
            nvidia_smi_xml.READER,
            nvidia_smi_q.READER,
            gpustat.READER,
            gpustat_json.READER,
            nvitop.READER,
            gputil.READER,
            dcgmi.READER,
            prometheus_text.READER,
            prometheus_json.READER,
            prometheus_nameless.READER,
            rocm_smi.READER,
            amd_smi.READER,
            amd_smi_json.READER,
            npu_smi.READER,
            alps_jobreport.READER,
            tegrastats.READER,
            wandb_binary.READER,
            wandb_jsonl.READER,
            wandb_csv.READER,
            mlflow.READER,
            mlflow.DATABASE,
            smi_messages.READER,
        )
    ),
)


_HOME_MADE: tuple[Reader[Telemetry], ...] = (
    table_csv.READER,
    table_long.READER,
    table_parquet.READER,
    json_lines.READER,
    prose.READER,
)


def is_of_a_tool(source: Source) -> bool:
    """True for a log that a tool wrote; asked again it costs nothing."""
    return any(tool.recognises(source) for tool in _TOOLS)


def _unless(reader: Reader[Telemetry], others: tuple[Reader[Telemetry], ...]) -> Reader[Telemetry]:
    """The reader for what neither a tool nor one of the others claims."""

    def recognises(source: Source) -> bool:
        if is_of_a_tool(source) or not reader.recognises(source):
            return False
        return not any(other.recognises(source) for other in others)

    return replace(reader, recognises=recognises)


READERS = (*_TOOLS, *(_unless(reader, _HOME_MADE[:at]) for at, reader in enumerate(_HOME_MADE)))
"""Logs of known tools first; home-made ones are what no tool is known to write."""


def reader_of(source: Source, columns: tuple[str, ...] = ()) -> Reader[Telemetry] | None:
    """The reader that recognises it; rows of numbers alone are a table where their columns are named."""
    return choose(READERS, source) or (table_csv.READER if table_csv.takes_named(source, columns) else None)


def read_telemetry(
    path: str | Path,
    *,
    timezone: str | tzinfo | None = None,
    columns: tuple[str, ...] = (),
    period_s: float | None = None,
) -> Telemetry:
    """Read one log of GPU metrics; the dialect is told from the content, never from the name.

    >>> log = gd.read_telemetry("data/samples/healthy/gpu.csv", timezone="Asia/Taipei")
    >>> log.reader, len(log.gpu)
    ('nvidia-smi-query-csv', 1797)

    Args:
        path: the file; gzip, zstd, xz, bzip2 and a ZIP archive of one file are read through.
        timezone: IANA name of the zone of timestamps that carry none; default: this machine's.
        columns: column names for a file that has no header line.
        period_s: sampling period in seconds of a file that has no timestamps.

    Returns:
        Tables ``gpu`` (one row per GPU and instant), ``gpus``, ``processes``, ``host`` and
        ``events`` with the columns of :mod:`gpudiag.schema`, and the ``problems`` met.

    Raises:
        InputNotFound: nothing is at ``path``.
        UnknownInput: no reader recognises the content.
        InputError: it is recognised but holds no usable sample.
    """
    source = Source.open(path)
    reader = reader_of(source, columns)
    if reader is None:
        raise refuse(source, EXPECTED, reader_of)
    return read_by(reader, source, ReadOptions(parse_zone(timezone), columns, period_s))
