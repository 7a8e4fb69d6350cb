"""A wait for the loader that a log states, as the cause of regular waits: only where it is as much."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from smallruns import at, gpu, run

from gpudiag.analysis import Analysis
from gpudiag.measures.loader import LoaderProfile, measure_loader
from gpudiag.measures.stalls import StallsProfile, measure_stalls
from gpudiag.rules import RULES
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.rule import check_thresholds
from gpudiag.run import Run
from gpudiag.schema import EVENTS, conform
from tests.rules.small_profiles import NAN, profile

ASKED = tuple(one for one in RULES if one.id in ("stalls-periodic", "loader-slow"))
SECONDS = np.arange(0.0, 3600.0)
STARTS = "over 100 batches, 10.0 batch/s, 4.0 s for the first batches of 3 loops begun again"


def cause(lost_pct: float, held_gpu_h: float, of_step_pct: float = 60.0) -> str | None:
    """Of regular waits that lose so much of an hour."""
    dips = {"work_s": 3600.0, "acf": 0.5, "regular_pct": 60.0, "n_dips": 50.0, "lost_pct": lost_pct}
    stalls: StallsProfile = profile(StallsProfile, {"0": dips})
    loader: LoaderProfile = profile(
        LoaderProfile, n_lines=9, avg_ms=120.0, of_step_pct=of_step_pct, held_gpu_h=held_gpu_h
    )
    told = Analysis(Run(), {measure_stalls: stalls, measure_loader: loader})
    (found,) = (one for one in judge_all(ASKED, told, check_thresholds(ASKED, {})) if one.rule == "stalls-periodic")
    return found.caused_by


@pytest.mark.parametrize(
    ("held_gpu_h", "of_step_pct", "by"),
    [(0.6, 60.0, "loader-slow"), (0.23, 23.0, "loader-slow"), (0.22, 22.0, None), (0.6, 4.9, None)],
)
def test_regular_waits_are_those_for_the_loader_where_it_states_half_of_them(
    held_gpu_h: float, of_step_pct: float, by: str | None
) -> None:
    assert cause(46.0, held_gpu_h, of_step_pct) == by


@pytest.mark.parametrize(
    ("lines", "held_gpu_h"),
    [
        (["DataLoader avg: 25.0ms", "20 batch/s"], 0.5),
        ([f"DataLoader avg 50.00 ms {STARTS}"], 0.1),
        ([f"DataLoader avg 5.00 ms {STARTS}"], 0.0),
        (["DataLoader avg: 25.0ms"], NAN),
    ],
)
def test_waits_hold_their_share_of_an_hour_of_work(lines: list[str], held_gpu_h: float) -> None:
    """An hour at 44 %; of the second and the third log 40 % of the time goes into the starts of epochs."""
    events = pd.DataFrame({"time": at([60.0] * len(lines)), "kind": "loader", "detail": lines})
    made = run(gpu=gpu(SECONDS, util_pct=44.0), events=conform(events, EVENTS))
    assert measure_loader(made).held_gpu_h == pytest.approx(held_gpu_h, rel=1e-3, nan_ok=True)
    assert np.isnan(measure_loader(run(events=made.events)).held_gpu_h)
