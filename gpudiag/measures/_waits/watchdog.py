"""Collectives that the watchdog of PyTorch gave up, by a training's log."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from gpudiag._run.allocated_gpus import of_a_search
from gpudiag.measures._steps.logs import training_logs
from gpudiag.readers._batches.log_lines import ENDINGS
from gpudiag.run import Run

_LINE = (
    r"(?:\[rank(?P<rank>\d{1,7})\]:.*?)?\[Rank (?P<in_group>\d{1,7})\] Watchdog caught collective operation timeout: "
    r"WorkNCCL\(SeqNum=(?P<seq>\d{1,15}), OpType=(?P<op>\w{1,40}),.*?\) ran for (?P<ran_ms>\d{1,12}) milliseconds"
)
"""PyTorch prints the rank of the process before the line (since 2.2), and in it that within the process group."""
_STATUS = (
    r"(?:\[rank(?P<rank>\d{1,7})\]:.*?)?\[(?:PG ID \d{1,7} )?PG (?:GUID )?(?P<group>[^\]]{1,150}?) "
    r"Rank (?P<in_group>\d{1,7})\].*?\b[Ll]ast enqueued (?:\w{1,9} )?work: (?P<last>-?\d{1,15})"
)
"""How far a rank came in a process group: printed as it gives up, and since 2.5 as another rank does."""
_GIVEN_UP = r"\bdetected by watchdog at work(?: sequence id)?: (?P<seq>\d{1,15})\b"


@dataclass(frozen=True)
class GivenUp:
    """The collective that most ranks gave up. ``ranks``: those that waited in it; ``wait_s``: the longest;
    ``missing``: the last collective of each rank that had not begun it, in ``group``, where the log tells of both;
    ``after_error``: another error stands before it.
    """

    op: str
    seq: int
    ranks: tuple[int, ...]
    wait_s: float
    since: pd.Timestamp
    group: str = ""
    missing: dict[int, int] = field(default_factory=dict)
    after_error: bool = False


def given_up(run: Run) -> GivenUp | None:
    """The collective at which a training ended by its log; None where it went on, and of a search, whose trials end
    one by one.
    """
    if len(of_a_search(run.trials)) or run.events.empty:
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
    group, missing = _missing(run, int(seq), set(ranks))
    return GivenUp(
        str(op),
        int(seq),
        ranks,
        float(here["ran_ms"].max()) / 1000,
        since,
        group,
        missing,
        _has_error_before(run, found),
    )


def _missing(run: Run, seq: int, waiting: set[int]) -> tuple[str, dict[int, int]]:
    """The group of those that gave up, and who had enqueued nothing so far there. Numbers count within a group."""
    lines = run.events["detail"][run.events["kind"].eq("nccl_status")].astype("object").astype(str)
    told = lines.str.extract(_STATUS).join(lines.str.extract(_GIVEN_UP))
    told = told[told["last"].notna()]
    told["rank"] = told["rank"].fillna(told["in_group"])
    told = told.astype({"rank": int, "last": int})
    gave_up = told[pd.to_numeric(told["seq"]).eq(seq) & told["rank"].isin(waiting)]
    if gave_up["group"].nunique() != 1:
        return "", {}
    group = str(gave_up["group"].iloc[0])
    last = told[told["group"] == group].groupby("rank")["last"].max()
    return group, {int(rank): int(own) for rank, own in last.items() if own < seq and rank not in waiting}


def _has_error_before(run: Run, found: pd.DataFrame) -> bool:
    """Whether an error of another kind stands in the log before the first of these, and behind the steps."""
    where = {"path", "line"}
    if not where <= set(run.events):
        return False
    grave = run.events[run.events["kind"].isin(set(ENDINGS) - {"nccl"})]
    first = grave["path"].map(found.groupby("path")["line"].min())
    stepped = len(run.steps) and where <= set(run.steps)
    last = grave["path"].map(run.steps.groupby("path")["line"].max()) if stepped else float("nan")
    return bool(((grave["line"] < first) & ~(grave["line"] < last)).any())


def _gone_on(run: Run) -> set[str]:
    """The files whose training went on in another."""
    lines = training_logs(run).lines
    return set(lines["path"][lines["part"] < lines.groupby("log")["part"].transform("max")])
