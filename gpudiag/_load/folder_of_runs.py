"""Whether a folder without a run.toml is one run or several, told from what was read in its folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import combinations, pairwise
from pathlib import Path, PurePath

from gpudiag._load.intake import Intake
from gpudiag._load.logged_trials import is_logged
from gpudiag._load.own_trainings import Course, are_apart, course_of
from gpudiag._load.passed_over import some
from gpudiag.errors import InputError
from gpudiag.readers.base import Telemetry, Trials
from gpudiag.spans import SILENCE_S
from gpudiag.units import FIRST_YEAR


class SeveralRuns(InputError):
    """A folder was given as a run, and its folders are runs."""

    def __init__(self, folder: Path, runs: Sequence[str]) -> None:
        super().__init__(
            f"{folder}: holds {len(runs)} runs, by the names, times and logs of its folders ({some(list(runs))}); name "
            f"one of them, or judge each: gpudiag report {folder}. If they are one run, put an empty run.toml into it."
        )


@dataclass(frozen=True)
class _Part:
    """One of the folders, and what was read in it; paths are relative to it."""

    name: str
    intakes: tuple[Intake, ...]

    @cached_property
    def is_recorded(self) -> bool:
        """Whether it holds GPU samples with dates."""
        return any(isinstance(one.data, Telemetry) and len(one.data.gpu) and _span(one) for one in self.intakes)

    @cached_property
    def trials(self) -> frozenset[tuple[str, int]]:
        """Study and number of each trial of its searches."""
        found = [
            one.data.trials
            for one in self.intakes
            if isinstance(one.data, Trials) and (one.record.kind == "trials" or is_logged(one.data))
        ]
        return frozenset(key for table in found for key in zip(table["study"], table["trial"], strict=True))

    @cached_property
    def span(self) -> tuple[datetime, datetime] | None:
        """First and last time in it."""
        spans = [span for one in self.intakes if (span := _span(one))]
        return (min(start for start, _ in spans), max(end for _, end in spans)) if spans else None

    @cached_property
    def logs(self) -> list[Trials]:
        """What is read of its logs and searches."""
        return [one.data for one in self.intakes if isinstance(one.data, Trials)]

    @cached_property
    def is_at_work(self) -> bool:
        """Whether it tells what ran beside its GPU samples: a search, or a training by its steps."""
        return self.is_recorded and (bool(self.trials) or any(len(log.steps) for log in self.logs))

    @cached_property
    def course(self) -> Course | None:
        """When its training stood at which step."""
        return course_of(self.logs)

    def trains_otherwise(self, other: _Part) -> bool:
        """Whether both hold work of their own, of which one at least is a training by its steps, and not of one run."""
        both = self.is_at_work and other.is_at_work and not (self.trials and other.trials)
        return both and are_apart((self.name, other.name), (self.course, other.course))

    def searches_otherwise(self, other: _Part) -> bool:
        """Whether both hold trials, and not those of one search that went on."""
        if not self.trials or not other.trials:
            return False
        same_studies = {study for study, _ in self.trials} == {study for study, _ in other.trials}
        return not same_studies or not self.trials.isdisjoint(other.trials)


def runs_apart(intakes: Sequence[Intake], folder: Path) -> list[str]:
    """The folders, relative to the one that was searched, that are a run each; none where all of it is one run.

    Several are those of which two hold GPU samples and a search or a training of their own each; or those with samples
    that lie in stretches with a silence of all of them between; or searches without samples, one after the other.
    Folders of nodes or ranks record at the same time and log the same steps, and folders of logs beside one of
    telemetry have no samples: they are one run.
    """
    parts = _parts(intakes, folder)
    if not (_own_work(parts) or _silence_between(parts) or _searches_in_turn(parts)):
        return []
    inner = [(part.name, runs_apart(part.intakes, folder / part.name)) for part in parts]
    return sorted(path for name, below in inner for path in ([f"{name}/{one}" for one in below] or [name]))


def taken_together(intakes: Sequence[Intake], folder: Path) -> list[str]:
    """A note where several folders have GPU samples and are taken for one run."""
    names = [part.name for part in _parts(intakes, folder) if part.is_recorded]
    if len(names) < 2:
        return []
    return [
        f"The GPU logs in {len(names)} folders ({some(names)}) are assumed to be of one run. If each folder is a run, "
        f"judge them one by one: gpudiag report {folder}/*"
    ]


def _parts(intakes: Sequence[Intake], folder: Path) -> list[_Part]:
    """The folders that hold inputs; none where an input lies beside them. A copy counts where it stands first."""
    held: dict[str, list[Intake]] = {}
    seen: set[str] = set()
    for one in intakes:
        if one.data is None or one.record.sha256 in seen:
            continue
        seen |= {one.record.sha256} - {""}
        top, *below = PurePath(one.record.path).parts or (".",)
        if top == "." or not (below or (folder / top).is_dir()):
            return []
        held.setdefault(top, []).append(replace(one, record=replace(one.record, path="/".join(below) or ".")))
    if len(held) == 1:
        ((name, inside),) = held.items()
        return [replace(part, name=f"{name}/{part.name}") for part in _parts(inside, folder / name)]
    return [_Part(name, tuple(inside)) for name, inside in held.items()]


def _own_work(parts: Sequence[_Part]) -> bool:
    recorded = [part for part in parts if part.is_recorded]
    return any(one.searches_otherwise(other) or one.trains_otherwise(other) for one, other in combinations(recorded, 2))


def _silence_between(parts: Sequence[_Part]) -> bool:
    """Whether samples lie on both sides of a time of which no part tells, so long that it ends a session."""
    dated = sorted(((*part.span, part.is_recorded) for part in parts if part.span), key=lambda one: one[:2])
    until, recorded, stretches = None, False, 0
    for start, end, has_samples in dated:
        if until is None or (start - until).total_seconds() > SILENCE_S:
            stretches, recorded = stretches + recorded, False
        recorded |= has_samples
        until = max(until or end, end)
    return stretches + recorded > 1


def _searches_in_turn(parts: Sequence[_Part]) -> bool:
    if any(part.is_recorded for part in parts):
        return False
    searches = [part for part in parts if part.trials]
    spans = sorted(part.span for part in searches if part.span)
    in_turn = len(spans) == len(searches) and all(one[1] <= other[0] for one, other in pairwise(spans))
    return in_turn and any(one.searches_otherwise(other) for one, other in combinations(searches, 2))


def _span(intake: Intake) -> tuple[datetime, datetime] | None:
    """From when to when an input tells of; None without dates."""
    start, end = intake.record.start, intake.record.end
    if not start or datetime.fromisoformat(start).year < FIRST_YEAR:
        return None
    return datetime.fromisoformat(start), datetime.fromisoformat(end or start)
