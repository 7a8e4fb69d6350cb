"""The first screen of a fleet's report: its verdict, five answers, a few numbers and one picture."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC as _UTC
from datetime import datetime

from gpudiag.report._render.blocks import Banner, Block, Chip, Figure, Masthead, Tiles
from gpudiag.report.fleet.document import CauseTotal, FleetDocument, Total, no_run
from gpudiag.report.fleet.headline import is_lower_bound
from gpudiag.report.fleet.states import incomplete_gpu_s
from gpudiag.report.fleet.verdict import better_or_worse
from gpudiag.report.format import count, listed, money, plural, quantity, share, span, zone

UTC = "UTC"
WORTH_SAYING_PCT = 1.0
MOST_NAMED, MOST_TILES = 3, 4
NO_RUN = {"shared": "shared nodes", "unallocated": "unallocated"}
"""Whose GPU time it is that is of no single job."""


def masthead(document: FleetDocument) -> list[Block]:
    """Which runs these are."""
    rows = document.counted
    starts = sorted(row.start for row in rows if row.start)
    ends = sorted(row.end for row in rows if row.end)
    facts = [("Runs", _runs(document))]
    if starts and ends:
        facts.append((f"Time ({UTC})", _days(starts[0], ends[-1])))
    for words, kind in (("Users", "user"), ("Projects", "project"), ("Hosts", "host"), ("GPU models", "gpu_model")):
        if kind == "host" and document.cluster is not None:
            facts.append(("Hosts with telemetry" if document.checked else words, count(document.cluster.n_hosts)))
            continue
        of_runs = (getattr(row, kind) for row in rows)
        if kind == "gpu_model":  # a run may have several
            of_runs = (name for held in of_runs for name in held.split(", "))
        names = sorted(set(of_runs) - {""})
        if names:
            facts.append((words, listed(names) if len(names) <= MOST_NAMED else count(len(names))))
    return [Masthead(document.name, tuple(facts))]


def _days(start: str, end: str) -> str:
    """From day to day; within one day with the clock."""
    first, last = (datetime.fromisoformat(one).astimezone(_UTC) for one in (start, end))
    if first.date() == last.date():
        return span(start, end, zone(UTC))
    return f"{first.date()} to {last.date()}"


def _runs(document: FleetDocument) -> str:
    states = Counter(row.status for row in document.runs)
    n = states["diagnosed"] + states["accounted"]
    parts = [count(n)]
    if states["accounted"]:
        which = f"{states['accounted']:,} of them " if states["accounted"] < n else ""
        parts.append(f"{which}by telemetry alone, without checks")
    parts += [f"{states[state]:,} {state}" for state in ("not diagnosed", "counted already") if states[state]]
    return ", ".join(parts)


def verdict(document: FleetDocument) -> list[Block]:
    """The headline, the answers and the largest numbers, over whose GPU time went where."""
    head = document.headline
    levels = Counter(row.level for row in document.checked)
    chips = tuple(
        Chip(level, f"{levels[level]:,} {level}") for level in ("critical", "warning", "note", "ok") if levels[level]
    )
    said = tuple((label, text) for label, text in _answers(document) if text)
    tiles = _tiles(document)
    return [
        Banner(head.level, head.verdict, said, chips),
        *([Tiles(tuple(tiles))] if tiles else []),
        Figure("owners", small=True, bare=True),
    ]


def _answers(document: FleetDocument) -> Iterator[tuple[str, str]]:
    total = document.total
    if not document.counted:
        return
    if total.gpu_s:
        yield "Where it went", _where(total)
        yield "Whose", _whose(document, total)
    if document.causes:
        yield "Mend first", f"{document.headline.sentences[1]}{_start(document.causes[0])}"
        yield "Most common", _most_common(document)
    elif document.checked:
        yield "Mend first", document.headline.sentences[1]
    elif document.cluster is not None:
        yield "Mend first", _unchecked(document)
    if total.gpu_s or document.changes.found:
        yield "Trend", better_or_worse(document.changes)


def _where(total: Total) -> str:
    parts = [
        (total.cells["busy"] + total.cells["foreign"], "busy"),
        (total.cells["busy_low"], "at 10 to 50 % utilization"),
        (total.idle_gpu_s, "idle"),
        (total.cells["unobserved"], "not observed"),
    ]
    shares, seen = [(100 * seconds / total.gpu_s, what) for seconds, what in parts], total.observed_gpu_s
    named = [f"{share(pct)} was {what}" for pct, what in shares if pct >= WORTH_SAYING_PCT or (what == "idle" and seen)]
    return f"Of the GPU time, {listed(named)}."


def _whose(document: FleetDocument, total: Total) -> str:
    """The users with most GPU time; the projects where there is one user at most, and several of them."""
    users, projects = (_seconds_by(document, kind) for kind in ("user", "project"))
    by_project = len(users) < 2 and len(projects) > len(users)
    held, kind = (projects, "project") if by_project else (users, "user")
    first = sorted(held.items(), key=lambda one: (-one[1], one[0]))[:MOST_NAMED]
    if not first:
        return ""
    named = [f"{name} {share(100 * seconds / total.gpu_s)}" for name, seconds in first]
    rest = f" {len(held):,} {kind}s in all." if len(held) > MOST_NAMED else ""
    return f"{listed(named)}.{rest}{_nobody(document, total)}"


def _nobody(document: FleetDocument, total: Total) -> str:
    """GPU time of no single job."""
    held: dict[str, list[float]] = {}
    for row in document.counted:
        if (kind := no_run(row)) and not row.user:
            held.setdefault(kind, []).append(row.gpu_s or 0.0)
    sums = {kind: 100 * math.fsum(seconds) / total.gpu_s for kind, seconds in held.items()}
    said = [f"{NO_RUN[kind]} {share(pct)}" for kind, pct in sorted(sums.items()) if pct >= WORTH_SAYING_PCT]
    return f" Beside them {listed(said)}." if said else ""


def _seconds_by(document: FleetDocument, kind: str) -> Mapping[str, float]:
    held: dict[str, list[float]] = {}
    for row in document.counted:
        if (name := getattr(row, kind)) and row.gpu_s:
            held.setdefault(name, []).append(row.gpu_s)
    return {name: math.fsum(seconds) for name, seconds in held.items()}


def _start(one: CauseTotal) -> str:
    return f" Start with {one.worst_run}." if one.worst_run else ""


def _most_common(document: FleetDocument) -> str:
    """The finding of most runs, unless it is the one to mend first."""
    most = max(document.causes, key=lambda one: one.n_runs)
    if most.n_runs == document.causes[0].n_runs:
        return ""
    return f"{most.title} ({most.n_runs:,} of {plural(len(document.checked), 'run')})."


def _unchecked(document: FleetDocument) -> str:
    """What telemetry and a scheduler alone tell: jobs for nothing and GPUs for nobody, the more GPU time first."""
    lost, never = incomplete_gpu_s(document.counted), document.cluster.never_used if document.cluster else ()
    held = [(lost, f"Jobs that did not complete took {quantity(lost / 3600, 'GPU-h')}.")]
    idle = math.fsum(gpu.observed_s for gpu in never)
    held.append((idle, f"{plural(len(never), 'GPU')} never worked, in {quantity(idle / 3600, 'GPU-h')}."))
    return " ".join(said for seconds, said in sorted(held, key=lambda one: -one[0]) if seconds)


def _tiles(document: FleetDocument) -> list[tuple[str, str]]:
    """The largest numbers, the GPU time first."""
    total = document.total
    if not total.gpu_s:
        return [("trials", count(total.n_trials))] if total.n_trials else []
    least = ", at least" if is_lower_bound(total, document.runs) else ""
    out = [(f"GPU time{least}", quantity(total.gpu_s / 3600, "GPU-h"))]
    if not math.isnan(total.util_pct):
        out.append(("mean utilization", share(total.util_pct)))
    if total.recoverable_gpu_h:
        out.append(("lost at least", quantity(total.recoverable_gpu_h, "GPU-h")))
    if total.pruned_gpu_s + total.failed_gpu_s >= WORTH_SAYING_PCT / 100 * total.gpu_s:
        hours = (total.pruned_gpu_s + total.failed_gpu_s) / 3600
        out.append(("in pruned and failed trials", quantity(hours, "GPU-h")))
    if total.cost:
        out.append(("cost", " + ".join(money(value, currency) for currency, value in total.cost.items())))
    if total.observed_gpu_s:
        out.append(("idle", quantity(total.idle_gpu_s / 3600, "GPU-h")))
    if lost := incomplete_gpu_s(document.counted):
        out.append(("in jobs that did not complete", quantity(lost / 3600, "GPU-h")))
    return out[:MOST_TILES]
