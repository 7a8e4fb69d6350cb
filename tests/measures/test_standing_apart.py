"""Which intervals of a log are pauses, whatever its steps take: those that the spread of the others does not reach."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from smallruns import run, steps_of
from verdicts import verdict_of

from gpudiag.measures._steps.clocks import tick_of
from gpudiag.measures._steps.standing_apart import least_apart
from gpudiag.measures.steps import StepsProfile, measure_steps
from gpudiag.run import Run

Spread = Callable[[np.random.Generator, int], np.ndarray]
EVEN: Spread = lambda rng, n: rng.normal(1.0, 0.02, n)  # noqa: E731
LOG_NORMAL: Spread = lambda rng, n: rng.lognormal(0.0, 0.6, n)  # noqa: E731
PARETO: Spread = lambda rng, n: 1.0 + rng.pareto(2.0, n)  # noqa: E731
LINES, EVERY = 300, 20


def logged(seed: int, step_s: float, spread: Spread, pause_s: float = 0.0, every: int = EVERY) -> tuple[Run, float]:
    """A line each step, with a pause behind each ``every``; and its share of the time between the lines."""
    rng = np.random.default_rng(seed)
    took = step_s * spread(rng, LINES)
    paused = np.where(np.arange(LINES) % every == every // 2, pause_s * rng.uniform(0.8, 1.2, LINES), 0.0)
    end = np.round(np.cumsum(took + paused), 6)
    lines = [(float(at), n) for n, at in enumerate(end, 1)]
    return run(steps=steps_of(lines)), 100 * float(paused[1:].sum() / (end[-1] - end[0]))


def measured(*of: object, **knobs: float) -> tuple[StepsProfile, float]:
    one, truth_pct = logged(*of, **knobs)  # type: ignore[arg-type]
    return measure_steps(one), truth_pct


@pytest.mark.parametrize(("step_s", "pause_s"), [(0.011, 0.3), (0.011, 1.6), (0.1, 3.0), (1.0, 20.0), (30.0, 400.0)])
def test_pauses_are_found_whatever_the_steps_take(step_s: float, pause_s: float) -> None:
    said, truth_pct = measured(1, step_s, EVEN, pause_s=pause_s)
    assert said.n_pauses == LINES // EVERY
    assert said.pauses_pct == pytest.approx(truth_pct, abs=0.5)
    assert said.step_s == pytest.approx(step_s, rel=0.02)


@pytest.mark.parametrize("spread", [LOG_NORMAL, PARETO])
def test_pauses_far_beyond_a_wide_spread_are_found(spread: Spread) -> None:
    said, truth_pct = measured(2, 0.011, spread, pause_s=20.0)
    assert said.n_pauses == LINES // EVERY and said.pauses_pct == pytest.approx(truth_pct, abs=1.0)


@pytest.mark.parametrize("step_s", [0.011, 30.0])
@pytest.mark.parametrize("spread", [EVEN, LOG_NORMAL, PARETO])
def test_jitter_is_no_pause(step_s: float, spread: Spread) -> None:
    assert sum(measured(seed, step_s, spread)[0].n_pauses > 0 for seed in range(3)) == 0


def test_steps_of_another_kind_are_no_pauses() -> None:
    """Every eighth is three times as long, as the last of the micro-batches that are gathered."""
    in_turn: Spread = lambda rng, n: np.where(np.arange(n) % 8 == 7, 3.0, 1.0) * rng.normal(1, 0.02, n)  # noqa: E731
    for step_s in (0.011, 3.0):
        assert measured(1, step_s, in_turn)[0].n_pauses == 0


@pytest.mark.parametrize(("spread", "status"), [(EVEN, "ok"), (LOG_NORMAL, "not_assessed")])
def test_what_may_be_pauses_as_well_as_slow_steps_is_not_said_to_be_fine(spread: Spread, status: str) -> None:
    one, _ = logged(1, 30.0, spread)
    assert verdict_of(one, "steps-paused").status.value == status


@pytest.mark.parametrize("alpha", [1.0, 2.0, 5.0])
def test_heavy_tails_stand_apart_by_luck_in_few_records(alpha: float) -> None:
    rng = np.random.default_rng(7)
    n_apart = sum(
        math.isfinite(least_apart(1 + rng.pareto(alpha, n), np.zeros(n), 2.0))
        for n in (20, 100, 500)
        for _ in range(200)
    )
    assert n_apart <= 0.03 * 600  # of 1 % for each of the places where the tail is looked at


def test_one_far_beyond_all_others_stands_apart_and_the_clock_s_own_steps_do_not() -> None:
    alike = np.full(20, 1.0)
    assert least_apart(np.append(alike, 12.0), np.full(21, 0.1), 2.0) == 12.0
    assert math.isinf(least_apart(np.append(alike, 2.0), np.full(21, 1.0), 2.0))  # two ticks for one
    assert math.isinf(least_apart(np.ones(0), np.ones(0), 2.0))


def test_the_tick_of_a_clock() -> None:
    day = 1_770_000_000.0
    assert tick_of(day + np.array([1.0, 7.0, 20.0])) == 1.0
    assert tick_of(day + np.array([1.0, 7.2, 20.0])) == 0.1
    assert tick_of(day + np.array([1.001, 7.25, 20.0])) == pytest.approx(1e-3)
    assert tick_of(day + np.arange(50) * 0.011237) == pytest.approx(1e-6)
    assert tick_of(np.array([np.nan])) == 0.0


def test_what_stated_evaluations_leave_of_short_pauses_is_told(tmp_path: Path) -> None:
    """Each evaluation of 0.3 s stands in a pause of 1.5 s."""
    one, _ = logged(1, 0.011, EVEN, pause_s=1.5)
    behind = np.arange(LINES) % EVERY == EVERY // 2
    steps = one.steps.assign(since=np.where(behind, "evaluation", ""), evaluation_s=np.where(behind, 0.3, np.nan))
    said = measure_steps(run(steps=steps))
    assert said.evaluations_s == pytest.approx(0.3 * LINES / EVERY, rel=0.01)
    assert said.evaluations_s + said.unnamed_s == pytest.approx(said.pauses_s, abs=0.01)
