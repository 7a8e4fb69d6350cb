"""What two searches took until the same best value."""

from __future__ import annotations

import math

import pandas as pd

from gpudiag.comparison._quantities.levels import ONE_EACH
from gpudiag.comparison.match import Match
from gpudiag.comparison.quantity import TOTAL, Quantity, make
from gpudiag.comparison.side import Side
from gpudiag.statement import Statement, joined

REACHED = "Until the best value was {best}, which both reached; the final ones are {a} and {b}."


def time_to_best(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
    """Time from the start of a study until its best value was as good as the poorer of the two final ones."""
    reached = [_progress(side) for side in (baseline, experiment)]
    if reached[0] is None or reached[1] is None or reached[0][1] != reached[1][1]:
        return []
    sign = 1.0 if reached[0][1] == "MINIMIZE" else -1.0
    target = max(sign * float(part["best"].iloc[-1]) for part, _ in (reached[0], reached[1]))
    rows = [part[sign * part["best"] <= target + 1e-12].iloc[0] for part, _ in (reached[0], reached[1])]
    ends = [float(part["best"].iloc[-1]) for part, _ in (reached[0], reached[1])]
    note = joined(Statement(REACHED, best=sign * target, a=ends[0], b=ends[1]), ONE_EACH)
    out = [
        make(
            "time_to_best",
            "Time to the same best value",
            "s",
            TOTAL,
            [float(row["after_s"]) for row in rows],
            note=note,
            tested=False,
        )
    ]
    if all(math.isfinite(float(row["gpu_h"])) for row in rows):
        out.append(
            make(
                "gpu_time_to_best",
                "GPU time to the same best value",
                "GPU-h",
                TOTAL,
                [float(row["gpu_h"]) for row in rows],
                note=note,
                tested=False,
            )
        )
    return out


def _progress(side: Side) -> tuple[pd.DataFrame, str] | None:
    """Steps of the best value of the run's only study with seconds since its start, and its direction."""
    costs, studies = side.get("costs"), side.run.studies.drop_duplicates("study")
    if costs is None or costs.progress.empty or side.run.trials["study"].nunique() != 1:
        return None
    direction = studies.loc[studies["study"] == side.run.trials["study"].iloc[0], "directions"]
    if not len(direction) or direction.iloc[0] not in ("MINIMIZE", "MAXIMIZE"):
        return None
    after = (costs.progress["at"] - side.items["start"].min()).dt.total_seconds()
    return costs.progress.assign(after_s=after), str(direction.iloc[0])
