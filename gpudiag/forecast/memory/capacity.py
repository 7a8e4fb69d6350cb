"""``memory_capacity``: how many trials fit into a GPU's memory, what happens if they do not, and what to refuse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from gpudiag.errors import ConfigError, expected, in_words
from gpudiag.forecast.estimate import NAN, Estimate
from gpudiag.forecast.memory.constraint import Constraint, combinations, constraint
from gpudiag.forecast.memory.crashes import Crashes, find_crashes
from gpudiag.forecast.memory.document import (
    CrashClassEntry,
    CrashesEntry,
    CrashLevelEntry,
    LevelEntry,
    MemoryEntry,
    RestartEntry,
)
from gpudiag.forecast.memory.levels import (
    ENDS,
    MOST_AT_ONCE,
    drawn_peaks,
    levels_beyond,
    memory_of,
    most_seen,
    throughput,
    unknown_memory,
    usual_levels,
    with_rates,
    with_risks,
)
from gpudiag.forecast.memory.net import NetGains, Restart, n_gpus_to_use, restart_cost
from gpudiag.forecast.memory.overflow import Room
from gpudiag.forecast.memory.recommended import MOST_NET, Recommended, recommend
from gpudiag.forecast.memory.seen import seen_by_level, tightest_room
from gpudiag.forecast.progress import Progress
from gpudiag.load import RunLike, as_run
from gpudiag.measures._time.trial_intervals import intervals_of, need_own_times
from gpudiag.measures.base import GIVE_TRIALS, need_all, need_columns
from gpudiag.memo import MemoRun, once
from gpudiag.plain_data import JsonObject, clean, entry_of, plain_object
from gpudiag.run import Run
from gpudiag.schema import ADDED
from gpudiag.shown import Shown

NO_TOTAL = "Neither the log nor run.toml says how much memory the GPU has; state mem_total_mib under [gpus.0] there."
UNKNOWN_MEMORY = "what fits into memory is not known"
NO_ROOM = "Memory in use without any trial is not known."


@dataclass(frozen=True, eq=False, repr=False)
class MemoryCapacity(Shown):
    """How many trials fit into the memory of one GPU.

    ``table``, one row a number k of trials at once on a GPU: k; typical_mib, p95_mib (what one set of k in twenty
    reaches), worst_mib (the k largest trials together), each with low and high ends; margin_mib (usable less p95) with
    its ends; hard_fit; sets_over_pct (share of sets of the trials seen that exceed what is usable, as if peaks came at
    the same time); p_overflow_pct (estimate of the share of ends of trials at which k at once hold more than there is)
    with p_low_pct and p_high_pct (at most, 95 %); seen_max_mib and seen_h (greatest reading while k
    ran, and for how long); crash_pct, crash_low_pct, crash_high_pct (of any class, per trial that follows no other
    failure) and crash_how ('seen', 'forecast', 'unknown'); failed_pct, failed_low_pct, failed_high_pct (of all trials,
    those that follow another failure included: as counted at k from 30 ends on, else as forecast); study_risk_pct
    (at least one overflow in ``n_trials`` like those seen, from p_overflow_pct) with study_low_pct and study_high_pct
    (from p_low_pct and p_high_pct, or what was counted at k where that shows more); rate_day, net_day with their ends
    (trials per day without and with crashes, all GPUs together; with crashes as counted where as many workers ran long
    enough).
    ``trials``, ``combinations``: see :class:`Peaks` and :func:`combinations`. ``constraints``: one a k.
    ``crashes``: by class and by level. ``gpu``: the one with least room, whose ``room`` counts. ``restart``: what a
    crash costs. ``hard_fit_k``: greatest k up to the last looked at whose largest trials fit together (0 where not even
    one is sure to fit, NaN unknown). ``recommended_k``: the greatest k looked at within that, though no more than were
    seen at once, for memory alone makes nothing faster; or the k with the best net throughput where none fits, or where
    its lower end is above what fits brings at most (METHODS 6); with ``risk_pct`` the greatest k whose
    ``study_risk_pct`` is within it. ``because`` says which.
    ``gains``: what each k brings of trials that end well, over the present workers.
    ``reason``: why nothing could be told apart, or ''. ``baseline_mib`` by GPU, ``error_pct`` the mean error that
    the intervals of the peaks let expect (NaN without a peak).
    """

    run: str
    table: pd.DataFrame
    trials: pd.DataFrame
    combinations: pd.DataFrame
    constraints: tuple[Constraint, ...]
    crashes: Crashes
    gpu: str
    room: Room
    n_gpus: int
    restart: Restart
    n_trials: int
    hard_fit_k: float
    recommended_k: float
    because: str
    risk_pct: float
    parameters: tuple[str, ...]
    error_pct: float
    n_drops: int
    reason: str
    gains: NetGains = field(default_factory=NetGains)

    def to_frame(self) -> pd.DataFrame:
        """``table``."""
        return self.table

    @property
    def limits(self) -> bool:
        """True where memory decides how many to run at once: more than ``recommended_k`` are not sure to fit, or exceed
        the risk that was given. Else memory has room for more, or no more were looked at, and only throughput can say
        whether more are of use.
        """
        looked_at = float(self.table["k"].max())
        has_room = self.hard_fit_k > self.recommended_k or self.hard_fit_k >= looked_at
        return not (math.isnan(self.recommended_k) or (has_room and math.isnan(self.risk_pct)))

    def workers(self, now: int) -> int:
        """How many trials to run at once over all GPUs, where ``now`` do; 0 where memory does not decide. More only for
        more on a GPU that surely end more trials well: that they fit makes nothing faster.
        """
        if not self.limits:
            return 0
        k = int(self.recommended_k)
        more = self.because == MOST_NET and k * self.n_gpus >= now + self.n_gpus
        return k * self.n_gpus if more else min(k * self.n_gpus, now)

    def overflow(self, k: int) -> Estimate:
        """Share of ends of trials at which k at once on one GPU exceed its memory, in percent; or why it is unknown.

        The upper end is what it is at most, with a trial twice as large as the largest seen; decisions rest on that.
        """
        row = self.table[self.table["k"] == k]
        if not self.reason and row.empty:
            return Estimate.unknown("%", in_words("{k} at once was not looked at; give it in levels.", {"k": k}))
        if self.reason:
            return Estimate.unknown("%", self.reason)
        value, low, high = (float(row[name].iloc[0]) for name in ("p_overflow_pct", "p_low_pct", "p_high_pct"))
        return Estimate(value, low, high, "%")

    def net(self, k: int) -> Estimate:
        """Trials per hour that end well with k at once on each GPU, crashes included; unknown where nobody can tell."""
        row = self.table[self.table["k"] == k]
        if row.empty:
            return Estimate.unknown("trials/h", "")
        value, low, high = (float(row[f"net_day{end}"].iloc[0]) / 24 for end in ENDS)
        return Estimate(value, low, high, "trials/h", math.isnan(value))

    def constraint(self, k: int) -> Constraint:
        """The constraint for k at once. Raises KeyError where there is none."""
        for one in self.constraints:
            if one.k == k:
                return one
        raise KeyError(f"no constraint for {k} at once; there are {[one.k for one in self.constraints]}")

    def needed_constraint(self) -> Constraint | None:
        """The constraint to propose: for the recommended number at once if some trials do not fit it, else for the
        smallest that some do not fit; None where none would be refused, or all, or where no more ran at once than fit.
        The report and the advice show this one.
        """
        ran = self.table.loc[(self.table["seen_h"] > 0) | (self.table["seen_n"] >= 1), "k"].max()
        beyond = [one for one in self.constraints if self.hard_fit_k < one.k <= ran and one.leaves_some]
        return next((one for one in beyond if one.k == self.recommended_k), beyond[0] if beyond else None)

    def larger_than(self, gib: float) -> pd.DataFrame:
        """The combinations of parameters whose trials take more than so many GiB."""
        return self.combinations[self.combinations["peak_mib"] > 1024 * gib].reset_index(drop=True)

    @property
    def document(self) -> MemoryEntry:
        """As the document of a forecast holds it: unknown is None."""
        return MemoryEntry(
            run=self.run,
            gpu=self.gpu,
            n_gpus=self.n_gpus,
            total_mib=clean(self.room.total_mib),
            reserved_mib=clean(self.room.reserved_mib),
            usable_mib=clean(self.room.usable_mib),
            baseline_mib=clean(self.room.baseline_mib),
            levels=tuple(entry_of(LevelEntry, row) for row in self.table.to_dict("records")),
            combinations=tuple(
                {str(name): clean(value) for name, value in row.items()} for row in self.combinations.to_dict("records")
            ),
            constraints=self.constraints,
            crashes=_crashes(self.crashes),
            restart=RestartEntry(self.restart.hours, self.restart.how, self.restart.whole),
            n_trials=self.n_trials,
            hard_fit_k=clean(self.hard_fit_k),
            recommended_k=clean(self.recommended_k),
            because=self.because,
            parameters=self.parameters,
            error_pct=clean(self.error_pct),
            reason=self.reason,
        )

    def to_dict(self) -> JsonObject:
        """Everything as plain values for JSON: unknown is None."""
        return plain_object(self.document)


def memory_capacity(
    run: RunLike,
    levels: int | Sequence[int] | None = None,
    *,
    n_trials: int | None = None,
    restart_min: float | None = None,
    risk_pct: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> MemoryCapacity:
    """How many trials fit into the GPU's memory at once, and what an overflow costs.

    >>> gd.memory_capacity("data/samples/healthy").hard_fit_k
    3.0

    Args:
        run: a run, or what :func:`gpudiag.load_run` reads, with trials; for the memory of single trials also with GPU
            memory, or memory by process.
        levels: a number of trials at once on one GPU, or several; default: 1 to one more than were seen.
        n_trials: trials of the study whose risk is asked; default: as stated in run.toml, else as many as there are.
        restart_min: minutes until a worker works again after a crash; default: the gaps seen after failures.
        risk_pct: recommend the greatest k with at most this chance of an overflow in a study of trials like those seen.
        seed: the only source of chance.
        progress: called with what comes next ('' for a sign of life); may raise to cancel.

    Raises:
        ConfigError: an argument is out of range.
        NotMeasurable: there are no trials, or others that ran beside them were selected away.
    """
    asked = [levels] if isinstance(levels, int) else levels
    _check(asked, n_trials, restart_min, risk_pct)
    held = as_run(run)
    need_all(held, "sharing")
    return _capacity(held, asked, n_trials, restart_min, risk_pct, seed, progress or (lambda what: None))


def _capacity(
    run: Run,
    levels: Sequence[int] | None,
    n_trials: int | None,
    restart_min: float | None,
    risk_pct: float | None,
    seed: int,
    progress: Progress,
) -> MemoryCapacity:
    asked_again, run = isinstance(run, MemoRun), MemoRun.of(run)
    need_columns(run.trials, ("state",), "trials table", GIVE_TRIALS)
    need_own_times(run)
    progress("memory of single trials")
    peaks, _ = drawn_peaks(run, seed)
    progress("crashes")
    crashes, seen = find_crashes(run), seen_by_level(run)
    ran_most = most_seen(seen, crashes)
    gpu, room = tightest_room(run, peaks.baseline_mib or _least_use(run))
    wanted = sorted({int(k) for k in levels}) if levels is not None else levels_beyond(ran_most)
    reason = peaks.reason or _no_room(room)
    memory, hard_fit = unknown_memory(wanted), NAN
    if not reason:
        progress("sets of trials at once")
        most = max(*wanted, usual_levels(ran_most) if asked_again else 1)
        memory, hard_fit = memory_of(run, seed, room, wanted, most, progress)
    restart = restart_cost(crashes.restart_s, crashes.oom_restart_s, restart_min, crashes.takes_all)
    asked = n_trials or run.info.settings.n_trials or int((intervals_of(run)["state"] != ADDED).sum())
    table = with_risks(memory, crashes, seen, asked)
    progress("throughput by number of trials")
    # Without memory no number is recommended, counted or not.
    counts = restart.how != "given" and not reason
    rates, nets, gains = throughput(run, table, crashes, restart, counts=counts, progress=progress)
    table = with_rates(table, rates, nets)
    recommended = (
        Recommended(NAN, UNKNOWN_MEMORY)
        if reason
        else recommend(table, nets, restart, gains=gains, hard_fit=hard_fit, most_seen=ran_most, risk_pct=risk_pct)
    )
    combos = once(run, ("combinations", seed), lambda: combinations(run, peaks))
    limits = [constraint(run, peaks, combos, room.usable_mib, room.baseline_mib, k) for k in wanted if not reason]
    return MemoryCapacity(
        run=run.info.name,
        table=table,
        trials=peaks.trials,
        combinations=combos,
        constraints=tuple(limits),
        crashes=crashes,
        gpu=gpu,
        room=room,
        n_gpus=n_gpus_to_use(run),
        restart=restart,
        n_trials=asked,
        hard_fit_k=hard_fit,
        recommended_k=recommended.k,
        because=recommended.because,
        risk_pct=NAN if risk_pct is None else risk_pct,
        parameters=peaks.parameters,
        error_pct=peaks.error_pct,
        n_drops=peaks.n_drops,
        reason=reason,
        gains=gains,
    )


def _check(
    levels: Sequence[int] | None, n_trials: int | None, restart_min: float | None, risk_pct: float | None
) -> None:
    if levels is not None and not isinstance(levels, Sequence | np.ndarray):
        raise expected("levels as a whole number or several", levels)
    for k in levels if levels is not None else (1,):
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= MOST_AT_ONCE:
            raise ConfigError(f"levels must hold whole numbers from 1 to {MOST_AT_ONCE}, but got {k!r}.")
    if levels is not None and not len(levels):
        raise ConfigError(f"levels must hold at least one whole number from 1 to {MOST_AT_ONCE}, but is empty.")
    if n_trials is not None and n_trials < 1:
        raise ConfigError(f"n_trials must be 1 or more, but got {n_trials!r}.")
    if restart_min is not None and not (np.isfinite(restart_min) and restart_min >= 0):
        raise ConfigError(f"restart_min must be a number of minutes of 0 or more, but got {restart_min!r}.")
    if risk_pct is not None and not 0 < risk_pct < 100:
        raise ConfigError(f"risk_pct must lie between 0 and 100, but got {risk_pct!r}.")


def _least_use(run: Run) -> dict[str, float]:
    """Where peaks came trial by trial: the least memory ever in use on each GPU stands for what is there without."""
    if "mem_used_mib" not in run.gpu:
        return {}
    least = run.gpu.groupby("gpu")["mem_used_mib"].min().dropna()
    return {str(gpu): float(value) for gpu, value in least.items()}


def _no_room(room: Room) -> str:
    if np.isnan(room.total_mib):
        return NO_TOTAL
    return NO_ROOM if np.isnan(room.baseline_mib) else ""


def _crashes(crashes: Crashes) -> CrashesEntry:
    return CrashesEntry(
        n=crashes.n,
        success_streak=crashes.success_streak,
        by_class=tuple(entry_of(CrashClassEntry, row) for row in crashes.by_class.to_dict("records")),
        by_level=tuple(entry_of(CrashLevelEntry, row) for row in crashes.by_level.to_dict("records")),
    )
