"""Optuna's JournalRedisBackend: the operations of a journal under ``<prefix>:log:<n>``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from gpudiag.errors import InputError
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.surrogates import without_halves
from gpudiag.readers._io.url import show_url, without_secrets
from gpudiag.readers._studies.assemble import assemble
from gpudiag.readers._studies.journal import no_collection, replay
from gpudiag.readers._studies.journal_tables import to_stored
from gpudiag.readers._studies.stored import pick_study
from gpudiag.readers.base import ReadOptions, Trials

if TYPE_CHECKING:
    from redis import Redis

NAME = "optuna-redis"
TIMEOUT_S = 10
BATCH = 10_000


@no_collection()
def read_redis(url: str, options: ReadOptions) -> Trials:
    """Every study of the journal at ``redis://...``, or the one of ``options.study``.

    ``?prefix=<name>`` chooses the journal where the server holds several.
    """
    shown = show_url(url)
    try:
        import redis
    except ModuleNotFoundError:
        raise InputError(f'{shown}: needs the package redis; run pip install "gpudiag[redis]".') from None
    problems = ProblemLog()
    address, _, query = url.partition("?")
    asked = dict(parse_qsl(query, keep_blank_values=True))
    prefix = asked.pop("prefix", None)
    try:
        plain = address + (f"?{urlencode(asked)}" if asked else "")
        with redis.Redis.from_url(plain, socket_connect_timeout=TIMEOUT_S, socket_timeout=TIMEOUT_S) as server:
            _connect(server)
            chosen = _prefix(server, prefix, shown)
            state = replay(_blocks(server, chosen), problems, "journal entry that is missing or damaged", first_line=0)
    except (redis.RedisError, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        message = without_secrets(str(error), url)[:300]
        # Not chained: the client's own exception may hold the password.
        raise InputError(f"{shown}: cannot be read ({message}); check address, user and rights.") from None
    pick_study(options.study, (name for name, _ in state.studies.values()), shown)
    stored = to_stored(state, options.timezone, None if options.beside else options.study, problems)
    return assemble(stored, options.timezone, shown, NAME, problems)


def _connect(server: Redis) -> None:
    """The first command to the server. The client says by a TypeError that it lacks an option of the URL."""
    try:
        server.ping()
    except TypeError as error:
        raise ValueError(str(error)) from None


def _prefix(server: Redis, prefix: str | None, shown: str) -> str:
    """The prefix asked for, or the only one there is."""
    suffix = ":log_number"
    if prefix is not None and server.exists(prefix + suffix):
        return prefix
    found = sorted(key.decode().removesuffix(suffix) for key in server.scan_iter(match="*" + suffix, count=1000))
    if prefix is None and len(found) == 1:
        return found[0]
    listed = ", ".join(f"'{name}'" for name in found[:20]) or "none"
    what = f"no journal with prefix '{prefix}'" if prefix is not None else "no single journal"
    raise InputError(f"{shown}: holds {what}; prefixes found: {listed}. Choose one with ?prefix=NAME.")


def _blocks(server: Redis, prefix: str) -> Iterator[memoryview]:
    """The operations written when the reading began, as lines; a missing one is ``null``."""
    last = int(server.get(f"{prefix}:log_number"))
    for first in range(0, last + 1, BATCH):
        keys = [f"{prefix}:log:{number}" for number in range(first, min(first + BATCH, last + 1))]
        entries = [b"null" if raw is None else raw.replace(b"\n", b" ") or b"null" for raw in server.mget(keys)]
        yield memoryview(without_halves(b"\n".join([*entries, b""])))
