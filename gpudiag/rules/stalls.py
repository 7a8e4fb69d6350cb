"""Does the GPU wait within its work?"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from gpudiag.errors import NotMeasurable
from gpudiag.measures.base import OPEN_CLOCK, STATE_OFFSET
from gpudiag.measures.stalls import StallsProfile, measure_stalls
from gpudiag.rules._engine.counted import LOOKS_BACK_S, RANGE, Cost
from gpudiag.rules._engine.evidence import Evidence, Outcome, Passed, need_fast_samples, worst_gpu
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import WORST_GPU, Given
from gpudiag.rules._engine.verdict import Severity

if TYPE_CHECKING:
    import pandas as pd

MIN_HEIGHT_RATIO = 0.2
MIN_REGULAR_PCT = 50.0
MIN_DIPS = 5.0
MIN_LOST_PCT = 5.0
MAX_SAMPLING_S = 30.0
IN_STEPS = ("beat", "step")
NEARLY_ALL_PCT = 75.0
"""Share of the work from which on dips are said to come without a limit (a default without a published source): single
ones that the noise hides leave it below 100 %."""
SAME = 1.1
"""Idle time up to so many times that of the regular drops is not told apart from it (a default without a published
source)."""
SHORT_S = 600.0
"""Work from which on waits in it are more than a note: much of a shorter one may be its start-up (a default without a
published source)."""
IN_EACH_STEP = (
    "Waits in each step are mostly for data. Let the log state how long each step waits for its batch "
    "(rec.timed(loader) of gd.Recorder does), and try more loader workers."
)
EACH_EPOCH = (
    "Time the first batch of an epoch, and what runs between the last and the first: loader workers that start anew "
    "(persistent_workers=True keeps them), or an evaluation or a save that the log does not count."
)
LOOKS_LIKE = (
    " Sampled every {sampling_period_s}, that looks like drops every {period_s}, through which the log's steps go on."
)
BEAT = "its steps of {beat_s} would look the same when sampled every {sampling_period_s}."
ANY_BEAT = (
    "steps of nearly {sampling_period_s}, or of a fraction of it, would look the same when sampled every "
    "{sampling_period_s}."
)


@rule(
    measure=measure_stalls,
    severity="warning",
    title="The GPU waits at regular intervals",
    checks="Regular waits",
    says=(
        *WORST_GPU,
        Given(
            "in_steps",
            (" waits in each step of {beat_s}: no kernel ran in {lost_pct} of its work.", Given("beats", LOOKS_LIKE)),
            (
                " drops by {depth_pct:=points} every {period_s}",
                Given("is_multiple", " or a fraction of that"),
                ", for {width_s}",
                Given("is_rough", " (give or take {sampling_period_s})"),
                " each time",
                Given("within_pct", ", in {within_pct} of the time at work"),
                ": {lost_pct} of its work is lost.",
            ),
        ),
        Given(
            "epoch_s", (" That is once an epoch", Given("is_uncounted", ", in time that the log's bars leave out"), ".")
        ),
        Given("in_steps", "", RANGE),
        Given("all_pct", " With waits of other lengths it was idle for {all_pct} of its work."),
        Given("open", (" Or it waits in each step, and {most_lost_pct} is lost: ", Given("beat_s", BEAT, ANY_BEAT))),
    ),
    remedy="Find out what the job does once a period: validation, checkpoints, logging, or loader workers that "
    "restart each epoch (persistent_workers=True keeps them). Move it to another thread, or do it less often. Waits in "
    "each step are mostly for data; sampling more often shows which it is.",
    refuted_by="Not a problem if the result needs that work on the CPU.",
    explained_by=("steps-lost", "steps-paused", "loader-slow"),
)
def stalls_periodic(
    stalls: StallsProfile,
    *,
    min_acf_ratio: float = MIN_HEIGHT_RATIO,
    min_regular_pct: float = MIN_REGULAR_PCT,
    min_lost_pct: float = MIN_LOST_PCT,
    severe_lost_pct: float = 10.0,
    min_periods: float = MIN_DIPS,
    max_sampling_s: float = MAX_SAMPLING_S,
) -> Evidence | None:
    """Regular waits have one cause, and can be moved out of the GPU's way.

    First peak of the autocorrelation of utilization at work above 0.2 (0.5 below 20 s), period of 4 sampling periods
    to a third of the span (METHODS 8), confirmed where half of the steps from dip to dip are within a quarter of
    the period, over 5 periods, and more dips have another one a period later than irregular waits have by chance (once
    in a hundred). These dips must cost 5 % of the work, for a warning 10 % (defaults without a published
    source). Waits in steps of nearly the sampling period look like drops of minutes, and cost all the time without a
    kernel; the log's steps tell them apart from such drops, and both are said where nothing does. Without trials, drops
    of more than 10 minutes may lie between two jobs (idle-between-work), or be of another load, and do not count.
    Drops whose period is that of an epoch by the log, within 5 %, come once in each. Bars count no time between them:
    where the period is an epoch by the bars and a drop more, the drops lie there, and in no pause that the log tells.
    Periods below 4 sampling periods can't be seen; with samples more than 30 s apart, finding none says nothing (a
    default without a published source), nor where drops of a single sample cost the 5 %, since others as short lie
    between samples. Where a tenth of the steps between such drops is no multiple of the period, it may be a fraction of
    that. The cost has the interval that irregular waits have, by a sample for each drop.
    """
    table = stalls.per_gpu
    found = table[_regular(table, min_acf_ratio, min_regular_pct, min_periods, min_lost_pct)]
    if found.empty:
        _need_work(stalls)
        need_fast_samples(stalls.sampling_period_s, max_sampling_s)
        _need_exact(table, "lost_pct", min_lost_pct)
        _need_longer(stalls, min_lost_pct)
        return None
    # Samples blur a wait in each step: each lacks some of it, and none shows the full level.
    found = found.assign(lost_pct=found["lost_pct"].mask(found["reading"] == "step", found["most_lost_pct"]))
    lost_s = found["lost_pct"] / 100 * found["work_s"]
    worst = lost_s.idxmax()
    n_times = found["n_dips"].mask(found["reading"].isin(IN_STEPS), 0)  # in each step they are no counted ones
    cost = Cost.of(found["work_s"], lost_s, n_times, stalls.sampling_period_s)
    lost_pct, reading = float(found.at[worst, "lost_pct"]), found.at[worst, "reading"]
    uncounted = bool(found.at[worst, "is_uncounted"])
    evidence = worst_gpu(
        worst,
        found,
        ("period_s", "depth_pct", "width_s", "n_dips", "acf", "lost_pct"),
        lost_gpu_h=cost.lost_gpu_h,
        held_gpu_h=cost.held_gpu_h,
        margin=lost_pct - min_lost_pct,
        severity=None if lost_pct >= severe_lost_pct else Severity.NOTE,
        extra={
            "in_steps": reading in IN_STEPS,
            "beats": reading == "beat",
            "open": reading == "open",
            "sampling_period_s": stalls.sampling_period_s,
            **cost.range_of(worst),
            "all_pct": _all_pct(found.loc[worst], float(cost.most_pct[worst])),
            "within_pct": _within_pct(found.loc[worst]),
            "is_multiple": found.at[worst, "is_multiple"],
        },
        remedy=IN_EACH_STEP if reading in IN_STEPS else EACH_EPOCH if uncounted else "",
    )
    return replace(evidence, not_caused_by=("steps-paused",) if uncounted else ())


def _all_pct(of_gpu: pd.Series, most_pct: float) -> float:
    """Idle share of the work where that is more than drops of about one length can be, else NaN."""
    all_pct = float(of_gpu["stalled_pct"])
    return (
        all_pct
        if of_gpu["reading"] not in IN_STEPS and all_pct > max(most_pct, SAME * of_gpu["lost_pct"])
        else math.nan
    )


def _within_pct(of_gpu: pd.Series) -> float:
    """Share of the work in which dips come, a period for each; NaN where they come in nearly all of it, as they must
    where most trials wait.
    """
    within_pct = float(100 * of_gpu["n_dips"] * of_gpu["period_s"] / of_gpu["work_s"])
    return within_pct if within_pct < NEARLY_ALL_PCT else math.nan


@rule(
    measure=measure_stalls,
    severity="warning",
    title="The GPU waits within its work",
    checks="Waits without a period",
    says=(
        *WORST_GPU,
        Given(
            "is_single",
            " was idle for {stalled_pct} of its work, mostly in single samples: {sampling_period_s} apart, they do not "
            "show how many waits that were, how long or how regular. No kernel ran in {no_kernel_pct} of its work.",
            Given(
                "is_brief",
                " was idle for {stalled_pct} of its work, in {n_stalls:wait} or more: some work between them is a "
                "single sample, so samples {sampling_period_s} apart miss work as short. How long the longest was "
                "is open.",
                " was idle for {stalled_pct} of its work, in {n_stalls:wait} of up to {longest_stall_s}.",
            ),
        ),
        RANGE,
        Given("short", " It worked for {work_s}: much of that may be its start-up."),
    ),
    remedy="Look at the input first: loader workers, storage, network, a lock that workers share. Record CPU by core "
    "and I/O wait beside the GPU to see which.",
    refuted_by="Not a problem if several short jobs share one record without a list of trials: give the trials.",
    explained_by=("cpu-bound-input", "io-wait", "loader-slow", "steps-lost", "steps-paused", "trial-duration-outliers"),
)
def stalls_aperiodic(
    stalls: StallsProfile,
    *,
    min_stalled_pct: float = 10.0,
    min_peak_pct: float = 50.0,
    min_periods: float = 5.0,
    max_sampling_s: float = MAX_SAMPLING_S,
) -> Outcome:
    """A GPU that is busy at times and idle within a running trial waits for something.

    Utilization below 10 %, past the start-up and before the tail of the trials, for a tenth of the work in five
    waits or more, on a GPU that is half busy at least (95th percentile) when it works, where no period explains them
    as the rule on regular waits asks. Waits in single samples may be regular ones, shorter or more than they look:
    how many is then not told, and the cost is all the time without a kernel. Where a tenth of the work between waits is
    of a single sample each, work as short was missed: the waits are more then, and the longest is open. Idle time that
    may as well be start-ups beside ends of other trials is no stall; where the tenth may lie in it, the check is not
    assessed; nor where clocks may differ, and leave as much idle time open. Where a log's steps go on at their pace
    through what seems longer than one, waits within steps were joined by samples too far apart, and their length is
    open. Without trials, pauses of more than 10 minutes are left out. Idle is SageMaker's 10 %, busy PyTorch's 50 %;
    the share, and the 30 s between samples above which finding none says nothing, are defaults without a published
    source. Of each wait one sample may be too many or too few: where that moves the cost by more than a tenth, its 95 %
    interval is said (Poisson's), and there is no cost where it may be three times what it is at least.
    A note where the GPU worked for less than 10 minutes.
    """
    table = stalls.per_gpu
    seen = table[
        (table["stalled_pct"] >= min_stalled_pct)
        & (table["p95_pct"] >= min_peak_pct)
        & (table["n_stalls"] >= min_periods)
        & ~_regular(table)
    ]
    found = seen[seen["through_s"].isna() | seen["is_single"].eq(True)]
    if found.empty and len(seen):
        raise NotMeasurable(
            "The log's steps of {through_s} go on through what looks like waits of up to {longest_stall_s}: samples "
            "{sampling_period_s} apart do not show how long the waits are.",
            "Sample more often, or let the log state the wait for data.",
            through_s=float(seen["through_s"].iloc[0]),
            longest_stall_s=float(seen["longest_stall_s"].iloc[0]),
            sampling_period_s=stalls.sampling_period_s,
        )
    if found.empty:
        _need_work(stalls)
        need_fast_samples(stalls.sampling_period_s, max_sampling_s)
        _need_exact(table[table["p95_pct"] >= min_peak_pct], "stalled_pct", min_stalled_pct)
        _need_clear(table, min_stalled_pct, min_peak_pct)
        if (table["stalled_pct"] >= min_stalled_pct).any():
            return None
        known = table[table["stalled_pct"].notna()]
        return Passed.most(known, "stalled_pct", "{stalled_pct} of the work", "limit {min_stalled_pct}")
    worst = found["stalled_s"].idxmax()
    short = bool(found.at[worst, "work_s"] < SHORT_S)
    # A wait shorter than what a sample shows lies in samples above 10 % as well.
    lost_s = found["stalled_s"].mask(found["is_single"].eq(True), found["no_kernel_pct"] / 100 * found["work_s"])
    # Waits, or work between them, that may be shorter than samples are apart: each sample is one of its own.
    apart = found["is_single"].eq(True) | found["is_brief"].eq(True)
    times = found["n_stalls"].mask(apart, found["stalled_s"] / stalls.sampling_period_s)
    cost = Cost.of(found["work_s"], lost_s, times, stalls.sampling_period_s, unseen_s=LOOKS_BACK_S)
    return worst_gpu(
        worst,
        found,
        ("stalled_pct", "stalled_s", "n_stalls", "longest_stall_s", "p95_pct"),
        lost_gpu_h=cost.lost_gpu_h,
        held_gpu_h=cost.held_gpu_h,
        margin=float(found.at[worst, "stalled_pct"] - min_stalled_pct),
        severity=Severity.NOTE if short else None,
        extra={
            "short": short,
            "work_s": float(found.at[worst, "work_s"]),
            "sampling_period_s": stalls.sampling_period_s,
            "is_brief": found["is_brief"].eq(True)[worst],
            **cost.range_of(worst),
        },
    )


def _regular(
    table: pd.DataFrame,
    min_acf_ratio: float = MIN_HEIGHT_RATIO,
    min_regular_pct: float = MIN_REGULAR_PCT,
    min_periods: float = MIN_DIPS,
    min_lost_pct: float = MIN_LOST_PCT,
) -> pd.Series:
    """True for each GPU whose dips repeat."""
    return (
        (table["acf"] > min_acf_ratio)
        & (table["regular_pct"] >= min_regular_pct)
        & (table["n_dips"] >= min_periods)
        & (table["lost_pct"] >= min_lost_pct)
    )


def _need_clear(table: pd.DataFrame, min_stalled_pct: float, min_peak_pct: float) -> None:
    """Idle time that may be stalls, and as much as would be told: its absence is not shown."""
    most_pct = 100 * (table["stalled_s"] + table["unclear_s"]) / (table["work_s"] + table["unclear_s"])
    open_ = table[(table["stalled_pct"] < min_stalled_pct) & (most_pct >= min_stalled_pct)]
    open_ = open_[open_["p95_pct"] >= min_peak_pct]
    if len(open_):
        raise NotMeasurable(
            "On {gpus}, {unclear_s} of idle time may be waits within the work of trials, or time in which some trials "
            "started while others ended.",
            "Let the trials log their steps, or run some of them one at a time.",
            gpus=open_.index,
            unclear_s=float(open_["unclear_s"].max()),
        )


def _need_exact(table: pd.DataFrame, name: str, min_pct: float) -> None:
    """As much idle time as would be told may be waits, or start-ups and ends of trials, as the clocks may differ."""
    known_pct, open_pct = table[name].fillna(0.0), table["open_pct"]
    if ((open_pct >= min_pct) | ((known_pct < min_pct) & (known_pct + open_pct >= min_pct))).any():
        raise NotMeasurable(OPEN_CLOCK, STATE_OFFSET)


def _need_longer(stalls: StallsProfile, min_lost_pct: float) -> None:
    """Drops as short as a sample are missed between samples: those that are seen do not show what repeats."""
    short = stalls.per_gpu[stalls.per_gpu["brief_lost_pct"] >= min_lost_pct]
    if len(short):
        raise NotMeasurable(
            "On {gpus}, drops of a single sample cost {brief_lost_pct} of the work: samples {sampling_period_s} apart "
            "do not show whether they are regular.",
            "Sample more often, or let the log state the wait for data.",
            gpus=short.index,
            brief_lost_pct=float(short["brief_lost_pct"].max()),
            sampling_period_s=stalls.sampling_period_s,
        )


def _need_work(stalls: StallsProfile) -> None:
    if not (stalls.per_gpu["work_s"] > 0).any():
        raise NotMeasurable("No GPU was seen at work.", "Record the GPU while trials run.")
