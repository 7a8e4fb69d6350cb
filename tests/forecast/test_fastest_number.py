"""Which number at once a forecast names as faster, and under which condition."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from gpudiag.forecast.estimate import NAN, Estimate
from gpudiag.forecast.parallelism.batch_size import batch_test
from gpudiag.forecast.parallelism.drift import Drift
from gpudiag.forecast.parallelism.scenario import Scenario
from gpudiag.forecast.parallelism.startup_gain import StartupGain
from gpudiag.forecast.parallelism.what_if import Forecast
from gpudiag.report.kinds.parallelism import _best, answer

NOW = 3


def scenario(k: int, gain: tuple[float, float, float], overflow: tuple[float, float, float]) -> Scenario:
    rate, gained = Estimate(*(100 * x for x in gain), "trials/h"), Estimate(*gain)
    unknown = Estimate.unknown("", "")
    full = Estimate(*overflow, "%")
    return Scenario(k, {}, rate, unknown, gained, unknown, full, unknown, NAN, NAN, NAN, NAN, k > NOW)


def said(*others: Scenario) -> tuple[str, str]:
    here = scenario(NOW, (1, 1, 1), (0, 0, 2))
    rate, unknown = Estimate(100, 90, 110, "trials/h"), NAN
    made = Forecast(
        "r", (here, *others), NOW, unknown, rate, "", None, Drift(), StartupGain(), batch_test(), (), 10, NAN
    )
    return _best(made), answer(made)


FEWER = scenario(1, (0.4, 0.3, 0.5), (0, 0, 2))


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        (
            [scenario(8, (1.9, 1.05, 1.95), (0, 0, 17))],
            "8 at once, if they fit, would be 1.9 (1.05–1.95) times as fast.",
        ),
        ([scenario(8, (1.9, 0.9, 1.95), (0, 0, 17))], "8 at once, if they fit, may be 1.9 (0.9–1.95) times as fast"),
        ([scenario(8, (1.9, 1.05, 1.95), (0, 0, 4))], "8 at once would be 1.9 (1.05–1.95) times as fast."),
        (
            [scenario(4, (1.3, 1.1, 1.4), (0, 0, 4)), scenario(8, (1.7, 0.9, 2), (0, 0, 17))],
            "4 at once would be 1.3 (1.1–1.4) times as fast.",
        ),
        ([scenario(8, (1.9, 1.05, 1.95), (9, 6, 17))], "1 at once is not expected to be faster than 3."),
        (
            [scenario(k, (0.9, 0.8, 0.95), (0, 0, high)) for k, high in ((2, 4), (4, 4), (6, 17))],
            "1, 2, 4 or 6 at once is not expected to be faster than 3.",
        ),
    ],
)
def test_the_fastest_is_named_with_what_memory_leaves_open(others: list[Scenario], expected: str) -> None:
    for text in said(FEWER, *others):
        assert text.startswith(expected)


def test_what_surely_fits_and_what_may_fit_are_both_named() -> None:
    text, _ = said(FEWER, scenario(4, (1.3, 1.1, 1.4), (0, 0, 4)), scenario(8, (1.9, 1.05, 2), (0, 0, 17)))
    assert text.startswith("4 at once would be 1.3") and " 8 at once, if they fit, would be 1.9" in text


def test_fewer_alone_are_not_faster() -> None:
    assert said(FEWER)[0].startswith("1 at once is not expected to be faster than 3.")


def test_no_more_is_named_where_trials_ran_out_of_memory_and_what_they_take_is_not_known() -> None:
    unknown = (NAN, NAN, NAN)
    here, more = scenario(NOW, (1, 1, 1), unknown), scenario(8, (1.9, 1.05, 1.95), unknown)
    rate = Estimate(100, 90, 110, "trials/h")
    made = Forecast("r", (here, more), NOW, NAN, rate, "", None, Drift(), StartupGain(), batch_test(), (), 10, NAN)
    for n_oom, named in ((0, True), (1, False)):
        crashes = SimpleNamespace(events=lambda kind, n=n_oom: n)
        capacity = SimpleNamespace(crashes=crashes, limits=False, hard_fit_k=NAN, n_gpus=1)
        assert ("8 at once" in _best(replace(made, capacity=capacity))) is named
