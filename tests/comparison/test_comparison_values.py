"""Values of parameters as a comparison lists them."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from gpudiag.comparison.differences import _summary


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1.0, math.inf, -math.inf], "−∞, 1.0, ∞"),
        (["b", "a", "b"], "a, b"),
        ([3, 3, 3], 3),
        ([*range(13)], "a range"),
    ],
)
def test_values_of_a_parameter(values: list[object], said: object) -> None:
    assert _summary(pd.Series(values)) == said
