"""How recorded programs ended, start after start of a recorder: by events of the recordings themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from gpudiag.measures._ends.how import BY_HAND, FROM_OUTSIDE, NOTHING, End, How, end_of
from gpudiag.readers._io.record_format import CUT, START, WITH_COMMAND
from gpudiag.run import Run

ENDS = ("command_end", "killed", "exception")
KINDS = (START, "signal", *ENDS, "record_end", CUT)
GRACE_S = 600.0
"""So long a program may take to end after a signal: a large checkpoint takes minutes (a default without a source)."""


@dataclass(frozen=True)
class Recorded:
    """One start of a recorder: ``of_command``, or a ``with`` block of Python, or by itself. Lines are of its file."""

    path: str
    start: pd.Timestamp
    start_line: float
    of_command: bool
    end: End = NOTHING
    time: pd.Timestamp = pd.NaT
    line: float = math.nan
    is_cut: bool = False

    @property
    def is_open(self) -> bool:
        """Whether a command may still run, or was killed together with its recorder."""
        return self.of_command and self.is_cut

    def goes_on_in(self, other: Recorded) -> bool:
        """Whether the other began behind this one: in the same file, or in one of the same kind."""
        if self.path == other.path:
            return other.start_line > self.line
        return self.of_command == other.of_command and bool(other.start > self.time)


def recorded_paths(run: Run) -> set[str]:
    """Files that are recordings: what they say of an end is no line of a log."""
    events = run.events
    return set(events.loc[events["kind"] == START, "path"].dropna()) if "path" in events else set()


def recorded(run: Run) -> tuple[list[Recorded], list[Recorded]]:
    """The starts that nothing goes on with, and the earlier ones; each in order of their ends."""
    events = run.events.reindex(columns=["path", "line", "time", "kind", "detail"])
    events = events[events["path"].isin(recorded_paths(run)) & events["kind"].isin(KINDS)]
    files = [_of_file(str(path), own) for path, own in events.groupby("path", sort=True)]
    found = sorted((one for own in files for one in own), key=lambda one: (one.time is pd.NaT, one.time, one.path))
    last = [one for one in found if not any(one.goes_on_in(other) for other in found)]
    return last, [one for one in found if one not in last]


def _of_file(path: str, events: pd.DataFrame) -> list[Recorded]:
    """The starts in one file in their order. Where two recorders share it, an end is of the last that has none."""
    found: list[Recorded] = []
    signals: list[tuple[str, pd.Timestamp]] = []
    for row in events.sort_values("line", kind="stable").itertuples(index=False):
        kind, detail, closed = str(row.kind), str(row.detail), {"time": row.time, "line": float(row.line)}
        open_ = [at for at, one in enumerate(found) if one.end is NOTHING]
        if kind == START:
            found.append(Recorded(path, row.time, float(row.line), detail == WITH_COMMAND))
            signals = []
        elif kind == "signal":
            signals.append((detail, row.time))
        elif kind in ENDS and open_:
            end = _behind(signals, end_of(kind, detail), row.time)
            found[open_[-1]] = replace(found[open_[-1]], end=end, is_cut=False, **closed)
        elif found and found[-1].end is NOTHING:
            found[-1] = replace(found[-1], is_cut=kind == CUT, **closed)
    return found


def _behind(signals: Sequence[tuple[str, pd.Timestamp]], end: End, time: pd.Timestamp) -> End:
    """The end with the signal that the recorder was sent, and passed on, shortly before. Exit code 0 stands: programs
    ignore signals (nohup), or save a checkpoint at one and go on.
    """
    if end.how is How.DONE:
        return end
    for detail, sent in reversed(signals):
        name, late_s = detail.split(" ")[0], (time - sent).total_seconds()
        if 0 <= late_s <= GRACE_S and name in (*BY_HAND, *FROM_OUTSIDE):
            how = How.BY_HAND if name in BY_HAND else How.OUTSIDE
            return end._replace(how=how, text=end.text if name in end.text else f"{end.text} after {name}")
    return end
