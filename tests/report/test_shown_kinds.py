"""Each kind of object is shown by its own file, whatever was imported before."""

from __future__ import annotations

import pytest

from gpudiag.forecast.estimate import Estimate
from gpudiag.report._render.shown import KINDS
from gpudiag.report.kinds import pruning


@pytest.mark.parametrize("place", KINDS)
def test_a_place_is_met_before_those_that_hold_it(place: str) -> None:
    first = next(one for one in KINDS if f"{place}.".startswith(f"{one}."))
    assert first == place, f"{place} lies in {first}, which is asked first"


@pytest.mark.parametrize(("low", "high", "said"), [(63.8, 64.6, "64.6 %"), (40.0, 70.0, "64.6 %")])
def test_a_replayed_rate_has_the_digits_of_its_bounds(low: float, high: float, said: str) -> None:
    assert pruning._value(Estimate(64.58, low, high, "%")).text == said
