"""Planted faults of the record: clocks, gaps, coverage, sensors and a sampler that cannot be trusted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpudiag.alignment import apply_clock, establish_clock
from gpudiag.rules._engine.verdict import Status
from gpudiag.run import InputRecord, Run, RunInfo
from planted.base import Edge, fault, host, in_workers, log, run, scattered, ticks, trials


def _aligned(made: Run) -> Run:
    """The run on the clock that loading would establish."""
    return apply_clock(made, establish_clock(made))


def _search(offset_s: float) -> Run:
    """A search whose trials' timestamps lie so far behind the telemetry's."""
    at = ticks(4000.0)
    rows = in_workers([190.0] * 20, gap_s=10.0)
    busy = (at % 200.0) < 190.0
    used = np.where(busy, 9000.0, 350.0)
    moved = [(state, start - offset_s, end - offset_s) for state, start, end in rows]
    return run(log(at, util_pct=np.where(busy, 95.0, 0.0), mem_used_mib=used), trials=trials(moved))


@fault(
    "clocks-apart",
    edges={"": Edge({"days": 0.0}, {"days": 30.0})},
    bigger=({"days": 60.0}, {"days": 600.0}),
)
def apart(*, days: float = 30.0) -> Run:
    """The timestamps of trials lie ``days`` days behind those of the telemetry."""
    return _aligned(_search(days * 86400.0))


@fault(
    "clocks-differ",
    edges={"max_offset_s": Edge({"offset_s": 0.0}, {"offset_s": 1.0})},
    bigger=({"offset_s": 3600.0}, {"offset_s": 28800.0}),
)
def moved(*, offset_s: float = 3600.0) -> Run:
    """The timestamps of trials lie ``offset_s`` behind those of the telemetry, and run.toml states it."""
    made = _search(offset_s)
    return _aligned(replace(made, info=replace(made.info, given_offset_s=offset_s)))


@fault(
    "sampling-coverage",
    edges={
        "min_pct": Edge({"seen": 0.80}, {"seen": 0.795}),
        "min_run_s": Edge({"seconds": 59.0}, {"seconds": 60.0}, Status.NOT_ASSESSED),
    },
    bigger=({"seen": 0.4}, {"seen": 0.05}),
)
def coverage(*, seen: float = 0.5, seconds: float = 1000.0) -> Run:
    """The telemetry saw the first ``seen`` of a trial."""
    return run(log(ticks(seen * seconds)), trials=trials([("COMPLETE", 0.0, seconds)]))


@fault(
    "sampling-gaps",
    edges={"max_gap_pct": Edge({"gap_s": 65.0}, {"gap_s": 70.0})},
    bigger=({"gap_s": 200.0}, {"gap_s": 600.0}, {"gap_s": 600.0, "failed": 1}),
)
def gap(*, gap_s: float = 100.0, failed: int = 0) -> Run:
    """Telemetry of 1,000 s has a gap of ``gap_s`` from timestamp to timestamp."""
    # 15 s of the gap count as seen
    at = ticks(1000.0)
    kept = at[(at <= 302.5) | (at >= 302.5 + gap_s)]
    told = {"trials": trials([("COMPLETE", 0.0, 1000.0), ("FAIL", 0.0, 310.0)])} if failed else {}
    return run(log(kept), **told)


@fault(
    "sensor-stuck",
    edges={"max_stuck_s": Edge({"stuck": 30, "period_s": 2.0}, {"stuck": 31, "period_s": 2.0})},
    bigger=({"stuck": 100}, {"stuck": 200}),
)
def stuck(*, stuck: int = 60, period_s: float = 5.0) -> Run:
    """On a GPU that is idle in a third of the samples, ``stuck`` samples in a row hold one power reading."""
    at = ticks(200 * period_s, period_s)
    n = np.arange(len(at))
    util = scattered(len(at), 1 / 3, 0.0, 95.0)
    power = np.where(n < stuck, 55.0, 3.2 * util + 40 + 0.1 * (n % 7))
    return run(log(at, util_pct=util, power_w=power))


@fault(
    "sampler-slows-down",
    edges={"max_slow_ratio": Edge({"ratio": 1.3}, {"ratio": 1.32})},
    bigger=({"ratio": 1.8}, {"ratio": 2.9}),
)
def sampler(*, ratio: float = 1.5) -> Run:
    """Samples are 5 s apart while the GPU is idle, and ``ratio`` times as far apart while it is busy."""
    busy = (np.arange(200) // 10) % 2 == 1
    at = 2.5 + np.concatenate(([0.0], np.cumsum(np.where(busy, 5.0 * ratio, 5.0))[:-1]))
    return run(log(at, util_pct=np.where(busy, 95.0, 0.0)))


@fault(
    "placeholder-columns",
    edges={"max_columns": Edge({"n": 0}, {"n": 1})},
    bigger=({"n": 2}, {"n": 3}),
)
def placeholders(*, n: int = 1) -> Run:
    """Of power, temperature and host load ``n`` never moves while the GPU does."""
    at = ticks(1000.0)
    wave = np.arange(len(at)) % 4
    util = np.where(wave < 2, 0.0, 95.0)
    moving = {"power_w": 40 + 3.5 * util, "temp_c": 40 + 0.3 * util}
    still = {"power_w": 100.0, "temp_c": 50.0}
    chosen = {name: still[name] if i < n else moving[name] for i, name in enumerate(moving)}
    return run(log(at, util_pct=util, **chosen), host=host(at, cpu_pct=50.0 if n > 2 else 40.0 + wave))


@fault(
    "identity-mixed",
    edges={"max_conflicts": Edge({"total_mib": 25050.0}, {"total_mib": 25070.0})},
    bigger=({"total_mib": 40000.0}, {"total_mib": 81920.0}),
)
def mixed(*, total_mib: float = 81920.0) -> Run:
    """The memory of a GPU is 24 GiB at first, and ``total_mib`` from half-way on."""
    at = ticks(1000.0)
    return run(log(at, mem_total_mib=np.where(at < 500, 24564.0, total_mib)))


@fault(
    "input-unread",
    edges={"": Edge({"n": 0}, {"n": 1}, Status.NOT_APPLICABLE)},
    bigger=({"n": 2}, {"n": 5}),
)
def unread(*, n: int = 1) -> Run:
    """One log was read, and ``n`` study was not, since a writer had locked its database."""
    studies = [
        InputRecord(f"{i}.db", "unknown", error=f"{i}.db: the database is locked by a writer.") for i in range(n)
    ]
    return run(info=RunInfo(inputs=(InputRecord("gpu.csv", "telemetry", "toy"), *studies)))
