"""False alarms of every rule over healthy simulated runs, and whether each planted fault is found.

    python benchmarks/rules.py [RUNS]

writes benchmarks/rules.md. Seeds are fixed: the same version gives the same table.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from gpudiag.manifest import DataLoader
from gpudiag.rules import RULES
from gpudiag.rules.engine import Profiles, Severity, Status, Verdict, check_thresholds, judge_all
from gpudiag.run import Run
from gpudiag.schema import EVENTS, GPU, HOST, REPORTS, TRIALS, conform
from gpudiag.simulation import Model, simulate
from gpudiag.simulation.cases.healthy import SPEC

Change = Callable[[Run], Run]


def healthy_run(seed: int) -> Run:
    """A well-fed run: 1 or 2 GPUs, 2 or 3 workers each, 24 to 72 trials, sampled every 1, 5 or 10 s.

    What does not change with the number of workers is how much of the memory they take: about two thirds.
    """
    n_gpus, each = 1 + seed % 2, 2 + seed // 2 % 2
    workers = n_gpus * each
    made = simulate(
        SPEC,
        seed=1000 + seed,
        workers=workers,
        gpus=SPEC.gpus * n_gpus,
        n_trials=workers * 12,
        models=(Model("base", 1, 1.0, 10400.0 / each, 16.0),),
        period_s=(5.0, 10.0, 1.0)[seed % 3],
        epochs=6 + 3 * (seed % 3),
        settings=SPEC.settings.model_copy(update={"parallel": workers, "cpu_cores": 8 * workers}),
    ).run
    return made


def judged(run: Run) -> dict[str, Verdict]:
    """Verdict by rule."""
    return {v.rule: v for v in judge_all(RULES, Profiles(run), check_thresholds(RULES, {}))}


def loud(verdicts: dict[str, Verdict]) -> list[str]:
    """Rules that found something above info."""
    return [r for r, v in verdicts.items() if v.status is Status.FOUND and v.severity is not Severity.INFO]


def _gpu(**columns: Callable[[pd.DataFrame], object]) -> Change:
    """Change columns of the telemetry."""

    def change(run: Run) -> Run:
        made = {name: make(run.gpu) for name, make in columns.items()}
        return replace(run, gpu=conform(run.gpu.assign(**made), GPU))

    return change


def _elapsed(gpu: pd.DataFrame) -> pd.Series:
    return (gpu["time"] - gpu["time"].min()).dt.total_seconds()


def _half(gpu: pd.DataFrame) -> pd.Series:
    return _elapsed(gpu) > _elapsed(gpu).max() / 2


def _host(**columns: float) -> Change:
    def change(run: Run) -> Run:
        host = run.gpu[["time"]].drop_duplicates("time").assign(**columns)
        return replace(run, gpu=run.gpu.assign(util_pct=run.gpu["util_pct"] / 20), host=conform(host, HOST))

    return change


def _events(*rows: tuple[str, str]) -> Change:
    def change(run: Run) -> Run:
        frame = pd.DataFrame(rows, columns=["kind", "detail"]).assign(time=run.gpu["time"].iloc[0])
        return replace(run, events=conform(frame, EVENTS))

    return change


def _trials(**columns: Callable[[pd.DataFrame], object]) -> Change:
    def change(run: Run) -> Run:
        made = {name: make(run.trials) for name, make in columns.items()}
        return replace(run, trials=conform(run.trials.assign(**made), TRIALS))

    return change


def _every_third(trials: pd.DataFrame, value: str, column: str = "state") -> pd.Series:
    return (
        trials[column].where(trials["trial"] % 3 != 0, value)
        if column in trials
        else pd.Series([value if n % 3 == 0 else None for n in trials["trial"]], trials.index)
    )


def _repeated(run: Run) -> Run:
    first = {name: run.trials[name].iloc[0] for name in run.trials if name.startswith("params.")}
    return replace(run, trials=run.trials.assign(**first))


def _crossing_curves(run: Run) -> Run:
    """A third of the trials pruned at step 1, and curves that cross: first values rank against the last."""
    rng = np.random.default_rng(0)
    rows = []
    for trial in run.trials["trial"]:
        level = rng.random()
        curve = (level, 0.5, 0.5, 1 - level + 0.3 * rng.random())
        rows += [(trial, step, value) for step, value in enumerate(curve[: 1 if trial % 3 == 0 else 4], start=1)]
    reports = pd.DataFrame(rows, columns=["trial", "step", "value"]).assign(study=run.trials["study"].iloc[0])
    state = run.trials["state"].where(run.trials["trial"] % 3 != 0, "PRUNED")
    return replace(run, trials=run.trials.assign(state=state), reports=conform(reports, REPORTS))


def _later(run: Run) -> Run:
    """Gaps before trials that grow with their number, a minute at last."""
    shift = pd.to_timedelta(np.linspace(0, 60, len(run.trials)), unit="s")
    return replace(run, trials=run.trials.assign(start=(run.trials["start"] + shift).astype(run.trials["start"].dtype)))


def _slow(run: Run) -> Run:
    return replace(
        run,
        events=conform(
            pd.DataFrame(
                {"time": run.gpu["time"].iloc[:3], "kind": "loader", "detail": "DataLoader avg: 80.0ms, max: 99.0ms"}
            ),
            EVENTS,
        ),
    )


FAULTS: dict[str, Change] = {
    "gpu-idle-beside-busy": _gpu(
        util_pct=lambda g: g["util_pct"].where(g["gpu"] != "1", 3.0),
        mem_used_mib=lambda g: g["mem_used_mib"].where(g["gpu"] != "1", 350.0),
    ),
    "gpu-unused": _gpu(
        util_pct=lambda g: g["util_pct"].where(g["gpu"] != "1", 0.0),
        mem_used_mib=lambda g: g["mem_used_mib"].where(g["gpu"] != "1", 350.0),
    ),
    "gpu-imbalance": _gpu(util_pct=lambda g: g["util_pct"].where(g["gpu"] != "1", 5.0)),
    "gpu-straggler": _gpu(sm_clock_mhz=lambda g: g["sm_clock_mhz"].where(g["gpu"] != "1", 1500.0)),
    "gpu-low-utilization": _gpu(util_pct=lambda g: g["util_pct"] / 8),
    "stalls-periodic": _gpu(util_pct=lambda g: g["util_pct"].where(_elapsed(g) % 120 > 30, 0.0)),
    "stalls-aperiodic": _gpu(util_pct=lambda g: g["util_pct"].where(np.sin(_elapsed(g) ** 1.35 / 40) > -0.6, 0.0)),
    "gpu-allocated-idle": _gpu(util_pct=lambda g: g["util_pct"].where(~_half(g), 0.0)),
    "gpu-level-shift": _gpu(util_pct=lambda g: g["util_pct"].where(~_half(g), 40.0)),
    "cpu-bound-input": _host(cpu_max_core_pct=99.0, cpu_pct=12.0),
    "io-wait": _host(io_wait_pct=80.0),
    "loader-slow": _slow,
    "loader-workers-cores": lambda run: replace(run, info=replace(run.info, dataloader=DataLoader(num_workers=1))),
    "memory-near-limit": _gpu(mem_used_mib=lambda g: g["mem_total_mib"] * 0.97),
    "memory-leak": _gpu(mem_used_mib=lambda g: 9000 + 9000 * _elapsed(g) / _elapsed(g).max()),
    "memory-residual": lambda run: replace(
        run,
        gpu=run.gpu.assign(
            mem_used_mib=run.gpu["mem_used_mib"].where(run.gpu["time"] <= run.trials["end"].max(), 5000.0)
        ),
    ),
    "thermal-throttling": _gpu(throttle_reasons=lambda g: 0x20),
    "power-throttling": _gpu(
        throttle_reasons=lambda g: 4,
        sm_clock_mhz=lambda g: np.where(g["time"] > g["time"].min() + pd.Timedelta(minutes=2), 1500.0, 2745.0),
    ),
    "clocks-low": _gpu(
        sm_clock_mhz=lambda g: np.where(g["time"] > g["time"].min() + pd.Timedelta(minutes=2), 900.0, 2745.0)
    ),
    "temperature-high": _gpu(temp_c=lambda g: 90.0),
    "power-fault-throttling": _gpu(
        power_w=lambda g: 900.0,
        throttle_reasons=lambda g: 4,
        sm_clock_mhz=lambda g: np.where(g["time"] > g["time"].min() + pd.Timedelta(minutes=2), 210.0, 2745.0),
    ),
    "sensor-stuck": _gpu(power_w=lambda g: 55.0, util_pct=lambda g: g["util_pct"].where(_elapsed(g) % 240 > 60, 0.0)),
    "gpu-lost": _events(("gpu_lost", "[GPU is lost]")),
    "gpu-hardware-errors": _events(("xid", "NVRM: Xid (PCI:0000:01:00): 63, pid=1")),
    "failure-rate-high": _trials(state=lambda t: _every_third(t, "FAIL")),
    "failures-out-of-memory": _trials(
        state=lambda t: _every_third(t, "FAIL"), detail=lambda t: _every_third(t, "CUDA out of memory", "detail")
    ),
    "failures-device-assert": _trials(
        state=lambda t: _every_third(t, "FAIL"),
        detail=lambda t: _every_third(t, "CUDA error: device-side assert triggered", "detail"),
    ),
    "duplicate-trials": _repeated,
    "trial-gap-growth": _later,
    "pruned-too-early": _crossing_curves,
}
"""A healthy run with one fault each. A fault may well be found by more rules than its own."""


def false_alarms(runs: int) -> tuple[Counter[str], Counter[str], int]:
    """Findings by rule above info, at info, and the number of runs with any above info."""
    above, info, any_above = Counter[str](), Counter[str](), 0
    for seed in range(runs):
        verdicts = judged(healthy_run(seed))
        names = loud(verdicts)
        above.update(names)
        any_above += bool(names)
        info.update(r for r, v in verdicts.items() if v.status is Status.FOUND and r not in names)
    return above, info, any_above


def sensitivity(runs: int) -> dict[str, int]:
    """By fault, the number of runs in which its rule found it."""
    found = dict.fromkeys(FAULTS, 0)
    for seed in range(1, 2 * runs, 2):  # odd seeds have two GPUs
        run = healthy_run(seed)
        for rule, plant in FAULTS.items():
            found[rule] += judged(plant(run))[rule].status is Status.FOUND
    return found


def report(runs: int, planted: int) -> str:
    """The table as Markdown."""
    above, info, any_above = false_alarms(runs)
    found = sensitivity(planted)
    lines = [
        "# Rules: false alarms and planted faults", "",
        f"False alarms over {runs} healthy simulated runs (1-2 GPUs, 2-6 workers, 1/5/10 s sampling); planted faults "
        f"in {planted} runs each. {any_above} of {runs} healthy runs had any finding above info.", "",
        "Made by `python benchmarks/rules.py`.", "",
        "| rule | severity | above info | info | planted faults found |", "|---|---|--:|--:|--:|",
    ]  # fmt: skip
    for r in RULES:
        planted_text = f"{found[r.id]} of {planted}" if r.id in found else "-"
        lines.append(f"| {r.id} | {r.severity.value} | {above[r.id]} | {info[r.id]} | {planted_text} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    text = report(int(sys.argv[1]) if len(sys.argv) > 1 else 100, 2)
    Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)
