"""How often our predictions held: over the plans that were compared with what happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from gpudiag.comparison.plan_check import CAME_TRUE, CANNOT_TELL, GAIN, MISSED, PREDICTION
from gpudiag.comparison.written import WrittenComparison, WrittenPlan, read_written
from gpudiag.errors import InputError, InputNotFound
from gpudiag.report.comparison.calibration import Calibration, PredictionCounts
from gpudiag.report.comparison.document import PlanOutcomeEntry

MAX_BYTES = 50_000_000


def calibration(folder: str | Path) -> Calibration:
    """Gather every comparison with a plan below a folder (as ``gpudiag compare --plan ... -o DIR`` writes them).

    The same comparison written twice counts once; a file that is not of the form that it names is passed over and told.
    Raises InputNotFound, or InputError where there is no plan at all.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputNotFound(f"{folder}: no such folder; expected one with plans and comparisons in it.")
    plans, comparisons, unread = _documents(folder)
    rows: dict[str, list[PlanOutcomeEntry]] = {}
    seen = set()
    for path, document in comparisons:
        if document.plan and document.key not in seen:
            seen.add(document.key)
            rows[path] = [entry for entry in document.plan if entry.kind in (PREDICTION, GAIN)]
    if not plans and not rows:
        raise InputError(
            f"{folder}: holds no plan and no comparison with a plan; write them with diagnosis.save_plan() and "
            "gpudiag compare A B --plan plan.json -o DIR." + "".join(f" {reason}" for reason in unread[:1])
        )
    entries = [entry for part in rows.values() for entry in part]
    answered = {document.plan_key for path, document in comparisons if path in rows}
    pending = tuple(path for path, document in plans if document.key not in answered)
    by_remedy, by_measure = _by(entries, lambda entry: entry.remedy), _by(entries, lambda entry: entry.measure)
    return Calibration(_tally("all", entries), by_remedy, by_measure, tuple(rows), pending, tuple(unread))


def _documents(
    folder: Path,
) -> tuple[list[tuple[str, WrittenPlan]], list[tuple[str, WrittenComparison]], list[str]]:
    """Plans and single comparisons below the folder, by path, and why some could not be read. Other JSON is passed
    over.
    """
    plans, comparisons, unread = [], [], []
    for path in sorted(folder.rglob("*.json")):
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            continue
        name = str(path.relative_to(folder))
        try:
            read = read_written(path)
        except InputError as error:
            unread.append(str(error))
            continue
        if isinstance(read, WrittenPlan):
            plans.append((name, read))
        elif isinstance(read, WrittenComparison):
            comparisons.append((name, read))
        elif read is not None:
            comparisons += [(f"{name}#{i + 1}", one) for i, one in enumerate(read.comparisons)]
    return plans, comparisons, unread


def _by(entries: Iterable[PlanOutcomeEntry], name: Callable[[PlanOutcomeEntry], str]) -> tuple[PredictionCounts, ...]:
    groups: dict[str, list[PlanOutcomeEntry]] = {}
    for entry in entries:
        groups.setdefault(name(entry), []).append(entry)
    tallies = [_tally(key, part) for key, part in groups.items()]
    return tuple(sorted(tallies, key=lambda tally: (-tally.known, tally.name)))


def _tally(name: str, entries: Iterable[PlanOutcomeEntry]) -> PredictionCounts:
    statuses: list[str] = [entry.status for entry in entries]
    return PredictionCounts(name, statuses.count(CAME_TRUE), statuses.count(MISSED), statuses.count(CANNOT_TELL))
