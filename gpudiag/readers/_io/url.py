"""Storage URLs: which kind, which file, and how to show one without its password."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeGuard
from urllib.parse import quote, unquote

from gpudiag.errors import InputError

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_ADDRESS = re.compile(r"(mlflow|trackio|wandb):[^/\s]")
"""How a run of a tracker is named."""
_MISTYPED = r"(?:postgres(?:ql)?|mysql|mariadb|rediss?|oracle|mssql)(?:\+\w+)?(?::/?|//?)"
"""How the URL of a database begins where a colon or a slash was left out."""
BEGINNING = re.compile(rf"([A-Za-z][A-Za-z0-9+.-]+:/+|{_MISTYPED}(?=[^\s@]*:\S*@|[^/\s]*@))", re.I)
"""Of a URL, or of what a path library or a slip of the finger made of one."""
_SECRET_OPTION = re.compile(r"([?&;][^=&;]*(?:pass|pwd|secret|token|key|auth|cred)[^=&;]*=)[^&]*", re.IGNORECASE)
_DATABASES = ("postgresql", "postgres", "mysql", "mariadb", "sqlite", "oracle", "mssql")
"""Schemes whose user without a password is a name, and no key."""
HIDDEN = "***"
_IN_TEXT = re.compile(
    rf"((?:://|\b{_MISTYPED})[^:/@\s'\"]{{0,200}}:)[^@\s'\"]{{1,500}}@|"
    r"([?&][^=&\s]{0,60}?(?:pass|pwd|secret)[^=&\s]{0,60}=)[^&\s'\"<\\]+",
    re.I,
)


def is_url(source: object) -> bool:
    """True for a storage URL such as ``sqlite:///optuna.db`` or ``postgresql://...``, and for a tracker's address."""
    return isinstance(source, str) and (bool(_URL.match(source)) or is_address(source))


def is_address(source: object) -> TypeGuard[str]:
    """True for a run of a tracker of experiments, such as ``mlflow:RUN_ID``, unless a file or folder is called so."""
    if not isinstance(source, str) or not _ADDRESS.match(source):
        return False
    try:
        return not Path(source).exists()
    except (OSError, ValueError):  # too long, or with characters that no name has
        return True


def scheme_of(url: str) -> str:
    """``postgresql`` of ``postgresql+psycopg://...``."""
    return url.partition("://")[0].partition("+")[0].lower()


def shown(given: object) -> str:
    """An input as it may be printed, kept or used as a name: a URL without its password, anything else as it is."""
    text = str(given)
    if is_address(text):
        return without_passwords(text)
    if is_url(text):
        return show_url(text)
    found = BEGINNING.match(text.lstrip())
    return found[1] + _shown_place(text.lstrip()[found.end() :], mended(found[1])) if found else text


def mended(beginning: str) -> str:
    """The scheme, of how a URL begins: ``postgresql`` of ``postgresql:/`` and of ``postgresql+psycopg//``."""
    return re.split("[:/+]", beginning, maxsplit=1)[0]


def show_url(url: str) -> str:
    """The URL as it may be shown: without its password."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{_shown_place(rest, scheme_of(url))}"


def _shown_place(rest: str, scheme: str) -> str:
    """What follows ``scheme://``, without secrets; wherever it can be read in two ways, nothing of it."""
    if rest.startswith("/") and "@" not in rest.partition("?")[0]:  # a file, or a database on a local socket
        return _SECRET_OPTION.sub(rf"\1{HIDDEN}", rest)
    credentials, at, place = rest.rpartition("@")
    if at and _SECRET_OPTION.search(credentials):
        # An @ behind a secret option is part of its value, unless the option is part of a password.
        authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
        plain = "@" not in authority and re.fullmatch(r"[^:]*(:\d*)?", authority)
        return _SECRET_OPTION.sub(rf"\1{HIDDEN}", rest) if plain and "/" in rest.partition("?")[0] else HIDDEN
    place = _SECRET_OPTION.sub(rf"\1{HIDDEN}", place)
    if not at:
        authority = re.split(r"[/?#]", place, maxsplit=1)[0]
        odd = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(:\d*)?", authority) is None  # no port: a password without a host
        return HIDDEN if odd else place
    user, colon, _ = re.sub("%3a", ":", credentials, flags=re.IGNORECASE).partition(":")
    if colon:
        return f"{user}:{HIDDEN}@{place}"
    return f"{user if scheme.lower() in _DATABASES else HIDDEN}@{place}"


def name_of_url(url: str, study: str = "") -> str:
    """A name for what lies at a URL: of its file or database, else the study's, else kind and host; never a user's."""
    if is_address(url):
        return without_passwords(url).replace(":", "-", 1)
    scheme, _, rest = show_url(url).partition("://")
    address, _, path = rest.rpartition("@")[2].partition("?")[0].partition("/")
    database = Path(unquote(path)).stem
    if database and not database.isdigit() and HIDDEN not in database:
        return database
    host = re.sub(r":\d*$", "", address).strip("[]")
    kind = scheme.partition("+")[0].lower()
    return study or "-".join(part for part in (kind, host) if part and HIDDEN not in part)


def secrets_of(url: str) -> set[str]:
    """Every password of the URL, in any spelling."""
    rest = url.partition("://")[2]
    credentials, at, _ = rest.rpartition("@")
    user, colon, secret = re.sub("%3a", ":", credentials if at else rest, flags=re.IGNORECASE).partition(":")
    if at and not colon and scheme_of(url) not in _DATABASES:
        secret = user
    if show_url(url) == _SECRET_OPTION.sub(rf"\1{HIDDEN}", url):
        secret = ""  # a port, or an @ in the value of an option
    whole = [secret, *(found[0].partition("=")[2] for found in _SECRET_OPTION.finditer(url))]
    # A password with a bare @, # or comma is cut there by whoever parses the URL, or takes it for a list.
    secrets = [*whole, *(part for one in whole for part in re.split(r"[@/?#,]", one) if len(part) > 1)]
    return {written for one in secrets for written in (one, unquote(one), quote(unquote(one), safe=""))} - {""}


def without_secrets(text: str, url: str) -> str:
    """``text`` in one line, with every password of the URL, in any spelling, taken out."""
    for secret in sorted(secrets_of(url), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return " ".join(text.split())


def without_passwords(text: str) -> str:
    """``text`` without what looks like the password of a URL."""
    return _IN_TEXT.sub(lambda found: f"{found[1]}{HIDDEN}@" if found[1] else f"{found[2]}{HIDDEN}", text)


def first_line(error: Exception) -> str:
    """What an error of another library says, in one line and without passwords."""
    text = str(error).strip()
    return without_passwords(text.splitlines()[0] if text else type(error).__name__)


def sqlite_place(url: str) -> str:
    """What a URL of SQLite names: a path, or '' or ``:memory:`` for a database in memory."""
    return url.partition("://")[2].partition("?")[0].removeprefix("/").removeprefix("file:")


def sqlite_path(url: str) -> Path:
    """The file of a ``sqlite:///relative.db`` or ``sqlite:////absolute.db`` URL.

    Raises InputError for a database in memory, which no other process can read.
    """
    path = sqlite_place(url)
    if not url.partition("://")[2].startswith("/") and path and ":memory:" not in path:
        raise InputError(
            f"{show_url(url)}: is no URL of an SQLite file; expected sqlite:///relative.db or sqlite:////absolute.db."
        )
    if path in ("", ":memory:"):
        raise InputError(
            f"{show_url(url)}: is a database in memory, which nobody else can read; pass the Study object instead."
        )
    return Path(path)
