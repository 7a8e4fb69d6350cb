"""Changes to a file: bytes, lines, cells of a table, values of JSON, rows of a database, two files in one."""

from __future__ import annotations

import json
import random
import re
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ODD = (
    "", "-", "nan", "inf", "-inf", "1e308", "1e29", "1e-320", "-1e400", "9" * 25, "9" * 400, "-1", "0", "0x1F", "1_000",
    "1,5", "NULL", "[N/A]", "true", "\0", '"', "'", "{}", "[]", ":", "\u2028", "²", "٣", "\u202e", "名", "😀", "\ufeff",
    "\ud83d", "0000-00-00 00:00:00", "9999-12-31T23:59:59Z", "99999/01/01 00:00:00", "1969-12-31",
    "2026-02-30 25:61:61", "2026-03-29 02:30:00", "<script>", "a\nb", "%", "MiB", "99999999 days", "=1+1", "x" * 5000,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 2**31, 2**63, -(2**63), 10**400, 1.5, 1e308, float("inf"), float("nan"), "", "x", [], {}, [[]],
    {"a": 1}, "2026-03-01", "1e400", "\ud83d", [1] * 50,
)  # fmt: skip
TOKEN = re.compile(rb"[-+]?\d+(?:\.\d+)?")
MARKS = (b",", b";", b"\t", b"|", b" ", b'"', b"=")
Mutation = Callable[[random.Random, bytes, bytes], bytes]


def mutated(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """``data`` with one to four changes; ``other`` is another file to take from."""
    for _ in range(rng.randint(1, 4)):
        if data.startswith(b"SQLite format 3") and rng.random() < 0.9:
            data = database(rng, data)
        else:
            data = rng.choice(PLAIN)(rng, data, other)
    return data


def odd(rng: random.Random) -> bytes:
    return rng.choice(ODD).encode("utf-8", "surrogatepass")


def token(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """An odd text for a number, now and then wherever that number stands."""
    found = list(TOKEN.finditer(data, 0, 1 << 16))
    if not found:
        return noise(rng, data, other)
    match = rng.choice(found)
    if rng.random() < 0.2:
        return data.replace(match[0], odd(rng))
    return data[: match.start()] + odd(rng) + data[match.end() :]


def lines(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Lines swapped, repeated, lost, joined, or all in another order."""
    held = data.split(b"\n")
    a, b = rng.randrange(len(held)), rng.randrange(len(held))
    what = rng.randrange(6)
    if what == 0:
        held[a], held[b] = held[b], held[a]
    elif what == 1:
        held[a:a] = [held[b]] * rng.choice((1, 2, 30))
    elif what == 2:
        del held[a]
    elif what == 3:
        held[a] += held[b]
    elif what == 4:
        rng.shuffle(held)
    else:
        held = held[: a + 1]
    return b"\n".join(held)


def columns(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """A column of the whole table lost, repeated, moved, or of odd values."""
    mark = max(MARKS[:4], key=data[:4096].count)
    held = [line.split(mark) for line in data.split(b"\n")]
    width = max(map(len, held))
    a, b, what, value = rng.randrange(width), rng.randrange(width), rng.randrange(4), odd(rng)
    for cells in held[rng.choice((0, 1)) :]:
        if a < len(cells) and b < len(cells):
            if what == 0:
                del cells[a]
            elif what == 1:
                cells.insert(b, cells[a])
            elif what == 2:
                cells[a], cells[b] = cells[b], cells[a]
            else:
                cells[a] = value
    return b"\n".join(mark.join(cells) for cells in held)


def cell(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """A cell of one line, often of the header."""
    held = data.split(b"\n")
    at, mark = rng.choice((0, rng.randrange(len(held)))), rng.choice(MARKS)
    cells = held[at].split(mark)
    a, b = rng.randrange(len(cells)), rng.randrange(len(cells))
    if rng.random() < 0.25:
        cells.insert(a, cells[b])
    else:
        cells[a] = rng.choice((cells[b], b"", odd(rng)))
    held[at] = mark.join(cells)
    return b"\n".join(held)


def noise(rng: random.Random, data: bytes, other: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 5, 50)) if data else 0):
        changed[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(changed)


def cut(rng: random.Random, data: bytes, other: bytes) -> bytes:
    low, high = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
    return data[:high] if rng.random() < 0.5 else data[:low] + data[high:]


def interleaved(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Lines of two files in turns, or one behind the other."""
    first, second = data.split(b"\n"), other.split(b"\n")[:200]
    if rng.random() < 0.5:
        return data + other[:20_000]
    held: list[bytes] = []
    while first or second:
        source = first if first and (not second or rng.random() < 0.6) else second
        held += source[: rng.randint(1, 5)]
        del source[: rng.randint(1, 5)]
    return b"\n".join(held)


def encoded(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """In another encoding or with other ends of lines."""
    if rng.random() < 0.5:
        return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b"\0\n")))
    return data.decode("utf-8", "replace").encode(rng.choice(("utf-16", "utf-8-sig", "utf-16-le", "cp1252")), "replace")


def document(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """JSON, or a line of it, with a value of another kind, a key lost or two swapped."""
    held = data.split(b"\n")
    for at in (None, *rng.sample(range(len(held)), min(5, len(held)))):
        try:
            value = json.loads(data if at is None else held[at])
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict | list) and value:
            text = json.dumps(_other(rng, value)).encode("utf-8", "surrogatepass")
            return text if at is None else b"\n".join([*held[:at], text, *held[at + 1 :]])
    return token(rng, data, other)


def _other(rng: random.Random, value: Any) -> Any:
    """The value with one place within it changed."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.2:
        return rng.choice(VALUES)
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    at, what = rng.choice(keys), rng.randrange(6)
    if what == 0:
        del value[at]
    elif what == 1:
        other = rng.choice(keys)
        value[at], value[other] = value[other], value[at]
    elif what == 2 and isinstance(value, dict):
        value[rng.choice(ODD)] = value[at]
    else:
        value[at] = _other(rng, value[at])
    return value


def database(rng: random.Random, data: bytes) -> bytes:
    """A database with odd cells, or without a table, a column or rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "held.db"
        path.write_bytes(data)
        held = sqlite3.connect(path, isolation_level=None)
        try:
            _changed(rng, held)
        except (sqlite3.Error, UnicodeDecodeError, IndexError):
            pass  # it is damaged already
        finally:
            held.close()
        return path.read_bytes()


def _changed(rng: random.Random, held: sqlite3.Connection) -> None:
    held.execute("PRAGMA foreign_keys = OFF")
    names = [name for (name,) in held.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    table = rng.choice(names)
    column = rng.choice([row[1] for row in held.execute(f'PRAGMA table_info("{table}")')])
    value: Any = rng.choice((*ODD, *(one for one in VALUES if not isinstance(one, list | dict) and one != 10**400)))
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        value = float(value)
    some = f'rowid IN (SELECT rowid FROM "{table}" LIMIT 1 OFFSET {rng.randrange(20)})'
    statements = (
        (f'UPDATE "{table}" SET "{column}" = ? WHERE {some}', (value,)),
        (f'UPDATE "{table}" SET "{column}" = ?', (value,)),
        (f'DELETE FROM "{table}" WHERE {some}', ()),
        (f'DELETE FROM "{table}" WHERE rowid % 3', ()),
        (f'ALTER TABLE "{table}" DROP COLUMN "{column}"', ()),
        (f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "{column}2"', ()),
        (f'DROP TABLE "{table}"', ()),
        (f'UPDATE "{table}" SET "{column}" = CAST("{column}" AS BLOB)', ()),
    )
    held.execute(*rng.choices(statements, (8, 3, 3, 1, 1, 1, 1, 2))[0])


PLAIN: tuple[Mutation, ...] = (
    token, token, token, lines, lines, columns, columns, cell, cell, noise, cut, interleaved, encoded, document,
    document,
)  # fmt: skip
