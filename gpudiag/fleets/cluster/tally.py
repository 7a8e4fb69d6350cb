"""GPU time added up for one row of a fleet: whole microseconds, so that rows add up to all of it exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from gpudiag.fleets.cluster.gpu_record import BUSY, IDLE, LOW, WORK
from gpudiag.fleets.cluster.host_ledger import HostLedger
from gpudiag.report.fleet.document import CELLS
from gpudiag.units import SECOND_US

CELL_OF = {BUSY: "busy", LOW: "busy_low", IDLE: "idle_no_trial"}
"""Categories of a run without trials, by amount; what is not observed is the rest."""


@dataclass
class Tally:
    """``amounts`` of GpuRecord, and ``unobserved_us``; ``per_gpu``: work, observed and all time by host and number of
    the GPU, so that one in place of another is no further GPU.

    ``all_held``: surely no part of it lay with nobody; ``some_free``: some surely did.
    """

    amounts: np.ndarray = field(default_factory=lambda: np.zeros(4))
    unobserved_us: int = 0
    start_us: int | None = None
    end_us: int | None = None
    all_held: bool = True
    some_free: bool = False
    per_gpu: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    models: set[str] = field(default_factory=set)

    def add(self, ledger: HostLedger, low: int, high: int, gpus: Mapping[str, str]) -> None:
        """The time of these GPUs of a host, each with its number, between two of its moments."""
        at = {gpu: place for place, gpu in enumerate(ledger.labels)}
        first, last = np.searchsorted(ledger.times_us, [low, high])
        both = ledger.amounts[last] - ledger.amounts[first]
        for gpu, number in gpus.items():
            own = both[at[gpu]]
            observed = round(own[:WORK].sum())
            self.amounts += own
            self.unobserved_us += high - low - observed
            held = self.per_gpu.setdefault((ledger.host, number), np.zeros(3))
            held += (own[WORK], observed, high - low)
            self.models.add(ledger.gpus[at[gpu]].model)
        # A run begins with its first sample: the half cell before it would lay a month's record in the month before.
        begun = ledger.begun_us(low, high)
        self.start_us = begun if self.start_us is None else min(self.start_us, begun)
        self.end_us = high if self.end_us is None else max(self.end_us, high)

    def columns(self) -> dict[str, Any]:
        """What a row of the fleet says of it."""
        cells = {f"{cell}_gpu_s": 0.0 for cell in CELLS}
        cells |= {f"{cell}_gpu_s": float(self.amounts[amount]) / SECOND_US for amount, cell in CELL_OF.items()}
        cells["unobserved_gpu_s"] = self.unobserved_us / SECOND_US
        observed = float(self.amounts[:WORK].sum())
        return {
            **cells,
            "gpu_s": math.fsum(cells.values()),
            "util_pct": float(self.amounts[WORK]) / observed if observed else None,
            "n_gpus": len(self.per_gpu),
            "gpu_model": ", ".join(sorted(self.models - {""})),
            "start": iso(self.start_us),
            "end": iso(self.end_us),
        }


def iso(us: int | None) -> str | None:
    """Microseconds since 1970 as ISO 8601 in UTC."""
    return None if us is None else (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(us))).isoformat()
