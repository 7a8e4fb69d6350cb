"""Gaps between trials and numbers of workers, on trials written down by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.forecast.parallelism.handover import Handover, handovers
from gpudiag.measures._time.window import timed_trials
from gpudiag.run import Run
from gpudiag.schema import TRIALS, conform

T0 = pd.Timestamp("2025-06-01 08:00", tz="UTC")


def handover(spans: list[tuple[float, float]], workers: list[str] | None = None) -> Handover:
    start, end = (T0 + pd.to_timedelta([span[i] for span in spans], unit="s") for i in (0, 1))
    table = {"study": "s", "trial": range(len(spans)), "state": "COMPLETE", "start": start, "end": end}
    run = Run(trials=conform(pd.DataFrame(table | ({"worker": workers} if workers else {})), TRIALS))
    return handovers(run, timed_trials(run))


def levels(made: Handover) -> list[tuple[float, int]]:
    seconds = (made.workers_us - made.workers_us[0]) / 1e6
    return list(zip(seconds.tolist(), made.workers.tolist(), strict=True))


def test_seamless_trials_of_two_workers_are_one_stretch() -> None:
    made = handover([(0, 10), (0, 15), (10, 30), (15, 25), (25, 40)])
    assert levels(made) == [(0, 2), (30, 1), (40, 0)]
    assert made.gap_s.tolist() == [0, 0, 0] and made.usual == 2


def test_a_gap_belongs_to_its_worker_and_an_interruption_to_nobody() -> None:
    made = handover([(0, 10), (20, 30), (2000, 2010)])
    assert made.gap_s.tolist() == [10]
    assert levels(made) == [(0, 1), (30, 0), (2000, 1), (2010, 0)]


def test_recorded_workers_go_before_the_nearest_end() -> None:
    spans = [(0.0, 10.0), (0.0, 12.0), (14.0, 30.0), (13.0, 30.0)]
    assert sorted(handover(spans, ["a", "b", "a", "b"]).gap_s) == [1, 4]
    assert sorted(handover(spans).gap_s) == [1, 4]


def test_ends_of_a_worker_that_stopped_stay_unmatched() -> None:
    """Two workers, then one: its gaps are those between its own trials."""
    spans = [(0.0, 100.0), (0.0, 90.0), *((100.0 + 50 * i, 149.0 + 50 * i) for i in range(8))]
    made = handover(spans)
    assert made.gap_s.tolist() == [0, *[1] * 7]
    assert np.isclose(made.worker_s(made.workers_us[0], made.workers_us[-1])[1:], [409, 90]).all()
    assert made.usual == 1 and made.most == 2
