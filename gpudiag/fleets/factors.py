"""What else changed within a week of a step: driver, GPU model, commit, image, framework."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from gpudiag.report.fleet.changes import ChangedFactor, ChangeKind
from gpudiag.report.fleet.document import RUNS, RunRow

KNOWN = 0.5
"""Share of the runs before and after that must state a factor, else it is not recorded."""
MOVED = 0.5
"""Share of the runs whose factor changed, from which on it did."""
NEARBY = 1
"""Weeks between a step and the change of a factor that is said to be at the same time."""
HARDWARE = (("driver", "driver"), ("gpu_model", "GPU model"))
METHOD = (("commit", "commit"), ("image", "image"), ("framework", "framework"))


def factors_at(weeks: Sequence[Sequence[RunRow]], at: int) -> tuple[list[ChangedFactor], list[str], list[ChangeKind]]:
    """What changed within a week of the step, what is not recorded, and of which kinds the former is."""
    factors, missing, kinds = [], [], list[ChangeKind]()
    sorts: tuple[tuple[ChangeKind, tuple[tuple[str, str], ...]], ...] = (("hardware", HARDWARE), ("method", METHOD))
    for kind, names in sorts:
        for name, words in names:
            values = [[str(getattr(row, name)) for row in week if row.status in RUNS] for week in weeks]
            if not (_is_known(values[:at]) and _is_known(values[at:])):
                missing.append(words)
            elif (made := _factor(words, values, at)) is not None:
                factors.append(made)
                kinds += [kind] if kind not in kinds else []
    return factors, missing, kinds


def _is_known(weeks: Sequence[Sequence[str]]) -> bool:
    held = [value for week in weeks for value in week]
    return bool(held) and sum(map(bool, held)) >= KNOWN * len(held)


def _factor(words: str, weeks: Sequence[Sequence[str]], at: int) -> ChangedFactor | None:
    """The factor if it changed for at least MOVED of the runs, and most clearly within NEARBY weeks of the step."""
    shares = [_shares(week) for week in weeks]
    early, late = _mean([one for one in shares[:at] if one]), _mean([one for one in shares[at:] if one])
    gained = {value for value in late if late[value] > early.get(value, 0.0)}
    if sum(late[value] - early.get(value, 0.0) for value in gained) < MOVED:
        return None
    rising = [(place, sum(one.get(value, 0.0) for value in gained)) for place, one in enumerate(shares) if one]
    if abs(_clearest_place(rising) - at) > NEARBY:
        return None
    leading = [max(one, key=lambda value: (one[value], value)) for one in shares if one]
    often = sum(a != b for a, b in pairwise(leading)) > (len(leading) - 1) / 2
    ends = (shares[at - 1], shares[at]) if often and shares[at - 1] and shares[at] else (early, late)
    before, after = (_leading(one) for one in ends)
    return ChangedFactor(words, before, after, often) if before != after else None


def _shares(values: Sequence[str]) -> dict[str, float]:
    held = Counter(value for value in values if value)
    return {value: n / held.total() for value, n in held.items()}


def _mean(weeks: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = {name for one in weeks for name in one}
    return {name: math.fsum(one.get(name, 0.0) for one in weeks) / len(weeks) for name in names}


def _clearest_place(values: Sequence[tuple[int, float]]) -> int:
    """The week before which the mean of (week, value) changed most, in the sense of least squares."""
    total, n = math.fsum(value for _, value in values), len(values)
    best, place, sum_before = -1.0, -NEARBY - 1, 0.0
    for k in range(1, n):
        sum_before += values[k - 1][1]
        size = (sum_before / k - (total - sum_before) / (n - k)) ** 2 * k * (n - k) / n
        if size > best + 1e-12:
            best, place = size, values[k][0]
    return place


def _leading(shares: Mapping[str, float]) -> str:
    value = max(shares, key=lambda name: (shares[name], name))
    return value if shares[value] >= 0.9 else f"mostly {value}"
