"""Two runs that prune apart: no time per item is of the same unit of result in both."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpudiag.comparison.power import ALPHA
from gpudiag.comparison.quantity import EQUIVALENT, HIGHER, LOWER, PRICE, Quantity
from gpudiag.statement import Statement, joined

BY_ITEM = ("time_per_item", "throughput", "time_per_complete")
"""Times whose unit holds more pruned trials in one run."""
APART = Statement("The runs prune other shares of their trials, which moves this by itself.")


def prunes_apart(by_name: Mapping[str, Quantity]) -> bool:
    """True if the shares that are pruned differ by more than chance: one pruned trial of sixty is no pruner."""
    share = by_name.get("pruning")
    return share is not None and share.p < ALPHA


def as_prices(found: Sequence[Quantity]) -> list[Quantity]:
    """Times per item of runs that prune apart as higher and lower ones: neither is faster or slower for the same."""
    if not prunes_apart({quantity.name: quantity for quantity in found}):
        return list(found)
    return [replace(q, kind=PRICE, note=joined(q.note, APART)) if q.name in BY_ITEM else q for q in found]


def agreed(configuration: Quantity, complete: Quantity) -> Quantity | None:
    """The nearer to 1 of the times per configuration and per COMPLETE item where both say the same.

    More pruning shortens the first and lengthens the second, so both move one way only by what else changed.
    """
    if configuration.verdict != complete.verdict or configuration.verdict not in (HIGHER, LOWER, EQUIVALENT):
        return None
    return min(configuration, complete, key=lambda quantity: abs(math.log(quantity.ratio)))


def shows_more(one: Quantity, other: Quantity | None) -> bool:
    """Whether pairs of this size show a smaller difference of the one than of the other."""
    return other is None or (not math.isnan(one.detectable) and not other.detectable <= one.detectable)
