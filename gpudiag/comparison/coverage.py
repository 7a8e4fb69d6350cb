"""Whether the telemetry belongs to the job (check 5): it covers it, and not much else."""

from __future__ import annotations

import math

from gpudiag.comparison.check import FAIL, PASS, UNKNOWN, GateCheck, worst
from gpudiag.comparison.consistency import needed_util_pct
from gpudiag.comparison.differences import pollers_agree
from gpudiag.comparison.side import Side
from gpudiag.report.format import duration, share

LEAST_COVER_PCT = 90.0
MOST_OUTSIDE_PCT = 10.0
"""METHODS 7, check 5."""


def telemetry_covers_job(baseline: Side, experiment: Side) -> GateCheck:
    """5. Overlap of 90 % or more and less than 10 % outside, on both sides; and nothing that needs over 100 %."""
    found = [finding(side) for side in (baseline, experiment)]
    agree, why = pollers_agree(baseline, experiment)
    if agree is False:
        found.append((PASS, f"{why} Peaks of different pollers are not comparable; means are."))
    return worst("telemetry-covers-job", found, "")


def finding(side: Side) -> tuple[str, str]:
    """How far the telemetry of one run belongs to its job: status and sentence."""
    return side.once("coverage", lambda: _finding(side))


def _finding(side: Side) -> tuple[str, str]:
    sampling = side.get("sampling")
    if sampling is None:
        return UNKNOWN, f"{side.name} has no GPU telemetry."
    if side.run.trials.empty:
        return UNKNOWN, f"{side.name} has no trials or tasks that its telemetry could cover."
    if side.window is None:
        return UNKNOWN, f"In {side.name} the clocks of telemetry and tasks cannot be joined."
    cover, outside = float(sampling.coverage_pct), max(float(sampling.outside_pct), 0.0)
    job = duration(side.wall_s) if math.isfinite(side.wall_s) else "of unknown length"
    text = (
        f"Telemetry of {side.name} covers {share(cover, exact=True)} of the job ({job}); "
        f"{share(outside, exact=True)} of it lies outside"
    )
    needed = needed_util_pct(side)
    if cover < LEAST_COVER_PCT or math.isnan(cover):
        return FAIL, f"{text}: its means are those of a part."
    if needed is not None and needed[1] > 100:
        return FAIL, (
            f"{text}. GPU {needed[0]} averaged {share(needed[2], exact=True)} over all of it, for which the job "
            f"alone would have needed {share(needed[1])}: it belongs to something else."
        )
    if outside >= MOST_OUTSIDE_PCT:
        return FAIL, f"{text}: means of the whole log are not the job's."
    return PASS, f"{text}."


def usable(side: Side) -> bool:
    """Whether means over the job's own time are the job's: it is covered, and what lies outside was not busy."""
    status, _ = finding(side)
    if status == PASS:
        return True
    sampling, needed = side.get("sampling"), needed_util_pct(side)
    if sampling is None or side.window is None:
        return side.run.trials.empty and sampling is not None
    return bool(sampling.coverage_pct >= LEAST_COVER_PCT) and not (needed is not None and needed[1] > 100)
