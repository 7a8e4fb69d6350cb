"""One call of Hugging Face's ``Trainer.train``, by what it says, as rows of table ``steps``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from itertools import pairwise
from pathlib import Path

import pandas as pd

from gpudiag.readers._io.paths import as_text
from gpudiag.readers._steps.stated_loss import not_finite_of_trainer
from gpudiag.readers._steps.trainer_line import WHOLE_TIME, TrainerLine
from gpudiag.readers._studies.timestamps import to_utc
from gpudiag.schema import STEPS, conform, text_dtype


@dataclass
class Session:
    """``lines`` on steps and evaluations within it, in their order; ``whole`` ends it, None where it did not come to
    its end; ``behind``: evaluations after it. ``total``: steps there will be.
    """

    lines: list[TrainerLine] = field(default_factory=list)
    whole: TrainerLine | None = None
    behind: list[TrainerLine] = field(default_factory=list)
    total: int | None = None

    @property
    def every(self) -> list[TrainerLine]:
        return [*self.lines, *([self.whole] if self.whole else [])]

    @property
    def end(self) -> TrainerLine | None:
        """The line that states the time of all before it: in a training that was stopped its last step, if lines on
        steps state theirs. None where these begin anew, as behind a resumption.
        """
        timed = [line for line in self.lines if line.kind == "step" and line.seconds > 0]
        if any(before.seconds > after.seconds for before, after in pairwise(timed)):
            return None
        return self.whole or (timed[-1] if timed else None)

    def undated(self) -> Session:
        """The same without the time of all."""
        lines = [replace(line, seconds=math.nan) if line.kind == "step" else line for line in self.lines]
        return Session(lines, None, [], self.total)


def session_rows(sessions: Sequence[Session], path: Path, zone: tzinfo) -> tuple[pd.DataFrame, str]:
    """Table ``steps``, and how its timestamps are meant. The last row of a session whose time is stated has it as
    ``elapsed_s``; without steps, whole epochs are counted.
    """
    rows: list[dict[str, object]] = []
    stamps: list[str] = []
    for count, session in enumerate(sessions, 1):
        end = session.end
        for line in session.every:
            rows.append(_row(line, session, count) | {"elapsed_s": line.seconds if line is end else math.nan})
            stamps.append(line.stamp)
        behind_s = sum(line.seconds for line in session.behind if line.seconds > 0)
        if behind_s and session.whole:
            rows[-1] |= {"then": "evaluation", "then_s": behind_s, "then_evaluation_s": behind_s}
    times = to_utc(stamps, zone)
    frame = pd.DataFrame(rows).assign(time=times.time, path=pd.Series([as_text(path)] * len(rows), dtype=text_dtype()))
    return conform(frame, STEPS), times.clock


def sessions_note(sessions: Sequence[Session]) -> str:
    """What they are and what they state, as a sentence without the file's name; '' for none."""
    if not sessions:
        return ""
    lines = [line for session in sessions for line in [*session.every, *session.behind]]
    n_evaluations = sum(line.kind == "evaluation" for line in lines)
    n_timed = sum(session.end is not None for session in sessions)
    said = f"{len(lines)} lines of Hugging Face's Trainer, {n_evaluations} of them on evaluations, without a clock"
    if n_timed == len(sessions):
        return said
    which = "the training" if len(sessions) == 1 else f"{len(sessions) - n_timed} of {len(sessions)} trainings"
    return f"{said}; how long {which} took as a whole is not known"


def _row(line: TrainerLine, session: Session, count: int) -> dict[str, object]:
    evaluated = line.kind == "evaluation"
    return {
        "step": int(line.epoch) if line.step is None else line.step,
        "total": session.total,
        "unit": "epoch" if line.step is None else "step",
        "meant": "",
        "series": f"{WHOLE_TIME}|{count}",
        "since": "evaluation" if evaluated else None,
        "evaluation_s": line.seconds if evaluated else math.nan,
        "line": line.number,
        "not_finite": not_finite_of_trainer(line.said) if line.kind == "step" else None,
    }
