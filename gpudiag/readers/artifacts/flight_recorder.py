"""Dumps of PyTorch's flight recorder as JSON: the last collectives of one rank, and how far each came.

``torch._C._distributed_c10d._dump_nccl_trace_json()`` makes them, and so does json.dump of an unpickled dump. Both
hold the same keys; unknown times are 0 in the one and null in the other. A file is of one rank, which its name ends in.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from gpudiag.errors import InputError
from gpudiag.readers._io.json_values import read_json
from gpudiag.readers._io.paths import as_text
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers.base import Reader, ReadOptions, Trials
from gpudiag.schema import COLLECTIVES, ENTRY_STATES, MOST_RANK, MOST_S, conform, dtype
from gpudiag.units import FIRST_YEAR, LAST_YEAR

NAME = "torch-flight-recorder"
DAMAGED, NO_TIME = "damaged entry", "time that is none"
MOST_SEQ = 2**53
MOST_TEXT = 200
"""No name of a collective or a group is longer."""
_RANK = re.compile(r"(?i)(?:.*rank[_.-]?(\d{1,7})(?!\d)|(?:.*[^\d])?(\d{1,7})$)")
_ENDS = re.compile(r"(?i)(?:\.(?:json|gz|zst|pkl|pickle|txt))+$")
_MARKS = ('"pg_config"', '"pg_status"', '"collective_seq_id"', '"time_discovered_completed_ns"', '"entries"')
_PREFIX = re.compile(r"^(?:nccl|gloo|xccl|hccl|mccl|mpi|ucc):")

_UNTIMED = "gloo:"
"""Its recorder marks neither start nor end: what has ended is retired, and stays scheduled (seen with PyTorch 2.13)."""


def recognises(source: Source) -> bool:
    """True if the head is a JSON object with the marks of a dump: its groups, or an entry."""
    text = source.text
    if text.lstrip("\ufeff \t\r\n")[:1] != "{" or '"traceEvents"' in text:
        return False
    entry = '"collective_seq_id"' in text and '"profiling_name"' in text
    return entry or (sum(mark in text for mark in _MARKS) >= 2 and '"pg_config"' in text)


def read(source: Source, options: ReadOptions) -> Trials:
    """Table ``collectives``: a row an entry. Raises InputError for a dump that is cut, or of no rank.

    A cut dump is not read in part: without its last entries the rank would seem not to have come.
    """
    try:
        dump = read_json(source.read_text().lstrip("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source.path}: the dump is cut or damaged; copy it again as a whole.") from error
    if not isinstance(dump, dict):
        raise InputError(f"{source.path}: expected a dump of one rank, an object with the key entries.")
    log = ProblemLog()
    rank = _rank(dump, source.path)
    about = {"path": as_text(source.path), "rank": rank, "written": _written(source.path)}
    entries = _entries(dump, source.path)
    members = _members(dump.get("pg_config"), entries)
    rows: list[dict[str, Any]] = []
    for entry in entries:
        after = rows[-1]["record"] + 1 if rows else 0
        rows.append({**_row(entry, members, log, after), **about})
    note = f"{as_text(source.path.name)}: {len(rows)} collectives of rank {rank}."
    if not rows:
        rows = [{**about, "group": "", "record": 0, "name": "", "kind": "collective", "state": "none"}]
    frame = pd.DataFrame(rows)
    for name in ("time", "started", "completed", "written"):
        frame[name] = pd.Series([row.get(name) for row in rows], frame.index, dtype=dtype("time"))
    found = conform(frame, COLLECTIVES)
    return Trials(collectives=found, problems=log.all, notes=(note,), reader=NAME)


def _rank(dump: Mapping[str, Any], path: Path) -> int:
    stated = _whole(dump.get("rank"), MOST_RANK)
    if stated is not None:
        return stated
    found = _RANK.match(_ENDS.sub("", as_text(path.name)))
    rank = _whole(found[1] or found[2], MOST_RANK) if found else None
    if rank is None:
        raise InputError(
            f"{path}: the dump does not say whose it is; end its name in the rank, as in nccl_trace_rank_3.json."
        )
    return rank


def _written(path: Path) -> datetime | None:
    """When the file was last written: no dump is younger, and a copy may be much later."""
    try:
        return _moment(path.stat().st_mtime_ns)
    except OSError:
        return None


def _entries(dump: Mapping[str, Any], path: Path) -> list[Any]:
    """The entries. Raises InputError where there are none though the rank called collectives."""
    entries = dump.get("entries") or []
    if not isinstance(entries, list):
        raise InputError(f"{path}: expected a list of entries, but got {type(entries).__name__}.")
    if not entries and dump.get("pg_status"):  # a group has a status from its first collective on
        raise InputError(
            f"{path}: the dump was written without its collectives; dump it with includecollectives=true and "
            "onlyactive=false."
        )
    return entries


def _members(config: object, entries: list[Any]) -> dict[str, str]:
    """By group its ranks, as ``0,1,2``; empty where they are not stated. Gloo states those of the group that it made
    last, under no name: they are known where the rank called in one group alone.
    """
    found = {}
    for name, about in config.items() if isinstance(config, dict) else ():
        ranks = about.get("ranks") if isinstance(about, dict) else about
        given = re.findall(r"\d{1,7}", ranks) if isinstance(ranks, str) else ranks if isinstance(ranks, list) else []
        whole = [rank for one in given if (rank := _whole(one, MOST_RANK)) is not None]
        found[_text(name)] = ",".join(map(str, sorted(set(whole))))
    called = {_group(one.get("process_group"))[0] for one in entries if isinstance(one, dict)}
    return dict.fromkeys(called, found[""]) if set(found) == {""} and len(called) == 1 else found


def _row(entry: object, members: Mapping[str, str], log: ProblemLog, after: int) -> dict[str, Any]:
    """One entry; of a damaged one what is sure, with the state unknown, and its place behind the one before."""
    held: Mapping[str, Any] = entry if isinstance(entry, dict) else {}
    p2p = held.get("is_p2p") is True
    seq = _whole(held.get("p2p_seq_id" if p2p else "collective_seq_id", held.get("seq_id")), MOST_SEQ)
    group, title = _group(held.get("process_group", held.get("pg_name")))
    name, state = held.get("profiling_name"), held.get("state")
    record = _whole(held.get("record_id"), MOST_SEQ)
    if seq is None or not group or not isinstance(name, str) or state not in ENTRY_STATES[:3] or record is None:
        log.add(DAMAGED, example=", ".join(map(str, held)) or type(entry).__name__, lost=True)
        state = "unknown"
    retired = held.get("retired") is True
    if retired and state in ("scheduled", "started") and isinstance(name, str) and name.startswith(_UNTIMED):
        state, retired = "completed", False
    timeout_ms = held.get("timeout_ms")
    timeout_s = timeout_ms / 1000 if isinstance(timeout_ms, int | float) and 0 < timeout_ms <= MOST_S * 1000 else None
    return {
        "group": group,
        "group_title": title,
        "group_ranks": members.get(group) or None,
        "record": after if record is None else record,
        "kind": "p2p" if p2p else "collective",
        "seq": seq,
        "op": _whole(held.get("op_id"), MOST_SEQ),
        "name": _PREFIX.sub("", _text(name)) if isinstance(name, str) else "",
        "state": state,
        "time": _time(held.get("time_created_ns"), log),
        "started": _time(held.get("time_discovered_started_ns"), log),
        "completed": _time(held.get("time_discovered_completed_ns"), log),
        **_sizes("input", held),
        **_sizes("output", held),
        "timeout_s": timeout_s,
        "timed_out": int(retired and state in ("scheduled", "started")),
    }


def _group(given: object) -> tuple[str, str]:
    """Name and description of a group, which older dumps give as the name alone."""
    parts = [_text(one) for one in (given if isinstance(given, list) else [given]) if isinstance(one, str | int)]
    title = parts[1] if len(parts) > 1 and parts[1] != "undefined" else ""
    return (parts[0] if parts else ""), title


def _sizes(which: str, held: Mapping[str, Any]) -> dict[str, Any]:
    """Shapes as ``1024x8, 4``, how many elements these are, and their types."""
    shapes, types = held.get(f"{which}_sizes"), held.get(f"{which}_dtypes")
    out: dict[str, Any] = {f"{which}_sizes": None, f"{which}_elements": None, f"{which}_types": None}
    if isinstance(shapes, list) and shapes and all(_is_shape(shape) for shape in shapes):
        n = sum(math.prod(shape) for shape in shapes)
        out[f"{which}_sizes"] = ", ".join("x".join(map(str, shape)) or "1" for shape in shapes)[:MOST_TEXT]
        out[f"{which}_elements"] = n if n <= MOST_SEQ else None
    if isinstance(types, list) and types and all(isinstance(one, str) for one in types):
        out[f"{which}_types"] = ", ".join(types)[:MOST_TEXT]
    return out


def _is_shape(shape: object) -> bool:
    return isinstance(shape, list) and all(_whole(size, MOST_SEQ) is not None for size in shape)


def _time(ns: object, log: ProblemLog) -> datetime | None:
    if ns is None or ns == 0:  # how the two forms write what is unknown
        return None
    made = _moment(ns) if isinstance(ns, int) and not isinstance(ns, bool) else None
    if made is None:
        log.add(NO_TIME, example=ns)
    return made


def _moment(ns: int) -> datetime | None:
    try:
        made = datetime.fromtimestamp(ns // 10**9, UTC).replace(microsecond=ns % 10**9 // 1000)
    except (OverflowError, OSError, ValueError):
        return None
    return made if FIRST_YEAR <= made.year < LAST_YEAR else None


def _whole(value: object, most: int) -> int | None:
    """A whole number from 0 to ``most``, also as text; None for anything else."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value):
        value = int(value)
    known = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most
    return value if known else None  # type: ignore[return-value]


def _text(value: object) -> str:
    return str(value)[:MOST_TEXT]


READER = Reader(NAME, recognises, read)
