"""Studies and trial tables. A new format is one file here and one name in READERS."""

from __future__ import annotations

from dataclasses import replace
from datetime import tzinfo
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpudiag.errors import InputError
from gpudiag.readers._io.source import Source
from gpudiag.readers._io.url import is_address, is_url, scheme_of, show_url, shown, sqlite_path
from gpudiag.readers.base import Reader, ReadOptions, Trials, choose, read_by, refuse
from gpudiag.readers.trials import journal_file, optuna_sqlite, trials_csv, trials_json, trials_parquet
from gpudiag.timezones import parse_zone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optuna import Study
    from optuna.trial import FrozenTrial

__all__ = ["EXPECTED", "READERS", "is_url", "read_trials", "read_url", "show_url"]

EXPECTED = (
    "an Optuna study (SQLite file, journal file or storage URL) or a table of its trials (trials_dataframe as CSV, "
    "Parquet or JSON, optuna-dashboard's CSV, or the optuna command's JSON or YAML)"
)

READERS: tuple[Reader[Trials], ...] = (
    optuna_sqlite.READER,
    journal_file.READER,
    trials_csv.READER,
    trials_csv.DASHBOARD,
    trials_json.READER,
    trials_json.YAML,
    trials_parquet.READER,
)


def read_trials(
    source: str | Path | Study | Sequence[FrozenTrial],
    *,
    study: str | None = None,
    timezone: str | tzinfo | None = None,
) -> Trials:
    """Read the trials of a study or of a batch of tasks; nothing is ever written to the source.

    >>> gd.read_trials("data/samples/healthy/optuna.db").trials["state"].value_counts().to_dict()
    {'COMPLETE': 24}

    Args:
        source: a file; a storage URL such as ``sqlite:///optuna.db``, ``postgresql://...``, ``mysql://...`` or
            ``redis://...``; an ``optuna.Study``; or a list of ``FrozenTrial``.
        study: name of the one study to read; default: every study of the source. A source that names
            no study gets this name, else that of the file.
        timezone: IANA name of the zone of timestamps that carry none; default: this machine's.

    Returns:
        Tables ``trials`` (one row per trial), ``reports`` (one row per intermediate value) and
        ``studies`` with the columns of :mod:`gpudiag.schema`, and the ``problems`` met.

    Raises:
        InputNotFound: nothing is there.
        StudyNotFound: the storage has no study of that name; the message lists those it has.
        UnknownInput: no reader recognises the content.
        InputError: it is recognised but cannot be read.
    """
    options = ReadOptions(parse_zone(timezone), study=study)
    if isinstance(source, str) and is_url(source):
        return read_url(source, options)
    if isinstance(source, str | Path):
        return _read_file(source, options)
    return read_object(source, options)


def read_url(url: str, options: ReadOptions) -> Trials:
    """Read every study, or the one named, of the storage at a URL."""
    if is_address(url):
        raise InputError(f"{shown(url)}: is a run of a tracker; give it as the run itself, not as one of its inputs.")
    scheme = scheme_of(url)
    if scheme == "sqlite":
        return _read_file(sqlite_path(url), options)
    if scheme in ("redis", "rediss"):
        from gpudiag.readers.trials.journal_redis import read_redis

        return read_redis(url, options)
    if scheme in ("http", "https", "ftp", "s3", "gs", "file"):
        raise InputError(
            f"{show_url(url)}: is no storage URL; expected sqlite:///, postgresql://, mysql:// or redis://."
        )
    from gpudiag.readers.trials.optuna_server import read_server

    return read_server(url, options)


def _read_file(path: str | Path, options: ReadOptions) -> Trials:
    opened = Source.open(path)
    reader = choose(READERS, opened)
    if reader is None:
        raise refuse(opened, EXPECTED, partial(choose, READERS))
    return read_by(reader, opened, options)


def read_object(source: Any, options: ReadOptions) -> Trials:
    """A Study is read where it lies if it lies somewhere: the storage keeps its timestamps as they were written."""
    from gpudiag.readers.trials import study_object

    if hasattr(source, "get_trials") and hasattr(source, "study_name"):
        url = study_object.storage_of(source)
        if url is None:
            return study_object.read_study(source, options)
        one = replace(options, study=options.study or source.study_name)
        file = study_object.sqlite_file(url)
        return optuna_sqlite.read_live(file, one) if file else read_url(url, one)
    if isinstance(source, list | tuple) and all(hasattr(item, "intermediate_values") for item in source):
        return study_object.read_frozen(source, options)
    raise InputError(
        f"trials: expected a path, a storage URL, a Study or a list of FrozenTrial, got {type(source).__name__}."
    )
