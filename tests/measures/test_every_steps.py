"""Pauses at multiples of a number of steps, as what a setting asks for comes."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from gpudiag.measures._steps.every_steps import every_n_steps


def told(each: int, behind: list[int]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Lines every so many steps up to 400, and the intervals in which a pause follows these steps."""
    course = pd.DataFrame({"done": range(each, 401, each), "n": float(each)})
    return course, course[[any(done - each <= step < done for step in behind) for done in course["done"]]]


@pytest.mark.parametrize(
    ("each", "behind", "every"),
    [
        (1, list(range(20, 400, 20)), 20.0),
        (10, list(range(50, 400, 50)), 50.0),
        (1, [step for step in range(20, 400, 20) if step % 100], 20.0),  # one in five is an evaluation's, named
        (1, [20, 40, 60, 80], math.nan),  # few
        (1, [20, 40, 60, 80, 100, 120], math.nan),  # and then no more
        (1, [13, 39, 52, 117, 205, 260, 333], math.nan),
        (20, list(range(20, 400, 20)), math.nan),  # each line: any number of steps up to 20 looks so
        (10, list(range(25, 400, 25)), 25.0),  # between lines by turns 20 and 30 steps apart
    ],
)
def test_multiples(each: int, behind: list[int], every: float) -> None:
    assert every_n_steps(*told(each, behind)) == pytest.approx(every, nan_ok=True)
