"""A study on a stage: Optuna's own pruner, asked over recorded trials that keep their numbers.

Optuna's storages number trials from 0 without gaps, copy a trial at every report and give fresh times. This one
holds trials as recorded, in place. Only what pruners read and write is there.
"""

from __future__ import annotations

import copy
from collections.abc import Container
from datetime import UTC, datetime
from typing import Any

import optuna
from optuna.pruners import BasePruner
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial, TrialState

EPOCH = datetime.fromtimestamp(0, UTC).replace(tzinfo=None)


class _Storage(InMemoryStorage):  # type: ignore[misc]
    """Trials by position. A system attribute makes a copy: a pruner may hold the list of before, and count on it."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[FrozenTrial] = []
        self.complete: dict[int, FrozenTrial] = {}
        self.best: int | None = None

    def get_trial(self, trial_id: int) -> FrozenTrial:
        return self.held[trial_id]

    def get_all_trials(
        self, study_id: int, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        if states == (TrialState.COMPLETE,):
            found = list(self.complete.values())
        else:
            found = [t for t in self.held if states is None or t.state in states]
        return copy.deepcopy(found) if deepcopy else found

    def get_best_trial(self, study_id: int) -> FrozenTrial:
        if self.best is None:
            raise ValueError("No trials are completed yet.")
        return self.held[self.best]

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        trial = copy.copy(self.held[trial_id])
        trial.system_attrs = {**trial.system_attrs, key: value}
        self.held[trial_id] = trial
        if trial_id in self.complete:
            self.complete[trial_id] = trial


class Stage:
    """One study, one pruner. Trials are known by the order in which they were started, from 0.

    ``pruner`` is used up: Optuna's pruners keep what they learned of a study. ``infeasible``: numbers of trials that
    broke a constraint and are never the best.
    """

    def __init__(
        self, pruner: BasePruner, study: str, direction: str, infeasible: frozenset[int] = frozenset()
    ) -> None:
        self._storage = _Storage()
        self._infeasible = infeasible
        self._pruner = pruner
        self._minimizes = direction == "minimize"
        self._study = optuna.create_study(
            study_name=study,
            direction=direction,
            storage=self._storage,
            pruner=pruner,
            sampler=optuna.samplers.RandomSampler(0),
        )

    def start(self, number: int) -> None:
        """The next trial starts."""
        self._storage.held.append(
            FrozenTrial(
                number=number,
                state=TrialState.RUNNING,
                value=None,
                datetime_start=EPOCH,
                datetime_complete=None,
                params={},
                distributions={},
                user_attrs={},
                system_attrs={},
                intermediate_values={},
                trial_id=len(self._storage.held),
            )
        )

    def prunes(self, trial: int, step: int, value: float) -> bool:
        """A trial reports a value; is it to be pruned?"""
        frozen = self._storage.held[trial]
        frozen.intermediate_values[step] = value
        return bool(self._pruner.prune(self._study, frozen))

    def end(self, trial: int, state: str, value: float) -> None:
        """A trial ends in that state; ``value`` counts for COMPLETE."""
        frozen = self._storage.held[trial]
        frozen.state = TrialState[state]
        frozen.datetime_complete = EPOCH
        if state != "COMPLETE":
            return
        frozen.value = value
        self._storage.complete[trial] = frozen
        if frozen.number in self._infeasible:
            return
        best = self._storage.best
        known = None if best is None else self._storage.held[best].value
        if known is None or (value < known if self._minimizes else value > known):
            self._storage.best = trial
