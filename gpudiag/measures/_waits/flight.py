"""How far each rank came in each process group, by the dumps of flight recorders."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePath

import pandas as pd

from gpudiag.run import Run

OPEN = ("scheduled", "started")
DEFAULT = "default_pg"
"""What PyTorch calls the group of all ranks."""
LONGEST_S = 1800.0
"""No collective is waited in for longer where its timeout is not known: PyTorch's longest default."""
_SENDS = r"(?:send|recv)\b"


@dataclass(frozen=True, eq=False)
class Group:
    """The collectives of one process group. Groups of one name and other ranks are others, as split_group makes them.

    ``calls``: a row an entry, by rank and number. ``members``: its ranks; where no dump states them (``stated``) those
    that called, and all up to the highest in the group of all. ``last`` by rank: the last collective it scheduled, -1
    for none; a rank of which this is not known is in ``unknown``, and in ``undumped`` where it has no dump at all.
    ``cut`` by rank: the first number whose entries a full recorder may have dropped in part.
    """

    name: str
    title: str
    calls: pd.DataFrame
    members: tuple[int, ...]
    stated: bool
    last: dict[int, int]
    unknown: tuple[int, ...]
    undumped: tuple[int, ...]
    cut: dict[int, int]

    @property
    def open(self) -> pd.DataFrame:
        """Calls that have not ended. Of a coalesced one, which has several entries, the last holds its state."""
        ends = self.calls.drop_duplicates(["rank", "seq"], keep="last")
        return ends[ends["state"].isin(OPEN)]


def newest_dumps(run: Run) -> pd.DataFrame:
    """The rows of the newest dump of each rank, each once, with every optional column."""
    rows = run.collectives.drop_duplicates(["path", "record"])
    for name in ("seq", "group_title", "group_ranks", "written", "timeout_s", "timed_out", "started", "completed"):
        if name not in rows:
            rows = rows.assign(**{name: None})
    rows = rows.assign(written=pd.to_datetime(rows["written"], utc=True))
    ages = rows.groupby(["rank", "path"], as_index=False)[["time", "written"]].max()
    newest = ages.sort_values(["time", "written", "path"], na_position="first").drop_duplicates("rank", keep="last")
    return rows.merge(newest[["rank", "path"]], on=["rank", "path"]).sort_values(["rank", "record"], ignore_index=True)


def several_dumps(run: Run, rows: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Of ranks with several dumps the one that was taken into ``rows``, and the others, by path below their common
    folder.
    """
    files = run.collectives[["rank", "path"]].drop_duplicates().sort_values(["rank", "path"])
    files = files[files["rank"].duplicated(keep=False)]
    if files.empty:
        return [], []
    folder = os.path.commonpath([PurePath(path).parent for path in files["path"]])
    names = [PurePath(path).relative_to(folder).as_posix() for path in files["path"]]
    taken = files["path"].isin(rows["path"])
    return [name for name, it in zip(names, taken, strict=True) if it], [
        name for name, it in zip(names, taken, strict=True) if not it
    ]


def groups(rows: pd.DataFrame) -> Iterator[Group]:
    """The groups in the newest dumps, by name."""
    calls = _collectives(rows)
    old = outdated(rows)
    doubtful = old | _damaged(rows, calls)
    dumped = [int(rank) for rank in rows["rank"].unique()]
    whole = {int(rank) for rank, own in rows.groupby("rank") if _is_whole(own)}
    for name, own in _by_group(calls):
        members, stated = _members(own), bool(own["group_ranks"].notna().any())
        if not stated and own["group_title"].eq(DEFAULT).any():  # all ranks, which are counted from 0
            members = tuple(range(max(dumped) + 1))
        own = own[~own["rank"].isin(old)]
        if own.empty:
            continue
        last = {int(rank): int(seq) for rank, seq in own.groupby("rank")["seq"].max().items()}
        # Who called nothing in a group has not come to its first collective, if the recorder still holds all it saw.
        first = own["state"].isin(OPEN).all() and int(own["seq"].min()) <= 1
        last |= {rank: -1 for rank in members if rank in dumped and rank not in last and first and rank in whole}
        unknown = tuple(rank for rank in members if rank not in last or rank in doubtful)
        undumped = tuple(rank for rank in members if rank not in dumped)
        titles = own["group_title"].dropna()
        firsts = own.groupby("rank")["seq"].min().items()
        cut = {int(rank): int(seq) for rank, seq in firsts if int(rank) not in whole}
        yield Group(
            name, str(titles.iloc[0]) if len(titles) else "", own, members, stated, last, unknown, undumped, cut
        )


def open_sends(rows: pd.DataFrame) -> pd.DataFrame:
    """Sends and receives that have not ended."""
    return rows[_are_sends(rows) & rows["state"].isin(OPEN)]


def outdated(rows: pd.DataFrame) -> set[int]:
    """Ranks whose newest dump ends before most others begin, and was written before or is older than any wait: it is of
    an earlier run, or of one that went on without this rank.
    """
    times = rows.groupby("rank").agg(
        begin=("time", "min"), end=("time", "max"), written=("written", "max"), timeout_s=("timeout_s", "max")
    )
    usual = times["begin"].median()  # one clock may be ahead
    behind_s = (usual - times["end"]).dt.total_seconds()
    longest_s = pd.to_numeric(times["timeout_s"]).astype(float).fillna(LONGEST_S)
    old = (behind_s > 0) & ((times["written"] < usual) | (behind_s > longest_s))
    return {int(rank) for rank in times.index[old]}


def listed_ranks(ranks: Iterable[int]) -> str:
    """Ranks as ``0-3, 5``."""
    parts: list[list[int]] = []
    for rank in sorted(ranks):
        if parts and rank == parts[-1][-1] + 1:
            parts[-1].append(rank)
        else:
            parts.append([rank])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 3 else ", ".join(map(str, run)) for run in parts)


def _by_group(calls: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Calls by name and stated ranks of their group; a call without ranks is of the one group of its name."""
    for name, named in calls.groupby("group"):
        stated = named["group_ranks"].dropna().unique()
        if len(stated) < 2:
            yield str(name), named
            continue
        for ranks, own in named.groupby(named["group_ranks"].fillna("")):
            yield f"{name} of ranks {listed_ranks(_members(own))}" if ranks else str(name), own


def _damaged(rows: pd.DataFrame, calls: pd.DataFrame) -> set[int]:
    """Ranks with an entry that cannot be read behind their last known collective."""
    broken = rows[rows["state"].eq("unknown")]
    known = broken["rank"].map(calls.groupby("rank")["record"].max())
    return {int(rank) for rank in broken["rank"][~(broken["record"] < known)]}


def _collectives(rows: pd.DataFrame) -> pd.DataFrame:
    """Collectives with a number, in the order of their entries."""
    sends = _are_sends(rows)
    # The entry that ends a batch of sends may be counted as a collective, though not all ranks take part.
    after = sends.shift(fill_value=False) & rows["rank"].eq(rows["rank"].shift()) & rows["name"].eq("coalesced")
    kept = rows[~sends & ~after & rows["seq"].notna() & rows["state"].isin((*OPEN, "completed"))]
    return kept.assign(seq=kept["seq"].astype("int64")).sort_values(["rank", "seq", "record"], ignore_index=True)


def _are_sends(rows: pd.DataFrame) -> pd.Series:
    return rows["kind"].eq("p2p") | rows["name"].str.match(_SENDS, na=False)


def _is_whole(own: pd.DataFrame) -> bool:
    """Whether a recorder holds every entry since its first; an empty one does."""
    return own["state"].eq("none").all() or (own["record"].min() == 0 and own["record"].max() == len(own) - 1)


def _members(own: pd.DataFrame) -> tuple[int, ...]:
    stated = {
        int(rank)
        for ranks in own["group_ranks"].dropna().unique()
        for rank in str(ranks).split(",")
        if rank.isascii() and rank.isdigit() and len(rank) < 10
    }
    return tuple(sorted(stated | {int(rank) for rank in own["rank"].unique()}))
