"""What a finding of a run cost, recomputed from how the run was made."""

from __future__ import annotations

import pandas as pd
import pytest

from gpudiag.diagnosis import diagnose
from gpudiag.fleets.prices import costliest, priced
from gpudiag.load import load_run

PERIOD_S = 10


def made(work: tuple[tuple[float, float], ...], hours: float) -> pd.DataFrame:
    """One GPU that holds memory throughout, and works at 90 % in these hours."""
    seconds = pd.Series(range(0, int(hours * 3600), PERIOD_S))
    busy = sum((seconds >= 3600 * a) & (seconds < 3600 * b) for a, b in work).astype(bool)
    return pd.DataFrame(
        {
            "time": pd.Timestamp("2026-03-02", tz="UTC") + pd.to_timedelta(seconds, unit="s"),
            "gpu": "0",
            "util_pct": busy.map({True: 90.0, False: 0.0}),
            "mem_used_mib": 8000.0,
            "mem_total_mib": 40960.0,
        }
    )


@pytest.mark.slow
def test_a_known_cost_is_not_raised_to_that_of_a_symptom() -> None:
    """Idle for 1 h before 2 h of work and for 9 h after it: the end cost 9 GPU-h, the low utilization more."""
    held = {one.rule: one for one in priced(diagnose(load_run(made(((1, 3),), 12))))}
    after, low = held["idle-after-work"], held["gpu-low-utilization"]
    assert low.caused_by == "idle-after-work" and (low.lost_gpu_h or 0) > 10
    assert after.lost_gpu_h == pytest.approx(9.0, abs=PERIOD_S / 3600)
    top = costliest(tuple(held.values()))
    assert top is not None and (top.rule, top.lost_gpu_h) == ("idle-after-work", after.lost_gpu_h)
