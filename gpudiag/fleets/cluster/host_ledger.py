"""The time of all GPUs of a host, at the few moments at which its owner may change: small, whatever it came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gpudiag.fleets.cluster.gpu_lives import Stretch, Window, lives_of, slots_of, stretches_of, window_of
from gpudiag.fleets.cluster.gpu_record import WORK, record_of, sessions_of, spans_of
from gpudiag.fleets.recordings import NOTHING, Sought, iso, parts_of
from gpudiag.measures._time.microseconds import median_of_steps
from gpudiag.readers._datasets.host_samples import HostSamples, UtilSamples
from gpudiag.report.fleet.document import Recording
from gpudiag.schema import IDLE_PCT
from gpudiag.units import SECOND_US

HOUR_US = 3600 * SECOND_US
WEEK_US = 7 * 24 * HOUR_US
MONDAY_US = 4 * 24 * HOUR_US
"""The first Monday after 1970 began."""
MOST_HOURS = 62 * 24
"""Of a longer record the map has days."""


@dataclass(frozen=True)
class GpuTotals:
    """One GPU over all the time in which it was observed. ``never_used``: no sample shows work."""

    host: str
    gpu: str
    uuid: str
    model: str
    observed_us: int
    mean_pct: float
    never_used: bool


@dataclass(frozen=True)
class HostLedger:
    """``times_us``: moments, in order; ``amounts``: of each moment and GPU what lies before it (see GpuRecord).
    ``windows``: of each session the time from the first to the last observed instant of any GPU; ``stretches``: the
    same, cut where the GPUs of the host change. ``period_us``: the longest median step between samples of a GPU.

    ``slots``: of each GPU the slot it was in, one after the other where it was replaced; ``slot_names``: of each slot.
    ``bins_us``: left borders of the columns of the map, ``mean_pct`` and ``seen_us`` by GPU and column.

    ``recordings``: what runs beside the data set recorded as well.
    """

    host: str
    gpus: tuple[GpuTotals, ...]
    slots: tuple[int, ...]
    slot_names: tuple[str, ...]
    windows: tuple[Window, ...]
    stretches: tuple[Stretch, ...]
    period_us: int
    times_us: np.ndarray
    amounts: np.ndarray
    bin_us: int
    bins_us: np.ndarray
    work: np.ndarray
    seen_us: np.ndarray
    recordings: tuple[Recording, ...] = ()
    begins_us: Mapping[int, int] = field(default_factory=dict)
    """By start of a window: its first sample, behind half of a cell."""

    def begun_us(self, low: int, high: int) -> int:
        """When what lies between two moments began: with the first sample, where half of a cell lies before it."""
        return min(self.begins_us.get(low, low), high)

    @property
    def labels(self) -> list[str]:
        """The GPUs."""
        return [gpu.gpu for gpu in self.gpus]


def host_ledger(samples: HostSamples, moments_us: Sequence[int], beside: Sought = NOTHING) -> HostLedger:
    """The ledger of a host at these moments, and at the borders of its sessions."""
    sessions = sessions_of(samples.gpus)
    spans = [spans_of(gpu, sessions) for gpu in samples.gpus]
    windows = tuple(window for of_session in zip(*spans, strict=True) if (window := window_of(of_session)) is not None)
    lives = lives_of(samples.gpus, spans)
    stretches = tuple(stretches_of(samples.gpus, lives, windows))
    edges_us = [edge for one in stretches for edge in (one.start_us, one.end_us)]
    times = np.unique(np.array([*edges_us, *mondays(windows), *moments_us], np.int64))
    bin_us, bins = _bins(windows)
    edges = np.append(bins, bins[-1:] + bin_us)
    n = len(samples.gpus)
    amounts, work, seen = np.zeros((len(times), n, 4)), np.zeros((n, len(bins))), np.zeros((n, len(bins)))
    totals = []
    for at, gpu in enumerate(samples.gpus):
        record = record_of(gpu, sessions, lives[at])  # one at a time: it is as large as the samples
        both = record.amounts_before(np.concatenate([times, edges]))
        amounts[:, at] = both[: len(times)]
        columns = np.diff(both[len(times) :], axis=0)
        work[at], seen[at] = columns[:, WORK], columns[:, :WORK].sum(axis=1)
        observed = int((record.end_us - record.start_us).sum())
        mean = float(work[at].sum() / observed) if observed else float("nan")
        unused = bool(observed) and not (gpu.util_pct >= IDLE_PCT).any()
        totals.append(GpuTotals(samples.host, gpu.label, gpu.uuid, gpu.model, observed, mean, unused))
    periods = [int(median_of_steps(np.diff(gpu.time_us))) for gpu in samples.gpus if len(gpu.time_us) > 1]
    period = max(periods, default=0)
    slots = slots_of(samples.gpus)
    recorded = [one for gpu, own in zip(samples.gpus, spans, strict=True) for one in _sought(gpu, own, beside)]
    return HostLedger(
        samples.host, tuple(totals), *slots, windows, stretches, period, times, amounts, bin_us, bins, work, seen,
        tuple(recorded),
        begins_us={
            window[0]: first
            for (first, _), of_session in zip(sessions, zip(*spans, strict=True), strict=True)
            if (window := window_of(of_session)) is not None
        },
    )  # fmt: skip


def _sought(gpu: UtilSamples, spans: Sequence[Window | None], beside: Sought) -> Iterator[Recording]:
    """Of a GPU that a run recorded as well: each session, or the parts of its samples that both have."""
    known = [span for span in spans if span is not None]
    if gpu.uuid in beside.uuids:
        yield from (Recording(gpu.uuid, iso(low), iso(high)) for low, high in known)
    elif known and beside.parts:
        parts = tuple(part for _, part in parts_of(gpu.time_us, gpu.util_pct) if part in beside.parts)
        if parts:
            yield Recording("", iso(known[0][0]), iso(known[-1][1]), parts)


def mondays(windows: Sequence[Window]) -> list[int]:
    """Where a week (UTC) begins within the windows: time of nobody is told week by week."""
    out: set[int] = set()
    for low, high in windows:
        out |= set(range(-(-(low - MONDAY_US) // WEEK_US) * WEEK_US + MONDAY_US, high, WEEK_US))
    return sorted(out)


def _bins(windows: tuple[Window, ...]) -> tuple[int, np.ndarray]:
    """Whole hours, or days where there are too many of them."""
    if not windows:
        return HOUR_US, np.zeros(0, np.int64)
    low, high = windows[0][0], windows[-1][1]
    width = HOUR_US if (high - low) // HOUR_US < MOST_HOURS else 24 * HOUR_US
    return width, np.arange(low // width * width, high, width)
