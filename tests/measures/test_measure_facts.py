"""Facts of a profile: each with the unit of its value."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from gpudiag.measures.base import facts


@dataclass(frozen=True)
class Profile:
    n: int = 3
    mean_w: float = float("nan")
    method: str = "given"
    has_trials: bool = True
    per_gpu: pd.DataFrame = field(
        default_factory=lambda: pd.DataFrame(
            {"start": [pd.Timestamp("2026-03-01", tz="UTC"), pd.NaT], "busy_pct": [50.0, 60.0]}, index=["0", "1"]
        )
    )


def test_words_and_timestamps_are_not_numbers_of_unit_one() -> None:
    assert facts(Profile()) == {
        "n": {"value": 3, "unit": "1"},
        "mean_w": {"value": None, "unit": "W"},
        "method": {"value": "given", "unit": ""},
        "has_trials": {"value": True, "unit": ""},
        "gpu.0.start": {"value": "2026-03-01T00:00:00+00:00", "unit": "UTC"},
        "gpu.0.busy_pct": {"value": 50.0, "unit": "%"},
        "gpu.1.start": {"value": None, "unit": "UTC"},
        "gpu.1.busy_pct": {"value": 60.0, "unit": "%"},
    }
