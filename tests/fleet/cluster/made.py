"""Data sets of telemetry for these tests, small and written file by file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from gpudiag.measures.ledger import LedgerProfile, measure_ledger
from gpudiag.readers._datasets.partitions import TelemetryDataset, folder_of, telemetry_dataset
from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry.parquet import to_arrow
from gpudiag.run import Run, RunInfo
from gpudiag.schema import GPU, GPUS, conform

START = pd.Timestamp("2026-03-04", tz="UTC")
"""A Wednesday, so that no week ends within these tests."""


@dataclass(frozen=True)
class Host:
    """Seconds since START and percent of each GPU."""

    name: str
    gpus: dict[str, tuple[list[float], list[float]]]

    @property
    def telemetry(self) -> Telemetry:
        parts = [
            pd.DataFrame({"time": START + pd.to_timedelta(seconds, unit="s"), "gpu": gpu, "util_pct": util})
            for gpu, (seconds, util) in self.gpus.items()
        ]
        known = pd.DataFrame({"gpu": list(self.gpus), "uuid": [f"GPU-{self.name}-{gpu}" for gpu in self.gpus]})
        return Telemetry(gpu=conform(pd.concat(parts, ignore_index=True), GPU), gpus=conform(known, GPUS))

    @property
    def ledger(self) -> LedgerProfile:
        """That of a run of this telemetry alone."""
        held = self.telemetry
        return measure_ledger(Run(gpu=held.gpu, gpus=held.gpus, info=RunInfo(name=self.name)))


def steady(name: str, utils: dict[str, float], hours: float = 2, step_s: float = 30) -> Host:
    """A host whose GPUs are at one utilization each throughout."""
    seconds = list(np.arange(0, hours * 3600 + 1, step_s))
    return Host(name, {gpu: (seconds, [pct] * len(seconds)) for gpu, pct in utils.items()})


def written(folder: Path, *hosts: Host) -> TelemetryDataset:
    """The data set of these hosts, a file a day."""
    for host in hosts:
        held = host.telemetry
        for day, part in held.gpu.groupby(held.gpu["time"].dt.strftime("%Y-%m-%d")):
            path = folder / folder_of(str(day), host.name) / "part.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(to_arrow(Telemetry(gpu=part, gpus=held.gpus), ()), path)
    found = telemetry_dataset(folder)
    assert found is not None
    return found
