"""``simulate_training``: from a spec and a seed to a training's files, and the truth of what its GPUs waited for."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from gpudiag.plain_data import JsonObject
from gpudiag.readers._io.record_format import COLUMNS, GPU_LINE, MAGIC, VERSION
from gpudiag.simulation.files import json_lines, log_timestamp, toml_lines, write_text
from gpudiag.simulation.spec import Spec
from gpudiag.simulation.tables import origin_of
from gpudiag.simulation.telemetry_log import sample
from gpudiag.simulation.trainings.dumps import dump_document
from gpudiag.simulation.trainings.host import host_samples, memory_course
from gpudiag.simulation.trainings.log import log_lines
from gpudiag.simulation.trainings.spec import TrainingSpec, check
from gpudiag.simulation.trainings.trace import trace_document
from gpudiag.simulation.trainings.truth import busy_s, idle_by_cause, merged
from gpudiag.simulation.trainings.world import TrainingHistory, train
from gpudiag.simulation.world import History


@dataclass(frozen=True, eq=False)
class SimulatedTraining:
    """A training: the exact events, the telemetry in the order of the log, the host beside it, and the log's lines."""

    spec: TrainingSpec
    history: TrainingHistory
    samples: pd.DataFrame
    host: pd.DataFrame
    log: tuple[str, ...]

    @property
    def span_s(self) -> tuple[float, float]:
        """First and last sample, seconds since the start."""
        return float(self.samples["true_s"].min()), float(self.samples["true_s"].max())

    def idle_s(self) -> dict[str, float]:
        """Seconds without a kernel by cause, of all GPUs, from the first sample to the last."""
        parts = [idle_by_cause(rank, *self.span_s) for rank in self.history.ranks]
        return {cause: sum(part[cause] for part in parts) for cause in parts[0]}

    def talked_s(self) -> list[float]:
        """Seconds of each rank in collectives, waiting for others included."""
        return [sum(end - start for start, end in rank.talks) for rank in self.history.ranks]

    def truth(self) -> JsonObject:
        """What truth.json holds."""
        low, high = self.span_s
        waits = {cause: round(seconds, 3) for cause, seconds in self.idle_s().items()}
        busy = [round(busy_s(rank, low, high), 3) for rank in self.history.ranks]
        talked = [round(seconds, 3) for seconds in self.talked_s()]
        span_s = round(high - low, 3)
        out: JsonObject = {"span_s": span_s, "busy_s": list(busy), "collectives_s": list(talked), "idle_s": dict(waits)}
        if hang := self.spec.between.hang:
            out["hang"] = {"rank": hang.rank, "collective": hang.step + 1, "wait_s": hang.timeout_s}
        return out

    def write(self, folder: str | Path) -> Path:
        """Write gpu.csv, train.log, a trace a rank where steps were profiled, a dump a rank where it hung, run.toml
        and truth.json.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / "gpu.csv", self._record_lines())
        names = ["gpu.csv"]
        if self.log:
            write_text(folder / "train.log", self.log)
            names.append("train.log")
        for number, rank in enumerate(self.history.ranks if self.spec.profiler else ()):
            document = trace_document(self.spec, rank, number, origin_of(_frame(self.spec)))
            name = f"rank{number}.pt.trace.json.gz"
            text = json.dumps(document).encode()
            (folder / name).write_bytes(gzip.compress(text, mtime=0))
            names.append(name)
        names += self._write_dumps(folder)
        toml: JsonObject = {"name": self.spec.name, "timezone": self.spec.timezone, "telemetry": ["gpu.csv"]}
        toml |= {"artifacts": names[1:]} if names[1:] else {}
        toml["settings"] = {"cpu_cores": self.spec.cores}
        toml["dataloader"] = {"num_workers": self.spec.loader.workers, "prefetch_factor": self.spec.loader.prefetch}
        write_text(folder / "run.toml", toml_lines(toml))
        write_text(folder / "truth.json", json_lines(self.truth()))
        return folder

    def _write_dumps(self, folder: Path) -> Iterator[str]:
        """A dump a rank where the training hung, written when the watchdog ended it."""
        hang = self.spec.between.hang
        origin = origin_of(_frame(self.spec))
        for number in range(len(self.history.ranks) if hang else 0):
            assert hang is not None
            path = folder / f"nccl_trace_rank_{number}.json"
            write_text(path, [json.dumps(dump_document(hang, self.history, number, origin))])
            written_s = origin.timestamp() + self.history.moments[-1].at_s
            os.utime(path, (written_s, written_s))
            yield path.name

    def _record_lines(self) -> Iterator[str]:
        """The telemetry as ``gpudiag record --host`` writes it."""
        spec = self.spec
        yield MAGIC + f"{VERSION} " + json.dumps({"zone": spec.timezone, "period_s": spec.telemetry.period_s})
        for gpu in range(len(spec.pace)):
            about = {"gpu": str(gpu), "name": spec.gpu.name, "mem_total_mib": spec.gpu.mem_total_mib}
            yield GPU_LINE + json.dumps(about | {"power_limit_w": spec.gpu.power_limit_w})
        yield ",".join(COLUMNS)
        rows = pd.concat([self.samples.assign(record="gpu"), self.host.assign(record="host")])
        rows = rows.sort_values("true_s", kind="stable")
        moments = origin_of(_frame(spec)) + pd.to_timedelta((rows["true_s"] * 1e6).round(), unit="us")
        rows = rows.assign(time=moments.dt.strftime("%Y-%m-%dT%H:%M:%S.%fZ"), mono_s=rows["true_s"].round(6) + 1000)
        for row in rows.reindex(columns=list(COLUMNS)).itertuples(index=False):
            yield ",".join("" if pd.isna(cell) else _written(cell) for cell in row)


def simulate_training(spec: TrainingSpec | None = None, *, seed: int = 0) -> SimulatedTraining:
    """Simulate a training of which it is known what each GPU waited for.

    Raises ConfigError for a spec that cannot be simulated.
    """
    spec = check(spec or TrainingSpec())
    history = train(spec, seed)
    busy = [_changes(rank.kernels) for rank in history.ranks]
    used = [memory_course(rank, spec.gpu.base_mib, spec.mem_mib) for rank in history.ranks]
    frame = _frame(spec)
    samples = sample(frame, History([], busy, used), seed, -spec.telemetry.lead_s, history.end_s + spec.telemetry.lag_s)
    ticks = samples.loc[samples["gpu"] == "0", "true_s"].to_numpy(float)
    host = host_samples(spec, history, ticks) if spec.host_metrics else pd.DataFrame({"true_s": []})
    local = origin_of(frame).tz_convert(spec.timezone)
    lines = log_lines(spec, history, lambda at: log_timestamp(frame, at), local) if spec.log != "none" else ()
    return SimulatedTraining(spec, history, samples, host, tuple(lines))


def _frame(spec: TrainingSpec) -> Spec:
    """What the sampler and the clock need of a run's spec."""
    return Spec(
        name=spec.name, start=spec.start, timezone=spec.timezone, record="none", gpus=(spec.gpu,) * len(spec.pace),
        telemetry=spec.telemetry,
    )  # fmt: skip


def _changes(kernels: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """(time, share) at each change between busy and idle."""
    start, end = merged(kernels)
    times = np.column_stack([start, end]).ravel()
    return list(zip(times.tolist(), [1.0, 0.0] * len(start), strict=True))


def _written(cell: object) -> str:
    return f"{cell:g}" if isinstance(cell, float) and cell < 1e5 else str(cell)
