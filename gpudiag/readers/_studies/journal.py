"""Optuna's journal: operations, one JSON object a line, replayed.

Operations are ignored where Optuna ignores them: a study created twice, a parameter that contradicts
its study's earlier ones, anything about a trial that has finished.
"""

from __future__ import annotations

import gc
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._studies.journal_cut import take_apart
from gpudiag.readers._studies.journal_piece import JournalPiece
from gpudiag.readers._studies.journal_steps import JournalSteps

STATE_BY_CODE = ("RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING")
"""By number, as a journal writes them."""
DIRECTIONS = {1: "MINIMIZE", 2: "MAXIMIZE"}
NOT_FINISHED = 2**63 - 1
AHEAD = 2
"""So many blocks are taken apart beside the one that is replayed; more of them wait for each other."""
BLOCKS_IN_USE = AHEAD + 1
"""So many blocks are looked at while the next one is asked for, that one included."""

_WHOLE = frozenset({"params", "distributions", "intermediate_values", "user_attrs", "system_attrs"})
"""Only a trial that is added whole comes with any of these."""

Operation = dict[str, Any]


@dataclass(slots=True)
class Entry:
    """One trial while it is replayed, without its steps; it may be changed from ``begun_line`` to ``finished_line``."""

    study_id: int
    number: int
    state: str
    start: str | None
    end: str | None
    worker: str
    begun_line: int
    finished_line: int = NOT_FINISHED
    values: list[Any] = field(default_factory=list)


class Replay:
    """The state after the operations applied so far."""

    def __init__(self) -> None:
        self.studies: dict[int, tuple[str, str]] = {}
        self.trials: list[Entry] = []
        self.steps = JournalSteps()
        self.next_line = 0
        self._created = 0
        self._count: dict[int, int] = {}
        self._apply: dict[int, Callable[[Operation, int], None]] = {
            0: self._create_study,
            1: self._delete_study,
            4: self._create_trial,
            5: self._set_param,
            6: self._set_state,
            7: self._report,
            8: self._set_user_attr,
            9: self._set_system_attr,
        }

    def apply(self, operation: Operation, line: int) -> None:
        """Apply one operation. Raises KeyError, TypeError or ValueError where it is malformed."""
        handler = self._apply.get(operation["op_code"])
        if handler is not None:  # Attributes of studies and discarded trials change no table.
            handler(operation, line)

    def _create_study(self, op: Operation, line: int) -> None:
        name = op["study_name"]
        if not isinstance(name, str):
            raise TypeError(name)
        if name in (known for known, _ in self.studies.values()):
            return
        directions = ",".join(DIRECTIONS.get(number, "") for number in op["directions"])
        self.studies[self._created] = (name, directions.strip(","))
        self._created += 1

    def _delete_study(self, op: Operation, line: int) -> None:
        self.studies.pop(op["study_id"], None)

    def _create_trial(self, op: Operation, line: int) -> None:
        study = op["study_id"]
        if study not in self.studies:
            return
        at, number = len(self.trials), self._count.get(study, 0)
        state = STATE_BY_CODE[op.get("state") or 0]
        trial = Entry(
            study, number, state, op.get("datetime_start"), op.get("datetime_complete"), op["worker_id"], line
        )
        if state in ("COMPLETE", "PRUNED", "FAIL"):
            trial.finished_line = line
        one = op.get("value")
        trial.values = op.get("values") or ([one] if one is not None else [])
        if not _WHOLE.isdisjoint(op):  # a trial added whole
            self._added_whole(op, line, at)
        self._count[study] = number + 1
        self.trials.append(trial)

    def _added_whole(self, op: Operation, line: int, at: int) -> None:
        kinds = op.get("distributions") or {}
        for name, value in (op.get("params") or {}).items():
            self.steps.param(line, at, name, value, kinds[name], added=True)
        for step, value in (op.get("intermediate_values") or {}).items():
            self.steps.report(line, at, int(step), value)
        self.steps.attributes(self.steps.user_attrs, line, at, op.get("user_attrs") or {})
        self.steps.attributes(self.steps.system_attrs, line, at, op.get("system_attrs") or {})

    def _open(self, op: Operation) -> int | None:
        """Place of the trial concerned, None if it does not exist or has finished."""
        at = op["trial_id"]
        return at if 0 <= at < len(self.trials) and self.trials[at].finished_line == NOT_FINISHED else None

    def _set_param(self, op: Operation, line: int) -> None:
        at = self._open(op)
        if at is not None:
            self.steps.param(line, at, op["param_name"], op["param_value_internal"], op["distribution"])

    def _report(self, op: Operation, line: int) -> None:
        at = self._open(op)
        if at is not None:
            self.steps.report(line, at, op["step"], op["intermediate_value"])

    def _set_state(self, op: Operation, line: int) -> None:
        at, state = self._open(op), STATE_BY_CODE[op["state"]]
        if at is None or state == self.trials[at].state == "RUNNING":
            return
        trial = self.trials[at]
        if state == "RUNNING":
            trial.start, trial.worker = op["datetime_start"], op["worker_id"]
        trial.state = state
        if state in ("COMPLETE", "PRUNED", "FAIL"):
            trial.end, trial.finished_line = op["datetime_complete"], line
        if op.get("values") is not None:
            trial.values = op["values"]

    def _set_user_attr(self, op: Operation, line: int) -> None:
        at = self._open(op)
        if at is not None:
            self.steps.attributes(self.steps.user_attrs, line, at, op["user_attr"])

    def _set_system_attr(self, op: Operation, line: int) -> None:
        at = self._open(op)
        if at is not None:
            self.steps.attributes(self.steps.system_attrs, line, at, op["system_attr"])


@contextmanager
def no_collection() -> Iterator[None]:
    """Without looking for cycles: hundreds of thousands of small objects are made here, all of them kept."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def replay(blocks: Iterable[memoryview], problems: ProblemLog, damaged: str, first_line: int = 1) -> Replay:
    """Apply all operations; a malformed one is counted.

    Args:
        blocks: whole lines, which may change when BLOCKS_IN_USE more were asked for.
        problems: where what cannot be applied is counted.
        damaged: what to call a line that holds no JSON object.
        first_line: its number.
    """
    state = Replay()
    for piece in _ahead(blocks):
        state.steps.add(piece, first_line)
        for (at, text), operation in zip(piece.rest, _parsed([text for _, text in piece.rest]), strict=True):
            line = first_line + at
            try:
                if isinstance(operation, dict):
                    state.apply(operation, line)
                elif text.strip():
                    problems.add(damaged, line=line, lost=True)
            except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
                problems.add("journal operation that cannot be applied", example=type(error).__name__, lost=True)
        first_line += piece.lines
    state.next_line = first_line
    return state


def _ahead(blocks: Iterable[memoryview]) -> Iterator[JournalPiece]:
    """The pieces of a journal in their order; the next ones are taken apart while the caller works on one."""
    with ThreadPoolExecutor(AHEAD) as pool:
        coming: deque[Future[JournalPiece]] = deque()
        for data in blocks:
            coming.append(pool.submit(take_apart, data))
            if len(coming) > AHEAD:
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()


def _parsed(lines: list[bytes]) -> list[Any]:
    """The JSON object of each line, in one pass of the decoder where all are whole; None for what is none."""
    if all(line.startswith(b"{") and line.endswith(b"}") for line in lines):
        try:
            values = json.loads(b"[" + b",".join(lines) + b"]")
            if len(values) == len(lines):
                return values
        except (ValueError, RecursionError):
            pass
    return [_parse(line) for line in lines]


def _parse(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
