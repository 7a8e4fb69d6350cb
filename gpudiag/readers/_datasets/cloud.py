"""Files in object stores: ``s3://bucket/folder`` and ``gs://bucket/folder``, listed and read by Arrow.

Keys come from the environment alone, as Arrow's SDKs know it: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_PROFILE,
AWS_ENDPOINT_URL of a store of one's own; GOOGLE_APPLICATION_CREDENTIALS.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from gpudiag.errors import InputError
from gpudiag.readers._io.url import scheme_of, shown, without_passwords, without_secrets

if TYPE_CHECKING:
    import pyarrow.fs as fs

SCHEMES = ("s3", "gs")
MOST_BYTES = 4 * 2**30
"""Of one file, which is held in memory while it is read: a host and day has far less."""


CHUNK_BYTES = 2**20


@dataclass(frozen=True)
class CloudFile:
    """A file below a folder: its path from there, its size, and when it was written (0: the store does not say)."""

    name: str
    size_bytes: int
    changed_ns: int = 0


def is_cloud(place: object) -> bool:
    """Whether this is the URL of a folder or file in an object store."""
    return isinstance(place, str) and "://" in place and scheme_of(place) in SCHEMES


def files_below(url: str) -> list[str]:
    """The URLs of all files below a folder. Raises InputError for keys in the URL, and where it cannot be listed."""
    return [f"{url.rstrip('/')}/{one.name}" for one in listed_below(url)]


def listed_below(url: str) -> list[CloudFile]:
    """All files below a folder, by name. Raises InputError for keys in the URL, and where it cannot be listed."""
    import pyarrow.fs as fs

    store, path = _opened(url)
    try:
        found = store.get_file_info(fs.FileSelector(path, recursive=True))
    except OSError as error:
        raise _unreadable(url, error) from error
    files = [CloudFile(one.path[len(path) + 1 :], one.size or 0, one.mtime_ns or 0) for one in found if one.is_file]
    return sorted(files, key=lambda one: one.name)


def fetch(url: str, names: Iterable[str], folder: Path, most_bytes: int) -> None:
    """Copy these files below an URL into a folder, piece by piece.

    Raises InputError where one cannot be read, has a name that leads out of the folder, or all are larger than
    ``most_bytes``.
    """
    store, path = _opened(url)
    left = most_bytes
    for name in names:
        if not is_path(name):
            raise InputError(f"{shown(url)}: {name!r} is no path of a file; rename it or copy the run to a disk.")
        to = folder.joinpath(*name.split("/"))
        to.parent.mkdir(parents=True, exist_ok=True)
        try:
            with store.open_input_stream(f"{path}/{name}") as stream, to.open("wb") as file:
                while piece := stream.read(CHUNK_BYTES):
                    left -= len(piece)
                    if left < 0:
                        raise InputError(f"{shown(url)}: grew beyond {most_bytes // 2**20:,} MiB while it was read.")
                    file.write(piece)
        except OSError as error:
            raise _unreadable(url, error) from error


def is_path(name: str) -> bool:
    """Whether the name of an object stays below its folder as a path."""
    return not any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in name.split("/"))


def parquet_source(file: str) -> str | io.BytesIO:
    """What polars reads: a path as it is, and the content of a file in an object store. Raises OSError."""
    if not is_cloud(file):
        return file
    store, path = _opened(file)
    size = store.get_file_info(path).size or 0
    if size > MOST_BYTES:
        raise OSError(f"is larger than {MOST_BYTES // 2**30} GiB")
    with store.open_input_stream(path) as stream:
        return io.BytesIO(stream.read())


def _opened(url: str) -> tuple[fs.FileSystem, str]:
    """The store and the path in it."""
    scheme, _, rest = url.partition("://")
    path = rest.partition("?")[0].rstrip("/")
    bucket = path.partition("/")[0]
    if "@" in bucket or ":" in bucket or "?" in rest:
        raise InputError(
            f"{shown(url)}: expected {scheme}://bucket/folder and nothing else; keys and the address of a store come "
            "from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL)."
        )
    if not bucket:
        raise InputError(f"{shown(url)}: names no bucket; expected {scheme}://bucket/folder.")
    try:
        return _store(scheme_of(url), bucket), path
    except (OSError, NotImplementedError, ValueError) as error:
        raise _unreadable(url, error) from error


@lru_cache(maxsize=8)
def _store(scheme: str, bucket: str) -> fs.FileSystem:
    import pyarrow.fs as fs

    return fs.FileSystem.from_uri(f"{scheme}://{bucket}")[0]


def _unreadable(url: str, error: Exception) -> InputError:
    message = without_passwords(without_secrets(str(error), url))[:300]
    return InputError(f"{shown(url)}: cannot be read ({message}); check the bucket, the keys and the address.")
