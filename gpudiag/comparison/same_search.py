"""Whether two searches, whose trials have no names, set their trials the same work (check 2)."""

from __future__ import annotations

import math

import pandas as pd

from gpudiag.comparison.check import FAIL, PASS, UNKNOWN, GateFinding
from gpudiag.comparison.differences import PARAMS, command_params, logged_params, requested_params
from gpudiag.comparison.named_work import plain, sets_work
from gpudiag.comparison.side import Side
from gpudiag.comparison.space import SAME_SPACE, Domain, apart, declared, drawn_apart, said_of, shared, tried
from gpudiag.comparison.steps import SAME_STEPS
from gpudiag.plain_data import Scalar
from gpudiag.statement import Statement

STEERING = frozenset(
    (
        "lr", "learning_rate", "weight_decay", "wd", "momentum", "dropout", "dropout_rate", "beta1", "beta2", "gamma",
        "alpha", "lambda", "l1", "l2", "reg_alpha", "reg_lambda", "eps", "epsilon", "label_smoothing", "warmup_ratio",
        "seed", "random_state",
    )
)  # fmt: skip
"""Parameters that steer what is learned, not how much is computed, unless a pruner or a plateau stops trials."""
SPACES = (
    "The searches draw from other spaces, in {a} and in {b}: {which}. Compare trials that both allow "
    "(run.trials_where), or search the same space."
)
PLACES = "The trials of {a} and of {b} tried values that lie apart: {which}."
STEERED = "The searches draw from other spaces, in {a} and in {b}, of what steers the learning: {which}."
UNEVEN = (
    "No study declares these spaces, and {a} and {b} tried their values unevenly, more than chance gives: {which}. "
    "That is another space, or a sampler that learns."
)
FIXED = "Fixed values differ, in {a} and in {b}: {which}, which is other work for a trial."
TESTED = "Fixed values differ, in {a} and in {b}: {which}; this is taken for the change that is tested."
ATTRIBUTES = "{names} of the trials is another in {a} than in {b}: the work is not the same."
OTHER_ATTRIBUTES = (
    "Attributes of the trials differ between {a} and {b}: {names}; this is taken for the change that is tested."
)
ATTRS = "user_attrs."
BUDGET = "A trial may take {steps_a} steps in {a} and {steps_b} in {b} (max_steps)."


def same_search(baseline: Side, experiment: Side) -> list[GateFinding]:
    """What differs in the spaces, the fixed values, the data and the budget of two searches over the same names."""
    return [*_of_spaces(baseline, experiment), *_of_attributes(baseline, experiment), *_of_budget(baseline, experiment)]


def same_fixed_values(baseline: Side, experiment: Side) -> list[GateFinding]:
    """What differs in fixed values, data and budget of the same items by name: their work may be another."""
    a, b = (
        {name: tried(column) for name, column in _values(side).items() if len(column) and tried(column).fixed}
        for side in (baseline, experiment)
    )
    other = [n for n in sorted(set(a) & set(b)) if shared(a[n], b[n]) < 1 and plain(n) not in STEERING]
    found = [*_of_attributes(baseline, experiment), *_of_budget(baseline, experiment)]
    for status, why, names in (
        (FAIL, FIXED, [name for name in other if sets_work(name)]),
        (PASS, TESTED, [name for name in other if not sets_work(name)]),
    ):
        which = said_of(names, a, b)
        found += [(status, Statement(why, a=baseline.name, b=experiment.name, which=which))] if names else []
    return [(UNKNOWN if status == FAIL else status, text) for status, text in found]


def _of_spaces(baseline: Side, experiment: Side) -> list[GateFinding]:
    columns = [_values(side) for side in (baseline, experiment)]
    names = sorted(set(columns[0]) & set(columns[1]))
    spaces = [declared(side) for side in (baseline, experiment)]
    known = [
        {n: space.get(n) or tried(column[n]) for n in names} for space, column in zip(spaces, columns, strict=True)
    ]
    values = [{n: tried(column[n]) for n in names} for column in columns]
    found: dict[str, list[str]] = {}
    for name in names:
        both = all(name in space for space in spaces)
        why = _why(name, known[0][name], known[1][name], columns[0][name], columns[1][name], both, len(names))
        found.setdefault(why, []).append(name)
    status = {SPACES: FAIL, PLACES: FAIL, FIXED: FAIL, STEERED: UNKNOWN, UNEVEN: UNKNOWN, TESTED: PASS}
    out = []
    for why in (why for why in status if why in found):
        which = said_of(found[why], *(known if why in (SPACES, STEERED) else values))
        out.append((status[why], Statement(why, a=baseline.name, b=experiment.name, which=which)))
    return out


def _why(name: str, a: Domain, b: Domain, x: pd.Series, y: pd.Series, both: bool, tests: int) -> str:
    """The sentence that one parameter calls for, '' if it is the same in both."""
    steers = plain(name) in STEERING
    if a.fixed and b.fixed:
        return "" if shared(a, b) == 1 or steers else FIXED if sets_work(name) else TESTED
    if both and shared(a, b) < SAME_SPACE:
        return STEERED if steers else SPACES
    if apart(x, y):
        return STEERED if steers else PLACES
    return UNEVEN if not both and min(len(x), len(y)) > 1 and drawn_apart(x, y, tests) else ""


def _of_attributes(baseline: Side, experiment: Side) -> list[GateFinding]:
    """User attributes of one value in each run. The values may be private and are not said."""
    a, b = (_constants(side) for side in (baseline, experiment))
    other = [name for name in a if name in b and a[name] != b[name] and plain(name) not in STEERING]
    work = [name for name in other if sets_work(name)]
    rest = [name for name in other if not sets_work(name)]
    found = ((FAIL, ATTRIBUTES, work), (PASS, OTHER_ATTRIBUTES, rest))
    return [
        (status, Statement(why, names=", ".join(names[:6]), a=baseline.name, b=experiment.name))
        for status, why, names in found
        if names
    ]


def _of_budget(baseline: Side, experiment: Side) -> list[GateFinding]:
    """The most steps that a trial may take, and repetitions asked for on the command line or in a note."""
    out: list[GateFinding] = []
    a, b = (side.run.info.settings.max_steps for side in (baseline, experiment))
    if a and b and not math.isclose(a, b, rel_tol=SAME_STEPS):
        out.append((FAIL, Statement(BUDGET, steps_a=a, a=baseline.name, steps_b=b, b=experiment.name)))
    asked = [_asked(side) for side in (baseline, experiment)]
    other = [name for name in asked[0] if name in asked[1] and asked[0][name] != asked[1][name]]
    if other:
        which = ", ".join(f"{name} {asked[0][name]} and {asked[1][name]}" for name in other)
        out.append((FAIL, Statement(FIXED, a=baseline.name, b=experiment.name, which=which)))
    return out


def _values(side: Side) -> dict[str, pd.Series]:
    """Values of each parameter over the trials that have it."""
    trials = side.run.trials
    return {name: trials[f"{PARAMS}{name}"].dropna() for name in logged_params(side)}


def _constants(side: Side) -> dict[str, str]:
    """User attributes that are the same in all trials."""
    trials, out = side.run.trials, {}
    for column in (column for column in trials.columns if str(column).startswith(ATTRS)):
        held = trials[column].dropna().astype(str)
        if held.nunique() == 1:
            out[str(column).removeprefix(ATTRS)] = held.iloc[0]
    return out


def _asked(side: Side) -> dict[str, Scalar]:
    """Work that was asked for and that trials do not log: they show better what it was."""
    asked = command_params(side) | requested_params(side)
    return {name: value for name, value in asked.items() if sets_work(name) and name not in logged_params(side)}
