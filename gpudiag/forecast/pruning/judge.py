"""Who judges a replay: Optuna's own code, or the same rules over sorted lists where a study is large.

Optuna's pruners look at every trial of the study at each decision, which takes days for 50,000 trials. The rules here
are those of optuna/pruners (4.2 to 5.0) for median, percentile, successive halving, Hyperband, patient, threshold and
nop, with the values that they compare kept in order. Tests demand the same answers as Optuna's at every report.
"""

from __future__ import annotations

import math
from binascii import crc32
from bisect import insort
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gpudiag.forecast.pruning.play import Judge
from gpudiag.forecast.pruning.recorded import Recorded
from gpudiag.measures._trials.pruner_spec import PrunerSpec

if TYPE_CHECKING:
    from optuna.pruners import BasePruner

SMALL = 400
"""The recorded curves of studies up to so many trials are judged by Optuna itself."""
CLOSE = 1e-9


def judge_for(pruner: BasePruner, spec: PrunerSpec | None, record: Recorded, *, quick: bool = False) -> Judge:
    """The judge for one replay of that study; ``pruner`` must be fresh.

    ``quick``: by the rules here where there are any, for a small study too.
    """
    if spec is not None and (quick or len(record) > SMALL) and has_rule(spec):
        return FastStage(spec, record.study, record.direction)
    from gpudiag.forecast.pruning.stage import Stage

    infeasible = frozenset(record.number[record.infeasible].tolist())
    return Stage(pruner, record.study, record.direction, infeasible)


def has_rule(spec: PrunerSpec) -> bool:
    """True if the pruner can be judged without Optuna."""
    inner = spec.params.get("wrapped_pruner")
    return spec.name in RULES and (inner is None or has_rule(inner))


@dataclass(slots=True)
class TimeSeries:
    """A trial so far. ``last`` and ``before`` are its two greatest steps, ``best`` the best value, losses all."""

    number: int
    losses: dict[int, float] = field(default_factory=dict)
    last: int = -1
    before: int = -1
    best: float = math.nan
    rung: int = 0
    bracket: int = -1


class PruningRule(Protocol):
    """One pruner. Values are losses: of a study that maximizes, negative."""

    def prunes(self, trial: TimeSeries) -> bool:
        """Asked after each report."""

    def completes(self, trial: TimeSeries) -> None:
        """A trial is COMPLETE."""


class FastStage:
    """The same as :class:`~gpudiag.forecast.pruning.stage.Stage`, in time that grows with the reports alone."""

    def __init__(self, spec: PrunerSpec, study: str, direction: str) -> None:
        self._sign = 1.0 if direction == "minimize" else -1.0
        self._rule = make_rule(spec, study, self._sign)
        self._courses: list[TimeSeries] = []

    def start(self, number: int) -> None:
        """The next trial starts."""
        self._courses.append(TimeSeries(number))

    def prunes(self, trial: int, step: int, value: float) -> bool:
        """A trial reports a value; is it to be pruned?"""
        time_series = self._courses[trial]
        loss = self._sign * value
        time_series.losses[step] = loss
        if step > time_series.last:
            time_series.last, time_series.before = step, time_series.last
        elif time_series.before < step < time_series.last:
            time_series.before = step
        if not time_series.best <= loss and not math.isnan(loss):
            time_series.best = loss
        return self._rule.prunes(time_series)

    def end(self, trial: int, state: str, value: float) -> None:
        """A trial ends."""
        if state == "COMPLETE":
            self._rule.completes(self._courses[trial])


def make_rule(spec: PrunerSpec, study: str, sign: float) -> PruningRule:
    """The rule of a pruner that :func:`has_rule`."""
    return RULES[spec.name](spec.params, study, sign)


def _due(trial: TimeSeries, warmup: int, interval: int) -> bool:
    """Past the warm-up, and the first report of its interval."""
    return trial.last >= warmup and trial.before < (trial.last - warmup) // interval * interval + warmup


class _Percentile:
    """The best of the trial against a percentile of the values that COMPLETE trials had at this step."""

    def __init__(self, params: Any, study: str, sign: float) -> None:
        self._p = {"percentile": 50.0, **params}
        # The percentile of negated values from the other end: Optuna takes 100 - p where it maximizes.
        self._percentile = self._p["percentile"]
        self._sign = sign
        self._complete = 0
        self._at: dict[int, list[float]] = defaultdict(list)
        self._seen: dict[int, int] = defaultdict(int)

    def prunes(self, trial: TimeSeries) -> bool:
        p = self._p
        if not self._complete or self._complete < p["n_startup_trials"]:
            return False
        if not _due(trial, p["n_warmup_steps"], p["interval_steps"]):
            return False
        if math.isnan(trial.best):
            return True
        values = self._at.get(trial.last)
        if not values or self._seen[trial.last] < p["n_min_trials"]:
            return False
        place = self._percentile / 100 * (len(values) - 1)
        low, high = values[max(0, math.floor(place - CLOSE))], values[min(len(values) - 1, math.ceil(place + CLOSE))]
        slack = CLOSE * (abs(low) + abs(high))
        if trial.best > high + slack or trial.best < low - slack:
            return trial.best > high
        return self._exactly(trial, values)

    def _exactly(self, trial: TimeSeries, values: list[float]) -> bool:
        """As Optuna has it, to the last digit."""
        if self._sign > 0:
            return bool(trial.best > np.nanpercentile(np.array(values), self._percentile))
        return bool(-trial.best < np.nanpercentile(-np.array(values), 100 - self._percentile))

    def completes(self, trial: TimeSeries) -> None:
        self._complete += 1
        for step, loss in trial.losses.items():
            self._seen[step] += 1
            if not math.isnan(loss):
                insort(self._at[step], loss)


class _Halving:
    """A value at its rung must be among the best 1/eta of all that were recorded there."""

    def __init__(self, params: Any, study: str, sign: float) -> None:
        least = params["min_resource"]
        self._min_resource = None if least == "auto" else least
        self._eta = params["reduction_factor"]
        self._rate = params["min_early_stopping_rate"]
        self._bootstrap = params["bootstrap_count"]
        self._rungs: dict[int, list[float]] = defaultdict(list)
        self._longest = -1

    def prunes(self, trial: TimeSeries) -> bool:
        value = trial.losses[trial.last]
        while True:
            if self._min_resource is None and self._longest >= 0:
                self._min_resource = max(self._longest // 100, 1)
            if self._min_resource is None or trial.last < self._min_resource * self._eta ** (self._rate + trial.rung):
                return False
            if math.isnan(value):
                return True
            rivals = self._rungs[trial.rung]
            insort(rivals, value)
            trial.rung += 1
            if len(rivals) <= self._bootstrap:
                return True
            if value > rivals[max(len(rivals) // self._eta - 1, 0)]:
                return True

    def completes(self, trial: TimeSeries) -> None:
        self._longest = max(self._longest, trial.last)


class _Hyperband:
    """Successive halving in brackets; the bracket of a trial is a hash of the study's name and its number."""

    def __init__(self, params: Any, study: str, sign: float) -> None:
        self._params, self._study, self._sign = params, study, sign
        self._brackets: list[_Halving] = []
        self._budgets: list[int] = []
        self._longest = -1

    def prunes(self, trial: TimeSeries) -> bool:
        if not self._brackets and not self._set_up():
            return False
        if trial.bracket < 0:
            trial.bracket = self._bracket(trial.number)
        return self._brackets[trial.bracket].prunes(trial)

    def completes(self, trial: TimeSeries) -> None:
        self._longest = max(self._longest, trial.last)

    def _set_up(self) -> bool:
        p = self._params
        most = p["max_resource"]
        if most == "auto":
            if self._longest < 0:
                return False
            most = self._longest + 1
        eta = p["reduction_factor"]
        count = math.floor(math.log(most / p["min_resource"], eta)) + 1
        self._budgets = [math.ceil(count * eta ** (count - 1 - b) / (count - b)) for b in range(count)]
        self._brackets = [_Halving({**p, "min_early_stopping_rate": b}, self._study, self._sign) for b in range(count)]
        return bool(self._brackets)

    def _bracket(self, number: int) -> int:
        left = crc32(f"{self._study}_{number}".encode()) % sum(self._budgets)
        for bracket, budget in enumerate(self._budgets):
            left -= budget
            if left < 0:
                return bracket
        raise AssertionError("a remainder is less than the sum")


class _Patient:
    """Asks the wrapped pruner, or prunes, where the last reports are worse than the best before them."""

    def __init__(self, params: Any, study: str, sign: float) -> None:
        self._patience, self._delta = params["patience"], params["min_delta"]
        inner = params["wrapped_pruner"]
        self._inner = None if inner is None else make_rule(inner, study, sign)

    def prunes(self, trial: TimeSeries) -> bool:
        kept = self._patience + 1
        if len(trial.losses) <= kept:
            return False
        steps, after = sorted(trial.losses), math.nan
        for step in steps[-kept:]:  # a loop, since it is run for every report of every replay
            loss = trial.losses[step]
            if loss < after or after != after:
                after = loss
        if after <= trial.best:  # then nothing before is better
            return False
        before = min((x for step in steps[:-kept] if (x := trial.losses[step]) == x), default=math.nan)
        if not before + self._delta < after:
            return False
        return self._inner.prunes(trial) if self._inner else True

    def completes(self, trial: TimeSeries) -> None:
        if self._inner:
            self._inner.completes(trial)


class _Threshold:
    """The last value within limits."""

    def __init__(self, params: Any, study: str, sign: float) -> None:
        self._p, self._sign = params, sign

    def prunes(self, trial: TimeSeries) -> bool:
        p = self._p
        if not _due(trial, p["n_warmup_steps"], p["interval_steps"]):
            return False
        value = self._sign * trial.losses[trial.last]
        low, high = p["lower"], p["upper"]
        return math.isnan(value) or (low is not None and value < low) or (high is not None and value > high)

    def completes(self, trial: TimeSeries) -> None:
        """Other trials do not count."""


class _Nop:
    """Never."""

    def __init__(self, params: Any, study: str, sign: float) -> None:
        pass

    def prunes(self, trial: TimeSeries) -> bool:
        return False

    def completes(self, trial: TimeSeries) -> None:
        """Other trials do not count."""


RULES: dict[str, Callable[[Any, str, float], PruningRule]] = {
    "median": _Percentile, "percentile": _Percentile, "sha": _Halving, "hyperband": _Hyperband,
    "patient": _Patient, "threshold": _Threshold, "nop": _Nop,
}  # fmt: skip
