"""How many trials at once on a GPU to recommend, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from gpudiag.errors import in_words
from gpudiag.forecast.estimate import NAN, Estimate
from gpudiag.forecast.memory.net import NetGains, Restart

MOST_NET = "as most trials per day end well even with crashes at the upper end of their interval"
NOT_ONE = "not even the largest trial is sure to fit by itself, and what a crash costs is not known (give restart_min)"
NOT_SO_MANY = (
    "the largest trials are sure to fit up to {most} at once only, and what a crash costs is not known (give "
    "restart_min)"
)
WITHIN = "as the risk of an overflow in the study, if its trials are like those seen, stays at {risk} % or below"


@dataclass(frozen=True)
class Recommended:
    """``k`` trials at once on a GPU, NaN where none can be recommended; ``because`` says why."""

    k: float
    because: str


def recommend(
    table: pd.DataFrame,
    nets: dict[int, Estimate],
    restart: Restart,
    *,
    gains: NetGains,
    hard_fit: float,
    most_seen: int,
    risk_pct: float | None,
) -> Recommended:
    """The number of trials at once to run with: the greatest looked at that fits (up to ``hard_fit``) and ran, unless
    another surely ends more trials well; with ``risk_pct`` the greatest within that risk.
    """
    if risk_pct is not None:
        within = table.loc[table["study_risk_pct"] <= risk_pct, "k"]
        if len(within):
            return Recommended(float(within.max()), in_words(WITHIN, {"risk": risk_pct}))
        return Recommended(NAN, "no number of trials at once stays within the risk asked for")
    known = {k: net for k, net in nets.items() if not math.isnan(net.value)}
    safe_k = max((k for k in map(int, table["k"]) if k <= min(hard_fit, most_seen)), default=None)
    if safe_k is not None:
        safe = nets.get(safe_k)
        surely = {k: net for k, net in known.items() if safe is not None and net.low > safe.high}
        surely = surely or _surely_better(gains, safe_k, most_seen)
        if surely:
            return Recommended(float(max(surely, key=lambda k: surely[k].low)), MOST_NET)
        return Recommended(float(safe_k), "as the largest trials fit together")
    ran = {k: net for k, net in known.items() if k <= most_seen}
    if ran and restart.how != "unknown":
        return Recommended(float(max(ran, key=lambda k: ran[k].low)), MOST_NET)
    return Recommended(NAN, in_words(NOT_SO_MANY, {"most": int(hard_fit)}) if hard_fit >= 1 else NOT_ONE)


def _surely_better(gains: NetGains, safe_k: int, most_seen: int) -> dict[int, Estimate]:
    """By number at once, what was seen and surely ends more trials well than what fits: over those of now."""
    if safe_k not in gains.by_k:
        return {}
    ran = {k: gain for k, gain in gains.by_k.items() if k <= most_seen} | {gains.each: Estimate(1.0, 1.0, 1.0)}
    return {k: gain for k, gain in ran.items() if gain.low > gains.by_k[safe_k].high}
