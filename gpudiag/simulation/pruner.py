"""The real Optuna pruner, asked in simulated-time order."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import optuna
from optuna import pruners

from gpudiag.errors import ConfigError, nearest
from gpudiag.plain_data import JsonObject

PRUNERS = {
    "hyperband": pruners.HyperbandPruner,
    "median": pruners.MedianPruner,
    "nop": pruners.NopPruner,
    "patient": pruners.PatientPruner,
    "percentile": pruners.PercentilePruner,
    "successive_halving": pruners.SuccessiveHalvingPruner,
    "threshold": pruners.ThresholdPruner,
}


class Referee:
    """An in-memory study that holds what the simulated workers report and prunes as Optuna would."""

    def __init__(self, pruner: str, study: str, direction: str) -> None:
        with quiet():
            self._study = optuna.create_study(
                study_name=study,
                direction=direction,
                pruner=build_pruner(pruner),
                sampler=optuna.samplers.RandomSampler(0),
            )
        self._trials: dict[int, optuna.Trial] = {}

    def start(self, number: int) -> None:
        """The next trial starts; numbers must come in order."""
        trial = self._study.ask()
        if trial.number != number:
            raise ValueError(f"trial {number} was started, but the study gave number {trial.number}")
        self._trials[number] = trial

    def prunes(self, number: int, step: int, value: float) -> bool:
        """Report one value and ask whether the trial is to be pruned."""
        self._trials[number].report(value, step)
        return self._trials[number].should_prune()

    def end(self, number: int, state: str, value: float) -> JsonObject:
        """Close the trial; returns the system attributes that the pruner left on it."""
        final = None if state != "COMPLETE" else value
        with quiet():
            frozen = self._study.tell(self._trials.pop(number), final, state=optuna.trial.TrialState[state])
        return dict(frozen.system_attrs)


def build_pruner(text: str) -> pruners.BasePruner:
    """The pruner that a text like ``patient(hyperband(max_resource=100), patience=2)`` describes.

    Raises ConfigError for an unknown name, or anything but names, calls and literals.
    """
    try:
        node = ast.parse(text.strip(), mode="eval").body
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            return _build(node)
    except (SyntaxError, TypeError, ValueError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(
            f"pruner '{text}' cannot be built ({error}); expected e.g. 'median(n_startup_trials=5)'."
        ) from error


def _build(node: ast.expr) -> Any:
    """A pruner from a call or a bare name, a value from a literal."""
    call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
    if not isinstance(call.func, ast.Name):
        return ast.literal_eval(node)
    name = call.func.id
    if name not in PRUNERS:
        raise ConfigError(f"there is no pruner '{name}'; {nearest(name, PRUNERS)}")
    return PRUNERS[name](*map(_build, call.args), **{str(word.arg): _build(word.value) for word in call.keywords})


@contextmanager
def quiet() -> Iterator[None]:
    """Optuna without its log lines, and with the caller's verbosity restored after."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
