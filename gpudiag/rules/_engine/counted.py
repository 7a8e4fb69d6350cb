"""What waits cost that are counted in samples: between which values, as samples may meet a wait or miss it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpudiag.rules._engine.templates import Given
from gpudiag.values import Value

if TYPE_CHECKING:
    import pandas as pd

ROUGH_RATIO = 0.1
"""From here on how far off a cost may be is said (a default without a published source)."""
UNKNOWN_RATIO = 3.0
"""A cost that may be so many times what it is at least is unknown."""
HALF_Z = 1.96 / 2
LOOKS_BACK_S = 1.0
"""A sample shows up to so long before it (nvml.h): of a wait so much may lie in samples of work."""
RANGE = Given("is_rough", " It may be {least_pct} to {most_pct}, as samples are {sampling_period_s} apart.")


@dataclass(frozen=True)
class Cost:
    """By GPU the share of the work that waits take, and between what it is (95 % interval); and what all cost together:
    ``lost_gpu_h`` is None, and ``held_gpu_h`` the most, where that is unknown.
    """

    pct: pd.Series
    least_pct: pd.Series
    most_pct: pd.Series
    lost_gpu_h: float | None
    held_gpu_h: float | None

    @classmethod
    def of(
        cls, work_s: pd.Series, lost_s: pd.Series, times: pd.Series, period_s: float, *, unseen_s: float = 0.0
    ) -> Cost:
        """``times``: how often a sample met a wait by chance, once for each that samples show. That number is Poisson's
        at most, and these squares are its 95 % interval (Anscombe). ``unseen_s``: what no sample shows of each.
        """
        least = (times**0.5 - HALF_Z).clip(lower=0) ** 2
        most = ((times + 1) ** 0.5 + HALF_Z) ** 2
        least_s = (lost_s - (times - least) * period_s).clip(lower=0)
        most_s = (lost_s + (most - times) * period_s + times * unseen_s).clip(upper=work_s)
        known = not most_s.sum(skipna=False) >= UNKNOWN_RATIO * least_s.sum(skipna=False)  # NaN without a period
        hours = float((lost_s if known else most_s).sum() / 3600)
        pct, least_pct, most_pct = (100 * seconds / work_s for seconds in (lost_s, least_s, most_s))
        return cls(pct, least_pct, most_pct, hours if known else None, None if known else hours)

    def range_of(self, gpu: object) -> dict[str, Value]:
        """What the sentence says of one GPU, beside the sampling period."""
        least_pct, most_pct = float(self.least_pct[gpu]), float(self.most_pct[gpu])
        is_rough = most_pct - least_pct > 2 * ROUGH_RATIO * float(self.pct[gpu])
        return {"is_rough": is_rough, "least_pct": least_pct, "most_pct": most_pct}
