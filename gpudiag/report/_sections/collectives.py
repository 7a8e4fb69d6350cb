"""The collective at which a training hangs: who did not come, who waits, and the last collective of each rank."""

from __future__ import annotations

from gpudiag.measures.collectives import CollectivesProfile, CollectivesRank
from gpudiag.report._render.blocks import Block, Note, Number, TableBlock
from gpudiag.report.document import Document, TopicValues, VerdictEntry
from gpudiag.report.format import count, duration, listed, plural, safe, timestamp, zone
from gpudiag.rules._engine.verdict import Severity, Status
from gpudiag.rules.collectives import SURE

RANK_MISSING, STUCK, TRAINING_FAILED = "rank-missing", "collective-stuck", "training-failed"
CAUSES = frozenset({"gpu-lost", "gpu-hardware-errors"})
"""Of a rank that does not come."""
MOST_ROWS = 16
MOST_NAMED = 6
"""Ranks, or ranges of them, that a headline names."""
ROLES = ("missing", "unknown", "waiting", "ended")
"""In this order: who is to be looked at first."""


def collectives(document: Document) -> list[Block]:
    """A sentence and a row a rank; nothing without a dump."""
    facts = document.values(CollectivesProfile)
    if not facts:
        return []
    n = facts[CollectivesProfile.n_dumps]
    if not facts[CollectivesProfile.hang]:
        return [Note(f"No rank waits in a collective, by the flight recorders of {plural(n, 'rank')}."), *_older(facts)]
    rows = sorted(
        facts.by_row(CollectivesRank).items(), key=lambda row: (ROLES.index(str(row[1]["role"])), int(row[0]))
    )
    shown = tuple(
        (
            safe(rank),
            safe(cells["role"]),
            safe(cells["last_name"]) or "none",
            Number(count(cells["last_seq"] if isinstance(cells["last_seq"], float | int) else None)),
            safe(cells["last_state"]),
            timestamp(cells["scheduled"] if isinstance(cells["scheduled"], str) else None, zone(document.run.timezone)),
        )
        for rank, cells in rows[:MOST_ROWS]
    )
    table = TableBlock(("Rank", "Is", "Last collective", "Number", "State", "Scheduled"), shown)
    more = [Note(f"And {plural(len(rows) - MOST_ROWS, 'rank')} more.")] if len(rows) > MOST_ROWS else []
    return [Note(_said(facts, document.run.timezone)), table, *more, *_older(facts)]


def _older(facts: TopicValues) -> list[Block]:
    """Of ranks with several dumps, which was taken."""
    older, latest = (facts.get(name) for name in (CollectivesProfile.older_dumps, CollectivesProfile.latest_dumps))
    if not older or not latest:
        return []
    return [Note(f"Of a rank with several dumps the latest was taken ({_few(latest)}); left out: {_few(older)}.")]


def _few(names: str) -> str:
    each = [safe(name) for name in names.split(", ")]
    return listed(
        [*each[:MOST_NAMED], f"{plural(len(each) - MOST_NAMED, 'other')}"] if len(each) > MOST_NAMED else each
    )


def undecided_hang(document: Document) -> tuple[str, VerdictEntry] | None:
    """That ranks wait in a collective while it is not known how far others came, and the check that it leaves open.
    None where a finding tells the cause.
    """
    facts = document.values(CollectivesProfile)
    if not facts or facts[CollectivesProfile.hang] != "open" or facts.get(CollectivesProfile.wait_s) is None:
        return None
    grave = {v.rule for v in document.findings if v.severity is Severity.CRITICAL}
    after_error = facts.get(CollectivesProfile.after_error)
    if grave & CAUSES or (after_error and TRAINING_FAILED in grave):
        return None
    open_ = next((v for v in document.of_status(Status.NOT_ASSESSED) if v.rule == RANK_MISSING), None)
    if open_ is None:
        return None
    if not facts[CollectivesProfile.n_dumps]:
        return _gave_up(facts), open_
    n, unknown = facts[CollectivesProfile.n_waiting], facts[CollectivesProfile.unknown_ranks]
    waiting = f"{count(n)} of {plural(facts[CollectivesProfile.n_ranks], 'rank')} {'wait' if n > 1 else 'waits'}"
    who = _ranks(unknown).lower() if _are_few(unknown) else "many others"
    has_none = facts[CollectivesProfile.undumped_ranks] == unknown
    lacks = f"there is no dump of {who}" if has_none else f"no dump says how far {who} came"
    return f"{waiting} in a collective, and {lacks}", open_


def hang_found(document: Document, found: VerdictEntry) -> str:
    """A finding that the training hung, in a sentence: at which collective, for which ranks; '' for any other, and
    where only the time of files tells how long it was.
    """
    facts = document.values(CollectivesProfile)
    if found.rule not in (RANK_MISSING, STUCK) or found.severity is not Severity.CRITICAL:
        return ""
    missing, what = facts[CollectivesProfile.missing_ranks], safe(facts[CollectivesProfile.collective])
    if found.rule == STUCK:
        who = "all ranks entered"
    else:
        few = _are_few(missing)
        who = f"{_ranks(missing).lower() if few else plural(facts[CollectivesProfile.n_missing], 'rank')} did not enter"
    waiting = plural(facts[CollectivesProfile.n_waiting], "rank")
    low_s, high_s = facts.get(CollectivesProfile.wait_low_s) or 0.0, facts[CollectivesProfile.wait_s]
    up_to = "" if low_s >= SURE * high_s else "up to "
    return f"The training hung: {who} {what}; {waiting} waited {up_to}{duration(high_s)}"


def _gave_up(facts: TopicValues) -> str:
    """What a log alone tells of the collective in which the watchdog ended the training."""
    waiting, wait_s = facts[CollectivesProfile.waiting_ranks], facts.get(CollectivesProfile.wait_s)
    who = _ranks(waiting) if _are_few(waiting) else plural(facts[CollectivesProfile.n_waiting], "rank")
    return f"{who} gave up {safe(facts[CollectivesProfile.collective])} after {duration(wait_s)}"


def _are_few(ranks: str) -> bool:
    return ranks.count(", ") < MOST_NAMED


def _said(facts: TopicValues, timezone: str) -> str:
    """The hang in one or two sentences."""
    if not facts[CollectivesProfile.n_dumps] and not facts[CollectivesProfile.missing_ranks]:
        after_error = facts.get(CollectivesProfile.after_error)
        why = "tells of another error before" if after_error else "does not say for which rank they waited"
        return f"{_gave_up(facts)}, by the log, which {why}."
    missing, waiting = (_ranks(facts[name]) for name in (
        CollectivesProfile.missing_ranks, CollectivesProfile.waiting_ranks
    ))  # fmt: skip
    group = facts[CollectivesProfile.group]
    what = f"{safe(facts[CollectivesProfile.collective])}{f' of group {safe(group)}' if group else ''}"
    since = facts[CollectivesProfile.waiting_since]
    several = facts[CollectivesProfile.n_waiting] > 1
    waited = f"{waiting} {'have' if several else 'has'} waited for it"
    if since:
        waited += f" since {timestamp(since, zone(timezone))}"
    wait_s = facts.get(CollectivesProfile.wait_s)
    if wait_s is not None:
        waited += f", for up to {duration(wait_s)}"
    unknown = facts[CollectivesProfile.unknown_ranks]
    doubt = f" No dump says how far {_ranks(unknown).lower()} came." if unknown else ""
    if facts[CollectivesProfile.hang] == "missing":
        return f"{missing} never came to {what}; {waited.lower()}.{doubt}"
    if facts[CollectivesProfile.hang] == "stuck":
        return f"All ranks came to {what}, and it does not end: {waited.lower()}.{doubt}"
    return f"{waited[:1]}{waited[1:].replace('for it', f'in {what}', 1)}.{doubt}"


def _ranks(text: str) -> str:
    each = text.split(", ")
    return f"Ranks {listed(each)}" if len(each) > 1 or "-" in text else f"Rank {safe(text)}"
