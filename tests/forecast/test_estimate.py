"""One number of a forecast keeps its conventions."""

from __future__ import annotations

import json
import math

import pytest

from gpudiag.forecast.estimate import Estimate
from gpudiag.plain_data import plain


def test_unknown_is_null_in_json_never_zero() -> None:
    document = plain(Estimate.unknown("MiB", "There is no telemetry."))
    assert json.loads(json.dumps(document, allow_nan=False)) == {
        "value": None, "low": None, "high": None, "unit": "MiB", "bounds_only": True,
        "reason": "There is no telemetry.",
    }  # fmt: skip


def test_bounds_have_no_value() -> None:
    bounds = Estimate.bounds(1, 3, "trials/h", "The back-test failed.")
    assert not bounds.known and bounds.bounds_only and (bounds.low, bounds.high) == (1, 3)


def test_a_change_of_unit_keeps_everything_else() -> None:
    assert Estimate(2, 1, 4, "trials/h").scaled(24, "trials/day") == Estimate(48, 24, 96, "trials/day")


def test_bounded_drops_the_value_alone() -> None:
    bounds = Estimate(2, 1, 4, "h").bounded()
    assert math.isnan(bounds.value) and (bounds.low, bounds.high, bounds.bounds_only) == (1, 4, True)


def test_an_interval_that_ends_before_it_starts_is_a_bug() -> None:
    with pytest.raises(ValueError, match="must not end before it starts"):
        Estimate(1, 3, 2)
