"""What a pair of its size can show: levels against the adjustment itself, ratios against repeated pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from batchruns import batch, unlike
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gpudiag.comparison import power
from gpudiag.comparison.autocorrelation import neighbors
from gpudiag.comparison.compare import Comparison, compare
from gpudiag.comparison.drift import CHANCE
from gpudiag.comparison.intervals import adjusted, paired_ratio, unpaired_ratio
from gpudiag.comparison.power import Case, detectable, level_left


@given(st.lists(st.floats(1e-6, 1), max_size=12))
def test_the_level_left_is_the_greatest_p_that_is_called_different(others: list[float]) -> None:
    level = level_left([*others, math.nan])
    assert adjusted([*others, 0.999999 * level])[-1] <= 0.05, "just 5 % where the one above it is"
    assert adjusted([*others, 1.000001 * level])[-1] > 0.05


def test_levels_by_hand() -> None:
    assert level_left([]) == pytest.approx(0.05)
    assert level_left([0.5] * 9) == pytest.approx(0.005)
    assert level_left([0.001] * 3 + [0.5]) == pytest.approx(4 / 5 * 0.05), "three others leave the fourth place of five"


@pytest.mark.slow
@pytest.mark.many
@pytest.mark.parametrize("level", [0.05, 0.005])
@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("n", [8, 30])
def test_four_of_five_pairs_show_it(n: int, paired: bool, level: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs anew, apart by what one pair was said to show, however great that is."""
    monkeypatch.setattr(power, "MOST", 1e3)
    rng = np.random.default_rng([n, paired])
    shown = []
    for _ in range(250):
        size = rng.normal(0, 0.6, n) if paired else np.zeros(n)
        ratio = paired_ratio if paired else unpaired_ratio
        a, b, c, d = (np.exp(size + rng.normal(0, 0.2, n)) for _ in range(4))
        found = ratio(a, b)
        if math.isnan(found.p):
            continue
        away = detectable(found.cases, level)
        p = ratio(c, away * d).p
        shown += [] if math.isnan(p) else [p < level]  # neighbors may look too alike to test
    assert len(shown) > 185 and np.mean(shown) == pytest.approx(0.8, abs=0.13)


@pytest.mark.slow
def test_the_verdict_says_what_the_pair_could_show() -> None:
    rng = np.random.default_rng(3)
    size = rng.lognormal(3, 0.5, 40)
    a, b = size, size * unlike(rng.lognormal(0, 0.14, 40))
    pair = compare(batch("a", a), batch("b", b))
    assert isinstance(pair, Comparison) and pair.verdict == "no evidence" and pair.leader is not None
    error = np.log(b / a).std(ddof=1) / math.sqrt(40)
    tested = sum(q.tested and not math.isnan(q.p) for q in pair.quantities)
    level = 0.05 / tested
    # Of those pairs whose neighbors are surely not alike and that do not look as if they drift.
    told = 0.8 / (neighbors(np.log(b / a)).share_bounded * (1 - CHANCE))
    planned = stats.t.ppf([1 - level / 2, told], 39).sum() * error  # as for an error that is known
    assert pair.leader.detectable == pytest.approx(math.exp(planned), rel=0.02)
    said = pair.headline["sentences"][0]
    assert (
        f"4 of 5 pairs of this size would show a difference of {pair.leader.detectable:.2f}× or more; a smaller" in said
    )
    again = compare(batch("a", a), batch("b", a * pair.leader.detectable**1.5 * rng.lognormal(0, 0.1, 40)))
    assert isinstance(again, Comparison) and again.verdict == "slower"


@pytest.mark.slow
def test_what_cannot_be_tested_shows_nothing() -> None:
    assert math.isnan(detectable([Case(1, math.nan, 10)], 0.05)) and math.isnan(
        detectable([Case(1, 0.1, math.nan)], 0.05)
    )
    assert detectable([Case(1, 0.0, 5)], 0.05) == 1 and math.isnan(detectable([], 0.05))
    few = compare(batch("a", [1.0, 2, 3]), batch("b", [2.0, 3, 4]))
    assert isinstance(few, Comparison) and "4 of 5" not in few.summary()
    size, rng = np.full(40, 20.0), np.random.default_rng(4)
    alike = compare(batch("a", size * rng.lognormal(0, 1e-4, 40)), batch("b", size * rng.lognormal(0, 1e-4, 40)))
    assert isinstance(alike, Comparison) and alike.leader is not None and 1 < alike.leader.detectable < 1.005
    assert "4 of 5" not in alike.summary()  # of 1.00 times or more: nothing is said
