"""Storage URLs: which kind, which file, and how to show one without its password."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote, unquote

from gpudiag.errors import InputError

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_SECRET_OPTION = re.compile(r"([?&][^=&]*(?:pass|pwd|secret|token|key)[^=&]*=)[^&]*", re.IGNORECASE)


def is_url(source: object) -> bool:
    """True for a storage URL such as ``sqlite:///optuna.db`` or ``postgresql://...``."""
    return isinstance(source, str) and bool(_URL.match(source))


def scheme_of(url: str) -> str:
    """``postgresql`` of ``postgresql+psycopg://...``."""
    return url.partition("://")[0].partition("+")[0].lower()


def show_url(url: str) -> str:
    """The URL as it may be shown: without its password."""
    scheme, _, rest = url.partition("://")
    rest = _SECRET_OPTION.sub(r"\1***", rest)
    credentials, at, place = rest.rpartition("@")
    if at:
        user = credentials.partition(":")[0]
        rest = f"{user}:***@{place}" if ":" in credentials else f"{user}@{place}"
    return f"{scheme}://{rest}"


def secrets_of(url: str) -> set[str]:
    """Every password of the URL, in any spelling."""
    credentials = url.partition("://")[2].rpartition("@")[0]
    secret = credentials.partition(":")[2]
    # A password with a bare @ is cut there by whoever parses the URL.
    secrets = [secret, *(part for part in secret.split("@") if len(part) > 1)]
    secrets += [found.group(0).partition("=")[2] for found in _SECRET_OPTION.finditer(url)]
    return {said for one in secrets for said in (one, unquote(one), quote(unquote(one), safe=""))} - {""}


def without_secrets(text: str, url: str) -> str:
    """``text`` in one line, with every password of the URL, in any spelling, taken out."""
    for secret in sorted(secrets_of(url), key=len, reverse=True):
        text = text.replace(secret, "***")
    return " ".join(text.split())


def sqlite_path(url: str) -> Path:
    """The file of a ``sqlite:///relative.db`` or ``sqlite:////absolute.db`` URL.

    Raises InputError for a database in memory, which no other process can read.
    """
    path = url.partition("://")[2].partition("?")[0].removeprefix("/").removeprefix("file:")
    if path in ("", ":memory:"):
        raise InputError(f"{url}: is a database in memory, which nobody else can read; pass the Study object instead.")
    return Path(path)
