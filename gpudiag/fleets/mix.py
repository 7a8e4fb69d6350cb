"""The part of a difference that another mix of projects or users makes (Kitagawa, JASA 50, 1955)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from gpudiag.fleets.quantities import Parts, Quantity
from gpudiag.report.fleet.changes import MixPart
from gpudiag.report.fleet.document import RunRow, no_run

LARGE, SOME = 2 / 3, 1 / 3
"""Parts of a difference: from ``SOME`` on the mix is named; from ``LARGE`` on that of projects says all."""
UNKNOWN = "unknown"


def mixes(quantity: Quantity, project: str, early: Sequence[RunRow], late: Sequence[RunRow]) -> list[MixPart]:
    """The part that other shares of projects make, or else of users."""
    names = {"projects": lambda row: row.project or no_run(row), "users": lambda row: row.user or no_run(row)}
    out: list[MixPart] = []
    for by, key in names.items():
        if (by == "projects" and project) or any(part.share_pct >= 100 * LARGE for part in out):
            continue
        part = mix_part(quantity.of, key, early, late)
        if part is not None and part >= SOME:
            out.append(MixPart(by, 100 * part))
    return out


def mix_part(
    of: Callable[[RunRow], Parts | None], key: Callable[[RunRow], str], early: Sequence[RunRow], late: Sequence[RunRow]
) -> float | None:
    """The part of the difference of a ratio that the groups' shares of its denominator make: the sum over groups of the
    difference of the shares times the mean of the group's own ratio. A group that is only on one side has changed its
    share alone. None where a group has no ratio (GPU time and nothing completed), or where there is one group alone.
    """
    sides = [_by_group(of, key, rows) for rows in (early, late)]
    names = {name for side in sides for name in side}
    totals = [math.fsum(below for _, below in side.values()) for side in sides]
    empty = any(above and not below for side in sides for above, below in side.values())
    if len(names) < 2 or empty or not all(totals):
        return None
    whole = mixed = 0.0
    for name in names:
        shares = [side.get(name, (0.0, 0.0))[1] / total for side, total in zip(sides, totals, strict=True)]
        ratios = [above / below for side in sides for above, below in [side.get(name, (0.0, 0.0))] if below]
        if not ratios:
            continue
        whole += shares[1] * ratios[-1] - shares[0] * ratios[0]
        mixed += (shares[1] - shares[0]) * (ratios[0] + ratios[-1]) / 2
    return mixed / whole if whole else None


def _by_group(
    of: Callable[[RunRow], Parts | None], key: Callable[[RunRow], str], rows: Iterable[RunRow]
) -> dict[str, Parts]:
    """Numerator and denominator of each group."""
    held: dict[str, list[Parts]] = {}
    for row in rows:
        if (part := of(row)) is not None:
            held.setdefault(key(row) or UNKNOWN, []).append(part)
    return {name: (math.fsum(a for a, _ in mine), math.fsum(b for _, b in mine)) for name, mine in held.items()}
