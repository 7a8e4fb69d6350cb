"""The collective at which a training hangs: which rank did not come, who waits since when, and who called another."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.errors import NotGiven
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._waits.flight import OPEN, Group, groups, listed_ranks, newest_dumps, open_sends, several_dumps
from gpudiag.measures._waits.watchdog import GivenUp, given_up
from gpudiag.measures.base import Profile
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import text_dtype

DUMP = (
    "Set TORCH_NCCL_TRACE_BUFFER_SIZE=2000 (newer: TORCH_FR_BUFFER_SIZE) and TORCH_NCCL_DUMP_ON_TIMEOUT=1 "
    "before the training, and give the dump of each rank as JSON."
)
OF = " of "
_GUID = re.compile(r"^(\S+?) ?\((.*)\)$")
SIZED = ("all_reduce", "broadcast", "reduce", "_all_gather_base", "_allgather_base")
SIZED_BY_OUTPUT = ("reduce_scatter", "_reduce_scatter_base")
"""Operations to which every rank brings, or of which every rank gets, as many elements; their shapes may differ."""


class CollectivesRank(Row):
    """A rank of the group in which the training hangs."""

    last_seq: Column[float] = column("number of the last collective that it scheduled; NaN where it has none")
    last_name: Column[str] = column("operation of that one")
    last_state: Column[str] = column("how far that one came: scheduled, started or completed")
    scheduled: Column[pd.Timestamp] = column("when it scheduled that one")
    role: Column[str] = column("missing, waiting, ended or unknown, as to the collective at which the training hangs")


class CollectivesProfile(Profile, topic="collectives"):
    """The first collective that not all ranks finished, and the first that they did not call alike."""

    by_rank: Rows = table_of(CollectivesRank)
    n_dumps: Fact[int] = fact("ranks whose dump was read; 0 where only a log tells of the wait", label="dumps")
    latest_dumps: Fact[str] = fact("of ranks with several dumps the one that was taken, which goes furthest")
    older_dumps: Fact[str] = fact("the other dumps of these ranks, which were left out")
    hang: Fact[str] = fact(
        "missing (a rank did not come), stuck (all came), open (a rank without a dump may be missing), '' for none"
    )
    collective: Fact[str] = fact("operation and number of that collective", label="collective")
    group: Fact[str] = fact("its process group", label="process group")
    n_ranks: Fact[float] = fact("ranks of the group", label="ranks of the group")
    ranks_stated: Fact[bool] = fact("a dump states which these are; else they are those of which something is known")
    missing_ranks: Fact[str] = fact("ranks that never scheduled it", label="ranks missing")
    waiting_ranks: Fact[str] = fact("ranks that scheduled it and have not finished it", label="ranks waiting")
    unknown_ranks: Fact[str] = fact("ranks of the group of which no dump says how far they came")
    undumped_ranks: Fact[str] = fact("those of them without any dump")
    n_missing: Fact[float] = fact("how many did not come", label="missing")
    n_waiting: Fact[float] = fact("how many wait", label="waiting")
    last_collective: Fact[str] = fact("last one that the first missing rank scheduled, '' for none", label="its last")
    waiting_since: Fact[str] = fact("when the first rank scheduled it, in ISO 8601 and UTC", label="waiting since")
    wait_s: Fact[float] = fact(
        "how long they waited at most: until the dumps were written, and no longer than the timeout",
        label="waiting for",
    )
    wait_low_s: Fact[float] = fact("how long they waited at least, by timestamps in the dumps and timeouts met")
    timeout_s: Fact[float] = fact("timeout of the collective", label="timeout")
    elsewhere: Fact[bool] = fact("one of the missing ranks waits itself, in another group or for another rank")
    sends_ranks: Fact[str] = fact("ranks that wait in a send or a receive")
    send_wait_s: Fact[float] = fact("how long at most, as for collectives; NaN where none does or it is not known")
    mismatch: Fact[str] = fact(
        "number of the first collective that ranks called differently and that has not ended, '' for none"
    )
    mismatch_group: Fact[str] = fact("its process group")
    usual_call: Fact[str] = fact("what most ranks called there", label="most called")
    other_call: Fact[str] = fact("what the others called there, the smallest set of them", label="others called")
    other_ranks: Fact[str] = fact("those others", label="other ranks")
    tied: Fact[bool] = fact("no call there was made by more ranks than another")
    swapped: Fact[bool] = fact("the others called the same ones in another order")
    n_unseen: Fact[int] = fact("ranks of any group without a dump")
    after_error: Fact[bool] = fact("the log tells of another error before the watchdog gave up")


@dataclass(frozen=True, eq=False)
class Hang:
    """A collective that some rank waits in."""

    group: Group
    seq: int
    kind: str
    missing: tuple[int, ...]
    waiting: pd.DataFrame
    elsewhere: bool
    """One of the missing ranks waits itself, in another group or for another rank."""

    @property
    def since(self) -> pd.Timestamp:
        return self.waiting["time"].min()

    @property
    def order(self) -> tuple[bool, int, float, str]:
        """What caused the others first: a rank that waits elsewhere is no cause, and a doubt is no proof. Of several
        the longest; last of all one of which nobody knows since when, and so whether it hangs at all.
        """
        rank = 2 if self.kind == "open" else int(self.elsewhere)
        known = self.since == self.since
        return not known, rank, self.since.timestamp() if known else math.inf, self.group.name


@dataclass(frozen=True)
class Mismatch:
    """The first collective of a group that ranks called differently."""

    group: str
    seq: int
    usual: str
    other: str
    ranks: tuple[int, ...]
    tied: bool
    swapped: bool


@memoized
def measure_collectives(run: Run) -> CollectivesProfile:
    """By the newest dump of each rank. Needs dumps of PyTorch's flight recorder, or a log of a timeout.

    A rank without a dump is unknown, not missing; what a full recorder has dropped is no evidence.
    """
    gave_up = given_up(run)
    if run.collectives.empty:
        if gave_up is None:
            raise NotGiven("The run has no dump of a flight recorder.", DUMP)
        return _by_log(gave_up)
    rows = newest_dumps(run)
    latest, older = several_dumps(run, rows)
    found = list(groups(rows))
    sends = open_sends(rows)
    hangs = sorted(_hangs(found, {int(rank) for rank in sends["rank"]}), key=lambda one: one.order)
    hang = hangs[0] if hangs else None
    wrong = min(
        (one for group in found if (one := _mismatch(group))), key=lambda one: (one.seq, one.group), default=None
    )
    low_s, high_s, timeout_s = _waited(rows, hang) if hang else (math.nan,) * 3
    unknown = hang.group.unknown if hang else ()
    waiting = tuple(int(rank) for rank in hang.waiting["rank"]) if hang else ()
    if hang and gave_up and gave_up.seq == hang.seq and set(gave_up.ranks) & set(waiting):
        low_s = max(low_s, gave_up.wait_s)  # the log says what the dumps leave open
        high_s = float(np.fmax(high_s, low_s))
    return CollectivesProfile(
        by_rank=_by_rank(hang),
        n_dumps=int(rows["rank"].nunique()),
        latest_dumps=", ".join(latest),
        older_dumps=", ".join(older),
        hang=hang.kind if hang else "",
        collective=f"{hang.waiting['name'].mode().iloc[0]} number {hang.seq}" if hang else "",
        group=_named(hang.group) if hang else "",
        n_ranks=float(len(hang.group.members)) if hang else math.nan,
        ranks_stated=bool(hang and hang.group.stated),
        missing_ranks=listed_ranks(hang.missing if hang else ()),
        waiting_ranks=listed_ranks(waiting),
        unknown_ranks=listed_ranks(unknown),
        undumped_ranks=listed_ranks(hang.group.undumped if hang else ()),
        n_missing=float(len(hang.missing)) if hang else 0.0,
        n_waiting=float(len(waiting)),
        last_collective=_last_of(hang.group, hang.missing[0]) if hang and hang.missing else "",
        waiting_since=hang.since.isoformat() if hang and hang.since == hang.since else "",
        wait_s=high_s,
        wait_low_s=low_s,
        timeout_s=timeout_s,
        elsewhere=bool(hang and hang.elsewhere),
        sends_ranks=listed_ranks({int(rank) for rank in sends["rank"]}),
        send_wait_s=_most_s(sends),
        mismatch=str(wrong.seq) if wrong else "",
        mismatch_group=wrong.group if wrong else "",
        usual_call=wrong.usual if wrong else "",
        other_call=wrong.other if wrong else "",
        other_ranks=listed_ranks(wrong.ranks if wrong else ()),
        tied=bool(wrong and wrong.tied),
        swapped=bool(wrong and wrong.swapped),
        n_unseen=len({rank for group in found for rank in group.unknown}),
        after_error=bool(gave_up and gave_up.after_error),
    )


def _by_log(gave_up: GivenUp) -> CollectivesProfile:
    """What a log tells of the collective that the watchdog gave up: who waited how long, and for whom if it tells."""
    missing = sorted(gave_up.missing)
    last = [*map(gave_up.missing.__getitem__, missing), *[gave_up.seq] * len(gave_up.ranks)]
    names = [str(rank) for rank in (*missing, *gave_up.ranks)]
    by_rank = pd.DataFrame({
        "last_seq": [float(seq) for seq in last],
        "last_name": [""] * len(missing) + [gave_up.op] * len(gave_up.ranks),
        "last_state": "",
        "scheduled": pd.to_datetime([pd.NaT] * len(missing) + [gave_up.since] * len(gave_up.ranks), utc=True),
        "role": ["missing"] * len(missing) + ["waiting"] * len(gave_up.ranks),
    }, index=pd.Index(names, name="rank", dtype=text_dtype()))  # fmt: skip
    return CollectivesProfile(
        by_rank=by_rank,
        n_dumps=0,
        latest_dumps="",
        older_dumps="",
        hang="missing" if missing else "open",
        collective=f"{gave_up.op} number {gave_up.seq}",
        group=_GUID.sub(r"\1 (\2)", gave_up.group),
        n_ranks=math.nan,
        ranks_stated=False,
        missing_ranks=listed_ranks(missing),
        waiting_ranks=listed_ranks(gave_up.ranks),
        unknown_ranks="",
        undumped_ranks="",
        n_missing=float(len(missing)),
        n_waiting=float(len(gave_up.ranks)),
        last_collective="",
        waiting_since=gave_up.since.isoformat() if gave_up.since == gave_up.since else "",
        wait_s=gave_up.wait_s,
        wait_low_s=gave_up.wait_s,
        timeout_s=math.nan,
        elsewhere=False,
        sends_ranks="",
        send_wait_s=math.nan,
        mismatch="",
        mismatch_group="",
        usual_call="",
        other_call="",
        other_ranks="",
        tied=False,
        swapped=False,
        n_unseen=0,
        after_error=gave_up.after_error,
    )


def _hangs(found: list[Group], sending: set[int]) -> Iterator[Hang]:
    waits = {group.name: {int(rank) for rank in group.open["rank"]} for group in found}
    for group in found:
        waiting = group.open
        if waiting.empty:
            continue
        known = {rank: seq for rank, seq in group.last.items() if rank not in group.unknown}
        first = int(waiting["seq"].min())
        least = min(known.values(), default=first)
        beyond = waiting["seq"][waiting["seq"] > least]
        at_first = waiting[waiting["seq"] == first]
        if beyond.empty or (least >= first and set(known) <= set(at_first["rank"])):
            seq, kind = first, "open" if group.unknown else "stuck"
        else:
            seq, kind = int(beyond.min()), "missing"
        missing = tuple(sorted(rank for rank, last in known.items() if last < seq))
        others = sending.union(*(ranks for name, ranks in waits.items() if name != group.name))
        elsewhere = bool(set(missing) & others)
        yield Hang(
            group, seq, kind, missing, waiting[waiting["seq"] == seq].drop_duplicates("rank", keep="last"), elsewhere
        )


def _waited(rows: pd.DataFrame, hang: Hang) -> tuple[float, float, float]:
    """Seconds that the first rank waited at least and at most, and the timeout; NaN where unknown: without a time of
    the call the timeout alone does not say how long ago it was.
    """
    waiting, since = hang.waiting, hang.since
    timeout_s = float(pd.to_numeric(waiting["timeout_s"]).max())
    low_s = _least_s(rows, waiting)
    if timeout_s == timeout_s and pd.to_numeric(waiting["timed_out"]).eq(1).any():
        return max(low_s, timeout_s), max(low_s, timeout_s), timeout_s
    written_s = (waiting["written"].max() - since).total_seconds()
    # A file may have been copied long after, but nobody waits beyond the timeout.
    high_s = min(written_s, timeout_s) if timeout_s == timeout_s else written_s
    if high_s == high_s:
        return min(low_s, high_s), high_s, timeout_s
    return low_s, low_s if low_s > 0 else math.nan, timeout_s


def _least_s(rows: pd.DataFrame, calls: pd.DataFrame) -> float:
    """The most seconds from one of these calls to the last timestamp of its own rank, whose clock is its own; 0 where
    no time is known.
    """
    own = rows[rows["rank"].isin(calls["rank"])]
    seen = own[["time", "started", "completed"]].apply(pd.to_datetime, utc=True).max(axis=1)
    last = calls["rank"].map(seen.groupby(own["rank"]).max())
    return float((last - calls["time"]).dt.total_seconds().fillna(0.0).max())


def _most_s(calls: pd.DataFrame) -> float:
    """The longest that one of these was waited in, by when its file was written and by its timeout; NaN where that of
    one is unknown.
    """
    seconds = (calls["written"] - calls["time"]).dt.total_seconds()
    return float(seconds.clip(upper=pd.to_numeric(calls["timeout_s"]).astype(float)).max(skipna=False))


def _mismatch(group: Group) -> Mismatch | None:
    """The first number that ranks called differently and that has not ended on all; what ended on all was alike enough.
    Numbers whose entries a full recorder has dropped in part are left out.
    """
    whole = group.calls["seq"] > group.calls["rank"].map(group.cut).fillna(-1)
    hanging = group.calls["seq"].isin(group.calls["seq"][group.calls["state"].isin(OPEN)])
    calls = group.calls[group.calls["name"].ne("coalesced") & whole & hanging]
    made = pd.DataFrame({"rank": calls["rank"], "seq": calls["seq"], "call": _signatures(calls)})
    made = made.groupby(["seq", "rank"], sort=True)["call"].agg(" + ".join)
    differing = made.groupby("seq").nunique()
    differing = differing[differing > 1]
    if differing.empty:
        return None
    seq = int(differing.index[0])
    here = made.xs(seq, level="seq")
    counts = here.value_counts()
    usual = str(sorted(counts[counts == counts.max()].index)[0])
    tied = bool((counts == counts.max()).sum() > 1)
    counts = counts.drop(usual)
    other = str(sorted(counts[counts == counts.min()].index)[0])
    ranks = tuple(sorted(int(rank) for rank in here.index[here.eq(other)]))
    nexts = made.xs(seq + 1, level="seq") if seq + 1 in made.index.get_level_values("seq") else pd.Series(dtype=object)
    mine = {str(nexts.get(rank, "")) for rank in ranks}
    theirs = {str(nexts.get(rank, "")) for rank in here.index[here.eq(usual)]}
    swapped = mine == {usual} and theirs == {other}
    if usual.partition(OF)[0] != other.partition(OF)[0]:  # then their sizes are beside the point
        usual, other = usual.partition(OF)[0], other.partition(OF)[0]
    return Mismatch(_named(group), seq, usual, other, ranks, tied, swapped)


def _signatures(calls: pd.DataFrame) -> pd.Series:
    """Each call as text: its operation, and where all ranks must agree on it, the elements and their types."""
    out = calls["name"].astype(object)
    for names, side in ((SIZED, "input"), (SIZED_BY_OUTPUT, "output")):
        if f"{side}_elements" not in calls:
            continue
        sized = calls["name"].isin(names) & _known(calls, f"{side}_elements")
        text = OF + calls[f"{side}_elements"].astype(str) + " elements"
        if f"{side}_types" in calls:
            typed = _known(calls, f"{side}_types")
            text = text + (" (" + calls[f"{side}_types"].astype(object) + ")").where(typed, "")
        out = out.where(~sized, out + text)
    return out.astype(str)


def _known(calls: pd.DataFrame, name: str) -> pd.Series:
    """Whether all calls of that number tell: what one does not say is no difference."""
    return calls[name].notna().groupby(calls["seq"]).transform("all")


def _by_rank(hang: Hang | None) -> pd.DataFrame:
    """The columns of :class:`CollectivesRank`; no row without a hang."""
    if hang is None:
        return pd.DataFrame(columns=[*CollectivesRank.declared()], index=pd.Index([], name="rank", dtype=text_dtype()))
    members = list(hang.group.members)
    last = hang.group.calls.drop_duplicates("rank", keep="last").set_index("rank").reindex(members)
    waiting = set(hang.waiting["rank"])
    roles = [
        "missing" if rank in hang.missing
        else "waiting" if rank in waiting
        else "unknown" if rank in hang.group.unknown
        else "ended"
        for rank in members
    ]  # fmt: skip
    frame = pd.DataFrame({
        "last_seq": last["seq"].astype(float),
        "last_name": last["name"].fillna("").astype(str),
        "last_state": last["state"].fillna("").astype(str),
        "scheduled": last["time"],
        "role": roles,
    })  # fmt: skip
    return frame.set_axis(pd.Index([str(rank) for rank in members], name="rank", dtype=text_dtype()))


def _last_of(group: Group, rank: int) -> str:
    own = group.calls[group.calls["rank"] == rank]
    return f"{own['name'].iloc[-1]} number {own['seq'].iloc[-1]}" if len(own) else ""


def _named(group: Group) -> str:
    return f"{group.name} ({group.title})" if group.title and group.title != group.name else group.name
