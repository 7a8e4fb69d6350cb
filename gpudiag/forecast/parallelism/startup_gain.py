"""What a shorter start-up would bring: bounds, and the same future with its start-ups shortened (METHODS 0, 10)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpudiag.forecast.document import StartupEntry
from gpudiag.forecast.estimate import NAN, Estimate
from gpudiag.forecast.parallelism.model import ThroughputModel
from gpudiag.forecast.parallelism.placement import Placement
from gpudiag.forecast.parallelism.spread import ratio_estimate
from gpudiag.plain_data import clean

UNKNOWN = Estimate()
NOT_SETTLED = "the log leaves open how long trials start up"


@dataclass(frozen=True)
class StartupGain:
    """``share_pct`` is F, the share of a trial's worker spent in start-up; ``alone_pct`` = F^k, the share of GPU time
    with nothing but start-ups when k trials per GPU start independently. ``most``: no shorter start-up brings more than
    min(1/(1-F), 1/u), as a factor, u at the lower end of its interval. ``halved`` and ``removed``: throughput over the
    present one.
    """

    share_pct: float = NAN
    alone_pct: float = NAN
    typical_s: float = NAN
    n_seen: int = 0
    most: float = NAN
    halved: Estimate = UNKNOWN
    removed: Estimate = UNKNOWN

    @property
    def document(self) -> StartupEntry:
        """As the document of a forecast holds it."""
        return StartupEntry(
            share_pct=clean(self.share_pct),
            share_of_gpu_time_alone_pct=clean(self.alone_pct),
            typical_s=clean(self.typical_s),
            n_seen=self.n_seen,
            most=clean(self.most),
            halved=self.halved,
            removed=self.removed,
        )


def startup_gain(model: ThroughputModel, placed: Placement, widening: float, reason: str) -> StartupGain:
    """Gains of the same workers on the same GPUs; ``reason`` says why there are bounds only, '' for a forecast.

    Where the log does not settle the start-up, only the idle time of the GPU bounds them: a start-up that utilization
    lets guess is for the model's use alone.
    """
    log = model.log
    share = log.startup_share(model.trials)
    used = log.least_busy_share(sum(placed), model.blocks)
    full = max(1.0, 1.0 / used if used > 0 else np.inf)
    if log.startup_how == "fitted":
        bounds = Estimate.bounds(1.0, full, "", NOT_SETTLED)
        return StartupGain(most=full, halved=bounds, removed=bounds)
    most = max(1.0, min(1.0 / (1.0 - share), full) if share < 1 else full)
    alone = np.mean([share**workers for workers in placed if workers])
    if reason:
        halved = Estimate.bounds(1.0, min(1.0 / (1.0 - share / 2), most), "", reason)
        removed = Estimate.bounds(1.0, most, "", reason)
    else:
        now, now_many = model.point(placed), model.bootstrap(placed)
        halved, removed = (
            ratio_estimate(
                model.point(placed, startup=scale), model.bootstrap(placed, startup=scale), now, now_many,
                widening, (1.0, min(1.0 / (1.0 - share * (1 - scale)), most)),
            )
            for scale in (0.5, 0.0)
        )  # fmt: skip
    typical = float(np.median(log.startup_s[model.trials]))
    return StartupGain(100 * share, 100 * float(alone), typical, log.n_startups, most, halved, removed)
