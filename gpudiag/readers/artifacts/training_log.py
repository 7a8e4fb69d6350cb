"""The text log of a training or of its workers: steps, and failures, loader timing, epochs, what the model is and GPUs
given as events; and the trials that Optuna's own log tells of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from gpudiag.readers._batches.documents import OUTPUT, lines_of_log
from gpudiag.readers._batches.line_clocks import LineClock
from gpudiag.readers._batches.line_timestamps import line_timestamp
from gpudiag.readers._batches.log_lines import (
    ENDINGS,
    TRIAL_FAILED,
    gpu_of,
    is_ordinary,
    is_progress,
    kind_of,
    trial_of,
    why_failed,
    worker_of,
)
from gpudiag.readers._batches.optuna_lines import counts_trials, told_by_optuna, totals_of_bars
from gpudiag.readers._batches.wrapped_lines import printed
from gpudiag.readers._io.lines import numbered_lines, plain
from gpudiag.readers._io.paths import as_text
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._steps.step_line import may_tell, step_of
from gpudiag.readers._steps.step_log import StepLog
from gpudiag.readers._steps.trainer_line import trainer_line
from gpudiag.readers._steps.trainer_output import TrainerOutput
from gpudiag.readers._steps.trainer_session import session_rows, sessions_note
from gpudiag.readers._studies.logged_trials import LoggedTrials
from gpudiag.readers._studies.timestamps import to_utc
from gpudiag.readers.base import Reader, ReadOptions, Trials
from gpudiag.schema import EVENTS, conform, empty, text_dtype

NAME = "training-log"

_DETAIL_CHARACTERS = 300
DAY_OR_MONTH = (
    "its dates can be read day first or month first, and nothing in it tells which: only the time between its lines is "
    "used."
)
_IGNORED = "Exception ignored in"
"""What Python prints before an exception that ends nothing."""
_ENOUGH_PROGRESS = 3
_SAYS_LITTLE = {None, "model", "raised", "diverged", "gpus_given"}
"""Many a text states how many parameters a model has or a list of GPUs, or quotes an error; that alone makes none a
log."""
_TRACEBACK = "Traceback (most recent call last):"
_WATCHDOG, _BEFORE_IT = "] Watchdog caught", 150
"""Words of PyTorch's watchdog, and the most characters in which the line says before them whose it is."""
_CANCELED_AT = " CANCELLED AT "


def recognises(source: Source) -> bool:
    """True if the head tells of an event, a trial or three steps of a training; other formats quote such lines."""
    if source.is_binary or not source.head:
        return False
    lines = [plain(line) for line in lines_of_log(source)]
    told = {kind_of(line) for line in lines}
    if told - _SAYS_LITTLE or any(map(told_by_optuna, lines)):
        return True
    return _trains(lines) or ("raised" in told and _is_output(source.path, lines))


def _is_output(path: Path, lines: Sequence[str]) -> bool:
    """Whether a file is what a program printed as it died, such as the stderr of a job."""
    return path.suffix in OUTPUT and any(line.startswith(_TRACEBACK) for line in lines)


def _trains(lines: Sequence[str]) -> bool:
    steps, clock = 0, None
    for line in lines:
        if not (may_tell(line) or is_progress(line)):
            continue
        clock = clock or LineClock.of(lines)
        stamped = bool(clock.stamp(line))
        said = (stamped and is_progress(line)) or step_of(line, stamped=stamped) is not None
        steps += said or trainer_line(line) is not None
        if steps == _ENOUGH_PROGRESS:
            return True
    return False


def read(source: Source, options: ReadOptions) -> Trials:
    """What the lines say, in their order: ``events``, ``steps`` and ``trials``. A failure that was printed twice is two
    events, but for the traceback below Optuna's own line about a trial that failed.

    ``time`` is the line's own timestamp, NaT where it has none. Of an event, ``trial`` is the number the line names,
    ``gpu`` the one it says the trial was given, ``worker`` the one it says took it. Where nothing in the log tells the
    day from the month, times are NaT, and ``otherwise`` reads it either way.
    """
    return _read(source, options, None)


def _read(source: Source, options: ReadOptions, day_first: bool | None) -> Trials:
    problems = ProblemLog()
    rows: list[_Event] = []
    every = (printed(line) for _, line in numbered_lines(source, ProblemLog()))
    head = [plain(printed(line)) for line in source.lines]
    of_lines = LineClock.of(head, every, day_first=day_first)
    steps, trainer = StepLog(source.path, dated=of_lines.dated), TrainerOutput()
    logged, totals = LoggedTrials(), totals_of_bars(head)
    n_ordinary, dated, ignored, of_trial = 0, False, False, False
    for number, written in numbered_lines(source, problems):
        line = printed(written)
        if counts_trials(line, totals):
            continue
        stamp = of_lines.stamp(line)
        logged.take(number, line, stamp if of_lines.dated else "")
        timestamp = stamp if of_lines.dated else line_timestamp(line)
        of_step = steps.take(number, line, stamp)
        of_step |= trainer.take(number, line, timestamp)
        kind = kind_of(line)
        dated, ignored = dated or bool(stamp), ignored or line.startswith(_IGNORED)
        of_trial = kind == TRIAL_FAILED or (of_trial and not stamp)
        if of_trial and of_lines.dated and kind in ENDINGS:  # the traceback that Optuna prints below its own line
            kind = None
        elif kind == "raised" and ignored:
            kind, ignored = None, False
        elif rows and kind not in ENDINGS and not of_step:  # only what lies behind an event is asked for
            n_ordinary += (bool(stamp) or not dated) and is_ordinary(line)
        if kind:
            rows.append(_Event(timestamp or _stated(line), kind, number, line, n_ordinary))
    name = as_text(source.path.name)
    sessions = [] if len(steps) else trainer.sessions()
    of_trials = logged.read(source, options, problems)
    if not rows and not len(steps) and not sessions and not of_trials.rows:
        note = f"{name}: a training log without a line about steps, failures, loader timing, epoch times or GPUs."
        return Trials(problems=problems.all, notes=(note,), reader=NAME)
    rows = [row._replace(behind=n_ordinary - row.behind) for row in rows]
    events, clock = _events(rows, source, options, problems)
    of_steps, steps_clock = (
        session_rows(sessions, source.path, options.timezone) if sessions else steps.frame(options.timezone)
    )
    said_of_steps = steps.note() if len(steps) else sessions_note(sessions)
    said = [f"{count} x {kind}" for kind, count in Counter(row.kind for row in rows).most_common()]
    said += [said_of_steps] if said_of_steps else []
    notes = [*([f"{name}: " + ", ".join(said) + "."] if said else []), *of_trials.notes]
    if {clock, steps_clock, *of_trials.studies.get("clock", ())} & {"local", "mixed"}:
        notes.append(f"{name}: timestamps without a zone read as local time of {options.timezone}.")
    if of_lines.open:
        notes.append(f"{name}: {DAY_OR_MONTH}")
    return Trials(
        trials=of_trials.trials,
        studies=of_trials.studies,
        events=events,
        steps=of_steps,
        problems=problems.all,
        notes=tuple(notes),
        reader=NAME,
        clock=steps_clock,
        otherwise=partial(_read, source, options) if of_lines.open else None,
    )


class _Event(NamedTuple):
    timestamp: str
    kind: str
    number: int
    line: str
    behind: int


def _events(
    rows: Sequence[_Event], source: Source, options: ReadOptions, problems: ProblemLog
) -> tuple[pd.DataFrame, str]:
    """Table ``events``, and how its timestamps are meant."""
    if not rows:
        return empty(EVENTS), "unknown"
    times = to_utc([row.timestamp for row in rows], options.timezone)
    problems.add("timestamp that is no date", times.bad, example=times.example)
    lines, kinds = [row.line for row in rows], [row.kind for row in rows]
    gpus = [gpu_of(line) if kind == "gpu_assigned" else None for kind, line in zip(kinds, lines, strict=True)]
    workers = [
        worker_of(line) if kind in ("worker", "gpu_assigned") else None for kind, line in zip(kinds, lines, strict=True)
    ]
    text = text_dtype()
    events = pd.DataFrame({"time": times.time, "kind": pd.Series(kinds, dtype=text)})
    events["line"] = [row.number for row in rows]
    events["detail"] = pd.Series([_detail(line) for line in lines], dtype=text)
    events["gpu"] = pd.Series(gpus, dtype=text)
    events["trial"] = pd.Series([trial_of(line) for line in lines], dtype="Int64")
    events["worker"] = pd.Series(workers, dtype=text)
    events["path"] = as_text(source.path)
    events["behind"] = [row.behind for row in rows]
    return conform(events, EVENTS), times.clock


def _stated(line: str) -> str:
    """The time at which Slurm canceled a job or a step, empty in other lines."""
    return line_timestamp(line.partition(_CANCELED_AT)[2])


def _detail(line: str) -> str:
    """The line in short: of one that a progress bar shares with the watchdog of PyTorch, the latter's words, and of a
    trial that failed why it did.
    """
    if (why := why_failed(line)) is not None:
        return f"Trial {trial_of(line)} failed: {why}"[:_DETAIL_CHARACTERS]
    at = line.find(_WATCHDOG)
    begins = [line.find(mark, max(at - _BEFORE_IT, 0), at) for mark in ("[rank", "[E") if at > _BEFORE_IT]
    return line[next((begin for begin in begins if begin >= 0), 0) :].strip()[:_DETAIL_CHARACTERS]


READER: Reader[Trials] = Reader(NAME, recognises, read)
