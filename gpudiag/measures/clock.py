"""How the clock of the trials stands to the clock of the telemetry, as established when the run was loaded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.measures.base import GIVE_TRIALS, RECORD_GPU, Profile, need_columns
from gpudiag.run import Run


@dataclass(frozen=True, eq=False, repr=False)
class ClockProfile(Profile):
    """``candidates``: offset_s, fit (correlation of telemetry and trials at that offset), in order of the offset; empty
    where nothing was compared. Trials + ``offset_s`` = telemetry; ``applied_s`` is what was added to the stamps of
    the trials. ``confidence``: strong, weak, assumed or undetermined; ``method``: given, utc, correlation, none or
    not examined; ``evidence`` in words. ``joined`` is False where trials and telemetry share no time. ``parts``: study,
    first_trial, offset_s where a study changes its clock on the way. ``notes``: note: what else is odd.
    """

    candidates: pd.DataFrame
    parts: pd.DataFrame
    notes: pd.DataFrame
    offset_s: float
    applied_s: float
    confidence: str
    method: str
    evidence: str
    joined: bool


def measure_clock(run: Run) -> ClockProfile:
    """The record of the clock. Needs trials with a start and telemetry."""
    need_columns(run.trials, ("start",), "trials table", GIVE_TRIALS)
    need_columns(run.gpu, ("time",), "GPU telemetry", RECORD_GPU)
    clock = run.info.clock
    candidates = np.array(clock.candidates, float).reshape(-1, 2)
    return ClockProfile(
        candidates=pd.DataFrame(candidates, columns=["offset_s", "fit"]),
        parts=pd.DataFrame(clock.parts, columns=["study", "first_trial", "offset_s"]),
        notes=pd.DataFrame({"note": list(clock.notes)}),
        offset_s=clock.offset_s,
        applied_s=clock.applied_s,
        confidence=clock.confidence,
        method=clock.method,
        evidence=clock.evidence,
        joined=clock.joined,
    )
