"""The Optuna study of a run: verdict and first finding as user attributes, by Optuna itself and only on request."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from optuna.exceptions import ExperimentalWarning, OptunaError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from sqlalchemy import URL, create_engine, inspect, text
from sqlalchemy.exc import SQLAlchemyError

from gpudiag._load.folder import STORAGES, not_named
from gpudiag._load.sources import is_whole
from gpudiag.errors import ConfigError
from gpudiag.load import locate
from gpudiag.manifest import manifest_if_any, place_of
from gpudiag.readers._io.source import Source
from gpudiag.readers._io.url import is_address, is_url, scheme_of, shown, sqlite_path, without_secrets
from gpudiag.readers.identify import identify
from gpudiag.readers.trials.optuna_server import with_driver
from gpudiag.report._sections.headline import first_finding
from gpudiag.report.document import Document
from gpudiag.trackers import Publish

VERDICT, TOP_FINDING, REPORT, VERSION = (f"gpudiag:{name}" for name in ("verdict", "top_finding", "report", "version"))
REDIS = ("redis", "rediss")
_REFUSALS = (OptunaError, SQLAlchemyError, RuntimeError, ImportError, OSError, ValueError, KeyError)

Place = str | Path
"""A storage URL, an SQLite file or a journal."""


def study_writer(inputs: Sequence[Any], study: str | None = None) -> Publish:
    """What writes a diagnosis to the study that the trials of a run come from, and says which.

    Args:
        inputs: what was given as the run: a folder, a run.toml, or files and URLs.
        study: the one study that was asked for.

    Raises ConfigError before anything is written: the trials are not those of exactly one study in one storage of
    Optuna, or Optuna does not open it, as where its tables are those of an older release. So does what it returns.
    """
    places, named = _places(inputs)
    found = [storage for place in places if (storage := _storage(place)) is not None]
    if len(found) != 1:
        held = f"has {len(found)} of them" if found else "has none"
        raise ConfigError(f"--write-study takes a run with exactly one storage of Optuna, but this one {held}.")
    with _opened(found[0]) as storage:
        name = _study_name(storage, study or named, found[0])
    return partial(_write, found[0], name)


def _write(place: Place, study: str, files: Sequence[Path], document: Document) -> str:
    held = [one.name for record in document.inputs for one in record.studies]
    if held != [study]:
        raise ConfigError(f"--write-study: the trials are not of study '{study}' alone, but of {', '.join(held)}.")
    first = first_finding(document, document.findings)
    report = next((path for path in files if path.suffix == ".html"), files[0])
    attributes = {
        VERDICT: document.headline.level,
        TOP_FINDING: f"{first.rule}: {first.summary}" if first is not None else None,
        REPORT: str(report.resolve()),
        VERSION: document.version,
    }
    with _opened(place) as storage:
        study_id = storage.get_study_id_from_name(study)
        for name, value in attributes.items():
            storage.set_study_user_attr(study_id, name, value)
    return f"study '{study}' in {shown(place)}"


def _places(inputs: Sequence[Any]) -> tuple[list[Place | Source], str | None]:
    """The inputs of a run one by one, and the study that its run.toml names."""
    if len(inputs) != 1 or not is_whole(inputs[0]):
        return [one for one in inputs if not is_address(one)], None
    folder, file = place_of(Path(inputs[0]))
    manifest = manifest_if_any(file)
    found = [one for one in not_named(folder, manifest) if isinstance(one, Source)]
    return [*(locate(name, folder) for name in manifest.inputs), *found], manifest.study


def _storage(place: Place | Source) -> Place | None:
    """Where a storage of Optuna is, None for another input. Raises ConfigError for one that is not written to."""
    if isinstance(place, str) and is_url(place):
        if scheme_of(place) in REDIS:
            raise ConfigError(f"{shown(place)}: --write-study writes to databases and journal files, not to Redis.")
        if scheme_of(place) != "sqlite":
            return place
        place = sqlite_path(place)
    source = place if isinstance(place, Source) else Source.open(place)
    known = identify(source)
    if known is None or known[1].name not in STORAGES:
        return None
    if source.compression:
        raise ConfigError(f"{source.path}: is packed, so nothing is written to it; unpack it first.")
    return source.path.resolve()


@contextmanager
def _opened(place: Place) -> Iterator[BaseStorage]:
    """The storage as Optuna opens it; nothing is made, and nothing upgraded. Raises ConfigError."""
    try:
        if isinstance(place, Path) and not Source.open(place).is_sqlite:
            yield _journal(place)
            return
        url = with_driver(place) if isinstance(place, str) else URL.create("sqlite", database=str(place))
        _check_revision(url)
        storage = RDBStorage(url.render_as_string(hide_password=False), skip_table_creation=True)
        try:
            yield storage
        finally:
            storage.remove_session()
            storage.engine.dispose()
    except _REFUSALS as error:
        if isinstance(error, ConfigError):
            raise
        said = without_secrets(str(getattr(error, "orig", None) or error), str(place))[:300]
        # Not chained: the driver's own exception may hold the password.
        raise ConfigError(f"{shown(place)}: Optuna does not take this storage for --write-study: {said}") from None


def _check_revision(url: URL) -> None:
    """Raise ConfigError for tables without a revision: Optuna would add one. Of another revision it refuses itself."""
    engine = create_engine(url, hide_parameters=True)
    try:
        with engine.connect() as connection:
            tables = set(inspect(connection).get_table_names())
            stamps = [
                table in tables and connection.execute(text(f"SELECT COUNT(*) FROM {table}")).scalar()
                for table in ("alembic_version", "version_info")
            ]
    finally:
        engine.dispose()
    if not all(stamps):
        raise ConfigError(
            f"{shown(url.render_as_string(hide_password=True))}: has tables of an older Optuna, and gpudiag upgrades "
            "none; run optuna storage upgrade, or leave out --write-study."
        )


def _journal(path: Path) -> JournalStorage:
    """Raises ConfigError for a journal whose last line is not whole: what is appended would be lost with it."""
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        if file.read() != b"\n":
            raise ConfigError(f"{path}: its last line is not whole, so nothing can be appended; mend or copy it first.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        return JournalStorage(JournalFileBackend(str(path)))


def _study_name(storage: BaseStorage, wanted: str | None, place: Place) -> str:
    names = [one.study_name for one in storage.get_all_studies()]
    if wanted and wanted not in names:
        raise ConfigError(f"{shown(place)}: has no study '{wanted}'; it has {', '.join(names[:12]) or 'none'}.")
    if not wanted and len(names) != 1:
        raise ConfigError(f"{shown(place)}: has {len(names)} studies; name the one to write to with --study.")
    return wanted or names[0]
