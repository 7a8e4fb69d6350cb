"""Collectives that the watchdog of PyTorch gave up, by a training's log."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from gpudiag.measures._steps.logs import training_logs
from gpudiag.run import Run

_LINE = (
    r"(?:\[rank(?P<rank>\d{1,7})\]:.*?)?\[Rank (?P<in_group>\d{1,7})\] Watchdog caught collective operation timeout: "
    r"WorkNCCL\(SeqNum=(?P<seq>\d{1,15}), OpType=(?P<op>\w{1,40}),.*?\) ran for (?P<ran_ms>\d{1,12}) milliseconds"
)
"""PyTorch prints the rank of the process before the line (since 2.2), and in it that within the process group."""


@dataclass(frozen=True)
class GivenUp:
    """The collective that most ranks gave up. ``ranks``: those that waited in it; ``wait_s``: the longest."""

    op: str
    seq: int
    ranks: tuple[int, ...]
    wait_s: float
    since: pd.Timestamp


def given_up(run: Run) -> GivenUp | None:
    """The collective at which a training ended by its log; None where it went on, and of a search, whose trials end
    one by one.
    """
    if len(run.trials) or run.events.empty:
        return None
    events = run.events[run.events["kind"].eq("nccl")]
    found = events["detail"].astype("object").fillna("").astype(str).str.extract(_LINE)
    found = found.join(events.reindex(columns=["time", "line", "path"]))[found["seq"].notna()]
    if found.empty:
        return None
    if len(run.steps) and "path" in run.steps and "line" in run.steps:
        went_on = found["path"].map(run.steps.groupby("path")["line"].max())
        found = found[~((found.groupby("path")["line"].transform("max") < went_on) | found["path"].isin(_gone_on(run)))]
    if found.empty:
        return None
    # A rank within a group is that of the process only where no line names the latter.
    of_process = found["rank"].notna()
    found = found[of_process] if of_process.any() else found.assign(rank=found["in_group"])
    found = found.assign(**{name: pd.to_numeric(found[name]) for name in ("rank", "seq", "ran_ms")})
    first = found.sort_values(["rank", "seq"]).drop_duplicates("rank")
    counts = first.groupby(["seq", "op"]).size()
    seq, op = counts[counts == counts.max()].index[0]
    here = first[first["seq"].eq(seq) & first["op"].eq(op)]
    since = (here["time"] - pd.to_timedelta(here["ran_ms"], unit="ms")).min()
    ranks = tuple(sorted(int(rank) for rank in here["rank"]))
    return GivenUp(str(op), int(seq), ranks, float(here["ran_ms"].max()) / 1000, since)


def _gone_on(run: Run) -> set[str]:
    """The files whose training went on in another."""
    lines = training_logs(run).lines
    return set(lines["path"][lines["part"] < lines.groupby("log")["part"].transform("max")])
