"""``what_if``: a run in, a forecast out, and every way to show it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from gpudiag import __version__
from gpudiag.errors import ConfigError, NotMeasurable, in_words
from gpudiag.faults import ERROR, Fault, Passing, asked, attempt
from gpudiag.forecast.document import SCHEMA, AssignmentEntry, ForecastDocument, NowEntry
from gpudiag.forecast.estimate import NAN, Estimate
from gpudiag.forecast.memory.capacity import MemoryCapacity, memory_capacity
from gpudiag.forecast.memory.crashes import find_crashes
from gpudiag.forecast.memory.levels import MOST_AT_ONCE, levels_beyond, most_seen
from gpudiag.forecast.memory.seen import seen_by_level
from gpudiag.forecast.parallelism.assignment import Policy
from gpudiag.forecast.parallelism.backtest import Backtest
from gpudiag.forecast.parallelism.batch_size import BatchTest, batch_test
from gpudiag.forecast.parallelism.colocation import LawName
from gpudiag.forecast.parallelism.drift import Drift
from gpudiag.forecast.parallelism.observed import ObservedLog, observe
from gpudiag.forecast.parallelism.outlook import Net, Overflow, Parallelism, forecast_parallelism
from gpudiag.forecast.parallelism.placement import Placement, evenly, with_workers
from gpudiag.forecast.parallelism.recent import recent
from gpudiag.forecast.parallelism.remaining import Remaining, remaining
from gpudiag.forecast.parallelism.scenario import RISKY_PCT, Scenario
from gpudiag.forecast.parallelism.startup_gain import StartupGain, startup_gain
from gpudiag.forecast.parallelism.unobserved import bounded_scenarios, usual_workers
from gpudiag.forecast.progress import Progress
from gpudiag.load import RunLike, as_run
from gpudiag.measures._trials.epochs import n_epochs
from gpudiag.measures.base import GIVE_TRIALS, need_all, need_columns
from gpudiag.memo import MemoRun
from gpudiag.plain_data import JsonObject, clean, json_text, plain_object
from gpudiag.run import Run
from gpudiag.shown import Shown

if TYPE_CHECKING:
    import pandas as pd

    from gpudiag.forecast.pruning.result import PrunerReplay

T = TypeVar("T")

MOST_WORKERS = 64
TOO_MANY = (
    "Memory is looked at for up to {most} trials at once on a GPU; not known is whether these fit: {beyond} over "
    "{n_gpus:GPU}."
)
OF_TRAINING = "This is one training, without trials of which more or fewer could run at once."
SEE_GAINS = "What its changes would gain is told by: gpudiag diagnose RUN --all."
RESTART_MIN = 10.0


@dataclass(frozen=True, eq=False, repr=False)
class Forecast(Shown):
    """What other settings would do to a run.

    ``parallel``: one :class:`Scenario` a number of trials at once. ``now``: the number that most of the log had, and
    ``rate`` its throughput as measured. ``law`` goes on where nothing was measured. ``policies``: (k, policy, trials/h)
    where there are several GPUs. ``spread``: the present number spread evenly over the GPUs, None where it is.
    ``restart_min``: minutes without any trial that a change of workers costs.
    ``capacity`` and ``pruner`` are the forecasts of memory and of a pruner, None where not asked for or not
    measurable; ``gaps`` says why, by topic.
    """

    run: str
    parallel: tuple[Scenario, ...]
    now: int
    configured: float
    rate: Estimate
    law: LawName | Literal[""]
    backtest: Backtest | None
    drift: Drift
    startup: StartupGain
    batch: BatchTest
    policies: tuple[tuple[int, Policy, float], ...]
    restart_min: float
    remaining_trials: float
    capacity: MemoryCapacity | None = None
    pruner: PrunerReplay | None = None
    spread: Scenario | None = None
    gaps: tuple[tuple[str, str], ...] = ()

    def at(self, k: int) -> Scenario:
        """The scenario of ``k`` trials at once. Raises KeyError if it was not asked for."""
        for scenario in self.parallel:
            if scenario.k == k:
                return scenario
        raise KeyError(f"no forecast for {k} at once; there are {[scenario.k for scenario in self.parallel]}")

    def to_frame(self) -> pd.DataFrame:
        """One row a number of trials at once: value, low and high of each quantity, NaN unknown."""
        import pandas as pd

        rows = []
        for scenario in self.parallel:
            row: dict[str, Any] = {"k": scenario.k}
            for name, estimate in (
                ("throughput_trials_h", scenario.throughput), ("complete_trials_h", scenario.complete),
                ("gain", scenario.gain), ("util_pct", scenario.util), ("p_overflow_pct", scenario.overflow),
                ("hours_left", scenario.left),
            ):  # fmt: skip
                row |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
            rows.append(row | {"bounds_only": scenario.bounds_only, "reason": scenario.throughput.reason})
        return pd.DataFrame(rows)

    @property
    def document(self) -> ForecastDocument:
        """All that is forecast, typed; the same as :meth:`to_dict`."""
        now = NowEntry(
            k=self.now,
            configured=clean(self.configured),
            throughput_trials_h=self.rate,
            restart_min=self.restart_min,
            remaining_trials=clean(self.remaining_trials),
            law=self.law,
        )
        return ForecastDocument(
            schema=SCHEMA,
            version=__version__,
            run=self.run,
            now=now,
            parallel=tuple(scenario.document for scenario in self.parallel),
            backtest=self.backtest.document if self.backtest else None,
            drift=self.drift,
            assignment=tuple(AssignmentEntry(*one) for one in self.policies),
            spread=self.spread.document if self.spread else None,
            startup=self.startup.document,
            batch=self.batch.document,
            memory=self.capacity.document if self.capacity is not None else None,
            pruner=self.pruner.document if self.pruner is not None else None,
            not_forecast=dict(self.gaps),
        )

    def to_dict(self) -> JsonObject:
        """The JSON document, schema ``gpudiag.forecast/2``; unknown is None."""
        return plain_object(self.document)

    def to_json(self) -> str:
        """The document as JSON text."""
        return json_text(self.document).rstrip("\n")

    def to_markdown(self) -> str:
        """The forecast as Markdown."""
        return self._repr_markdown_()


def what_if(
    run: RunLike,
    parallel: int | Sequence[int | str] | str | None = None,
    *,
    pruner: Any = None,
    restart_min: float | None = None,
    progress: Progress | None = None,
) -> Forecast:
    """Forecast what other numbers of trials at once, or another pruner, would bring.

    >>> gd.what_if("data/samples/healthy", 3).at(3).throughput
    Estimate(value=10.1..., low=9.0..., high=10.4..., unit='trials/h', ...)

    Args:
        run: a run, or what :func:`gpudiag.load_run` reads, with trials; for more than bounds also with utilization
            while they ran.
        parallel: a number of trials at once, over all GPUs, several, or text such as ``"2,3,4"``; default: the
            present one, one less, one more and half as many again.
        pruner: an Optuna pruner or its text, as :func:`gpudiag.replay_pruner` takes it.
        restart_min: minutes without any trial that a change of the number of workers, or a crash, costs; default: 10
            for a change, and for a crash what the gaps after failures show.
        progress: called with what comes next ('' for a sign of life), often; may raise to cancel.

    Raises:
        ConfigError: ``parallel`` or ``restart_min`` is out of range, or the pruner is not understood.
        NotMeasurable: fewer than five trials have finished, their times are unknown, they are epochs of one training,
            or others that ran meanwhile were selected away.
    """
    numbers = _numbers(parallel)
    if restart_min is not None and not (np.isfinite(restart_min) and restart_min >= 0):
        raise ConfigError(f"restart_min must be a number of minutes of 0 or more, but got {restart_min!r}.")
    if pruner is not None:
        from gpudiag.forecast.pruning.pruner import resolve_pruner

        resolve_pruner(pruner)
    held = MemoRun.of(as_run(run))
    if held.trials.empty and len(held.steps):
        raise NotMeasurable(OF_TRAINING, SEE_GAINS)
    if held.trials.empty and len(held.studies):
        names = held.studies["study"].astype(str).tolist()
        raise NotMeasurable("No trial has begun yet in {names}.", "Come back when some have finished.", names=names)
    need_columns(held.trials, ("state",), "trials table", GIVE_TRIALS)
    need_all(held, "workers")
    if n := n_epochs(held.trials):
        raise NotMeasurable(
            "The {n:trial} are epochs of one training, which follow each other: none can run beside another.", n=n
        )
    try:
        return _made(held, numbers, pruner, restart_min, asked(progress or (lambda what: None)))
    except Passing as passing:
        raise passing.error from None


def _made(run: Run, numbers: list[int] | None, pruner: Any, restart_min: float | None, progress: Progress) -> Forecast:
    """The forecast, each part by itself: one that fails leaves the others."""
    gaps: dict[str, str] = {}
    progress("utilization by number of trials")
    log = _attempt("parallelism", gaps, lambda: observe(run))
    wanted = _wanted(numbers, log.handover.usual if log else usual_workers(run))
    gpus = max(1, len(log.gpus) if log else len(run.gpus))
    fullest = {k: max(_placed(log, k, gpus)) for k in wanted}
    levels = sorted({min(k, MOST_AT_ONCE) for k in (*fullest.values(), *_spread_out(log)) if k})
    capacity = _attempt("memory", gaps, lambda: _capacity(run, levels, restart_min, progress))
    beyond = [k for k in wanted if fullest[k] > MOST_AT_ONCE]
    if capacity is not None and beyond and not capacity.overflow(MOST_AT_ONCE).value > RISKY_PCT:
        numbers_beyond = ", ".join(map(str, beyond))
        gaps["memory"] = in_words(TOO_MANY, {"most": MOST_AT_ONCE, "beyond": numbers_beyond, "n_gpus": gpus})
    overflow = _overflow(capacity, gaps.get("memory", ""))
    pause_min = RESTART_MIN if restart_min is None else restart_min
    left = remaining(run, pause_min)
    if log is not None and log.not_free:
        gaps["gpus"] = log.not_free
    if log is None:
        made = _bounded(run, fullest, left, overflow, gaps["parallelism"])
    else:
        progress("back-test on the second half of the log")
        known = log
        modelled = _attempt("parallelism", gaps, lambda: _modelled(
            run, forecast_parallelism(
                recent(run, lambda: progress("")), wanted, left, overflow, _net(capacity), _peaks(capacity, known),
                progress,
            )
        ))  # fmt: skip
        made = modelled or _bounded(run, fullest, left, overflow, gaps["parallelism"])
    if pruner is not None:
        progress("replay of the pruner")
        made = replace(made, pruner=_attempt("pruner", gaps, lambda: _replay(run, pruner, progress)))
    return replace(
        made, capacity=capacity, gaps=tuple(gaps.items()), restart_min=pause_min, remaining_trials=left.trials
    )


def _numbers(parallel: int | Sequence[int | str] | str | None) -> list[int] | None:
    """Numbers of trials at once, from numbers or from text such as '2,3,4'; None where nothing was asked for."""
    if parallel is None:
        return None
    if isinstance(parallel, str):
        items: Sequence[int | str] = [part.strip() for part in parallel.split(",")]
    else:
        items = parallel if isinstance(parallel, Iterable) else [parallel]
    numbers = []
    for item in items:
        whole = isinstance(item, int | np.integer) and not isinstance(item, bool)
        number = int(item) if whole or (isinstance(item, str) and item.strip().isdecimal()) else 0
        if not 1 <= number <= MOST_WORKERS:
            raise ConfigError(
                f"parallel (--parallel) must hold whole numbers from 1 to {MOST_WORKERS}, but got {item!r}."
            )
        numbers.append(number)
    if not numbers:
        most = f"from 1 to {MOST_WORKERS}"
        raise ConfigError(f"parallel (--parallel) must hold at least one whole number {most}, but is empty.")
    return numbers


def _wanted(parallel: Sequence[int] | None, now: int) -> list[int]:
    """The numbers asked for and the present one, in order and once each."""
    chosen = parallel if parallel is not None else (max(1, now - 1), now + 1, round(1.5 * now))
    return sorted({now, *(int(k) for k in chosen)})


def _bounded(run: Run, fullest: Mapping[int, int], left: Remaining, overflow: Overflow, reason: str) -> Forecast:
    now, rate, scenarios, drift = bounded_scenarios(run, fullest, left, overflow, reason)
    return replace(_forecast(run, scenarios, now, rate, StartupGain()), drift=drift)


def _modelled(run: Run, made: Parallelism) -> Forecast:
    startup = startup_gain(made.model, made.model.log.placed(made.now), made.backtest.widening, made.backtest.reason)
    forecast = _forecast(run, made.scenarios, made.now, made.rate, startup)
    return replace(
        forecast,
        law=made.model.law,
        backtest=made.backtest,
        drift=made.drift,
        policies=made.policies,
        spread=made.spread,
    )


def _forecast(run: Run, scenarios: tuple[Scenario, ...], now: int, rate: Estimate, startup: StartupGain) -> Forecast:
    configured = float(run.info.settings.parallel or "nan")
    return Forecast(
        run.info.name, scenarios, now, configured, rate, "", None, Drift(), startup, batch_test(), (), RESTART_MIN, NAN
    )


def _attempt(topic: str, gaps: dict[str, str], make: Callable[[], T]) -> T | None:
    """What ``make`` gives, or None where it cannot be measured or fails; ``gaps`` then says why."""
    try:
        made = attempt(f"forecast of {topic}", make)
    except NotMeasurable as gap:
        gaps[topic] = str(gap)
        return None
    if isinstance(made, Fault):
        gaps[topic] = f"{ERROR}: {made}"
        return None
    return made


def _placed(log: ObservedLog | None, workers: int, gpus: int) -> Placement:
    """The workers of each GPU with so many; evenly where the GPUs of the trials are not known."""
    return with_workers(log.placed(log.handover.usual), workers) if log else evenly(workers, gpus)


def _spread_out(log: ObservedLog | None) -> Placement:
    """The present workers of each GPU if they were spread evenly; none where nothing is known of GPUs."""
    return evenly(log.handover.usual, len(log.gpus)) if log else ()


def _capacity(run: Run, per_gpu: Sequence[int], restart_min: float | None, progress: Progress) -> MemoryCapacity:
    """Of all numbers up to the most asked for or seen, for what is recommended is to depend on the run alone."""
    seen = most_seen(seen_by_level(run), find_crashes(run))
    levels = sorted({*levels_beyond(seen), *range(1, max(per_gpu) + 1)})
    return memory_capacity(run, levels, restart_min=restart_min, progress=progress)


def _replay(run: Run, pruner: Any, progress: Progress) -> PrunerReplay:
    from gpudiag.forecast.pruning.replay import replay_pruner

    return replay_pruner(run, pruner, progress=lambda done, total: progress(""))


def _net(capacity: MemoryCapacity | None) -> Net:
    """Trials per hour that end well, where as many are on each GPU as the capacity looked at."""

    def rate(placed: Placement) -> Estimate:
        if capacity is None or len(set(placed)) != 1 or len(placed) != capacity.n_gpus:
            return Estimate.unknown("trials/h", "")
        return capacity.net(placed[0])

    return rate


def _overflow(capacity: MemoryCapacity | None, reason: str) -> Overflow:
    """The chance of an overflow by number of trials on the fullest GPU; beyond those looked at, at least theirs."""

    def chance(k: int) -> Estimate:
        most = capacity.overflow(min(k, MOST_AT_ONCE)) if capacity is not None else Estimate.unknown("%", reason)
        if k <= MOST_AT_ONCE or capacity is None:
            return most
        return replace(most, high=100.0) if most.value > RISKY_PCT else Estimate.unknown("%", reason)

    return chance


def _peaks(capacity: MemoryCapacity | None, log: ObservedLog) -> np.ndarray | None:
    """Greatest memory of each trial of the log, in MiB; the median where a trial's own is unknown, None without any."""
    if capacity is None:
        return None
    known = capacity.trials.drop_duplicates(["study", "trial"]).set_index(["study", "trial"])["peak_mib"]
    peaks = known.reindex(log.key).to_numpy(float)
    return None if np.isnan(peaks).all() else np.where(np.isnan(peaks), np.nanmedian(peaks), peaks)
