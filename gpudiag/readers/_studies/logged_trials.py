"""The trials that Optuna's own log tells of, where a study left nothing else.

It has when each trial ended. When one began is known where they ran one after another: when the one before it ended.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from gpudiag.readers._batches.batch_tables import batch
from gpudiag.readers._batches.optuna_lines import StudyLine, TrialLine, told_by_optuna
from gpudiag.readers._io.paths import as_text, without_kind
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._steps.other_work import moment_of
from gpudiag.readers._studies.one_by_one import ran_one_by_one
from gpudiag.readers.base import ReadOptions, Trials
from gpudiag.schema import STUDIES, TRIALS, conform

READER = "training-log"
MOST_PARAMS = 1000
_DETAIL_CHARACTERS = 300


@dataclass
class _Ended:
    """A trial with its line, and the line before that bounds its start: of the trial before, or of its study."""

    said: TrialLine
    stamp: str
    line: int
    after: int | None
    after_stamp: str


@dataclass
class _Study:
    name: str
    stamp: str = ""
    resumed: bool = False
    trials: dict[int, _Ended] = field(default_factory=dict)
    last: _Ended | None = None


class LoggedTrials:
    """Takes the lines of one log in their order."""

    def __init__(self) -> None:
        self._studies: list[_Study] = []
        self._mixed = False

    def take(self, number: int, line: str, stamp: str) -> None:
        """Look at one line; ``stamp``: its timestamp where that is a moment."""
        said = told_by_optuna(line)
        if isinstance(said, StudyLine):
            self._begin(said.name, stamp)
        elif said is not None:
            self._end(said, number, stamp)

    def _begin(self, name: str, stamp: str) -> None:
        if self._studies and not self._studies[-1].trials:  # made before either ran: whose trials follow is not told
            before = self._studies.pop()
            name = name if name == before.name else ""
        known = next((one for one in self._studies if one.name == name != ""), None)
        if known is not None:
            self._studies.remove(known)
            known.stamp, known.resumed, known.last = stamp, True, None
        self._studies.append(known or _Study(name, stamp))

    def _end(self, said: TrialLine, number: int, stamp: str) -> None:
        study = self._studies[-1] if self._studies else None
        if study is not None and (known := study.trials.get(said.number)):
            if _is_again(said, known.said):  # by a second handler of the log
                known.stamp = known.stamp or stamp
                return
            self._mixed |= said.number > 0
            study = None
        if study is None:
            study = _Study("")
            self._studies.append(study)
        last = study.last
        after, after_stamp = (last.said.number, last.stamp) if last else (None, study.stamp)
        study.last = study.trials[said.number] = _Ended(said, stamp, number, after, after_stamp)

    def read(self, source: Source, options: ReadOptions, problems: ProblemLog) -> Trials:
        """Tables ``trials`` and ``studies``, and the notes on them. Empty where lines of several studies are mixed."""
        studies = [study for study in self._studies if study.trials]
        if self._mixed:
            problems.add(
                "incomplete: lines of several studies are mixed, and nothing tells their trials apart", lost=True
            )
            return Trials(reader=READER)
        parts: list[Trials] = []
        taken: set[str] = set()
        for study in studies:
            own = options.study or without_kind(source.path)
            name = study.name or (own if own not in taken else f"{own} ({len(taken) + 1})")
            taken.add(name)
            parts.append(_tables(study, name, source, options, problems))
        if not parts:
            return Trials(reader=READER)
        return Trials(
            trials=conform(pd.concat([part.trials for part in parts], ignore_index=True), TRIALS),
            studies=conform(pd.concat([part.studies for part in parts], ignore_index=True), STUDIES),
            notes=tuple(note for part in parts for note in part.notes),
            reader=READER,
        )


def _is_again(said: TrialLine, known: TrialLine) -> bool:
    return (said.state, said.values) == (known.state, known.values)


def _tables(study: _Study, name: str, source: Source, options: ReadOptions, problems: ProblemLog) -> Trials:
    ended = list(study.trials.values())
    one_by_one = _ran_one_by_one(study, ended, options.parallel)
    rows = [_row(one, study, starts=one_by_one) for one in ended]
    params = dict.fromkeys(key for row in rows for key in row if key.startswith("params."))
    for key in list(params)[MOST_PARAMS:]:
        problems.add(f"parameter beyond the first {MOST_PARAMS}", lost=True)
        for row in rows:
            row.pop(key, None)
    alone = ReadOptions(options.timezone)  # the study has its own name
    out = batch(
        rows,
        source,
        alone,
        READER,
        problems,
        study=name,
        notes=[_note(source, ended, one_by_one, options.parallel)],
        lines=[one.line for one in ended],
    )
    return Trials(out.trials, studies=out.studies.assign(directions=_direction(ended)), notes=out.notes[:1])


def _ran_one_by_one(study: _Study, ended: list[_Ended], parallel: int | None) -> bool:
    """Whether one trial ran at a time: as stated, or as their ends show; never where they ended in another order."""
    numbers = [one.said.number for one in ended]
    if numbers != sorted(numbers) or (parallel or 1) > 1:
        return False
    moments = [moment_of(one.stamp) for one in ended]
    begun = moment_of(study.stamp if not study.resumed else "")
    if math.isnan(begun):  # from the first end on
        begun, moments = (moments[0], moments[1:]) if moments else (math.nan, [])
    return parallel == 1 or ran_one_by_one(pd.Series(moments, dtype=float).to_numpy() - begun)


def _row(one: _Ended, study: _Study, *, starts: bool) -> dict[str, Any]:
    said = one.said
    row: dict[str, Any] = {"trial": said.number, "state": said.state, "end": one.stamp or None}
    follows = said.number == 0 or study.resumed if one.after is None else said.number == one.after + 1
    if starts and follows and moment_of(one.after_stamp) <= moment_of(one.stamp):
        row["start"] = one.after_stamp
    if len(said.values) == 1:
        row["value"] = said.values[0]
    else:
        row |= {f"value_{at}": value for at, value in enumerate(said.values)}
    if said.why:
        row["detail"] = _text(f"Trial {said.number} failed: {said.why}")[:_DETAIL_CHARACTERS]
    return row | {f"params.{_text(key)}": _cell(value) for key, value in said.params.items()}


def _cell(value: object) -> object:
    """A number or a text; of other constants their text, if they have one."""
    try:
        text = value if isinstance(value, str) else repr(value)
    except ValueError:  # an integer of thousands of digits
        return None
    return value if value is None or isinstance(value, bool | int | float) else _text(text)


def _text(text: str) -> str:
    """Without halves of a character, which no table can hold."""
    return text.encode("utf-8", "replace").decode()


def _direction(ended: list[_Ended]) -> str:
    """Which values are better, by which trial was the best so far; empty where nothing or both tell.

    A new best is better than the one before. Where none ever is, the others are worse than the best; but what broke a
    constraint is never the best, however good, so that all must agree then.
    """
    lower, others = set[bool](), set[bool]()
    before: float | None = None
    for said in (one.said for one in ended):
        best = said.best_value
        if best is None or len(said.values) != 1:
            continue
        if before is not None and said.best == said.number and best != before:
            lower.add(best < before)
        if best != said.values[0]:
            others.add(best < said.values[0])
        before = best
    lower = lower or others
    return "" if len(lower) != 1 else "MINIMIZE" if lower.pop() else "MAXIMIZE"


def _note(source: Source, ended: list[_Ended], one_by_one: bool, parallel: int | None) -> str:
    n, numbers = len(ended), [one.said.number for one in ended]
    what = (
        f"{as_text(source.path.name)}: {n} {'trial' if n == 1 else 'trials'} from Optuna's log, which tells no starts."
    )
    if one_by_one:
        shown = f"run.toml states parallel = {parallel}" if parallel else "the order of their ends shows one at a time"
        state = "" if parallel else " If several ran at once, state parallel under [settings] in run.toml."
        return f"{what} Each is taken to start where the one before it ended, since {shown}.{state}"
    if numbers != sorted(numbers):
        return f"{what} Several ran at once, since they ended in another order than that of their numbers."
    state = "" if parallel else " If one ran at a time, state parallel = 1 under [settings] in run.toml."
    return f"{what} How long each took is unknown.{state}"
