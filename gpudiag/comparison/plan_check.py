"""A plan against what happened: each prediction and each check came true, was missed, or cannot be told."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from gpudiag.advice._engine.plan import Plan, PlannedRemedy, holds
from gpudiag.advice._engine.proposal import Prediction, SuccessCheck
from gpudiag.comparison.changes_made import left_alone, made_beside, made_otherwise, was_set
from gpudiag.comparison.differences import pollers_agree
from gpudiag.comparison.logged_steps import LOGGED
from gpudiag.comparison.quantity import SAME_WITHIN, Quantity
from gpudiag.comparison.side import Side
from gpudiag.comparison.time_series import mean_over_time
from gpudiag.errors import nearest
from gpudiag.facts import Cell, Key
from gpudiag.measures import PROFILES, fact_named
from gpudiag.measures._trials.proportions import CONFIDENCE
from gpudiag.measures.ledger import LedgerProfile
from gpudiag.measures.memory import MemoryProfile
from gpudiag.measures.trials import TrialState
from gpudiag.measures.utilization import UtilizationProfile
from gpudiag.statement import NOTHING, Statement

CAME_TRUE, MISSED, CANNOT_TELL = "came true", "missed", "cannot tell"
UNSEEN = "The experiment does not show this number."
INVALID = "The comparison is invalid, so this cannot be laid to the plan."
OF_THE_RECORD = "It is a mean over the whole record, which holds other time than the job: make the plan anew."
UNMOVED = "It is not told apart from the baseline, and no effect is within what was predicted: this shows nothing."
OTHERS = "{others} of the plan moves this number as well, and each prediction is of its remedy alone."
STAYED = "{remedy} shows no effect, or was not made: {measures} has not come nearer to what is wanted."
PREDICTION, CHECK, GAIN = "prediction", "check", "gain"
_PEAKS = (MemoryProfile.max_used_pct.key, MemoryProfile.headroom_mib.key)
_WORK_TIMES = ("time_per_item", *LOGGED)
"""Times of the same work, what tells most of all of it first: by items, or by the logs of trainings without these."""
_OF_GPUS = (LedgerProfile.topic, UtilizationProfile.topic, MemoryProfile.topic)
_COURSES = {LedgerProfile.mean_util_pct.key: "util_pct"}


@dataclass(frozen=True)
class Outcome:
    """One entry of a plan and how it came out.

    ``kind``: prediction (from ``low`` to ``high``, None open), check (``op`` and ``low``) or gain (of the whole plan).
    ``measured`` with its 95 % interval where it has one; ``reason`` says why the status is what it is.
    """

    remedy: str
    kind: str
    measure: str
    unit: str
    baseline: float | None
    low: float | None
    high: float | None
    op: str
    measured: float | None
    measured_low: float | None
    measured_high: float | None
    status: str
    reason: str


def check_plan(
    plan: Plan, baseline: Side, experiment: Side, found: Sequence[Quantity], failed: Collection[str] = ()
) -> tuple[Outcome, ...]:
    """Every prediction and check of every remedy in the plan's order, then the gain of all together. ``failed``: the
    checks of the gate without which nothing may be called faster or slower.
    """
    out, doubts, seen = [], [], []
    beside = made_beside(plan, baseline, experiment)
    alone = {one.id: left_alone(one, baseline, experiment) for one in plan.remedies}
    stayed = {one.id: _stayed(one, plan, baseline, experiment) for one in plan.remedies}
    acting = [one for one in plan.remedies if not (alone[one.id] or stayed[one.id])]
    for remedy in plan.remedies:
        unmade = alone[remedy.id] or made_otherwise(remedy, baseline, experiment)
        made = _is_seen(remedy, baseline, experiment)
        for one in remedy.predictions:
            others = _moved_by([other for other in acting if other.id != remedy.id], one.measure)
            why = unmade or beside or _void(failed, one.measure) or (others and (stayed[remedy.id] or others))
            out.append(_prediction(remedy.id, one, baseline, experiment, why, made))
        for check in remedy.verify:
            out.append(_check(remedy.id, check, experiment, unmade or _void(failed, check.measure), beside))
        doubts.append(unmade or beside or stayed[remedy.id])
        seen += [made] if remedy.predictions else []
    doubt = next(filter(None, doubts), INVALID if failed else "")
    return (*out, *_gain(plan, found, doubt, bool(seen) and all(seen)))


def _void(failed: Collection[str], measure: Key) -> str:
    """A sentence where the comparison is invalid for this number, else ''. How busy and how full GPUs are needs no unit
    of work.
    """
    needless = {"same-unit"} if measure.partition(".")[0] in _OF_GPUS else set()
    return INVALID if set(failed) - needless else ""


def made_for(plan: Plan, baseline: Side) -> str:
    """A sentence where the plan was made for another run than the baseline, else ''."""
    ours = {record.sha256 for record in baseline.run.info.inputs if record.sha256}
    theirs = {record.sha256 for record in plan.inputs if record.sha256}
    if theirs and ours and not theirs & ours:
        return f"The plan was made for the run '{plan.run}', whose inputs are none of those of '{baseline.name}'."
    return ""


def verdict_on(
    measured: float | None, interval: tuple[float, float] | None, low: float | None, high: float | None
) -> tuple[str, str]:
    """Status and reason of a measured value against a predicted interval.

    A point, and a value without an interval of its own, get a tolerance of 5 %: that much is no difference elsewhere
    in a comparison either.
    """
    if low is None and high is None:
        return CANNOT_TELL, "No interval was predicted."
    if measured is None or math.isnan(measured):
        return CANNOT_TELL, UNSEEN
    if _within(measured, low, high):
        return CAME_TRUE, "Within what was predicted."
    first, last = _predicted(low, high)
    reach = _reach(measured, interval)
    if max(reach) >= first and min(reach) <= last:
        return CANNOT_TELL, "Outside of what was predicted, but not by more than its uncertainty."
    return MISSED, f"{'Below' if measured < first else 'Above'} all that was predicted."


def _predicted(low: float | None, high: float | None) -> tuple[float, float]:
    """From where to where, a point with its tolerance."""
    first, last = -math.inf if low is None else low, math.inf if high is None else high
    if first == last:
        return first - SAME_WITHIN * abs(first), last + SAME_WITHIN * abs(last)
    return first, last


def _within(value: float, low: float | None, high: float | None) -> bool:
    first, last = _predicted(low, high)
    slack = 1e-9 * max(abs(value), 1.0)
    return first - slack <= value <= last + slack


def _reach(value: float, interval: tuple[float, float] | None) -> tuple[float, float]:
    """The interval of a value, or its tolerance."""
    return interval or (value * (1 - SAME_WITHIN), value * (1 + SAME_WITHIN))


def _shows_nothing(status: str, made: bool, before: float, low: float | None, high: float | None) -> bool:
    """True where the status would rest on a number that did not move: no effect, ``before``, was predicted too."""
    return (status == MISSED or (status == CAME_TRUE and not made)) and _within(before, low, high)


def _unmoved(measure: Key, baseline: Side, experiment: Side) -> bool:
    """True where both runs show the number and its intervals meet: it did not move, or not by enough to be told."""
    (was, before), (value, after) = _measured(measure, baseline), _measured(measure, experiment)
    if was is None or value is None:
        return False
    first, last = before or (was, was)
    reach = _reach(value, after)
    return max(reach) >= first and min(reach) <= last


def _is_seen(remedy: PlannedRemedy, baseline: Side, experiment: Side) -> bool:
    """True where a remedy is known to have been applied: a setting is what it proposes, or all of its criteria that the
    baseline failed came to hold, each by more than its uncertainty.
    """
    if was_set(remedy, baseline, experiment):
        return True
    failed = _failed(remedy, baseline)
    return bool(failed) and all(
        holds(check, experiment.value(check.measure)) and not _unmoved(check.measure, baseline, experiment)
        for check in failed
    )


def _failed(remedy: PlannedRemedy, baseline: Side) -> list[SuccessCheck]:
    """The criteria of a remedy that the baseline does not hold."""
    return [check for check in remedy.verify if holds(check, baseline.value(check.measure)) is False]


def _moves(remedy: PlannedRemedy, measure: Key) -> bool:
    """True where a remedy is predicted to move a number; not of one that is predicted to stay."""
    mine = (one for one in remedy.predictions if one.measure == measure)
    return any(not one.low == one.high == one.baseline for one in mine)


def _moved_by(others: Sequence[PlannedRemedy], measure: Key) -> str:
    """A sentence where other remedies move a number as well, else ''."""
    names = [other.id for other in others if _moves(other, measure)]
    return OTHERS.format(others=" and ".join(names)) if names else ""


def _stayed(remedy: PlannedRemedy, plan: Plan, baseline: Side, experiment: Side) -> str:
    """A sentence where a remedy of several shows no effect: none of the criteria that it failed before, on numbers that
    it alone is to move, has come nearer; else ''.
    """
    others = [other for other in plan.remedies if other.id != remedy.id]
    own = [c for c in _failed(remedy, baseline) if not any(_moves(other, c.measure) for other in others)]
    if not others or not own or any(_came_nearer(check, baseline, experiment) for check in own):
        return ""
    return STAYED.format(remedy=remedy.id, measures=" and ".join(check.measure for check in own))


def _came_nearer(check: SuccessCheck, baseline: Side, experiment: Side) -> bool:
    """True where a number moved towards its criterion by more than its uncertainty, or nobody knows."""
    (was, before), (value, after) = _measured(check.measure, baseline), _measured(check.measure, experiment)
    if was is None or value is None:
        return True
    first, last = before or (was, was)
    return max(_reach(value, after)) < first if check.op.startswith("<") else min(_reach(value, after)) > last


def _prediction(remedy: str, one: Prediction, baseline: Side, experiment: Side, doubt: str, made: bool) -> Outcome:
    """A number of the experiment against what was predicted. ``doubt`` says why nothing may be laid to the remedy, or
    ''; ``made``: the remedy is known to have been applied.
    """
    value, interval = _measured(one.measure, experiment)
    status, reason = verdict_on(value, interval, one.low, one.high)
    if one.low is None and one.high is None and one.note:
        reason = one.note
    elif reason == UNSEEN:
        reason = _unseen(one.measure)
    if status != CANNOT_TELL or value is not None:
        agree, why = (
            pollers_agree(baseline, experiment, same_length=False) if one.measure in _PEAKS else (True, NOTHING)
        )
        nothing = one.baseline is not None and _shows_nothing(status, made, one.baseline, one.low, one.high)
        if doubt or _of_the_record(one.measure, baseline, experiment):
            status, reason = CANNOT_TELL, doubt or OF_THE_RECORD
        elif agree is False:
            status, reason = CANNOT_TELL, str(Statement("{why} Peaks are not comparable.", why=why))
        elif nothing and _unmoved(one.measure, baseline, experiment):
            status, reason = CANNOT_TELL, UNMOVED
    return Outcome(
        remedy,
        PREDICTION,
        one.measure,
        one.unit,
        one.baseline,
        one.low,
        one.high,
        "",
        value,
        interval[0] if interval else None,
        interval[1] if interval else None,
        status,
        reason,
    )


def _of_the_record(measure: Key, *sides: Side) -> bool:
    """True of the mean that plans were once made with, where a run was recorded for longer than its job took."""
    if measure != UtilizationProfile.mean_pct.key:
        return False
    means = [[side.value(key) for key in (measure, LedgerProfile.mean_util_pct.key)] for side in sides]
    return any(
        isinstance(over, float) and isinstance(within, float) and abs(over - within) > SAME_WITHIN * within
        for over, within in means
    )


def _check(remedy: str, check: SuccessCheck, experiment: Side, doubt: str, beside: str) -> Outcome:
    """A criterion on a number of the experiment alone; ``doubt`` says why nothing may be laid to the remedy, or '', and
    ``beside`` what else changed: a criterion is what is wanted, whatever brought it about.
    """
    held = holds(check, experiment.value(check.measure))
    value, interval = _measured(check.measure, experiment)
    if held is None:
        status, reason = CANNOT_TELL, _unseen(check.measure)
    elif doubt:
        status, reason = CANNOT_TELL, doubt
    else:
        status, reason = (CAME_TRUE, "It holds.") if held else (MISSED, "It does not hold.")
        inside = interval is not None and interval[0] <= check.value <= interval[1]
        if inside and not held:
            status, reason = CANNOT_TELL, "It does not hold, but not by more than its uncertainty."
        reason = f"{reason} {beside}".rstrip()
    return Outcome(
        remedy,
        CHECK,
        check.measure,
        check.unit,
        None,
        check.value,
        None,
        check.op,
        value,
        interval[0] if interval else None,
        interval[1] if interval else None,
        status,
        reason,
    )


def _gain(plan: Plan, found: Sequence[Quantity], doubt: str, made: bool) -> list[Outcome]:
    """The gain of the plan as a whole against throughput: 'x' is the same work in 1/x of the time per item. It has no
    upper end where changes also save GPU time, or bring nobody knows what: these are no part of the factor. Nothing
    where no remedy is to change it: then there is nothing to be missed.
    """
    if plan.combined is None or plan.combined.unit != "x" or not any(map(_changes_pace, plan.remedies)):
        return []
    low, open_ = plan.combined.low, bool(plan.saved_gpu_h) or any(one.gain is None for one in plan.remedies)
    high = None if open_ else plan.combined.high
    times = {q.name: q for q in found}
    time = next((times[name] for name in _WORK_TIMES if name in times), None)
    value = 1 / time.ratio if time is not None and time.ratio > 0 else None
    interval = (1 / time.high, 1 / time.low) if time is not None and time.low > 0 else None
    if doubt or (time is not None and time.verdict == "invalid"):
        status, reason = CANNOT_TELL, doubt or INVALID
    else:
        status, reason = verdict_on(value, interval, low, high)
        unmoved = value is not None and min(_reach(value, interval)) <= 1 <= max(_reach(value, interval))
        if unmoved and _shows_nothing(status, made, 1.0, low, high):
            status, reason = CANNOT_TELL, UNMOVED
    return [
        Outcome(
            "all together",
            GAIN,
            "throughput",
            "x",
            1.0,
            low,
            high,
            "",
            value,
            interval[0] if interval else None,
            interval[1] if interval else None,
            status,
            reason,
        )
    ]


def _changes_pace(remedy: PlannedRemedy) -> bool:
    """False of what only observes: a plan of nothing else, or of nothing at all, predicts no pace."""
    gain = remedy.gain
    return remedy.tier > 0 or gain is None or (gain.low, gain.high, gain.unit) != (1.0, 1.0, "x")


def _measured(measure: Key, side: Side) -> tuple[float | None, tuple[float, float] | None]:
    """The number of that name in the measures of a run, and its 95 % interval where there is one."""
    value = side.value(measure)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None, None
    return float(value), _interval(measure, float(value), side)


def _interval(measure: Key, value: float, side: Side) -> tuple[float, float] | None:
    if measure.endswith("_pct"):
        low, high = (side.value(f"{measure.removesuffix('_pct')}_{end}_pct") for end in ("low", "high"))
        if isinstance(low, float) and isinstance(high, float):
            return low, high
    if measure in _COURSES:
        mean = mean_over_time(side, _COURSES[measure])
        if not math.isnan(mean.log_se):
            half = math.exp(float(scipy.stats.t.ppf(0.5 + CONFIDENCE / 2, mean.n - 1)) * mean.log_se)
            return value / half, value * half
    cell = fact_named(measure)
    if isinstance(cell, Cell) and cell.column is TrialState.median_s:
        return _median_interval(side, cell.row)
    return None


def _unseen(measure: str) -> str:
    """Why a run does not show a number: it lacks the data, or nothing of that name is measured."""
    if fact_named(measure) is not None:
        return UNSEEN
    known = [fact.key for profile in PROFILES.values() for fact in profile.facts().values()]
    return f"Nothing measured is called '{measure}'; {nearest(measure, known)}"


def _median_interval(side: Side, state: str) -> tuple[float, float] | None:
    """Order statistics between which the median lies with 95 %; None below six durations."""
    values = np.sort(side.items.loc[side.items["state"] == state, "duration_s"].dropna().to_numpy(float))
    k = int(scipy.stats.binom.ppf((1 - CONFIDENCE) / 2, len(values), 0.5)) if len(values) >= 6 else 0
    return (float(values[k - 1]), float(values[len(values) - k])) if k >= 1 else None
