"""Studies and trial tables. A new format is one file here and one name in READERS."""

from __future__ import annotations

import re
from datetime import tzinfo
from pathlib import Path

from gpudiag.clock import parse_zone
from gpudiag.errors import InputError
from gpudiag.readers.base import Reader, ReadOptions, Trials, choose, refuse
from gpudiag.readers.source import Source
from gpudiag.readers.trials import optuna_sqlite, trials_csv

EXPECTED = "an Optuna study (SQLite file) or a trials_dataframe CSV"

READERS: tuple[Reader[Trials], ...] = (optuna_sqlite.READER, trials_csv.READER, trials_csv.DASHBOARD)


def read_trials(
    source: str | Path,
    *,
    study: str | None = None,
    timezone: str | tzinfo | None = None,
) -> Trials:
    """Read the trials of a study or of a batch of tasks; nothing is ever written to the source.

    Args:
        source: a file, or a storage URL such as ``sqlite:///optuna.db``.
        study: name of the one study to read; default: every study of the source.
        timezone: IANA name of the zone of stamps that carry none; default: this machine's.

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
    if is_url(source):
        return read_url(str(source), options)
    opened = Source.open(source)
    reader = choose(READERS, opened)
    if reader is None:
        raise refuse(opened, EXPECTED)
    return reader.read(opened, options)


def is_url(source: object) -> bool:
    """True for a storage URL such as ``sqlite:///optuna.db`` or ``postgresql://...``."""
    return isinstance(source, str) and "://" in source


def read_url(url: str, options: ReadOptions) -> Trials:
    """Read every study, or the one named, of the storage at a URL."""
    if url.startswith("sqlite:///"):
        opened = Source.open(url.removeprefix("sqlite:///"))
        reader = choose(READERS, opened)
        if reader is None:
            raise refuse(opened, EXPECTED)
        return reader.read(opened, options)
    scheme = url.partition("://")[0]
    raise InputError(f"storage URLs of kind '{scheme}' are not supported; expected sqlite:///FILE.")


def show_url(url: str) -> str:
    """The URL as it may be shown: without its password."""
    return re.sub(r"(?<=://)([^/@:]*):[^@/]*@", r"\1:***@", url)
