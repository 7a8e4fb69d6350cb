"""How many trials a study still has to run, and what they take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpudiag.forecast.estimate import NAN, Estimate
from gpudiag.measures._time.trial_intervals import intervals_of
from gpudiag.run import Run
from gpudiag.schema import STOPPED

NO_TARGET = "Nobody stated how many trials the study shall have: give n_trials under [run] in run.toml."
NONE_LEFT = "As many trials have finished as the study shall have."
BEGUN = ("COMPLETE", "PRUNED", "FAIL", STOPPED, "RUNNING")


@dataclass(frozen=True)
class Remaining:
    """``trials`` still to run (NaN unknown, then ``reason`` says why), and the hours that a change of workers costs."""

    trials: float
    restart_h: float
    reason: str = ""

    def hours(self, rate: Estimate, changed: bool) -> Estimate:
        """Time to finish at a rate, after a restart where something changed."""
        if np.isnan(self.trials):
            return Estimate.unknown("h", self.reason)
        restart = self.restart_h if changed else 0.0
        value, low, high = (restart + self.trials / x for x in (rate.value, rate.high, rate.low))
        return Estimate(value, low, high, "h", rate.bounds_only, rate.reason)

    def break_even(self, now: float, then: float) -> float:
        """Trials from which the restart has paid: R X X' / (X' - X); NaN where the new rate is not higher."""
        return self.restart_h * now * then / (then - now) if then > now else NAN


def trials_left(run: Run) -> int:
    """Trials that are stated or waiting and have not begun: one that is RUNNING is under way, or dead."""
    states = intervals_of(run)["state"].value_counts() if "state" in run.trials else {}
    target = run.info.settings.n_trials
    if target is None:
        return int(states.get("WAITING", 0))
    return max(target - int(sum(states.get(state, 0) for state in BEGUN)), 0)


def remaining(run: Run, restart_min: float) -> Remaining:
    """The trials to go, where a change of workers takes so many minutes."""
    if left := trials_left(run):
        return Remaining(float(left), restart_min / 60)
    return Remaining(NAN, restart_min / 60, NO_TARGET if run.info.settings.n_trials is None else NONE_LEFT)
