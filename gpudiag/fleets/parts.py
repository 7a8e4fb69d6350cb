"""What lies in one place and is several runs: the studies of a storage, and sessions of recordings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from gpudiag._load.sessions import SessionsApart
from gpudiag.spans import SILENCE_S

if TYPE_CHECKING:
    from gpudiag.run import Run


@dataclass(frozen=True)
class Part:
    """One run of several in one place: a study, some of the files, or a span of time (ISO 8601, UTC). Of files, trials
    are those that began from ``since`` to before ``before``.
    """

    study: str = ""
    files: tuple[str, ...] = ()
    start: str = ""
    end: str = ""
    since: str = ""
    before: str = ""

    @property
    def name(self) -> str:
        """What it is called after the run that it is part of."""
        began = self.start[: 16 if self.end else 10].replace("T", " ")
        return "::".join(one for one in (began, self.study) if one)

    def options(self, timezone: str) -> tuple[str, ...]:
        """What ``gpudiag report`` shows it with, alone; nothing for some of the files. ``timezone``: in which it was
        read.
        """
        if self.files:
            return ()
        if self.study:
            return ("--study", self.study)
        return ("--timezone", timezone, "--between", f"{self.start},{self.end}") if self.end else ()

    def of(self, run: Run) -> Run:
        """That part of the run as read (of ``files``, if there are any)."""
        if self.study:
            return run.study(self.study)
        return run.between(self.start, self.end) if self.end else run


def part_from(held: Mapping[str, Any]) -> Part:
    """The part of which JSON holds the fields."""
    return Part(**{**held, "files": tuple(held["files"])})


def parts_of(run: Run, part: Part | None) -> tuple[Part, ...]:
    """The runs that this one is: its studies where nothing lays them on one GPU, its sessions where it has no trials;
    none where it is one run.
    """
    held = part or Part()
    if held.study or held.end:
        return ()
    studies = [str(name) for name in run.studies["study"]]
    if run.gpu.empty:
        return tuple(replace(held, study=name) for name in studies) if len(studies) > 1 else ()
    return _sessions(run, held) if run.trials.empty else ()


def _sessions(run: Run, held: Part) -> tuple[Part, ...]:
    times = run.gpu["time"].drop_duplicates().sort_values(ignore_index=True)
    breaks = times.index[times.diff().dt.total_seconds() > SILENCE_S].tolist()
    firsts = [0, *breaks]
    if not breaks:
        return ()
    begins = [one.isoformat() for one in times.iloc[firsts]]
    end = (times.iloc[-1] + timedelta(seconds=1)).isoformat()  # the end of a span is not in it
    return tuple(replace(held, start=a, end=b) for a, b in zip(begins, [*begins[1:], end], strict=True))


def sessions_apart(error: SessionsApart) -> tuple[Part, ...]:
    """Recordings that are months apart: each a run of the files that lie together in time."""
    return tuple(Part(files=one.files, start=one.start, since=one.since, before=one.before) for one in error.sessions)
