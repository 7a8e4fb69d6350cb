"""Rules over runs made by hand: a healthy one, and one with each fault planted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from gpudiag.analysis import Analysis
from gpudiag.manifest import Settings
from gpudiag.rules import RULES
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.rule import check_thresholds
from gpudiag.rules._engine.verdict import Severity, Status, Verdict
from gpudiag.run import Run, RunInfo
from gpudiag.schema import GPU, GPUS, REPORTS, TRIALS, conform

T0 = pd.Timestamp("2025-10-24", tz="UTC")
HOUR = 3600


def at(seconds: Any) -> Any:
    return T0 + pd.to_timedelta(np.asarray(seconds, float), unit="s")


def healthy(names: tuple[str, ...] = ("0",), **changed: Any) -> Run:
    """An hour at 93-99 % on RTX 4090s; two workers, trials of about 5 minutes, a third of them pruned."""
    rng = np.random.default_rng(5)
    timestamps = np.arange(0, HOUR, 5.0)
    n = len(timestamps)
    logs = [
        pd.DataFrame(
            {
                "time": at(timestamps), "gpu": name, "util_pct": rng.integers(93, 100, n).astype(float),
                "mem_used_mib": 16000 + rng.normal(0, 50, n), "mem_total_mib": 24564.0,
                "power_w": rng.normal(400, 10, n), "power_limit_w": 450.0, "temp_c": 65.0,
            }
        )
        for name in names
    ]  # fmt: skip
    starts = np.concatenate([np.arange(0, HOUR, 300.0), np.arange(1, HOUR, 300.0)])
    states = np.where(np.arange(len(starts)) % 3 == 2, "PRUNED", "COMPLETE")
    trials = pd.DataFrame(
        {"study": "s", "trial": range(len(starts)), "state": states, "start": at(starts), "end": at(starts + 299)}
    )
    told = pd.DataFrame(
        [(t, step) for t in range(len(starts)) for step in range(1, 4 + t % 9)], columns=["trial", "step"]
    )
    tables = {
        "gpu": conform(pd.concat(logs, ignore_index=True), GPU),
        "gpus": conform(pd.DataFrame({"gpu": names, "name": "NVIDIA GeForce RTX 4090"}), GPUS),
        "trials": conform(trials, TRIALS),
        "reports": conform(told.assign(study="s", value=1.0), REPORTS),
        "info": RunInfo(settings=Settings(parallel=2, pruner="median(n_warmup_steps=2)")),
    }
    return Run(**{**tables, **changed})


def judged(run: Run, *ids: str) -> dict[str, Verdict]:
    """Verdicts of these rules, or of all."""
    rules = tuple(rule for rule in RULES if rule.id in ids) or RULES
    return {v.rule: v for v in judge_all(rules, Analysis(run), check_thresholds(rules, {}))}


ABSENT = {
    *("cpu-bound-input", "io-wait", "launch-bound", "loader-slow", "loader-workers-cores", "gpu-hardware-errors"),
    *("thermal-throttling", "hardware-slowdown", "power-throttling", "clocks-low", "power-fault-throttling"),
    *("trial-duration-drift", "memory-residual", "pruned-too-early", "input-unread", "startup-dominated"),
    *("steps-paused", "steps-slower", "steps-lost", "pruned-late", "foreign-load"),
}
"""What the healthy run has no data for: host, logs, clocks, time after the last trial, curves that differ, more trials,
and start-ups and others' work that show on a GPU which is never idle."""


@pytest.mark.slow
def test_healthy_has_no_finding_above_info() -> None:
    verdicts = judged(healthy())
    loud = [v for v in verdicts.values() if v.status is Status.FOUND and v.severity is not Severity.NOTE]
    assert not loud
    assert {name for name, v in verdicts.items() if v.status is Status.NOT_ASSESSED} == ABSENT


def test_telemetry_alone_leaves_the_search_not_assessed() -> None:
    verdicts = judged(healthy(trials=Run().trials, reports=Run().reports))
    for name in ("failure-rate-high", "trials-abandoned", "pruning-rate-high", "trial-gaps"):
        assert verdicts[name].status is Status.NOT_ASSESSED and "--trials" in verdicts[name].remedy
    assert verdicts["gpu-unused"].status is Status.OK


@pytest.mark.slow
def test_trials_alone_leave_the_gpus_not_assessed() -> None:
    verdicts = judged(healthy(gpu=Run().gpu))
    for name in ("gpu-unused", "memory-near-limit", "power-implausible", "sampling-coverage"):
        assert verdicts[name].status is Status.NOT_ASSESSED and "nvidia-smi" in verdicts[name].remedy
    assert verdicts["trials-abandoned"].status is Status.OK


def gpu_with(run: Run, **columns: Any) -> pd.DataFrame:
    return run.gpu.assign(**columns)


@pytest.mark.slow
def test_planted_faults_are_found() -> None:
    run = healthy(("0", "1"))
    second = run.gpu["gpu"] == "1"
    first_half = run.gpu["time"] < at(HOUR / 2)
    by_turns = first_half | (run.gpu["time"] > at(0.9 * HOUR))
    faults: dict[str, Run] = {
        "gpu-unused": healthy(gpu=gpu_with(run, util_pct=run.gpu["util_pct"].where(~second, 0.0))),
        "gpu-low-utilization": healthy(gpu=gpu_with(run, util_pct=run.gpu["util_pct"] / 8)),
        "gpu-fluctuating": healthy(gpu=gpu_with(run, util_pct=run.gpu["util_pct"].where(by_turns, 0.0))),
        "memory-near-limit": healthy(gpu=gpu_with(run, mem_used_mib=23500.0)),
        "memory-headroom": healthy(gpu=gpu_with(run, mem_used_mib=2500.0)),
        "power-implausible": healthy(gpu=gpu_with(run, power_w=run.gpu["power_w"].where(~second, 990.0))),
        "sampling-coverage": healthy(gpu=run.gpu[first_half]),
        "sampling-gaps": healthy(gpu=run.gpu[~run.gpu["time"].between(at(900), at(1500))]),
    }
    for rule, faulty in faults.items():
        assert judged(faulty, rule)[rule].status is Status.FOUND, rule


@pytest.mark.slow
def test_a_healthy_gpu_beside_it_hides_no_fault() -> None:
    run = healthy(("0", "1"))
    faulty = gpu_with(run, util_pct=run.gpu["util_pct"].where(run.gpu["gpu"] == "0", 0.0), mem_used_mib=24000.0)
    verdicts = judged(healthy(gpu=faulty))
    assert verdicts["gpu-unused"].where == {"gpu": "1"}
    assert verdicts["memory-near-limit"].status is Status.FOUND


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.79, 0.5, 0.1])
def test_deleting_samples_never_makes_a_run_healthy(share: float) -> None:
    run = healthy()
    part = run.gpu[run.gpu["time"] < at(HOUR * share)]
    for rule, verdict in judged(healthy(gpu=part)).items():
        if rule.startswith(("gpu-", "memory-", "power-")):
            assert verdict.status is not Status.OK, rule


@pytest.mark.slow
def test_mig_is_not_assessed() -> None:
    run = healthy(gpu=healthy().gpu.drop(columns="util_pct"))
    assert judged(run)["gpu-unused"].status is Status.NOT_ASSESSED
    two = healthy(("0", "1"))
    partly = gpu_with(two, util_pct=two.gpu["util_pct"].where(two.gpu["gpu"] == "0"))
    assert "Utilization of GPU 1 is not reported" in judged(healthy(gpu=partly))["gpu-low-utilization"].reason


@pytest.mark.parametrize(
    ("seconds", "n", "told"), [(3, 4, "only 4 s were observed"), (180, 6, "only 6 samples"), (180, 40, "")]
)
def test_a_glance_at_a_gpu_proves_no_health(seconds: float, n: int, told: str) -> None:
    timestamps = pd.date_range("2026-01-01", periods=n, freq=pd.Timedelta(seconds=seconds / (n - 1)), tz="UTC")
    frame = pd.DataFrame(
        {"time": timestamps, "gpu": "0", "util_pct": 95.0, "mem_used_mib": 100.0, "mem_total_mib": 1000.0}
    )
    verdicts = judge_all(RULES, Analysis(Run(gpu=conform(frame, GPU))), check_thresholds(RULES, {}))
    found = {v.rule: v for v in verdicts}
    for rule in ("gpu-low-utilization", "memory-near-limit"):
        assert found[rule].status is (Status.NOT_ASSESSED if told else Status.OK) and told in found[rule].reason


@pytest.mark.parametrize(("step_s", "n", "known"), [(14, 2, False), (1, 12, False), (30, 9, False), (14, 10, True)])
@pytest.mark.parametrize("n_gpus", [1, 8])
def test_a_glance_at_gpus_proves_no_low_use_however_many_they_are(
    step_s: int, n: int, n_gpus: int, *, known: bool
) -> None:
    frame = pd.concat(
        pd.DataFrame({"time": at(np.arange(n) * step_s), "gpu": str(gpu), "util_pct": 20.0}) for gpu in range(n_gpus)
    )
    verdicts = judge_all(RULES, Analysis(Run(gpu=conform(frame, GPU))), check_thresholds(RULES, {}))
    low = next(v for v in verdicts if v.rule == "gpu-low-utilization")
    assert low.status is (Status.FOUND if known else Status.NOT_ASSESSED)
    assert known or "less than 1 min or 10 samples of each were observed" in low.reason
