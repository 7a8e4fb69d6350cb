"""Whether the changes of a plan were made, as far as two runs show it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from gpudiag.advice._engine.plan import Plan, PlannedRemedy
from gpudiag.advice._engine.processes import AT_FIRST, AT_ONCE
from gpudiag.advice._engine.proposal import Change
from gpudiag.advice.hardware import POWER_LIMIT
from gpudiag.comparison.differences import SAME_LIMIT, boards, changed, equal_values, logged_params, requested_params
from gpudiag.comparison.side import Side
from gpudiag.measures.parallelism import ParallelismProfile
from gpudiag.plain_data import Scalar
from gpudiag.values import is_number

NUMBER = (AT_ONCE, AT_FIRST)
LEAST_MOVED = 0.5
"""Part of the change of the peak by which the mean number at once must have changed; a default without a published
source."""
LEAST_TIMED = 2
"""Trials for each one at once from which on the mean shows how many do run: with fewer the ends of a run count most."""
NOT_SHOWN = "The change had no effect, or another one: the trials do not show the number at once that was proposed."
BESIDE = ("parallel", "cpu_cores", "ram_gib")
"""Settings that make a run faster or slower by themselves; those of the loader do as well."""


def left_alone(remedy: PlannedRemedy, baseline: Side, experiment: Side) -> str:
    """A sentence where the experiment shows that a change of the remedy was not made or had no effect, else ''."""
    before, after = _set(baseline), _set(experiment)
    for change in remedy.changes:
        value = _looked_up(after, change)
        if value is None or equal_values(value, change.proposed):
            continue
        if any(was is not None and equal_values(value, was) for was in (change.present, _looked_up(before, change))):
            return f"The change was not made: {_called(change)} is still {value}."
    for change in remedy.changes:
        at_once = _at_once(change, baseline, experiment)
        if at_once is not None and at_once.moved < LEAST_MOVED:
            return NOT_SHOWN
    return ""


def made_otherwise(remedy: PlannedRemedy, baseline: Side, experiment: Side) -> str:
    """A sentence where a number of the remedy became another one than it proposes, else ''."""
    after = _set(experiment)
    for change in remedy.changes:
        value = _looked_up(after, change)
        if is_number(value) and is_number(change.proposed) and not equal_values(value, change.proposed):
            proposed = f"and {change.proposed} was proposed"
            return f"The change was not made as proposed: {_called(change)} is {value}, {proposed}."
        at_once = _at_once(change, baseline, experiment)
        if at_once is not None and not round(at_once.mean) <= at_once.wanted <= at_once.most:
            return NOT_SHOWN
    return ""


def _called(change: Change) -> str:
    return "the number of trials at once" if change.what in NUMBER else change.what


@dataclass(frozen=True)
class _AtOnce:
    """Trials at once as the experiment shows them: their ``mean``, the ``most``, what was ``wanted``, and what part of
    the way there the mean ``moved`` from that of the baseline.
    """

    mean: float
    most: float
    wanted: float
    moved: float


def _at_once(change: Change, baseline: Side, experiment: Side) -> _AtOnce | None:
    """None of another change, and where too few trials ran for the number to show; those without an end do not
    count.
    """
    was, now = (side.value(ParallelismProfile.effective_closed.key) for side in (baseline, experiment))
    n, peak = (experiment.value(fact.key) for fact in (ParallelismProfile.n_timed, ParallelismProfile.peak_closed))
    known = [float(value) for value in (was, now, n, peak, change.proposed) if isinstance(value, int | float)]
    if change.what not in NUMBER or len(known) < 5 or any(math.isnan(value) for value in known):
        return None
    mean_was, mean, timed, most, wanted = known
    if timed < LEAST_TIMED * wanted or wanted == mean_was:
        return None
    return _AtOnce(mean, most, wanted, (mean - mean_was) / (wanted - mean_was))


def was_set(remedy: PlannedRemedy, baseline: Side, experiment: Side) -> bool:
    """True where a setting that the remedy names became what it proposes."""
    before, after = _set(baseline), _set(experiment)
    return any(
        equal_values(_looked_up(after, change), change.proposed)
        and not equal_values(_looked_up(before, change), change.proposed)
        for change in remedy.changes
    )


def made_beside(plan: Plan, baseline: Side, experiment: Side) -> str:
    """A sentence where the number at once, loader or host changed and no remedy of the plan names that, else ''.

    Settings in words (a sampler, a command) may be how a change of the plan was made, so they tell nothing.
    """
    named = {
        word
        for remedy in plan.remedies
        for change in remedy.changes
        for word in (*_names(change), *re.findall(r"\w+", change.code))
    }
    before, after = (
        {name: getattr(side.run.info.settings, name) for name in BESIDE} | side.run.info.dataloader.model_dump()
        for side in (baseline, experiment)
    )
    for name, value in after.items():
        was = before[name]
        if name not in named and was is not None and value is not None and was != value:
            return f"No remedy of the plan changes {name}, and it went from {was} to {value}."
    if other := _other_limit(plan, baseline, experiment):
        return other
    return "" if "parallel" in named or _means_to_move_at_once(plan) else _other_number_at_once(baseline, experiment)


def _other_limit(plan: Plan, baseline: Side, experiment: Side) -> str:
    """A sentence where the power limit changed and no remedy of the plan names one, else ''."""
    was, now = (_power_limit_w(side) for side in (baseline, experiment))
    meant = any(change.what.startswith(POWER_LIMIT) for remedy in plan.remedies for change in remedy.changes)
    if meant or was is None or now is None or abs(now - was) <= SAME_LIMIT * max(now, was):
        return ""
    return f"No remedy of the plan changes the power limit, and it went from {was} W to {now} W."


def _power_limit_w(side: Side) -> int | None:
    limit = boards(side).get("power_limit_w")
    return round(limit) if isinstance(limit, float) else None


def _means_to_move_at_once(plan: Plan) -> bool:
    """True where a remedy is to be judged by how many trials ran at once, as workers in processes of their own are."""
    topic = f"{ParallelismProfile.topic}."
    judged = [entry.measure for remedy in plan.remedies for entry in remedy.verify]
    judged += [entry.measure for remedy in plan.remedies for entry in remedy.predictions]
    return any(measure.startswith(topic) for measure in judged)


def _other_number_at_once(baseline: Side, experiment: Side) -> str:
    """A sentence where the trials show another number at once than before, else ''.

    The peak must differ, and the mean must have moved half as far: shorter gaps move the mean alone, and a trial that
    begins before the one before it ended moves the peak alone. Trials without an end count in neither.
    """
    peaks, means = (
        [side.value(fact.key) for side in (baseline, experiment)]
        for fact in (ParallelismProfile.peak_closed, ParallelismProfile.effective_closed)
    )
    if not all(isinstance(value, int | float) for value in (*peaks, *means)):
        return ""
    (peak_was, peak), (mean_was, mean) = ([float(value or 0) for value in pair] for pair in (peaks, means))
    if peak == peak_was or (mean - mean_was) / (peak - peak_was) < LEAST_MOVED:
        return ""
    return "No remedy of the plan changes the number of trials at once, and the trials show another."


def _set(side: Side) -> Mapping[str, Scalar]:
    """Settings and parameters of a run by name; what the trials logged counts before what was asked for, and a number
    at once that the trials contradict is unknown.
    """
    info = side.run.info
    settings = info.settings.model_dump()
    if side.value(ParallelismProfile.peak.key) not in (None, settings["parallel"]):
        settings["parallel"] = None
    settings["power_limit_w"] = _power_limit_w(side)
    return settings | info.dataloader.model_dump() | requested_params(side) | logged_params(side)


def _names(change: Change) -> tuple[str, ...]:
    """The names under which a run may hold what is changed."""
    words = change.what.lower().split()
    if change.what.startswith(POWER_LIMIT):
        return ("power_limit_w",)
    return ("parallel",) if change.what in NUMBER else ("_".join(words), words[-1] if words else "")


def _looked_up(held: Mapping[str, Scalar], change: Change) -> Scalar:
    return next((value for name in _names(change) if (value := changed(held, name)) is not None), None)
