"""The situation of a run: what its owner stated, what was measured and what was found."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from gpudiag.advice._engine.capacity import FULL_PCT
from gpudiag.advice._engine.framework import is_boosting, logs_like_torch, may_be_optuna
from gpudiag.advice._engine.gains import GainBounds, bounds_of, gpus_at_work
from gpudiag.advice._engine.processes import keeps_processes
from gpudiag.advice._engine.proposal import Prediction, SuccessCheck
from gpudiag.analysis import Analysis
from gpudiag.errors import ConfigError, NotMeasurable
from gpudiag.facts import Column, Fact, Numeric
from gpudiag.manifest import DataLoader, Settings
from gpudiag.measures.base import P, Profile, profile_of
from gpudiag.measures.failures import FailuresProfile
from gpudiag.measures.ledger import LedgerProfile
from gpudiag.measures.memory import MemoryProfile
from gpudiag.measures.parallelism import ParallelismProfile
from gpudiag.measures.steps import StepsProfile
from gpudiag.measures.trials import TrialsProfile, TrialState
from gpudiag.measures.utilization import UtilizationProfile
from gpudiag.plain_data import clean
from gpudiag.rules._engine.verdict import Status, Verdict

if TYPE_CHECKING:
    from gpudiag._run.tables import Whole
    from gpudiag.forecast.memory.capacity import MemoryCapacity
    from gpudiag.forecast.parallelism.what_if import Forecast
    from gpudiag.forecast.pruning.result import PrunerReplay
    from gpudiag.measures._trials.pruner_spec import PrunerSpec

MIN_FILL = 1.1
"""Less than a tenth to gain is not worth a change that nothing else asks for (a default without a published source)."""
MAX_FORECAST_TRIALS = 600
"""Forecasts of larger studies take longer than the whole diagnosis (5-9 s of CPU time at 1,000 trials, against 3 s);
bounds stand in for them."""
WIDEST_PCT = 10.0
"""Points above the share of failures: 0 of 7 fail in up to 35 % by chance, which any next run keeps (a default without
a published source)."""
INPUT_WAITS = ("loader-slow", "cpu-bound-input", "io-wait", "steps-data")
"""Findings that rest on waits for the input; low or uneven utilization, or what was configured, shows none."""
NO_UTILIZATION = "No utilization was observed while trials ran, so the gain is unknown."


@dataclass(frozen=True, eq=False)
class Situation:
    """What remedies look at. ``found``: the findings by rule; ``passed``: the rules that found nothing."""

    settings: Settings
    dataloader: DataLoader
    profiles: Mapping[str, Profile]
    found: Mapping[str, Verdict]
    analysis: Analysis
    passed: frozenset[str] = frozenset()

    @classmethod
    def of(cls, analysis: Analysis, profiles: Mapping[str, Profile], verdicts: Iterable[Verdict]) -> Situation:
        """The situation after a diagnosis."""
        verdicts = tuple(verdicts)
        found = {v.rule: v for v in verdicts if v.status is Status.FOUND}
        passed = frozenset(v.rule for v in verdicts if v.status is Status.OK)
        info = analysis.run.info
        return cls(info.settings, info.dataloader, profiles, found, analysis, passed)

    @cached_property
    def bounds(self) -> GainBounds:
        """What bounds every gain."""
        return bounds_of(self.profiles)

    @cached_property
    def capacity(self) -> MemoryCapacity | None:
        """How many trials fit into memory; None where nobody can tell the memory of single trials."""
        if not self._forecast_soon:
            return None
        try:
            made = self.analysis.capacity
        except NotMeasurable:
            return None
        return None if made.reason else made

    def has_all(self, *wholes: Whole) -> bool:
        """False where trials of these were selected away."""
        return set(wholes).isdisjoint(self.analysis.run.info.incomplete)

    def forecast(self, k: int) -> Forecast | None:
        """The forecast that holds k trials at once; None where nothing is known of their throughput, or k is beyond any
        forecast.
        """
        if not self._forecast_soon:
            return None
        from gpudiag.forecast.parallelism.what_if import MOST_WORKERS  # loaded where something is to be advised

        if k > MOST_WORKERS:
            return None
        try:
            made = self.analysis.forecast(k)
        except NotMeasurable:
            return None
        return made if any(one.k == k for one in made.parallel) else None

    def replay(self, pruner: PrunerSpec) -> PrunerReplay | None:
        """What another pruner would have done with the recorded curves; None where none were recorded."""
        if not self._forecast_soon:
            return None
        try:
            return self.analysis.replay(pruner)
        except (NotMeasurable, ConfigError):
            return None

    @property
    def optuna(self) -> bool:
        """False where the trials are not Optuna's, so that its code is of no use."""
        return may_be_optuna(self.analysis.run)

    @property
    def torch(self) -> bool:
        """False where PyTorch's code is of no use: trees are boosted, or nothing shows a data loader of tasks, no
        step was profiled, no collective recorded, and no log is of PyTorch.
        """
        shown = self.optuna or bool(self.dataloader.model_fields_set) or len(self.analysis.run.profiled) > 0
        shown = shown or len(self.analysis.run.collectives) > 0 or logs_like_torch(self.analysis.run)
        return not is_boosting(self.analysis.run) and shown

    @property
    def has_trials(self) -> bool:
        """False for a training by itself: what trials do after one another is no advice for it."""
        return len(self.analysis.run.trials) > 0

    @property
    def one_training(self) -> bool:
        """True where a log tells of steps and there are no trials."""
        return len(self.analysis.run.steps) > 0 and not self.has_trials

    @property
    def keeps_processes(self) -> bool:
        """True where one process is seen to run trial after trial."""
        return keeps_processes(self.analysis.run)

    @property
    def _forecast_soon(self) -> bool:
        """True if a forecast takes no longer than the diagnosis did."""
        return 0 < len(self.analysis.run.trials) <= MAX_FORECAST_TRIALS

    def has(self, *rules: str) -> bool:
        """True if one of these rules found something."""
        return any(rule in self.found for rule in rules)

    def failed_part(self, kinds: Collection[str] = (), *, follows: bool = False) -> float:
        """The part of the time of failed trials in failures of these kinds, or in those that only followed another one
        in a poisoned process; 1 where the kinds are not known, so that it stays a bound.
        """
        failures = self.profile(FailuresProfile)
        if failures is None or not failures.n_told:
            return 1.0
        rows = failures.failures
        mine = rows["follows"].astype(bool) if follows else rows["kind"].isin([*kinds, "unknown"])
        total = float(rows["duration_s"].sum())
        return float(rows.loc[mine, "duration_s"].sum()) / total if total > 0 else 1.0

    def profile(self, kind: type[P]) -> P | None:
        """What was measured of that kind; None where the run does not allow it."""
        return profile_of(self.profiles, kind)

    def fact(self, fact: Numeric) -> float:
        """A number such as ``LedgerProfile.mean_util_pct``; NaN unknown, or infinite."""
        profile = self.profiles.get(fact.topic)
        value = None if profile is None else clean(fact.of(profile))
        return math.nan if value is None else float(value)

    def least(self, column: Column[float]) -> float:
        """The smallest value of a column of ``per_gpu``; NaN unknown."""
        profile = self.profiles.get(column.row.topic)
        return math.nan if profile is None else float(vars(profile)["per_gpu"][column.name].min())

    @property
    def worth_filling(self) -> bool:
        """True where filling the idle time of the GPUs at work could bring a tenth or more."""
        return self.bounds.fill >= MIN_FILL and self.bounds.covered

    @property
    def at_work(self) -> str:
        """The time that ``bounds.busy_pct`` is of, in words."""
        ledger = self.profile(LedgerProfile)
        if ledger is None or not ledger.has_trials:
            some = ledger is not None and len(gpus_at_work(ledger)) < ledger.n_gpus
            return "of the GPUs that worked" if some else "over the whole record"
        return "while trials ran"

    @property
    def parallel(self) -> int | None:
        """Trials at once: as stated, else the most that were seen."""
        if self.settings.parallel is not None:
            return self.settings.parallel
        peak = self.fact(ParallelismProfile.peak)
        return int(peak) if peak >= 1 else None

    @property
    def workers_at_last(self) -> int | None:
        """How many workers there were at the end, before the last trials ran out; None unknown."""
        seen = self.profile(ParallelismProfile)
        return None if seen is None or seen.workers.empty else int(seen.workers["n_workers"].iloc[-1]) or None

    @property
    def misses_workers(self) -> bool:
        """True where fewer workers were there at the end than ran at once, and a finding says that it cost time."""
        found = self.has("idle-without-trial", "parallelism-below-configured")
        return found and (self.workers_at_last or math.inf) < (self.parallel or 0)

    def unless_unknown(self, assumption: str) -> str:
        """The assumption of a gain that rests on utilization, or that there is none."""
        return assumption if self.bounds.fill > 0 else NO_UTILIZATION

    def fills(self, high: float, longest: float = 1.0) -> tuple[tuple[SuccessCheck, ...], tuple[Prediction, ...]]:
        """Checks and predictions of a change that fills idle time and does not touch GPU memory. ``longest``: a trial's
        duration over that of now where more run beside it.

        It worked if a tenth of the predicted rise, 3 points at least, has come: less is within what runs differ by (a
        default without a published source).
        """
        return (*self.busier(high), *self.no_new_failures()), (
            *self.busier_by(high),
            *self.memory_predicted(1.0, 1.0, "GPU memory is not touched."),
            *self.faster_trials(high, longest),
            *self.faster_steps(high),
        )

    def utilization(self) -> Fact[float]:
        """The mean utilization that a report speaks of: while the job ran where that is known, else over the record."""
        within = LedgerProfile.mean_util_pct
        return UtilizationProfile.mean_pct if math.isnan(self.fact(within)) else within

    def busier(self, high: float = math.nan) -> tuple[SuccessCheck, ...]:
        """Mean utilization rose by more than runs differ, where a speed-up of ``high`` can raise it so far."""
        mean = self.fact(self.utilization())
        most = 100.0 if math.isnan(high) else min(100.0, mean * high)
        wanted = mean + max(3.0, (most - mean) / 10)
        return (SuccessCheck.of(self.utilization(), ">=", round(wanted, 1)),) if wanted < most else ()

    def busier_by(self, high: float) -> tuple[Prediction, ...]:
        """Mean utilization after a speed-up of 1 to ``high`` at constant GPU work."""
        mean = self.fact(self.utilization())
        if math.isnan(mean) or math.isnan(high):
            return ()
        return (Prediction.of(self.utilization(), mean, mean, min(100.0, mean * high)),)

    def no_new_failures(self) -> tuple[SuccessCheck, ...]:
        """No larger share of failures than this run's interval allows, where that says something; no fuller memory than
        the limit.
        """
        out = []
        failed, seen = self.fact(TrialsProfile.fail_high_pct), self.fact(TrialsProfile.fail_pct)
        if not math.isnan(failed) and not failed - seen > WIDEST_PCT:
            out.append(SuccessCheck.of(TrialsProfile.fail_pct, "<=", round(failed, 1)))
        if self.fact(MemoryProfile.max_used_pct) < FULL_PCT:
            out.append(SuccessCheck.of(MemoryProfile.max_used_pct, "<", FULL_PCT))
        return tuple(out)

    def memory_predicted(self, low: float, high: float, note: str) -> tuple[Prediction, ...]:
        """Fullest GPU's memory after a change by these factors."""
        used = self.fact(MemoryProfile.max_used_pct)
        return (Prediction.of(MemoryProfile.max_used_pct, used, used * low, used * high, note),) if used > 0 else ()

    def memory_as_seen(self, most_pct: float) -> Prediction:
        """Fullest GPU's memory at a number of trials at once at which it was seen."""
        note = "What was seen at that number; the largest trials at the same time can exceed it."
        return Prediction.of(MemoryProfile.max_used_pct, self.fact(MemoryProfile.max_used_pct), None, most_pct, note)

    def faster_trials(self, high: float, longest: float = 1.0) -> tuple[Prediction, ...]:
        """Median duration of the state that most trials ended in, at a speed-up of 1 to ``high``."""
        usual = self.usual_duration()
        if usual is None or math.isnan(high):
            return ()
        return (Prediction.of(usual, self.fact(usual), self.fact(usual) / high, self.fact(usual) * longest),)

    def faster_steps(self, high: float) -> tuple[Prediction, ...]:
        """Median time of a step, at a speed-up of 1 to ``high``; none beside trials, whose durations tell."""
        step_s = self.fact(StepsProfile.step_s)
        if self.usual_duration() is not None or not step_s > 0 or math.isnan(high):
            return ()
        return (Prediction.of(StepsProfile.step_s, step_s, step_s / high, step_s),)

    def usual_duration(self) -> Fact[float] | None:
        """The median duration of the state that took most worker time; None without trials."""
        spent = {state: self.fact(TrialState.total_worker_s.at(state)) for state in ("COMPLETE", "PRUNED", "FAIL")}
        state = max(spent, key=lambda s: spent[s] if spent[s] > 0 else 0.0)
        return TrialState.median_s.at(state) if spent[state] > 0 else None
