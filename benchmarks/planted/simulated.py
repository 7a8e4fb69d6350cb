"""Faults of life size planted in healthy simulated runs, which differ in boards, periods and numbers of GPUs.

Where a simulation can express the fault it is simulated; else it is planted in the tables of a healthy run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from gpudiag.run import Run
from gpudiag.schema import EVENTS, GPU, HOST, TRIALS, conform
from gpudiag.simulation import Foreign, Spec, simulate
from planted.healthy import healthy_spec

Change = Callable[[Run], Run]
Respec = Callable[[Spec], dict[str, Any]]


def base_spec(seed: int) -> Spec:
    """A healthy search on two GPUs, sampled every 1 to 10 s."""
    rng = np.random.default_rng([seed, 78])
    spec = healthy_spec(rng)
    return replace(
        spec,
        record="optuna",
        workers=4,
        n_trials=48,
        pruner=None,
        gpus=(spec.gpus[0],) * 2,
        declares=("worker", "gpu"),
        trial=replace(spec.trial, gpu_share_pct=(62.0, 66.0), epochs=10),
        telemetry=replace(spec.telemetry, period_s=(2.0, 5.0, 10.0)[seed % 3]),
        settings=spec.settings.model_copy(update={"parallel": None, "cpu_cores": 24}),
    )


def _gpu(**columns: Callable[[pd.DataFrame], object]) -> Change:
    """Change columns of the telemetry."""

    def change(run: Run) -> Run:
        made = {name: make(run.gpu) for name, make in columns.items()}
        return replace(run, gpu=conform(run.gpu.assign(**made), GPU))

    return change


def _elapsed(gpu: pd.DataFrame) -> pd.Series:
    return (gpu["time"] - gpu["time"].min()).dt.total_seconds()


def _late(gpu: pd.DataFrame) -> pd.Series:
    return _elapsed(gpu) > _elapsed(gpu).max() / 2


def _in_the_middle(gpu: pd.DataFrame) -> pd.Series:
    return (_elapsed(gpu) / _elapsed(gpu).max()).between(0.2, 0.8)


def _second(column: str, value: float) -> Callable[[pd.DataFrame], object]:
    return lambda gpu: gpu[column].where(gpu["gpu"] != "1", value)


def _host(starve: float, **columns: float) -> Change:
    def change(run: Run) -> Run:
        host = run.gpu[["time"]].drop_duplicates("time").assign(**columns)
        return replace(run, gpu=run.gpu.assign(util_pct=run.gpu["util_pct"] * starve), host=conform(host, HOST))

    return change


def _events(kind: str, detail: str) -> Change:
    def change(run: Run) -> Run:
        frame = pd.DataFrame({"time": run.gpu["time"].iloc[:3], "kind": kind, "detail": detail})
        return replace(run, events=conform(frame, EVENTS))

    return change


def _every_third(detail: str, seconds: float | None = None) -> Change:
    """Every third trial FAILs with a text, all of one duration where that is given."""

    def change(run: Run) -> Run:
        hit = run.trials["trial"] % 3 == 0
        end = run.trials["end"]
        if seconds is not None:
            end = end.mask(hit, run.trials["start"] + pd.Timedelta(seconds=seconds))
        text = pd.Series([detail if one else None for one in hit], run.trials.index)
        made = run.trials.assign(state=run.trials["state"].mask(hit, "FAIL"), detail=text, end=end)
        return replace(run, trials=conform(made, TRIALS))

    return change


def _repeated(run: Run) -> Run:
    first = {name: run.trials[name].iloc[0] for name in run.trials if name.startswith("params.")}
    return replace(run, trials=run.trials.assign(**first))


def _errors_caught(run: Run) -> Run:
    value, complete = run.trials["value"], run.trials["state"] == "COMPLETE"
    worst = value.max() + 1 if "MINIMIZE" in set(run.studies["directions"]) else value.min() - 1
    return replace(run, trials=run.trials.assign(value=value.mask(complete & (complete.cumsum() % 6 == 0), worst)))


def _residual(run: Run) -> Run:
    after = run.gpu["time"] > run.trials["end"].max()
    return replace(run, gpu=run.gpu.assign(mem_used_mib=run.gpu["mem_used_mib"].mask(after, 5000.0)))


def _without_trials(run: Run) -> Run:
    return replace(run, trials=run.trials.iloc[:0], reports=run.reports.iloc[:0])


_idle_in_the_middle = _gpu(util_pct=lambda g: g["util_pct"].where(~_in_the_middle(g), 0.0))


def _low_clock(share: float) -> Callable[[pd.DataFrame], object]:
    return lambda gpu: gpu["sm_clock_mhz"].where(_elapsed(gpu) < 120, share * gpu["sm_clock_mhz"].max())


PLANTED: dict[str, Change] = {
    "gpu-unused": _gpu(util_pct=_second("util_pct", 0.0), mem_used_mib=_second("mem_used_mib", 300.0)),
    "gpu-idle-beside-busy": _gpu(util_pct=_second("util_pct", 4.0), mem_used_mib=_second("mem_used_mib", 300.0)),
    "gpu-imbalance": _gpu(util_pct=_second("util_pct", 12.0)),
    "gpu-straggler": _gpu(sm_clock_mhz=lambda g: g["sm_clock_mhz"].where(g["gpu"] != "1", 0.6 * g["sm_clock_mhz"])),
    "gpu-low-utilization": _gpu(util_pct=lambda g: g["util_pct"] / 8),
    "gpu-fluctuating": _gpu(util_pct=lambda g: g["util_pct"].where(np.sin(_elapsed(g) / 37) > -0.6, 0.0)),
    "stalls-periodic": _gpu(util_pct=lambda g: g["util_pct"].where(_elapsed(g) % 120 > 30, 0.0)),
    "stalls-aperiodic": _gpu(util_pct=lambda g: g["util_pct"].where(np.sin(_elapsed(g) ** 1.35 / 40) > -0.6, 0.0)),
    "idle-between-work": lambda run: _without_trials(_idle_in_the_middle(run)),
    "gpu-allocated-idle": _gpu(
        util_pct=lambda g: g["util_pct"].where(~_in_the_middle(g), 0.0),
        mem_used_mib=lambda g: g["mem_total_mib"] * 0.5,
    ),
    "gpu-level-shift": _gpu(util_pct=lambda g: g["util_pct"].where(~_late(g), 40.0)),
    "cpu-bound-input": _host(0.05, cpu_max_core_pct=99.0, cpu_pct=12.0),
    "io-wait": _host(0.05, io_wait_pct=80.0),
    "loader-slow": _events("loader", "DataLoader avg: 80.0ms, max: 99.0ms"),
    "memory-near-limit": _gpu(mem_used_mib=lambda g: g["mem_total_mib"] * 0.97),
    "memory-headroom": _gpu(mem_used_mib=lambda g: g["mem_used_mib"] * 0.3),
    "memory-leak": _gpu(mem_used_mib=lambda g: g["mem_total_mib"] * (0.4 + 0.4 * _elapsed(g) / _elapsed(g).max())),
    "memory-residual": _residual,
    "power-implausible": _gpu(power_w=lambda g: g["power_w"].where(_elapsed(g) % 600 > 10, 3 * g["power_limit_w"])),
    "thermal-throttling": _gpu(throttle_reasons=lambda g: 0x20),
    "hardware-slowdown": _gpu(throttle_reasons=lambda g: 0x80),
    "power-throttling": _gpu(throttle_reasons=lambda g: 4, sm_clock_mhz=_low_clock(0.6)),
    "clocks-low": _gpu(sm_clock_mhz=_low_clock(0.4)),
    "temperature-high": _gpu(temp_c=lambda g: 90.0),
    "power-fault-throttling": _gpu(
        power_w=lambda g: 3 * g["power_limit_w"], throttle_reasons=lambda g: 4, sm_clock_mhz=_low_clock(0.1)
    ),
    "sensor-stuck": _gpu(power_w=lambda g: 55.0, util_pct=lambda g: g["util_pct"].where(_elapsed(g) % 240 > 60, 0.0)),
    "placeholder-columns": _gpu(
        temp_c=lambda g: 50.0, util_pct=lambda g: g["util_pct"].where(_elapsed(g) % 240 > 60, 0.0)
    ),
    "gpu-lost": _events("gpu_lost", "[GPU is lost]"),
    "gpu-hardware-errors": _events("xid", "NVRM: Xid (PCI:0000:01:00): 63, pid=1"),
    "failure-rate-high": _every_third("ValueError: wrong number of classes"),
    "failures-out-of-memory": _every_third("CUDA out of memory"),
    "failures-device-assert": _every_third("CUDA error: device-side assert triggered"),
    "failures-not-finite": _every_third("The value nan is not acceptable."),
    "failures-host-killed": _every_third("exit code 137"),
    "duplicate-trials": _repeated,
    "worst-value-shared": _errors_caught,
}
"""Changes of the tables of a healthy run."""

SIMULATED: dict[str, Respec] = {
    "foreign-load": lambda spec: {
        "foreign": tuple(Foreign(gpu, 0.0, 6000.0, 60.0, 800.0) for gpu in (0, 1)),
        "workers": 2, "gap_s": (60.0, 90.0), "n_trials": 24,
    },
    "startup-dominated": lambda spec: {"startup_s": (200.0, 260.0), "workers": 2, "context_at": 0.2},
    "parallelism-below-configured": lambda spec: {
        "workers": ((0.0, 4), (900.0, 1)), "settings": spec.settings.model_copy(update={"parallel": 4}),
    },
    "parallelism-above-configured": lambda spec: {"settings": spec.settings.model_copy(update={"parallel": 3})},
    "trials-serialised": lambda spec: {
        "workers": 1, "n_trials": 20, "settings": spec.settings.model_copy(update={"parallel": 4}),
    },
    "trial-gaps": lambda spec: {"gap_s": (60.0, 120.0)},
    "trials-abandoned": lambda spec: {"abandoned_rate": 0.1},
    "failures-poisoned": lambda spec: {"assert_rate": 0.15, "poisoned": 3, "n_trials": 80},
    "sampling-coverage": lambda spec: {"outages_s": ((0.0, 3000.0),), "n_trials": 24},
    "sampling-gaps": lambda spec: {"outages_s": ((300.0, 900.0),)},
    "sampler-slows-down": lambda spec: {
        "slow_down": 0.8, "period_s": 2.0, "jitter_s": 0.0, "workers": 2, "gap_s": (60.0, 90.0), "n_trials": 24,
    },
    "stated-counts-differ": lambda spec: {"stated": {"COMPLETE": 1.0}},
    "pruned-too-early": lambda spec: {
        "pruner": "median(n_startup_trials=30,n_warmup_steps=0)", "crossing": 1.0, "n_trials": 100,
    },
    "idle-without-trial": lambda spec: {"workers": 2, "gap_s": (200.0, 300.0), "n_trials": 24},
    "idle-before-work": lambda spec: {"lead_s": 2000.0},
    "idle-after-work": lambda spec: {"lag_s": 900.0},
    "loader-workers-cores": lambda spec: {"settings": spec.settings.model_copy(update={"cpu_cores": 256})},
}  # fmt: skip
"""Changes of the spec of a healthy run."""


def faulty_run(rule: str, seed: int) -> Run | None:
    """A run with the fault of that rule; None where only the tables made by hand express it."""
    spec = base_spec(seed)
    if rule in SIMULATED:
        return simulate(spec, seed=seed, **SIMULATED[rule](spec)).run
    return PLANTED[rule](simulate(spec, seed=seed).run) if rule in PLANTED else None
