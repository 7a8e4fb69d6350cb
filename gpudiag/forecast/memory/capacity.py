"""``memory_capacity``: how many trials fit into a GPU's memory, what happens if they do not, and what to refuse."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from gpudiag.errors import ConfigError, expected, in_words
from gpudiag.forecast.estimate import NAN, Estimate
from gpudiag.forecast.memory.constraint import Constraint, combinations, constraint
from gpudiag.forecast.memory.crashes import MIN_SEEN, Crashes, find_crashes
from gpudiag.forecast.memory.document import (
    CrashClassEntry,
    CrashesEntry,
    CrashLevelEntry,
    LevelEntry,
    MemoryEntry,
    RestartEntry,
)
from gpudiag.forecast.memory.net import (
    Restart,
    crash_part,
    n_gpus_to_use,
    net_estimate,
    rates_without_crashes,
    restart_cost,
    seen_net,
)
from gpudiag.forecast.memory.overflow import Room, overflow_table, study_risk_pct
from gpudiag.forecast.memory.peaks import Peaks, trial_peaks
from gpudiag.forecast.memory.seen import seen_by_level, tightest_room
from gpudiag.forecast.progress import Progress
from gpudiag.load import RunLike, as_run
from gpudiag.measures._time.trial_intervals import intervals_of, need_own_times
from gpudiag.measures.base import GIVE_TRIALS, need_all, need_columns
from gpudiag.memo import MemoRun, memoized, once
from gpudiag.plain_data import JsonObject, clean, entry_of, plain_object
from gpudiag.run import Run
from gpudiag.schema import ADDED
from gpudiag.shown import Shown

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_AT_ONCE = 32
NO_TOTAL = "Neither the log nor run.toml says how much memory the GPU has; state mem_total_mib under [gpus.0] there."
MOST_NET = "as most trials per day end well even with crashes at the upper end of their interval"
NOT_ONE = "not even the largest trial is sure to fit by itself, and what a crash costs is not known (give restart_min)"
NOT_SO_MANY = (
    "the largest trials are sure to fit up to {most} at once only, and what a crash costs is not known (give "
    "restart_min)"
)
UNKNOWN_MEMORY = "what fits into memory is not known"
WITHIN = "as the risk of an overflow in the study, if its trials are like those seen, stays at {risk} % or below"
NO_ROOM = "Memory in use without any trial is not known."
ENDS = ("", "_low", "_high")
MEMORY_COLUMNS = (
    "typical_mib", "typical_low_mib", "typical_high_mib", "p95_mib", "p95_low_mib", "p95_high_mib", "worst_mib",
    "worst_low_mib", "worst_high_mib", "margin_mib", "margin_low_mib", "margin_high_mib", "hard_fit",
    "sets_over_pct", "p_overflow_pct", "p_low_pct", "p_high_pct",
)  # fmt: skip


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

    def to_frame(self) -> pd.DataFrame:
        """``table``."""
        return self.table

    @property
    def limits(self) -> bool:
        """True where memory decides how many to run at once: more than ``recommended_k`` are not sure to fit, or exceed
        the risk that was given. Else memory has room for more, and only throughput can say whether more are of use.
        """
        has_room = self.hard_fit_k > self.recommended_k and math.isnan(self.risk_pct)
        return not (math.isnan(self.recommended_k) or has_room)

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

    def constraint(self, k: int) -> Constraint:
        """The constraint for k at once. Raises KeyError where there is none."""
        for one in self.constraints:
            if one.k == k:
                return one
        raise KeyError(f"no constraint for {k} at once; there are {[one.k for one in self.constraints]}")

    def needed_constraint(self) -> Constraint | None:
        """The constraint to propose: for the recommended number at once if some trials do not fit it, else for the
        smallest that some do not fit; None where none would be refused, or all. The report and the advice show this
        one.
        """
        beyond = [one for one in self.constraints if one.k > self.hard_fit_k and one.leaves_some]
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
    peaks, _ = _drawn_peaks(run, seed)
    progress("crashes")
    crashes, seen = find_crashes(run), seen_by_level(run)
    gpu, room = tightest_room(run, peaks.baseline_mib or _least_use(run))
    wanted = _levels(levels, seen, crashes)
    reason, hard_fit = peaks.reason or _no_room(room), NAN
    memory = pd.DataFrame({"k": wanted}).reindex(columns=["k", *MEMORY_COLUMNS])
    if not reason:
        progress("sets of trials at once")
        most = max(*wanted, usual_levels(_most_seen(seen, crashes)) if asked_again else 1)
        sets = once(run, ("overflows", seed, most), lambda: _overflows(run, seed, room, most, progress))
        memory = sets[sets["k"].isin(wanted)].reset_index(drop=True)
        hard_fit = float(sets.loc[sets["hard_fit"] & (sets["k"] <= max(wanted)), "k"].max(skipna=True))
        hard_fit = 0.0 if math.isnan(hard_fit) else hard_fit
    restart = restart_cost(crashes.restart_s, crashes.oom_restart_s, restart_min, crashes.takes_all)
    asked = n_trials or run.info.settings.n_trials or int((intervals_of(run)["state"] != ADDED).sum())
    n_gpus = n_gpus_to_use(run)
    table = _with_risks(memory, crashes, seen, asked)
    progress("throughput by number of trials")
    rates = rates_without_crashes(run, wanted, lambda: progress(""))
    part = crash_part(crashes.crashed_s, crashes.well_s)
    nets = {
        int(row["k"]): net_estimate(
            rates[int(row["k"])],
            Estimate(row["crash_pct"], row["crash_low_pct"], row["crash_high_pct"], "%"),
            restart,
            int(row["k"]),
            part,
        )
        for row in table.to_dict("records")
    }
    if restart.how != "given" and not reason:  # without memory no number is recommended, counted or not
        nets |= {k: counted for k in nets if (counted := seen_net(run, k, n_gpus)) is not None}
    rates, nets = _ordered(rates, nets)
    table = _with_rates(table, rates, nets)
    combos = once(run, ("combinations", seed), lambda: combinations(run, peaks))
    fitting = [k for k in wanted if k <= min(hard_fit, _most_seen(seen, crashes))]
    safe = max(fitting, default=None)
    recommended, because = (NAN, UNKNOWN_MEMORY) if reason else _recommend(table, nets, safe, restart, risk_pct)
    if because == NOT_ONE and hard_fit >= 1:
        because = in_words(NOT_SO_MANY, {"most": int(hard_fit)})
    return MemoryCapacity(
        run=run.info.name,
        table=table,
        trials=peaks.trials,
        combinations=combos,
        constraints=() if reason else tuple(
            constraint(run, peaks, combos, room.usable_mib, room.baseline_mib, k) for k in wanted
        ),
        crashes=crashes,
        gpu=gpu,
        room=room,
        n_gpus=n_gpus,
        restart=restart,
        n_trials=asked,
        hard_fit_k=hard_fit,
        recommended_k=recommended,
        because=because,
        risk_pct=NAN if risk_pct is None else risk_pct,
        parameters=peaks.parameters,
        error_pct=peaks.error_pct,
        n_drops=peaks.n_drops,
        reason=reason,
    )  # fmt: skip


@memoized
def _drawn_peaks(run: Run, seed: int) -> tuple[Peaks, np.random.Generator]:
    """The peaks of single trials, and the source of chance as they left it."""
    rng = np.random.default_rng(seed)
    return trial_peaks(run, rng), rng


def _overflows(run: Run, seed: int, room: Room, most: int, progress: Progress) -> pd.DataFrame:
    """The table of overflows for 1 to ``most`` trials at once; what a level says does not depend on the others."""
    peaks, rng = _drawn_peaks(run, seed)
    drawn = peaks.drawn
    weight = peaks.trials["weight_s"].to_numpy(float)[drawn]
    weight = weight if weight.sum() > 0 else np.ones(len(weight))
    levels, tick = range(1, most + 1), lambda done, of: progress("")
    return overflow_table(peaks.draws[:, drawn], weight, room, levels, copy.deepcopy(rng), tick, peaks.at_peak[drawn])


def usual_levels(seen: int) -> int:
    """Trials at once on a GPU up to which is asked as a rule where at most so many were seen: half as many again."""
    return min(max(seen + 1, round(1.5 * seen)), MOST_AT_ONCE)


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


def _levels(levels: Sequence[int] | None, seen: pd.DataFrame, crashes: Crashes) -> list[int]:
    if levels is not None:
        return sorted({int(k) for k in levels})
    return list(range(1, min(_most_seen(seen, crashes) + 1, MOST_AT_ONCE) + 1))


def _most_seen(seen: pd.DataFrame, crashes: Crashes) -> int:
    """The most trials that ran at once on a GPU."""
    return max([1, *map(int, seen.index), *map(int, crashes.by_level["k"])])


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


def _with_risks(memory: pd.DataFrame, crashes: Crashes, seen: pd.DataFrame, n_trials: int) -> pd.DataFrame:
    """The table with what was seen, the chance of a crash per trial and the risk of the study."""
    out = memory.merge(seen.reset_index(), how="left", on="k")
    out = out.merge(crashes.by_level.rename(columns={"n": "seen_n"}), how="left", on="k")
    others = crashes.by_class[crashes.by_class["kind"] != "oom"]
    n_other = int(others["n_events"].sum())
    other = _rate(n_other, crashes.n)
    rows = [_chance(row, other) for row in out.to_dict("records")]
    out[["crash_pct", "crash_low_pct", "crash_high_pct", "crash_how"]] = pd.DataFrame(rows)
    failed = [_failed(row, crashes, others) for row in out.to_dict("records")]
    out[["failed_pct", "failed_low_pct", "failed_high_pct"]] = pd.DataFrame(failed, index=out.index)
    counted = out["oom_low_pct"].astype(float).fillna(0.0)
    for name, chance in zip(
        ("study_risk_pct", "study_low_pct", "study_high_pct"),
        ("p_overflow_pct", "p_low_pct", "p_high_pct"),
        strict=True,
    ):
        least = np.maximum(out[chance].astype(float), counted)  # NaN where the forecast knows nothing
        out[name] = [study_risk_pct(p, n_trials) if p == p else NAN for p in least]
    return out


def _rate(events: int, n: int) -> tuple[float, float, float]:
    from gpudiag.measures._trials.proportions import clopper_pearson_pct

    return (100 * events / n, *clopper_pearson_pct(min(events, n), n)) if n else (NAN, NAN, NAN)


def _chance(row: Mapping[Any, Any], other: tuple[float, float, float]) -> tuple[float, float, float, str]:
    """Crashes of a trial at a level: overflows as seen there, else as forecast; all other classes at the run's rate."""
    if row["seen_n"] >= MIN_SEEN:
        oom, how = (row["oom_pct"], row["oom_low_pct"], row["oom_high_pct"]), "seen"
    elif row["p_overflow_pct"] >= 0:
        oom, how = (row["p_overflow_pct"], row["p_low_pct"], row["p_high_pct"]), "forecast"
    else:
        return NAN, NAN, NAN, "unknown"
    value, low, high = (min(a + b, 100.0) for a, b in zip(oom, other, strict=True))
    return value, low, high, how


def _failed(row: Mapping[Any, Any], crashes: Crashes, others: pd.DataFrame) -> tuple[float, float, float]:
    """Trials that fail at a level, as they are counted: those that follow another failure in its process included."""
    if row["k"] in crashes.failed.index and (seen := crashes.failed.loc[row["k"]])["n_ended"] >= MIN_SEEN:
        return _rate(int(seen["n_failed"]), int(seen["n_ended"]))
    oom = (row["p_overflow_pct"], row["p_low_pct"], row["p_high_pct"])
    other = _rate(int(others["n_trials"].sum()), crashes.n_finished)
    value, low, high = (min(a + b, 100.0) for a, b in zip(oom, other, strict=True))
    return value, low, high


def _ordered(
    rates: Mapping[int, Estimate], nets: Mapping[int, Estimate]
) -> tuple[dict[int, Estimate], dict[int, Estimate]]:
    """Both with crashes never above without: as many as were counted to end well would end so without any crash, and
    no more than would without any can with them.
    """
    ordered, clipped = dict(rates), dict(nets)
    for k, net in nets.items():
        if not (rates[k].high >= 0 and net.value >= 0):
            continue
        most = rates[k].high if net.value <= rates[k].high else net.high  # beyond the forecast the count is believed
        ordered[k] = replace(rates[k], value=float(np.maximum(rates[k].value, net.value)), high=most)
        clipped[k] = replace(net, high=min(net.high, most))
    return ordered, clipped


def _with_rates(table: pd.DataFrame, rates: dict[int, Estimate], nets: dict[int, Estimate]) -> pd.DataFrame:
    """The table with trials a day, without crashes and with them."""
    columns = {
        f"{name}_day{end}": [24 * getattr(held[int(k)], part) for k in table["k"]]
        for name, held in (("rate", rates), ("net", nets))
        for end, part in zip(ENDS, ("value", "low", "high"), strict=True)
    }
    return table.assign(**columns)


def _recommend(
    table: pd.DataFrame, nets: dict[int, Estimate], safe_k: int | None, restart: Restart, risk_pct: float | None
) -> tuple[float, str]:
    """The number of trials at once to run with, and why; ``safe_k``: the greatest looked at that ran and fits."""
    if risk_pct is not None:
        within = table.loc[table["study_risk_pct"] <= risk_pct, "k"]
        if len(within):
            return float(within.max()), in_words(WITHIN, {"risk": risk_pct})
        return NAN, "no number of trials at once stays within the risk asked for"
    known = {k: net for k, net in nets.items() if not np.isnan(net.value)}
    if safe_k is not None:
        safe = nets.get(safe_k)
        surely = {k: net for k, net in known.items() if safe is not None and net.low > safe.high}
        if surely:
            return float(max(surely, key=lambda k: surely[k].low)), MOST_NET
        return float(safe_k), "as the largest trials fit together"
    if known and restart.how != "unknown":
        return float(max(known, key=lambda k: known[k].low)), MOST_NET
    return NAN, NOT_ONE


def _crashes(crashes: Crashes) -> CrashesEntry:
    return CrashesEntry(
        n=crashes.n,
        success_streak=crashes.success_streak,
        by_class=tuple(entry_of(CrashClassEntry, row) for row in crashes.by_class.to_dict("records")),
        by_level=tuple(entry_of(CrashLevelEntry, row) for row in crashes.by_level.to_dict("records")),
    )
