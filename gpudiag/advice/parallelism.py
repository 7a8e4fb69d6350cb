"""Remedies for how many trials run at once, and how workers are started."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gpudiag.advice._engine.capacity import FULL_PCT, hard_fit, held_levels, net_gain, net_rates, safe_level
from gpudiag.advice._engine.gains import BETWEEN_TRIALS, fewer_gain, fill_gain, start_gain
from gpudiag.advice._engine.processes import AT_ONCE, started
from gpudiag.advice._engine.proposal import Change, Gain, Prediction, Proposal, SuccessCheck
from gpudiag.advice._engine.remedy import remedy
from gpudiag.advice._engine.situation import INPUT_WAITS, Situation
from gpudiag.forecast.parallelism.process_loss import MOST_LOSS, slowed
from gpudiag.measures.memory import MemoryProfile
from gpudiag.measures.parallelism import ParallelismProfile
from gpudiag.measures.trials import TrialsProfile
from gpudiag.report.format import factors, number, plural, share

if TYPE_CHECKING:
    from gpudiag.forecast.memory.capacity import MemoryCapacity
    from gpudiag.forecast.parallelism.what_if import Forecast

TOO_FULL = ("memory-near-limit", "failures-out-of-memory", "failures-after-full-memory")
UNSURE_PCT = 10.0
"""A bound above this on what fits as far as was seen says how few trials there were, and no more."""
IF_CPU = "That is so only if the CPU keeps up."
MAY_SLOW = "It may bring nothing, or slow the search down: compare the trials per hour of ten trials with those of now."
BOUNDED = " Good trials a day: at worst in proportion to the workers, at best as before and without the failed time."
MIN_TRIALS = 5
"""One trial at a time is a search, not a training, from so many on; a forecast needs them too."""
CONFIGURED, EFFECTIVE = ParallelismProfile.configured, ParallelismProfile.effective


@remedy(
    title="Try one more trial at once",
    answers=("startup-dominated", "gpu-low-utilization", "memory-headroom"),
    tier=3,
    effort="minutes",
    apply="next study",
    pros=("fills what one trial leaves idle, whatever the reason",),
    cons=("one trial too large ends the run", "each trial gets slower", "the sampler sees results later"),
    refute="Start one more worker for ten trials: trials per hour that do not rise refute it.",
    rollback="Stop the worker; its trial is left RUNNING and must be marked FAIL.",
    fills_idle=True,
)
def more_workers(now: Situation) -> Proposal | None:
    """Throughput is sub-linear in trials at once on one GPU (METHODS 0): at most (k+1)/k, and at most 1/u.

    It may also fall: each further process costs the others up to 8 % of their speed. Memory must hold the k+1 largest
    trials at once; nothing is proposed beyond what it is known to hold. To be verified first where that is not known,
    the number of CPU cores is not, or the interval of the gain includes none.
    """
    k, cores = now.parallel, now.settings.cpu_cores
    if k is None or now.has(*TOO_FULL, "gpu-idle-beside-busy", "gpu-unused") or not now.has_all("workers"):
        return None
    if now.misses_workers:  # these are started first
        return None
    if now.has(*INPUT_WAITS):  # the input is mended first: one more trial would wait beside the others
        return None
    if k < 2 and not now.fact(ParallelismProfile.n_timed) >= MIN_TRIALS:
        return None
    if cores is not None and (now.dataloader.num_workers or 1) * (k + 1) > cores:
        return None
    if now.capacity is not None and now.capacity.limits and k + 1 > now.capacity.recommended_k * now.capacity.n_gpus:
        return None
    fits, shown = _fit(now, k + 1)
    gain, basis = _forecast_gain(now, k)
    if gain is not None and gain.high <= 1:
        return None
    high = gain.high if gain else math.nan
    doubts = "" if fits else shown
    if cores is None:
        doubts += " The number of CPU cores is not stated: see whether they keep up."
    if gain is not None and gain.low <= 1:
        doubts += f" {MAY_SLOW}"
    if now.has("parallelism-above-configured"):
        doubts += " More trials ran at once than were configured: find out how many workers there really are."
    return Proposal(
        (Change(AT_ONCE, k, k + 1, started(now.settings.command, k + 1, f"was {k}")),),
        gain,
        f"{now.unless_unknown(basis)} {shown if fits else ''}".strip(),
        (
            SuccessCheck.of(EFFECTIVE, ">", round(now.fact(EFFECTIVE) * (1 + 0.5 / k), 2)),
            *now.no_new_failures(),
        ),
        (
            *now.busier_by(high),
            *now.memory_predicted(1.0, (k + 1) / k, "An estimate, no bound: the largest trials may coincide."),
            *_slower(now, k + 1, k, high),
        ),
        doubts.strip(),
    )


@remedy(
    title="Run fewer trials at once",
    answers=(*TOO_FULL, "failures-by-number-at-once"),
    tier=2,
    effort="minutes",
    pros=("memory for the largest trials", "trials that ran into each other end"),
    cons=("fewer trials at once, though throughput falls by less than their number",),
    refute="Memory per process shows that the largest trials fit together after all.",
    rollback="Start the worker again.",
)
def fewer_workers(now: Situation) -> Proposal | None:
    """Proposes the number that the capacity of the memory recommends, as `gpudiag whatif` does; where it knows none,
    the largest at which memory was never above 90 % in this run. Nothing where it ended with so few.

    Throughput falls by less than in proportion (METHODS 0): 4 to 2 costs 34-39 %, not 50 %. And the time of failed
    trials comes back: between k'/k and 1/(1 - share of failed trials).
    """
    if not now.has(*TOO_FULL) or not now.has_all("workers"):
        return None
    levels, capacity = held_levels(now.profiles), now.capacity
    present = int(levels.index.max()) if len(levels) else capacity.gains.now if capacity is not None else 0
    present = min(present, now.workers_at_last or present)
    if capacity is not None and not math.isnan(capacity.recommended_k):
        k, each = capacity.workers(present), int(capacity.recommended_k)
    else:
        k = each = safe_level(now.profiles) or 0
    if not 0 < k < present:
        return None
    fit = _fit_together(capacity, each) if capacity is not None else ""
    filled = (
        now.memory_as_seen(float(levels.at[k, "max_used_pct"]))
        if capacity is None or k in levels.index
        else _filled_by_largest(now, capacity, each)
    )
    gone = sum(now.bounds.lost_gpu_h.values()) if now.bounds.lost_gpu_h else math.nan
    lost = gone / now.bounds.trial_gpu_h if now.bounds.trial_gpu_h > 0 else math.nan
    known = f"{share(100 * lost, exact=True)} of trial time failed."
    spent = known if lost >= 0 else "What failed trials took is not known."
    seen = "; ".join(f"{n} at once: {share(row['max_used_pct'], exact=True)}" for n, row in levels.iterrows())
    seen = f"Most memory seen with {seen}. " if seen else ""
    failed = now.fact(TrialsProfile.fail_low_pct)
    gain = fewer_gain(capacity, present, k, lost)
    rates = net_rates(capacity, present, k) or (BOUNDED if net_gain(capacity, present, k) is None else "")
    return Proposal(
        (Change(AT_ONCE, present, k, started(now.settings.command, k, f"was up to {present}")),),
        gain,
        f"{fit}{seen}{spent} Failures of another kind go on.{rates}",
        (
            SuccessCheck.of(MemoryProfile.max_used_pct, "<", FULL_PCT),
            SuccessCheck.of(TrialsProfile.fail_pct, "<", round(failed, 1)),
        ),
        (filled,),
    )


def _fit_together(capacity: MemoryCapacity, each: int) -> str:
    """Up to which number on a GPU the largest trials fit, where that is what decides."""
    if each != capacity.hard_fit_k:
        return ""
    where = " on a GPU" if capacity.n_gpus > 1 else ""
    fit = "fits" if each == 1 else "fit together"
    return f"The largest {plural(each, 'trial')} {fit}{where}, the largest {each + 1} may not. "


def _filled_by_largest(now: Situation, capacity: MemoryCapacity, k: int) -> Prediction:
    """Fullest GPU's memory with the k largest trials at once."""
    most = float(capacity.table.set_index("k").at[k, "worst_high_mib"])
    used = now.fact(MemoryProfile.max_used_pct)
    return Prediction.of(
        MemoryProfile.max_used_pct,
        used,
        None,
        min(100.0, 100 * most / capacity.room.total_mib),
        "The largest trials together.",
    )


@remedy(
    title="Start the workers that are missing",
    answers=("parallelism-below-configured",),
    tier=1,
    effort="minutes",
    pros=("the parallelism that was planned for",),
    cons=("a worker that crashes again and again hides its fault",),
    refute="The workers were stopped on purpose, the study had run out of trials, or run.toml states more than were "
    "asked for.",
    rollback="Stop the loop.",
)
def restart_workers(now: Situation) -> Proposal | None:
    """Nothing takes the place of a worker that died until somebody looks; a loop around it does not.

    Where so many never ran at once, nothing shows that one stopped: it may never have started.
    """
    configured, effective = now.fact(CONFIGURED), now.fact(EFFECTIVE)
    if not configured > effective:
        return None
    gain = start_gain(now.bounds, configured / effective)
    command = now.settings.command or "python train.py"
    code = f"for i in $(seq {round(configured)}); do\n  (until {command}; do sleep 10; done) &\ndone; wait"
    peak = now.fact(ParallelismProfile.peak)
    again = Change("workers", None, "restarted", code)
    stopped = "Workers were gone; neither the storage nor a lock held them."
    never = f"No more than {number(peak)} ever ran at once: the others never started, or a lock held them."
    return Proposal(
        (again if not 0 < peak < configured else Change("workers", int(peak), int(configured), code),),
        gain,
        now.unless_unknown(never if 0 < peak < configured else stopped),
        (SuccessCheck.of(ParallelismProfile.efficiency_pct, ">=", 75.0), *now.no_new_failures()),
        now.busier_by(gain.high if gain else math.nan),
    )


@remedy(
    title="Start worker processes instead of threads",
    answers=("trials-serialised",),
    tier=1,
    effort="an hour",
    apply="next study",
    pros=("trials do not wait for each other's Python", "a crash ends one worker, not all"),
    cons=("each process holds a CUDA context (300-600 MiB)", "needs a storage that several processes can share"),
    refute="One core is not at 100 % while trials wait: then it is a lock or the storage, not the GIL.",
    rollback="Return to n_jobs in one process.",
)
def worker_processes(now: Situation) -> Proposal | None:
    """n_jobs of Optuna are threads: objectives that keep Python busy run one after another."""
    configured, effective = now.fact(CONFIGURED), now.fact(EFFECTIVE)
    if not configured >= 1 or not now.optuna:
        return None
    gain = start_gain(now.bounds, configured / effective)
    code = (
        f"for i in $(seq {round(configured)}); do python train.py & done; wait  # each calls study.optimize(n_jobs=1)"
    )
    return Proposal(
        (Change("workers", "threads", "processes", code),),
        gain,
        now.unless_unknown("The GIL is what serialises the trials."),
        (SuccessCheck.of(EFFECTIVE, ">", 1.2),),
        now.busier_by(gain.high if gain else math.nan),
    )


def _fit(now: Situation, k: int) -> tuple[bool | None, str]:
    """Whether the largest trials fit k at once: by memory told apart from the sum, else by that of single trials."""
    capacity = now.capacity
    if capacity is None:
        return hard_fit(now.profiles, k)
    each = math.ceil(k / capacity.n_gpus)
    row = capacity.table[capacity.table["k"] == each]
    if row.empty or not isinstance(row["hard_fit"].iloc[0], bool | np.bool_):
        return hard_fit(now.profiles, k)
    fits, chance = bool(row["hard_fit"].iloc[0]), capacity.overflow(each)
    verb = "fit" if fits else f"{'is' if each == 1 else 'are'} not sure to fit"
    most = f"at most {share(chance.high)} of trials end when {each} at once exceed the memory"
    rest = "so few trials cannot show more" if fits and chance.high > UNSURE_PCT else most
    return fits, f"The largest {plural(each, 'trial')} {verb} together; {rest}."


def _forecast_gain(now: Situation, k: int) -> tuple[Gain | None, str]:
    """The gain of one more at once and what it rests on: the forecast from this log within the bounds, else these. By
    the forecast one more works in the pauses between the others' trials, too.
    """
    bound, most = fill_gain(now.bounds, (k + 1) / k), (k + 1) / k
    if bound is None:
        return None, ""
    made = now.forecast(k + 1)
    if made is None or not made.at(k + 1).gain.low <= made.at(k + 1).gain.high:
        cost = share(100 * MOST_LOSS)
        least = replace(bound, low=min(slowed(k, k + 1), bound.high))
        return least, f"{IF_CPU} At worst nothing is idle at the right time and one more costs all {cost}."
    gain = made.at(k + 1).gain
    high = gain.high if made.now == k else min(gain.high, most)
    how = "bounds alone, for the model failed its back-test or lacks data" if gain.bounds_only else "a re-simulation"
    basis = f"Forecast from this log, by {how}. {IF_CPU}"
    found = Gain(min(gain.low, high), high, source=BETWEEN_TRIALS)
    return found, f"{basis} {_where(made, k)}".rstrip() if made.now == k else basis


def _where(made: Forecast, k: int) -> str:
    """The GPU that the further worker is taken to join, and what the same workers would bring spread evenly; '' on one
    GPU.
    """
    here, then = made.at(k).placed, made.at(k + 1).placed
    if len(here) < 2:
        return ""
    gpu = next(gpu for gpu in here if then[gpu] > here[gpu])
    said = f"The further one is taken to run on GPU {gpu}, which has {here[gpu]} of the {k} now."
    if made.spread is None:
        return said
    low, high = factors(made.spread.gain.low, made.spread.gain.high)
    return f"{said} The same {k}, spread evenly over the GPUs, would bring {low} to {high} by themselves."


def _slower(now: Situation, proposed: int, present: int, high: float) -> tuple[Prediction, ...]:
    """A trial's duration between the present one and, without any gain, in proportion to the trials at once."""
    usual = now.usual_duration()
    if usual is None or math.isnan(high):
        return ()
    base = now.fact(usual)
    ratio = proposed / present
    return (Prediction.of(usual, base, base * ratio / high, base * ratio),)
