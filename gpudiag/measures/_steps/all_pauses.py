"""The pauses of all trainings that a profile tells of: where they lie, and what they went into."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.measures._steps.every_steps import every_n_steps
from gpudiag.measures._steps.paused_for import OTHER, Part, pause_parts


@dataclass(frozen=True)
class AllPauses:
    """``rows``: intervals of courses with a pause, the longest first. ``went``: the parts of each."""

    rows: pd.DataFrame
    went: tuple[tuple[Part, ...], ...]

    @classmethod
    def of(cls, whole: pd.DataFrame) -> AllPauses:
        """The pauses in these intervals."""
        rows = whole[whole["paused_s"] > 0].sort_values("paused_s", ascending=False, kind="stable")
        return cls(rows, tuple(pause_parts(row) for row in rows.to_dict("records")))

    @property
    def table(self) -> pd.DataFrame:
        """As StepPause has them."""
        columns = ["training", "start", "end", "done", "behind", "paused_s", "since"]
        table = self.rows[columns].rename(columns={"done": "after_step"})
        return table.astype({"after_step": "int64"}).reset_index(drop=True)

    @property
    def parts(self) -> list[Part]:
        """Of all pauses."""
        return [part for of_pause in self.went for part in of_pause]

    def likeliest_s(self, work: str) -> float:
        """Seconds that most likely went into this work."""
        return float(sum(part.s for part in self.parts if part.work == work))

    @property
    def unnamed_s(self) -> np.ndarray:
        """Seconds of each pause of which the log tells nothing."""
        return np.array([sum(part.s for part in of_pause if part.work == OTHER) for of_pause in self.went], float)

    def n_unnamed_every(self, whole: pd.DataFrame) -> float:
        """Steps from one pause with such seconds to the next, where they come at multiples of it; else NaN."""
        return every_n_steps(whole, self.rows[self.unnamed_s > 0])

    @property
    def checkpoint_s(self) -> float:
        """Median over pauses whose time for a checkpoint is stated, or with no other work in the log; NaN without."""
        saves = [(part, len(parts) == 1) for parts in self.went for part in parts if part.work == "checkpoint"]
        known = [part.s for part, alone in saves if alone or part.low_s > 0]
        return float(np.median(known)) if known else math.nan


def checkpoint_every_s(told: Sequence[pd.DataFrame]) -> float:
    """Median time from one pause with a checkpoint to the next within an attempt; NaN where there are no two."""
    between: list[float] = []
    for part in told:
        saves = part[
            part["paused_s"].gt(0) & part["resumed"].eq(0) & part["since"].str.contains("checkpoint", regex=False)
        ]
        for _, attempt in saves.groupby("attempt"):
            between += attempt["end"].diff().dt.total_seconds().tolist()
    known = [seconds for seconds in between if seconds > 0]
    return float(np.median(known)) if known else math.nan
