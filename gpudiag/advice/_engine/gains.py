"""What a change can bring at most, from the ledger and the costs alone: bounds that need no model (METHODS 10)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpudiag.advice._engine.capacity import net_gain
from gpudiag.advice._engine.proposal import Gain
from gpudiag.measures._waits.by_trace import CAUSES as TRACED
from gpudiag.measures.base import Profile, profile_of
from gpudiag.measures.causes import CAUSES, CausesProfile
from gpudiag.measures.costs import CostsProfile
from gpudiag.measures.ledger import LedgerProfile
from gpudiag.measures.steps import StepsProfile
from gpudiag.rules._engine.judging import MIN_COVERAGE_PCT

if TYPE_CHECKING:
    from gpudiag.forecast.memory.capacity import MemoryCapacity

TRIAL_CELLS = ("startup_only", "tail_only", "waiting", "stalled", "busy_low", "busy")
IDLE_CELLS = ("startup_only", "tail_only", "waiting", "stalled")
WORK_CELLS = ("busy_low", "busy", "foreign")
PAUSED = ("evaluation", "checkpoints")
"""Sources of hours that lie in the pauses between steps, and maybe in the same ones."""
LOST = {"failures": "FAIL", "abandoned": "ABANDONED"}
IDLE = "idle"
"""What most changes take away: idle time, whatever its cause."""
BETWEEN_TRIALS = "between trials"
"""Idle time while no trial ran, beside that within trials."""
BATCH, WORK = "batch", "work"
"""Changes of the GPU work itself, to which 1/u is no bound: larger kernels, and less to compute."""
IN_STEP = "in step"
"""Waits of one GPU of several that step together, for which the others wait in a collective: that counts as busy."""
LEAST = 1.005
TELLING = ("log", "trace")
"""Sources of causes that a gain may rest on."""


@dataclass(frozen=True)
class GainBounds:
    """Shares of this run that bound every gain. Unknown is NaN.

    ``busy_pct`` is u_b: utilization over the time in which trials ran, on the GPUs that they ran on (without
    trials, over all observed time of the GPUs that worked); ``idle_pct`` the share of that time below 10 %;
    ``busy_all_pct`` the utilization of all GPUs over all observed time. ``startup_pct`` is F, ``parallel`` k,
    ``startup_law_pct`` F^k, ``startup_only_pct`` what the ledger shows of it. ``lost_gpu_h``: GPU-hours by source, as
    in LOST. ``paused_gpu_h``: GPU-hours in pauses between steps.
    """

    busy_pct: float = math.nan
    idle_pct: float = math.nan
    busy_all_pct: float = math.nan
    coverage_pct: float = math.nan
    startup_pct: float = math.nan
    startup_law_pct: float = math.nan
    startup_only_pct: float = math.nan
    parallel: float = math.nan
    trial_gpu_h: float = math.nan
    lost_gpu_h: Mapping[str, float] | None = None
    paused_gpu_h: float = math.nan

    @property
    def fill(self) -> float:
        """1/u_b: what filling all idle time brings at constant GPU work; NaN unknown."""
        return 100 / self.busy_pct if self.busy_pct > 0 else math.nan

    @property
    def fill_all(self) -> float:
        """The same over all GPUs and all time: no plan can bring more."""
        return 100 / self.busy_all_pct if self.busy_all_pct > 0 else math.nan

    @property
    def startup(self) -> float:
        """Removing every start-up at the same parallelism: min(1/(1-F), 1/u_b); NaN unknown."""
        return min(1 / (1 - self.startup_pct / 100), self.fill) if self.startup_pct < 100 else math.nan

    @property
    def covered(self) -> bool:
        """True where enough of the run was observed to take its utilization for the run's."""
        return self.coverage_pct >= MIN_COVERAGE_PCT


def bounds_of(profiles: Mapping[str, Profile]) -> GainBounds:
    """The bounds that the profiles of a run allow."""
    bounds = GainBounds()
    if (ledger := profile_of(profiles, LedgerProfile)) is not None:
        bounds = _from_ledger(ledger)
    if (costs := profile_of(profiles, CostsProfile)) is not None:
        spent = costs.outcomes.set_index("outcome")["gpu_s"]
        bounds = replace(
            bounds,
            startup_pct=costs.startup_share_pct,
            startup_law_pct=costs.startup_law_pct,
            parallel=costs.parallel,
            trial_gpu_h=costs.trial_gpu_h,
            lost_gpu_h={source: float(spent[outcome]) / 3600 for source, outcome in LOST.items()},
        )
    if (steps := profile_of(profiles, StepsProfile)) is not None:
        bounds = replace(bounds, paused_gpu_h=steps.pauses_s * steps.logged_gpus / 3600)
    return bounds


def gpus_at_work(ledger: LedgerProfile) -> list[str]:
    """The GPUs that were ever at 10 % or more; all of them where none was."""
    busy = ledger.cells["cell"].isin(WORK_CELLS) & (ledger.cells["gpu_s"] > 0)
    return list((ledger.cells.loc[busy, "gpu"] if busy.any() else ledger.cells["gpu"]).unique())


def _from_ledger(ledger: LedgerProfile) -> GainBounds:
    cells, compute = ledger.cells, ledger.compute
    if not ledger.has_trials:  # with trials, the cells say on which GPUs they ran
        cells, compute = (table[table["gpu"].isin(gpus_at_work(ledger))] for table in (cells, compute))
    seconds = cells.groupby("cell", observed=False)["gpu_s"].sum()
    active = compute.groupby("cell", observed=False)["compute_gpu_s"].sum()
    counted = [name for name in seconds.index if name != "unobserved"]
    if ledger.has_trials:
        counted = [name for name in counted if name in TRIAL_CELLS]
    time = float(seconds[counted].sum())
    idle = seconds[[name for name in counted if name in (*IDLE_CELLS, "idle_no_trial")]].sum()
    return GainBounds(
        busy_pct=100 * float(active[counted].sum()) / time if time else math.nan,
        idle_pct=100 * float(idle) / time if time else math.nan,
        busy_all_pct=ledger.mean_util_pct,
        coverage_pct=ledger.coverage_pct,
        startup_only_pct=100 * float(seconds["startup_only"]) / time if time and ledger.has_trials else math.nan,
    )


def fill_gain(bounds: GainBounds, most: float = math.inf, source: str = IDLE) -> Gain | None:
    """Between nothing and all idle time filled, and at most ``most`` times; None where utilization is unknown.

    ``source``: the cause of idle time that is taken away, where it is known.
    """
    return Gain(1.0, max(1.0, min(most, bounds.fill)), source=source) if bounds.fill > 0 else None


def in_step_gain(bounds: GainBounds, n_gpus: int, most: float = math.inf) -> Gain | None:
    """The same for GPUs that step together: at most the idle time of all of them, one after another, and at most
    ``most`` times. None where neither bounds it.
    """
    left = 1 - n_gpus * (1 - bounds.busy_pct / 100)
    high = min(most, 1 / left if left > 0 else math.inf)
    return Gain(1.0, max(1.0, high), source=IN_STEP) if bounds.fill > 0 and math.isfinite(high) else None


def start_gain(bounds: GainBounds, most: float) -> Gain | None:
    """The same of workers that are missing: their GPUs had no trial, so that 1/u counts the time without one too."""
    gain = Gain(1.0, max(1.0, min(most, bounds.fill_all)), source=BETWEEN_TRIALS)
    return gain if bounds.fill_all > 0 else None


def without_causes(profiles: Mapping[str, Profile], *causes: str) -> float:
    """What the same work would bring if the GPUs had waited for none of these: observed time over that without the most
    they may have waited. Infinite where nothing but signs in the samples tells of them. Where profiled steps stand for
    the run's, what they do not show is not there.
    """
    found = profile_of(profiles, CausesProfile)
    if found is None:
        return math.inf
    rows = found.by_cause[found.by_cause.index.isin(causes) & found.by_cause["source"].isin(TELLING)]
    left = found.observed_gpu_s - float(rows["high_gpu_s"].sum())
    told = len(rows) > 0 or (found.trace_fit == "" and set(causes) <= set(TRACED))
    return found.observed_gpu_s / left if told and left > 0 else math.inf


def without_open(profiles: Mapping[str, Profile], *causes: str) -> float:
    """What the same work would bring without all idle time within it but what is surely of another cause than these:
    no change that takes only these away brings more. Infinite where no log tells of the time between its lines.
    """
    found = profile_of(profiles, CausesProfile)
    if found is None or not found.has_log:
        return math.inf
    rows = found.by_cause
    within_s = found.observed_gpu_s - float(rows.loc[rows.index == "outside", "low_gpu_s"].sum())
    open_s = found.unused_gpu_s - float(rows.loc[~rows.index.isin((*causes, "unknown")), "low_gpu_s"].sum())
    return within_s / (within_s - max(open_s, 0.0)) if within_s > open_s else math.inf


def is_nothing(gain: Gain | None) -> bool:
    """Whether a change is known to bring less than half a percent, because nothing waited for what it takes away."""
    return gain is not None and gain.source in CAUSES and gain.unit == "x" and gain.high < LEAST


def saved_gain(bounds: GainBounds, source: str, part: float = 1.0) -> Gain | None:
    """Between nothing and ``part`` of the GPU-hours that were lost to ``source``; None where they are unknown."""
    lost = part * (bounds.lost_gpu_h or {}).get(source, math.nan)
    return Gain(0.0, lost, "GPU-h", source) if lost >= 0 else None


def fewer_gain(capacity: MemoryCapacity | None, present: int, k: int, lost: float) -> Gain | None:
    """What fewer trials at once bring in good trials per hour: as counted or forecast with crashes at both numbers;
    else at worst in proportion to the number, at best as before and without the part ``lost`` (0..1) to failures. None
    where that part is unknown, or everything.
    """
    known = net_gain(capacity, present, k)
    if known is None and not 0 <= lost < 1:
        return None
    low, high = known or (k / present, 1 / (1 - lost))
    return Gain(low, high, "x", "failures")


NOTHING = Gain(1.0, 1.0, "x", "none")
"""What observation brings by itself."""


def speedup(gain: Gain | None, total_gpu_h: float) -> tuple[float, float]:
    """A gain as factors: saved hours of the total become time not needed. Unknown counts as none."""
    if gain is None:
        return 1.0, 1.0
    if gain.unit == "x":
        return gain.low, gain.high
    if not total_gpu_h > 0:
        return 1.0, 1.0
    low, high = (total_gpu_h / max(total_gpu_h - hours, total_gpu_h / 1e6) for hours in (gain.low, gain.high))
    return low, high


@dataclass(frozen=True)
class Combined:
    """What several changes bring together: a factor clipped at ``ceiling``, and GPU-hours not spent. ``high`` is
    infinite where nothing bounds it.
    """

    low: float
    high: float
    ceiling: float
    clipped: bool
    saved_gpu_h: float

    @property
    def is_bounded(self) -> bool:
        return math.isfinite(self.high)


def combine(gains: Iterable[Gain | None], bounds: GainBounds) -> Combined | None:
    """Factors multiply up to the ceiling, 1/u; percentages are never added (METHODS 10). Of changes that take the same
    cause of idle time away, the largest counts, and causes add up by the time that each holds. Less work takes from the
    busy time beside them, and a larger batch multiplies what is left, as does what GPUs in step wait for: these three
    may lie beyond the ceiling.

    The ceiling is 1/u_b of the GPUs that trials ran on; where a change brings another GPU to work or fills time without
    a trial, 1/u of all GPUs and all time.
    Hours from one source count once, and those in pauses up to all pauses. None where utilization is unknown.
    """
    known = [gain for gain in gains if gain is not None]
    factors = [gain for gain in known if gain.unit == "x"]
    filling = [gain for gain in factors if gain.source not in (BATCH, WORK, IN_STEP)]
    beyond = any(gain.source in ("devices", BETWEEN_TRIALS) for gain in filling)
    ceiling = bounds.fill_all if beyond else bounds.fill
    if math.isnan(ceiling):
        return None
    most: dict[str, float] = {}
    for gain in filling:
        if gain.source in CAUSES:
            most[gain.source] = max(most.get(gain.source, 1.0), gain.high)
    left = 1 - sum(1 - 1 / high for high in most.values())
    low = min(math.prod(gain.low for gain in filling), ceiling)
    filled = math.prod(gain.high for gain in filling if gain.source not in CAUSES) * (
        1 / left if left > 0 else math.inf
    )
    larger, less, waits = (
        max([1.0, *(one.high for one in factors if one.source == source)]) for source in (BATCH, WORK, IN_STEP)
    )
    high = larger * waits * _with_less_work(min(filled, ceiling), less)
    hours: dict[str, float] = {}
    for gain in known:
        if gain.unit == "GPU-h" and gain.low >= 0:  # what may cost hours is no saving
            hours[gain.source] = max(hours.get(gain.source, 0.0), gain.high)
    paused = sum(hours.pop(source, 0.0) for source in PAUSED)
    most_paused = paused if math.isnan(bounds.paused_gpu_h) else min(paused, bounds.paused_gpu_h)
    saved = sum(hours.values()) + most_paused
    return Combined(low, high, ceiling, filled > ceiling and high <= ceiling, saved)


def _with_less_work(filled: float, less: float) -> float:
    """Both take time away: of the idle part, and of the busy one. Infinite where all of it may go."""
    left = 1 / filled - (1 - 1 / less)
    return filled if less == 1 else 1 / left if left > 0 else math.inf
