"""Telemetry of a cluster: time and memory of its fleet's ledger, beside a plain scan of the same files by polars.

    python benchmarks/fleet_telemetry.py --gpus 100 300 1000 --days 30

For each size a data set is made (8 GPUs a host, a file a host and day, 30 s between samples) with jobs of one to four
whole or half nodes. Each measurement is a process of its own: what gpudiag does (read, cut into jobs, the map), and
polars' ``scan_parquet().group_by(host, gpu)`` with the mean and the share below 10 %, on the same files, which were
read once before. ``--step 1`` makes samples a second apart. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl

START = pd.Timestamp("2026-03-01", tz="UTC")
GPUS_A_HOST = 8
SPEC = "JobID|User|Account|State|Start|End|Elapsed|NodeList|AllocTRES"


def make(folder: Path, gpus: int, days: int, step_s: float, seed: int = 1) -> int:
    """The data set, and the jobs beside it; the number of rows."""
    rng, rows = np.random.default_rng(seed), 0
    n = round(86_400 / step_s)
    for host in range(gpus // GPUS_A_HOST):
        known = pl.DataFrame(
            {
                "table": "gpus",
                "gpu": [str(gpu) for gpu in range(GPUS_A_HOST)],
                "uuid": [f"GPU-{host:04d}{gpu:04d}" for gpu in range(GPUS_A_HOST)],
                "name": "NVIDIA H100 80GB HBM3",
            }
        )
        for day in range(days):
            level = np.repeat(rng.choice([0, 20, 60, 95], GPUS_A_HOST * (n // 120 + 1)), 120)[: GPUS_A_HOST * n]
            util = np.clip(level + rng.integers(-4, 5, level.size) * (level > 0), 0, 100).astype(float)
            offset_us = (np.arange(n) * step_s * 1e6).astype(np.int64) + START.value // 1000 + day * 86_400_000_000
            frame = pl.DataFrame(
                {
                    "table": "gpu",
                    "time": pl.Series(np.tile(offset_us, GPUS_A_HOST)).cast(pl.Datetime("us", "UTC")),
                    "gpu": np.repeat([str(gpu) for gpu in range(GPUS_A_HOST)], n),
                    "util_pct": util,
                    "mem_used_mib": np.where(util > 0, 61_000.0 + 500 * (level // 20), 4.0),
                    "power_w": np.round(90 + 6 * util + rng.integers(0, 40, util.size)),
                }
            )
            path = folder / "data" / f"day={START + pd.Timedelta(days=day):%Y-%m-%d}" / f"host=node{host:04d}"
            path.mkdir(parents=True, exist_ok=True)
            pl.concat([frame, known], how="diagonal").write_parquet(path / "telemetry.parquet", compression="zstd")
            rows += len(frame)
    (folder / "jobs.txt").write_text("\n".join([SPEC, *_jobs(gpus // GPUS_A_HOST, days, rng)]) + "\n", encoding="utf-8")
    return rows


def _jobs(hosts: int, days: int, rng: np.random.Generator) -> list[str]:
    """Jobs of whole nodes one after the other, and on a tenth of the hosts two of half a node each."""
    out = []
    for host in range(hosts):
        for half in range(2 if host % 10 == 9 else 1):
            at = START
            while at < START + pd.Timedelta(days=days):
                end = at + pd.Timedelta(hours=float(rng.uniform(1, 20)))
                n = GPUS_A_HOST // (2 if host % 10 == 9 else 1)
                name = f"{host}{half}{len(out):05d}|user{rng.integers(40)}|project{rng.integers(12)}"
                out.append(
                    f"{name}|COMPLETED|{at:%Y-%m-%dT%H:%M:%S}|{end:%Y-%m-%dT%H:%M:%S}||node{host:04d}|gres/gpu={n}"
                )
                at = end + pd.Timedelta(minutes=float(rng.uniform(0, 90)))
    return out


def ours(folder: Path) -> dict[str, float]:
    """The fleet's ledger of the data set, cut by jobs."""
    from gpudiag.fleets.cluster.cluster import cluster
    from gpudiag.fleets.table import FleetTable
    from gpudiag.readers._datasets.partitions import telemetry_dataset
    from gpudiag.readers._jobs.scheduler_jobs import read_jobs

    began = time.perf_counter()
    found = telemetry_dataset(folder / "data")
    assert found is not None
    made = cluster([found], read_jobs(folder / "jobs.txt", "UTC"))
    total = FleetTable.of(made.rows).total
    took = time.perf_counter() - began
    idle = 100 * total.cells["idle_no_trial"] / total.gpu_s
    return {"s": took, "mean": total.util_pct, "idle": idle, "rows": len(made.rows)}


def plain(folder: Path) -> dict[str, float]:
    """A scan by polars, without cells, gaps, jobs or order."""
    began = time.perf_counter()
    util = pl.col("util_pct")
    frame = (
        pl.scan_parquet(folder / "data" / "**" / "*.parquet", hive_partitioning=True, missing_columns="insert")
        .filter(pl.col("table") == "gpu")
        .group_by("host", "gpu")
        .agg(util.mean().alias("mean"), (util < 10).mean().alias("idle"), pl.len().alias("n"))
        .collect(engine="streaming")
    )
    took = time.perf_counter() - began
    weight = frame["n"] / frame["n"].sum()
    return {
        "s": took,
        "mean": float((frame["mean"] * weight).sum()),
        "idle": 100 * float((frame["idle"] * weight).sum()),
    }


def measured(what: str, folder: Path) -> dict[str, float]:
    """Seconds and peak memory of a process that does it."""
    command = [sys.executable, __file__, "--child", what, str(folder)]
    held: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return held


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, nargs="+", default=[104, 304, 1000])
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--step", type=float, default=30.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--child", nargs=2)
    a = parser.parse_args()
    if a.child:
        out = {"ours": ours, "plain": plain}[a.child[0]](Path(a.child[1]))
        out["mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(out))
        return
    print(
        f"{len(os.sched_getaffinity(0))} processors, {a.days} days, a sample each {a.step:g} s, best of {a.repeats}\n"
    )
    print("| GPUs | rows | Parquet | fleet's ledger | memory | plain scan | memory | ratio of time | mean, idle |")
    print("|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for gpus in a.gpus:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            rows = make(folder, gpus, a.days, a.step)
            size = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
            runs = [(measured("plain", folder), measured("ours", folder)) for _ in range(a.repeats)]
            peer, own = (min((run[at] for run in runs), key=lambda one: one["s"]) for at in (0, 1))
            assert abs(peer["mean"] - own["mean"]) < 0.01 and abs(peer["idle"] - own["idle"]) < 0.01, (peer, own)
            print(
                f"| {gpus:,} | {rows / 1e6:.1f} M | {size / 1e6:.0f} MB | {own['s']:.1f} s | {own['mib']:.0f} MiB "
                f"| {peer['s']:.1f} s | {peer['mib']:.0f} MiB | {own['s'] / peer['s']:.1f} "
                f"| {own['mean']:.1f} %, {own['idle']:.1f} % |",
                flush=True,
            )
            shutil.rmtree(folder / "data")


if __name__ == "__main__":
    main()
