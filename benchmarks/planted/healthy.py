"""Healthy runs of many kinds: nothing in them is worth a finding above info."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from gpudiag.manifest import DataLoader, Settings
from gpudiag.run import Run
from gpudiag.schema import EVENTS, HOST, conform
from gpudiag.simulation import Curve, Faults, Gpu, ModelSpec, Spec, TelemetrySpec, Trial, simulate

BOARDS = (
    Gpu("NVIDIA GeForce RTX 4090", "", 24564, 350, power_limit_w=450, idle_w=22, context_w=33, full_w=410),
    Gpu("NVIDIA GeForce RTX 3060", "", 12288, 280, power_limit_w=170, idle_w=13, context_w=18, full_w=152,
        c_per_w=0.24, max_clock_mhz=1837),
    Gpu("NVIDIA A100-SXM4-80GB", "", 81920, 5, power_limit_w=400, idle_w=58, context_w=26, full_w=355,
        c_per_w=0.09, idle_clock_mhz=210, max_clock_mhz=1410),
    Gpu("NVIDIA H100 80GB HBM3", "", 81559, 5, power_limit_w=700, idle_w=70, context_w=50, full_w=640,
        c_per_w=0.055, idle_clock_mhz=345, max_clock_mhz=1980),
    Gpu("Tesla T4", "", 15360, 3, power_limit_w=70, idle_w=9, context_w=18, full_w=69, c_per_w=0.6,
        idle_clock_mhz=300, max_clock_mhz=1590),
    Gpu("Tesla V100-SXM2-32GB", "", 32768, 3, power_limit_w=300, idle_w=40, context_w=15, full_w=270, c_per_w=0.11,
        idle_clock_mhz=135, max_clock_mhz=1530),
    Gpu("NVIDIA GeForce RTX 4070 Laptop GPU", "", 8188, 180, power_limit_w=115, idle_w=6, context_w=9, full_w=100,
        c_per_w=0.4, max_clock_mhz=2175),
)  # fmt: skip
"""Boards of every architecture that differs in a rule: averaging and instantaneous sensors, laptop, small and large."""
PERIODS_S = (1.0, 2.0, 5.0, 5.0, 10.0, 30.0)
KINDS = ("search", "search", "pruned", "tasks", "training")


def healthy_run(seed: int) -> Run:
    """A well-fed run: 1 to 4 GPUs of one board, 2 or 3 workers each, one of KINDS.

    ``search``: Optuna trials that all complete; ``pruned``: with a median pruner whose early values tell the trials
    apart; ``tasks``: a batch; ``training``: one long training a GPU without a record of trials. Some runs have host
    metrics, loader lines or a driver with a shorter averaging window.
    """
    rng = np.random.default_rng([seed, 77])
    made = simulate(healthy_spec(rng), seed=1000 + seed).run
    return _beside(made, rng)


def healthy_spec(rng: np.random.Generator) -> Spec:
    """A spec of a healthy run."""
    kind = KINDS[rng.integers(len(KINDS))]
    board = BOARDS[rng.integers(len(BOARDS))]
    n_gpus, each = int(rng.choice([1, 1, 2, 2, 3, 4])), int(rng.integers(2, 4))
    if kind == "training":
        each = 1
    workers = n_gpus * each
    fill = rng.uniform(0.55, 0.82) * (board.mem_total_mib - board.base_mib) / each - Trial.context_mib
    epoch_s = float(rng.uniform(20, 60))
    period_s = float(rng.choice(PERIODS_S))
    epochs = 60 if kind == "training" else int(rng.integers(8, 16))
    share = (95.0, 99.0) if each == 1 else (100 / each + 12, 100 / each + 18)
    return Spec(
        name="healthy",
        study="healthy",
        start="2025-11-03T09:00:00",
        n_trials=workers if kind == "training" else workers * int(rng.integers(8, 14)),
        workers=workers,
        stagger_s=float(rng.uniform(0.5, 4)),
        record="none" if kind == "training" else "tasks" if kind == "tasks" else "optuna",
        declares=("worker", "gpu") if rng.random() < 0.5 else ("worker",),
        pruner="median(n_startup_trials=5,n_warmup_steps=3)" if kind == "pruned" else None,
        gpus=(replace(board, sharing="saturating", ceiling_pct=float(rng.uniform(93, 99)), overhead_pct=1.0),) * n_gpus,
        trial=Trial(
            startup_s=(7.0, 11.0),
            epochs=epochs,
            epoch_s=(epoch_s, epoch_s * float(rng.uniform(1.03, 1.15))),
            dip_s=(0.2, float(rng.uniform(0.4, 0.02 * epoch_s + 0.3))),
            tail_s=(1.0, 2.0),
            gap_s=(0.3, float(rng.uniform(0.5, 2.0))),
            gpu_share_pct=share,
            models=(ModelSpec("base", 1, 1.0, 0.8 * fill, 0.2 * fill / 128),),
            batch_sizes=(96, 112, 128),
        ),
        curve=Curve(direction="maximize", crossing=0.0, noise=0.003),
        telemetry=TelemetrySpec(
            period_s=period_s,
            jitter_s=float(rng.uniform(0.0, 0.05)),
            window_s=float(rng.choice([1 / 6, 1.0])),
            util_noise_pct=float(rng.uniform(1, 4)),
            power_noise_w=0.01 * board.power_limit_w,
            lead_s=float(rng.uniform(10, 60)),
            lag_s=float(rng.uniform(15, 90)),
        ),
        faults=Faults(fail_rate=0.0),
        settings=Settings(cpu_cores=6 * workers, sampler="RandomSampler"),
        dataloader=DataLoader(num_workers=int(rng.integers(5, 9))),
    )


def _beside(run: Run, rng: np.random.Generator) -> Run:
    """The run with what a careful user records beside the GPU, in half of the runs each."""
    if rng.random() < 0.5:
        run = replace(run, host=_host(run, rng))
    if rng.random() < 0.5:
        times = pd.date_range(run.gpu["time"].min(), run.gpu["time"].max(), periods=8)
        lines = [f"DataLoader avg: {rng.uniform(0.2, 1.2):.1f}ms, max: 9.0ms, 30 batch/s" for _ in times]
        run = replace(run, events=conform(pd.DataFrame({"time": times, "kind": "loader", "detail": lines}), EVENTS))
    return run


def _host(run: Run, rng: np.random.Generator) -> pd.DataFrame:
    """A host with loaders at work and cores to spare."""
    times = run.gpu["time"].drop_duplicates().sort_values(ignore_index=True)
    n = len(times)
    return conform(
        pd.DataFrame(
            {
                "time": times,
                "cpu_pct": np.clip(rng.normal(45, 6, n), 0, 100),
                "cpu_max_core_pct": np.clip(rng.normal(78, 8, n), 0, 100),
                "io_wait_pct": np.clip(rng.normal(2, 1, n), 0, 100),
                "ram_used_mib": rng.normal(40000, 300, n),
                "ram_total_mib": 131072.0,
            }
        ),
        HOST,
    )
