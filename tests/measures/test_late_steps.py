"""Steps that became slower against steps of which some are slow in any order."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import mannwhitneyu

from gpudiag.measures._steps.late_steps import LateSteps, late_steps

HICCUP = {"two times": 0.5, "seldom": 0.3}


def course(each_s: np.ndarray, n: float = 50.0) -> pd.DataFrame:
    return pd.DataFrame({"each_s": each_s, "n": n, "usual": True, "recounted": 0})


def slower(late: LateSteps) -> bool:
    """As the rule asks."""
    return late.ratio > 1.2 and late.steady_pct >= 75 and 100 * late.p < 3


def drawn(kind: str, rng: np.random.Generator, lines: int) -> np.ndarray:
    if kind == "log-normal":
        return np.exp(rng.normal(0, 0.5, lines))
    if kind == "Pareto":
        return 1 + rng.pareto(1.5, lines)
    return np.where(rng.random(lines) < HICCUP[kind], 2.2, 1.0)


@pytest.mark.parametrize("kind", ["two times", "seldom", "log-normal", "Pareto"])
@pytest.mark.parametrize("lines", [20, 240])
def test_times_in_any_order_become_no_slower(kind: str, lines: int) -> None:
    rng = np.random.default_rng(lines)
    said = sum(slower(late_steps(course(drawn(kind, rng, lines)))) for _ in range(100))
    assert said <= 6, "3 % of 100, and not quite two standard deviations"


@pytest.mark.parametrize("kind", ["seldom", "log-normal"])
def test_times_that_grow_are_told_through_the_same_hiccups(kind: str) -> None:
    rng = np.random.default_rng(11)
    grows = 1 + np.arange(240) / 240
    late = [late_steps(course(drawn(kind, rng, 240) * grows)) for _ in range(50)]
    assert sum(map(slower, late)) >= 40
    assert np.median([one.ratio for one in late]) == pytest.approx(1.9 / 1.1, rel=0.15)


def test_slow_steps_in_long_rows_are_less_sure() -> None:
    """Some of five times in a row, some in any order: as many are slow."""
    rng = np.random.default_rng(3)
    rows = np.repeat(rng.random(48) < 0.5, 5)
    in_rows, mixed = (np.where(slow, 2.2, 1.0) for slow in (rows, rows.reshape(48, 5).T.ravel()))
    first, last = in_rows[:48], in_rows[-48:]
    alone = mannwhitneyu(last, first, alternative="greater", method="asymptotic").pvalue
    assert abs(late_steps(course(in_rows)).p - 0.5) < abs(alone - 0.5)
    first, last = mixed[:48], mixed[-48:]
    alone = mannwhitneyu(last, first, alternative="greater", method="asymptotic").pvalue
    assert late_steps(course(mixed)).p == pytest.approx(alone, rel=1e-6)


@pytest.mark.parametrize(
    ("first", "last", "ratio"),
    [
        ((1.0, 1.0, 1.0, 2.0, 2.0), (1.0, 1.0, 2.0, 2.0, 2.0), 8.0 / 7.0),  # by median it is 2
        ((1.0, 1.0, 1.0, 1.0, 1.0), (1.1, 1.1, 1.1, 1.1, 9.0), 1.1),  # by mean it is 2.7
        ((1.0, 1.0, 1.0, 1.0, 9.0), (1.1, 1.1, 1.1, 1.1, 1.1), 1.0),  # by mean they became faster
        ((2.0, 2.0, 2.0, 2.0, 2.0), (1.0, 1.0, 1.0, 1.0, 1.5), 1.1 / 2.0),
    ],
)
def test_the_ratio_is_the_one_nearer_to_1(first: tuple[float, ...], last: tuple[float, ...], ratio: float) -> None:
    each_s = np.concatenate([first, np.ones(15), last])
    assert late_steps(course(each_s)).ratio == pytest.approx(ratio)


def test_equal_steps_are_as_late_as_chance_and_few_lines_tell_nothing() -> None:
    assert late_steps(course(np.ones(20))) == LateSteps(1.0, 100.0, 1.0)
    few = late_steps(course(np.ones(19)))
    assert all(math.isnan(value) for value in few)


@pytest.mark.parametrize("lines", [25, 50, 100, 200, 300, 500, 1000, 3000])
@pytest.mark.parametrize("last", [1.35, 3.0])
def test_times_that_grow_without_noise_are_told_in_logs_of_any_length(lines: int, last: float) -> None:
    assert slower(late_steps(course(np.linspace(1.0, last, lines))))
