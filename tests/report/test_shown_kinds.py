"""Each kind of object is shown by its own file, whatever was imported before."""

from __future__ import annotations

import pytest

from gpudiag.report._render.shown import KINDS


@pytest.mark.parametrize("place", KINDS)
def test_a_place_is_met_before_those_that_hold_it(place: str) -> None:
    first = next(one for one in KINDS if f"{place}.".startswith(f"{one}."))
    assert first == place, f"{place} lies in {first}, which is asked first"
