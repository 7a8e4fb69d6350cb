"""Optuna's journal: operations, one JSON object each, replayed into the long tables of a storage.

Operations are ignored where Optuna ignores them: a study created twice, a parameter that contradicts
its study's earlier ones, anything about a trial that has finished.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any

import pandas as pd

from gpudiag.readers.problems import ProblemLog
from gpudiag.readers.trials.distributions import Distribution, parse_distribution
from gpudiag.readers.trials.stamps import to_utc
from gpudiag.readers.trials.stored import COLUMNS, Stored

STATES = ("RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING")
"""By number, as a journal writes them."""
DIRECTIONS = {1: "MINIMIZE", 2: "MAXIMIZE"}

Operation = dict[str, Any]


@dataclass
class _Trial:
    """One trial while it is replayed; ``params`` are (stored number, distribution text) by name."""

    study_id: int
    number: int
    state: str
    start: str | None
    end: str | None
    worker: str
    values: list[Any] = field(default_factory=list)
    params: dict[str, tuple[Any, str]] = field(default_factory=dict)
    reports: dict[int, Any] = field(default_factory=dict)
    user_attrs: dict[str, Any] = field(default_factory=dict)
    system_attrs: dict[str, Any] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        return self.state in ("COMPLETE", "PRUNED", "FAIL")


class Replay:
    """The state after the operations applied so far."""

    def __init__(self) -> None:
        self.studies: dict[int, tuple[str, str]] = {}
        self.trials: list[_Trial] = []
        self._created = 0
        self._count: dict[int, int] = {}
        self._first_seen: dict[tuple[int, str], Distribution | None] = {}
        self._parsed: dict[str, Distribution | None] = {}
        self._apply: dict[int, Callable[[Operation], None]] = {
            0: self._create_study,
            1: self._delete_study,
            4: self._create_trial,
            5: self._set_param,
            6: self._set_state,
            7: self._report,
            8: self._set_user_attr,
            9: self._set_system_attr,
        }

    def apply(self, operation: Operation) -> None:
        """Apply one operation. Raises KeyError, TypeError or ValueError where it is malformed."""
        handler = self._apply.get(operation["op_code"])
        if handler is not None:  # Attributes of studies and discarded trials change no table.
            handler(operation)

    def _create_study(self, op: Operation) -> None:
        if op["study_name"] in (name for name, _ in self.studies.values()):
            return
        directions = ",".join(DIRECTIONS.get(number, "") for number in op["directions"])
        self.studies[self._created] = (op["study_name"], directions.strip(","))
        self._created += 1

    def _delete_study(self, op: Operation) -> None:
        self.studies.pop(op["study_id"], None)

    def _create_trial(self, op: Operation) -> None:
        study = op["study_id"]
        if study not in self.studies:
            return
        number = self._count.get(study, 0)
        self._count[study] = number + 1
        state = STATES[op.get("state") or 0]
        trial = _Trial(study, number, state, op.get("datetime_start"), op.get("datetime_complete"), op["worker_id"])
        one = op.get("value")
        trial.values = op.get("values") or ([one] if one is not None else [])
        kinds = op.get("distributions") or {}
        trial.params = {name: (value, kinds[name]) for name, value in (op.get("params") or {}).items()}
        trial.reports = {int(step): value for step, value in (op.get("intermediate_values") or {}).items()}
        trial.user_attrs = dict(op.get("user_attrs") or {})
        trial.system_attrs = dict(op.get("system_attrs") or {})
        self.trials.append(trial)

    def _open(self, op: Operation) -> _Trial | None:
        """The trial concerned, None if it does not exist or has finished."""
        at = op["trial_id"]
        return self.trials[at] if 0 <= at < len(self.trials) and not self.trials[at].finished else None

    def _set_param(self, op: Operation) -> None:
        trial = self._open(op)
        if trial is None:
            return
        name, text = op["param_name"], op["distribution"]
        if text not in self._parsed:
            self._parsed[text] = parse_distribution(text)
        first = self._first_seen.setdefault((trial.study_id, name), self._parsed[text])
        # Optuna compares kinds and choices; ranges may differ.
        if first == self._parsed[text]:
            trial.params[name] = (op["param_value_internal"], text)

    def _set_state(self, op: Operation) -> None:
        trial = self._open(op)
        state = STATES[op["state"]]
        if trial is None or state == trial.state == "RUNNING":
            return
        if state == "RUNNING":
            trial.start, trial.worker = op["datetime_start"], op["worker_id"]
        trial.state = state
        if trial.finished:
            trial.end = op["datetime_complete"]
        if op.get("values") is not None:
            trial.values = op["values"]

    def _report(self, op: Operation) -> None:
        trial = self._open(op)
        if trial is not None:
            trial.reports[op["step"]] = op["intermediate_value"]

    def _set_user_attr(self, op: Operation) -> None:
        trial = self._open(op)
        if trial is not None:
            trial.user_attrs |= op["user_attr"]

    def _set_system_attr(self, op: Operation) -> None:
        trial = self._open(op)
        if trial is not None:
            trial.system_attrs |= op["system_attr"]


def replay(operations: Iterable[Operation], problems: ProblemLog) -> Replay:
    """Apply all operations; a malformed one is counted."""
    state = Replay()
    for operation in operations:
        try:
            state.apply(operation)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            problems.add("journal operation that cannot be applied", example=type(error).__name__, lost=True)
    return state


def to_stored(state: Replay, zone: tzinfo, study: str | None, problems: ProblemLog) -> Stored:
    """Long tables on UTC. Optuna 5 writes stamps with a zone into its journals, earlier versions local time."""
    wanted = {key: value for key, value in state.studies.items() if study in (None, value[0])}
    trials = [(at, trial) for at, trial in enumerate(state.trials) if trial.study_id in wanted]
    rows: dict[str, list[tuple]] = {name: [] for name in COLUMNS}
    for at, trial in trials:
        rows["trials"].append((at, trial.study_id, trial.number, trial.state, trial.start, trial.end))
        rows["values"] += [(at, objective, value) for objective, value in enumerate(trial.values)]
        rows["params"] += [(at, name, value, text) for name, (value, text) in trial.params.items()]
        rows["reports"] += [(at, step, value) for step, value in trial.reports.items()]
        rows["user_attrs"] += [(at, key, json.dumps(value)) for key, value in trial.user_attrs.items()]
        rows["system_attrs"] += [(at, key, json.dumps(value)) for key, value in trial.system_attrs.items()]
    rows["studies"] = [(key, *value) for key, value in wanted.items()]
    tables = {name: pd.DataFrame.from_records(rows[name], columns=COLUMNS[name]) for name in COLUMNS}
    tables["trials"]["worker"] = [trial.worker for _, trial in trials]
    tables["trials"], clocks = on_utc(tables["trials"], zone, problems)
    return Stored(**tables, clocks=clocks)


def on_utc(trials: pd.DataFrame, zone: tzinfo, problems: ProblemLog) -> tuple[pd.DataFrame, dict[Any, tuple[str, str]]]:
    """``start`` and ``end`` (ISO text) as UTC, and by study the clock they were written in and why."""
    why = {
        "utc": "the stamps carry a zone",
        "local": "assumed, because the stamps carry no zone and versions of Optuna before 5 write local time",
        "mixed": "the later stamps carry a zone, the earlier ones none",
        "unknown": "it has no stamps",
    }
    clocks: dict[Any, tuple[str, str]] = {}
    parts = []
    for study_id, group in trials.groupby("study_id", sort=False):
        start, end = (to_utc(group[column].tolist(), zone) for column in ("start", "end"))
        found = {start.clock, end.clock} - {"unknown"}
        clock = found.pop() if len(found) == 1 else "mixed" if found else "unknown"
        for stamps in (start, end):
            problems.add("stamp that is no date", stamps.bad, example=stamps.example)
        clocks[study_id] = (clock, why[clock])
        parts.append(group.assign(start=start.time.to_numpy(), end=end.time.to_numpy()))
    joined = pd.concat(parts) if parts else trials
    for column in ("start", "end"):
        joined[column] = pd.to_datetime(joined[column], utc=True).astype("datetime64[us, UTC]")
    return joined.sort_index(), clocks
