"""What is often concluded from a run like this, and what its own numbers say (METHODS 0.1)."""

from __future__ import annotations

import math

from gpudiag.advice._engine.capacity import FULL_PCT
from gpudiag.advice._engine.situation import Situation
from gpudiag.advice.startup import START_UP_SHARE_PCT
from gpudiag.measures.memory import MemoryProfile
from gpudiag.measures.parallelism import ParallelismProfile
from gpudiag.measures.trials import TrialsProfile
from gpudiag.measures.utilization import UtilizationProfile
from gpudiag.report.format import at_most, count, duration, interval, number, share

OUT_OF_MEMORY = ("failures-out-of-memory", "failures-device-assert")
CLEAN_RUN = 50
"""Successes in a row that people take for proof."""
MOSTLY = 0.5
"""Less than this part of the telemetry within trials makes its mean somebody else's."""

SLOWED = (
    "power-throttling", "thermal-throttling", "hardware-slowdown", "power-fault-throttling", "clocks-low",
)  # fmt: skip
CLOCKS = " Higher clocks fill no idle time: what they bring comes on top."


def corrections(now: Situation) -> tuple[str, ...]:
    """Sentences, each with its numbers; only those that apply to this run."""
    sentences = (_ceiling, _startup, _headroom, _proportion, _asserts, _clean_run, _outside)
    return tuple(filter(None, (sentence(now) for sentence in sentences)))


def _ceiling(now: Situation) -> str:
    if not now.bounds.fill > 0:
        return ""
    beside = CLOCKS if now.has(*SLOWED) else ""
    of_all, use = now.bounds.busy_all_pct, now.profile(UtilizationProfile)
    if now.has("gpu-unused", "gpu-idle-beside-busy") and of_all > 0 and use is not None:
        return (
            f"Mean utilization of all {len(use.per_gpu)} GPUs was {share(of_all, exact=True)}, so that filling every "
            f"idle second brings at most {at_most(now.bounds.fill_all)}, however many changes are combined.{beside}"
        )
    return (
        f"Mean utilization {now.at_work} was {share(now.bounds.busy_pct, exact=True)}, so that filling every idle "
        f"second brings at most {at_most(now.bounds.fill)}, however many changes are combined: factors "
        f"multiply up to that, and percentages do not add.{_without_a_trial(now)}{beside}"
    )


def _without_a_trial(now: Situation) -> str:
    """What the ceiling becomes where time without a trial is filled too."""
    if not (now.has("trial-gaps", "idle-without-trial") and now.bounds.fill_all > now.bounds.fill):
        return ""
    used = share(now.bounds.busy_all_pct, exact=True)
    return f" Of all time, that without a trial included, it was {used}: at most {at_most(now.bounds.fill_all)}."


def _startup(now: Situation) -> str:
    workers, k = now.bounds.startup_pct, now.bounds.parallel
    if math.isnan(workers) and 0 < now.bounds.startup_only_pct < START_UP_SHARE_PCT:
        return (
            "Start-up does not dominate GPU time: nothing but start-ups were on the GPU for "
            f"{share(now.bounds.startup_only_pct, exact=True)} of the time with a trial. What they take of the "
            "workers' time is not known, for they could be seen in too few trials."
        )
    if not (workers >= START_UP_SHARE_PCT > now.bounds.startup_only_pct):
        return ""
    only, law = now.bounds.startup_only_pct, now.bounds.startup_law_pct
    return (
        f"Start-up does not dominate GPU time: it takes F = {share(workers, exact=True)} of the workers, but with k = "
        f"{number(k)} trials at once others train meanwhile. Nothing but start-ups were on the GPU for "
        f"{share(only, exact=True)} of the time (F^k = {share(law, exact=True)} if starts were independent). "
        f"Removing them all brings at most {at_most(now.bounds.startup)}."
    )


def _headroom(now: Situation) -> str:
    if not now.has("memory-headroom"):
        return ""
    return "Free memory says what fits, not what is faster: a batch B' in place of B brings between nothing and B'/B."


def _proportion(now: Situation) -> str:
    if not now.has("memory-near-limit", "failures-out-of-memory") or not (now.parallel or 0) > 1:
        return ""
    return (
        "Throughput is not in proportion to trials at once: on one GPU they slow each other down, and failed trials "
        "and restarts cost time too. Fewer at once lose less than their number."
    )


def _asserts(now: Situation) -> str:
    """A device-side assert is a logic error, whatever the memory was (METHODS 0)."""
    if not now.has("failures-device-assert"):
        return ""
    full = now.fact(MemoryProfile.max_used_pct)
    beside = f", and {share(full)} of memory in use beside it is no proof" if full >= FULL_PCT else ""
    return (
        f"A device-side assert is not a lack of memory: an index or label was out of range{beside}. It ends all CUDA "
        "work of its process, so that a streak of failures on one worker is one event."
    )


def _clean_run(now: Situation) -> str:
    """What a streak of successes shows about the rate of failures: the rule of three, exactly.

    Where the number of workers changed, one rate of the whole run is no rate of any part of it.
    """
    rate, low, high = map(now.fact, (TrialsProfile.fail_pct, TrialsProfile.fail_low_pct, TrialsProfile.fail_high_pct))
    streak = now.fact(TrialsProfile.success_streak)
    steps = now.profile(ParallelismProfile)
    if not (now.has(*OUT_OF_MEMORY) and rate > 0 and streak >= 0) or (steps is not None and len(steps.workers) > 1):
        return ""
    few, most = (100 * (1 - bound / 100) ** CLEAN_RUN for bound in (high, low))
    shown = 100 * (1 - 0.05 ** (1 / CLEAN_RUN))
    chance = " to ".join(dict.fromkeys((share(few), share(most))))
    return (
        f"The longest streak of successes was {count(streak)}. At {interval(low, high, '%')} failures, {CLEAN_RUN} "
        f"in a row come by chance in {chance} of attempts. {CLEAN_RUN} without a failure would show no more than p < "
        f"{share(shown, exact=True)} (one-sided 95 %)."
    )


def _outside(now: Situation) -> str:
    """A mean over telemetry that is mostly outside the trials is not theirs (METHODS 7, check 5)."""
    use = now.profile(UtilizationProfile)
    if use is None:
        return ""
    table = use.per_gpu[use.per_gpu["trial_s"] > 0]
    table = table[table["trial_s"] < MOSTLY * table["observed_s"]]
    if table.empty:
        return ""
    gpu = table["mean_pct"].idxmax()
    row = table.loc[gpu]
    needed = row["mean_pct"] * row["observed_s"] / row["trial_s"]
    if not needed > 100:
        return ""
    part = 100 * row["trial_s"] / row["observed_s"]
    return (
        f"The mean of {share(row['mean_pct'])} of GPU {gpu} is not that of the trials: they ran for "
        f"{duration(row['trial_s'])} of {duration(row['observed_s'])} observed ({share(part, exact=True)}), and "
        f"would have needed {share(needed)} meanwhile. While they ran it was {share(row['trial_mean_pct'])}; the "
        "rest belongs to something else."
    )
