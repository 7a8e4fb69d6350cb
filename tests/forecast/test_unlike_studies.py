"""Studies whose trials take unlike times: to forecast one of them is advised where the program does."""

from __future__ import annotations

import pytest
from smallruns import run as run_of
from smallruns import trials as trials_of

from gpudiag.errors import NotMeasurable
from gpudiag.forecast.estimate import NAN, Estimate
from gpudiag.forecast.parallelism.backtest import Backtest
from gpudiag.forecast.parallelism.batch_size import batch_test
from gpudiag.forecast.parallelism.drift import Drift
from gpudiag.forecast.parallelism.recent import _are_apart
from gpudiag.forecast.parallelism.startup_gain import StartupGain
from gpudiag.forecast.parallelism.what_if import Forecast, what_if
from gpudiag.report.kinds.parallelism import _drift

BESIDE, BEHIND = list("abababab"), list("aaaabbbb")
CLOSED = [("COMPLETE", 100.0 * n, 100.0 * n + 90.0) for n in range(8)]
OPEN = [("RUNNING", 0.0, NAN), *CLOSED[1:]]


def said(*, apart: bool) -> str:
    failed = Backtest(True, False, Estimate(10, 9, 11, "trials/h"), 20, -50, 50, 50, 4, "")
    drift = Drift(studies_differ=True, studies_apart=apart)
    rate = Estimate(100, 90, 110, "trials/h")
    return _drift(Forecast("r", (), 2, NAN, rate, "", failed, drift, StartupGain(), batch_test(), (), 10, NAN))


@pytest.mark.parametrize(
    ("rows", "studies", "apart"),
    [(CLOSED, BEHIND, True), (CLOSED, BESIDE, False), (OPEN, BEHIND, False), (CLOSED, ["a"] * 8, True)],
)
def test_one_of_several_studies_is_forecast_where_that_is_advised(
    rows: list[tuple[str, float, float]], studies: list[str], apart: bool
) -> None:
    run = run_of(trials=trials_of(rows).assign(study=studies))
    assert _are_apart(run) == apart
    refused = []
    for name in dict.fromkeys(studies):
        try:
            what_if(run.study(name))
        except NotMeasurable as why:
            refused.append("were selected" in str(why))
    assert any(refused) == (not apart)
    assert ("--study" in said(apart=apart)) == apart


def test_studies_side_by_side_are_named_as_such() -> None:
    assert said(apart=False) == "The studies differ in how long their trials take, and some ran at the same time."
