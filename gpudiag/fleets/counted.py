"""Each run once, each GPU-second once, and each trial once: what was counted already is marked."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from gpudiag.fleets.recordings import GpuTime, at_other_times, keys_of, recorded_s, within_s
from gpudiag.fleets.row import (
    Beside,
    counted_already,
    observed_elsewhere,
    without_gpu_time,
    without_outcomes,
    without_trials,
)  # fmt: skip
from gpudiag.report.fleet.document import Recording, RunRow

ZONES_APART, MOST_APART = timedelta(minutes=15), timedelta(hours=26)
"""Offsets from UTC are whole quarters of an hour, from -12 to +14 h (the zone database)."""
MEET = 0.01
"""Recordings with less of their time in common count both: a sampler may end a little after the next one began."""
MUCH_MORE = 1.5
"""A recording that is so much longer than those of the runs in it is the one that counts (a choice: a log of the whole
host beside that of one run)."""
MOSTLY = 0.5
"""Of its trials: a row with fewer in common with another one is a study that went on by itself, and counts."""
DATA_SET = "the data set of the cluster"


def counted_once(rows: Iterable[RunRow], of_cluster: Iterable[Recording] = ()) -> tuple[RunRow, ...]:
    """The rows, with those marked whose inputs, GPU time, or trials count with another one: the one with most trials,
    then with most GPU time, then the first; GPU time before all of them with telemetry of a cluster (``of_cluster``).
    """
    held = list(rows)
    checked = [at for at, row in enumerate(held) if row.status == "diagnosed"]
    best = sorted(checked, key=lambda at: (_poor(held[at]), at))
    first: dict[str, RunRow] = {}
    for at in best:
        other = first.setdefault(held[at].inputs, held[at]) if held[at].inputs else held[at]
        if other is not held[at]:
            held[at] = counted_already(held[at], other)
    cluster = GpuTime()
    cluster.add(of_cluster)
    kept = _Kept()
    for at in best:
        row = held[at]
        if row.status != "diagnosed" or not row.gpu_s:
            continue
        share = cluster.share(row.recordings)
        if share > MEET:
            held[at] = without_gpu_time(row, DATA_SET, share=share, beside="cluster")
        else:
            kept.take(held, at)
    _trials_once(held, best)
    return tuple(held)


def _trials_once(rows: list[RunRow], order: Iterable[int]) -> None:
    """Mark the rows of which an earlier one, in this order of their numbers, has the trials: workers of one study that
    each have a copy of it, or its name, hold all of its trials. Workers that recorded at the same time each have a part
    of what these took. Of a study that went on later, the later copy has all of it, unobserved.
    """
    first: dict[str, str] = {}
    held: dict[str, list[int]] = {}
    for at in order:
        row = rows[at]
        if row.status != "diagnosed":
            continue
        known = [first[one] for one in row.trials if one in first]
        if known and len(known) >= MOSTLY * len(row.trials):
            rows[at] = without_trials(row, known[0], share=len(known) / len(row.trials))
            for other in sorted({other for one in row.trials for other in held.get(one, ())}):
                _observed_once(rows, at, other)
        else:
            first.update(dict.fromkeys(row.trials, row.run))
        for one in row.trials:
            held.setdefault(one, []).append(at)


def _observed_once(rows: list[RunRow], at: int, other: int) -> None:
    """Of two rows with the same trials, recorded one after the other: each has the time of the other as unobserved."""
    a, b = rows[at], rows[other]
    if not (a.gpu_s and b.gpu_s and a.recordings and b.recordings and at_other_times(a.recordings, b.recordings)):
        return
    for low, high in ((at, other), (other, at)):
        if gpu_s := _unobserved_s(rows[high], rows[low]):
            rows[high] = observed_elsewhere(rows[high], gpu_s, rows[low].run)
    if b.n_trials:
        rows[at] = without_outcomes(rows[at])


def _unobserved_s(row: RunRow, by: RunRow) -> float:
    """Unobserved GPU time of a row that another one observed, with no more GPUs than the row has."""
    if not (row.start and row.end):
        return 0.0
    whole_s, inside_s = within_s(by.recordings, *_span(row))
    seen_s = (by.gpu_s or 0.0) - (by.unobserved_gpu_s or 0.0)
    fewer = min((row.n_gpus or 1) / (by.n_gpus or 1), 1.0)
    return min(row.unobserved_gpu_s or 0.0, seen_s * fewer * inside_s / whole_s) if whole_s else 0.0


def _poor(row: RunRow) -> tuple[float, ...]:
    """The least for the row that says most."""
    known = sum(value not in (None, "", ()) for value in vars(row).values())
    return -(row.n_trials or 0), -(row.gpu_s or 0.0), -known


class _Kept:
    """The rows whose GPU time counts, by what they recorded."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[str, str], list[int]] = {}

    def take(self, rows: list[RunRow], at: int) -> None:
        """Keep the row of this number, or mark it, or mark those that it holds."""
        row = rows[at]
        keys = {("file", one) for one in row.telemetry} | set(keys_of(row.recordings))
        near = sorted({one for key in keys for one in self._by_key.get(key, ()) if rows[one].gpu_s})
        met = [(one, share) for one in near if (share := _in_common(row, rows[one])) > MEET]
        if met and _recorded_s(row) <= MUCH_MORE * sum(_recorded_s(rows[one]) for one, _ in met):
            most, _ = max(met, key=lambda pair: pair[1])
            share = min(sum(share for _, share in met), 1.0)
            rows[at] = without_gpu_time(row, rows[most].run, share=share, beside=_kind(rows[most]))
            return
        for one, _ in met:
            share = _in_common(rows[one], row)
            rows[one] = without_gpu_time(rows[one], row.run, share=share, beside=_kind(row))
        for key in keys:
            self._by_key.setdefault(key, []).append(at)


def _kind(row: RunRow) -> Beside:
    return "trials" if row.n_trials else "telemetry"


def _recorded_s(row: RunRow) -> float:
    """How much GPU time there is in its telemetry, of which a run with trials may account for a part."""
    return sum(recorded_s(one) for one in row.recordings) or row.gpu_s or 0.0


def _in_common(row: RunRow, other: RunRow) -> float:
    """The part of the telemetry of a row that another one has as well; all of it where its files are files of that."""
    if row.telemetry and set(row.telemetry) <= set(other.telemetry) and _overlap(row, other):
        return 1.0
    counted = GpuTime()
    counted.add(other.recordings)
    return counted.share(row.recordings)


def _overlap(a: RunRow, b: RunRow) -> bool:
    """Whether two runs with the same telemetry account for some of the same time."""
    if not (a.start and a.end and b.start and b.end):
        return True
    return (a.start < b.end and b.start < a.end) or _read_in_two_zones(a, b)


def _read_in_two_zones(a: RunRow, b: RunRow) -> bool:
    """Whether two places hold the same recording, apart by what two time zones are: one of them states its zone."""
    (start, end), (from_, to) = _span(a), _span(b)
    apart = from_ - start
    return a.source != b.source and apart == to - end and abs(apart) <= MOST_APART and not apart % ZONES_APART


def _span(row: RunRow) -> tuple[datetime, datetime]:
    return datetime.fromisoformat(row.start or ""), datetime.fromisoformat(row.end or "")
