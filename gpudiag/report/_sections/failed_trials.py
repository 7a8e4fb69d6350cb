"""What failed trials have in common: when they failed, with how many workers, and by which error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpudiag.measures._trials.failure_periods import LEAST_ENDED, FailurePeriod
from gpudiag.measures.failure_rates import FailureLevel, FailureRatesProfile
from gpudiag.measures.failures import FailureError, FailuresProfile
from gpudiag.measures.trials import TrialsProfile
from gpudiag.plain_data import Scalar
from gpudiag.report._render.blocks import Block, Folded, Note, Number, TableBlock, TableCell
from gpudiag.report.document import Document
from gpudiag.report.format import UNKNOWN, duration, interval, named, plural, quantity, safe, share
from gpudiag.report.timeline.trials import ENDED

MOST_PERIODS = 8
"""Stretches that a table shows; of a number of workers that changes all the time there is no course to see."""
MOST_ERRORS = 5
"""Errors that a reader sees at once."""
ERRORS = "The first sentence of each error; paths, addresses and keys are left out."
EXPOSURE = "Trial time is the sum of the time of all trials that ran meanwhile. Brackets are 95 % intervals."


def failed_trials(document: Document) -> list[Block]:
    """The errors of failed trials, what was stopped by hand, and how many failed with which number of workers and of
    trials at once.
    """
    rates = document.values(FailureRatesProfile)
    said = [*_stopped(document), *_errors(document)]
    if not rates.get(FailureRatesProfile.n_fail):
        return said
    oom = (rates.get(FailureRatesProfile.n_oom) or 0) > 0
    periods = list(document.values(TrialsProfile).by_row(FailurePeriod).values())
    levels = rates.by_row(FailureLevel)
    tables = []
    many = [row for row in periods if isinstance(ended := row["n_ended"], int) and ended >= LEAST_ENDED]
    if len(many) > 1 and len(periods) <= MOST_PERIODS:
        rows = ((_when(row), Number(f"{row['n_workers']}"), *_cells(row, oom=oom)) for row in periods)
        tables.append(_table(("Time since the start", "Workers"), rows, oom=oom))
    if len(levels) > 1:
        rows = (
            (Number(level), *_cells(row, oom=oom)) for level, row in sorted(levels.items(), key=lambda x: int(x[0]))
        )
        tables.append(_table(("At once",), rows, oom=oom))
    if tables:
        said.append(Folded("Failures by number of workers and of trials at once", tuple(tables)))
    return said


def _stopped(document: Document) -> list[Block]:
    n = document.values(TrialsProfile).get(TrialsProfile.n_stopped)
    if not n:
        return []
    were = "was" if n == 1 else "were"
    return [Note(f"{plural(n, 'trial')} {were} stopped, by hand or by a scheduler. That counts as no failure.")]


def _errors(document: Document) -> list[Block]:
    """A row an error, the most frequent first; nothing where no text is known."""
    rows = list(document.values(FailuresProfile).by_row(FailureError).values())
    if not any(row["text"] for row in rows):
        return []
    body = [
        (ENDED.get(str(row["kind"]), safe(row["kind"])), Number(named("n", row["n"])), safe(row["text"] or UNKNOWN))
        for row in rows
    ]
    table = TableBlock(("Failed by", "Trials", "Error"), tuple(body[:MOST_ERRORS]), ERRORS)
    if len(body) <= MOST_ERRORS:
        return [table]
    return [table, Folded("More errors", (TableBlock(table.columns, tuple(body[MOST_ERRORS:])),))]


def _when(row: Mapping[str, Scalar]) -> str:
    return f"{_length(row['from_s'])} to {_length(row['to_s'])}"


def _length(seconds: Scalar) -> str:
    return duration(float(seconds)) if isinstance(seconds, int | float) else UNKNOWN


def _cells(row: Mapping[str, Scalar], *, oom: bool) -> tuple[TableCell, ...]:
    low, high = row["fail_low_pct"], row["fail_high_pct"]
    of = f"{row['n_fail']} of {row['n_ended']}"
    ends = interval(low, high, "%") if isinstance(low, float) and isinstance(high, float) else UNKNOWN
    pct = row["fail_pct"]
    failed = f"{share(pct)} ({ends})" if isinstance(pct, int | float) else UNKNOWN
    memory = (Number(f"{row['n_oom']}"),) if oom else ()
    return (Number(of), Number(failed), *memory, Number(quantity(row["trial_h"], "h")))


def _table(first: tuple[str, ...], rows: Iterable[tuple[TableCell, ...]], *, oom: bool) -> TableBlock:
    memory = ("Out of memory",) if oom else ()
    return TableBlock((*first, "Failed", "Share", *memory, "Trial time"), tuple(rows), EXPOSURE)
