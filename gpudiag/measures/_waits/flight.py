"""How far each rank came in each process group, by the dumps of flight recorders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from gpudiag.run import Run

OPEN = ("scheduled", "started")
_SENDS = r"(?:send|recv)\b"


@dataclass(frozen=True, eq=False)
class Group:
    """The collectives of one process group.

    ``calls``: a row an entry, by rank and number. ``members``: its ranks, where no dump states them those that
    called. ``last`` by rank: the last collective it scheduled, -1 for none; a rank of which this is not known is
    in ``unknown``.
    """

    name: str
    title: str
    calls: pd.DataFrame
    members: tuple[int, ...]
    last: dict[int, int]
    unknown: tuple[int, ...]

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


def groups(rows: pd.DataFrame) -> Iterator[Group]:
    """The groups in the newest dumps, by name."""
    calls = _collectives(rows)
    damaged = {int(rank) for rank in rows.loc[rows["state"].eq("unknown"), "rank"]}
    dumped = [int(rank) for rank in rows["rank"].unique()]
    whole = {int(rank) for rank, own in rows.groupby("rank") if _is_whole(own)}
    for name, own in calls.groupby("group"):
        members = _members(own)
        last = {int(rank): int(seq) for rank, seq in own.groupby("rank")["seq"].max().items()}
        # Who called nothing in a group has not come to its first collective, if the recorder still holds all it saw.
        first = own["state"].isin(OPEN).all() and int(own["seq"].min()) <= 1
        last |= {rank: -1 for rank in members if rank in dumped and rank not in last and first and rank in whole}
        unknown = tuple(rank for rank in members if rank not in last or rank in damaged)
        titles = own["group_title"].dropna()
        yield Group(str(name), str(titles.iloc[0]) if len(titles) else "", own, members, last, unknown)


def _collectives(rows: pd.DataFrame) -> pd.DataFrame:
    """Collectives with a number, in the order of their entries."""
    sends = rows["kind"].eq("p2p") | rows["name"].str.match(_SENDS, na=False)
    # The entry that ends a batch of sends may be counted as a collective, though not all ranks take part.
    after = sends.shift(fill_value=False) & rows["rank"].eq(rows["rank"].shift()) & rows["name"].eq("coalesced")
    kept = rows[~sends & ~after & rows["seq"].notna() & rows["state"].isin((*OPEN, "completed"))]
    return kept.assign(seq=kept["seq"].astype("int64")).sort_values(["rank", "seq", "record"], ignore_index=True)


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
