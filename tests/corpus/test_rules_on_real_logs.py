"""Rules over real logs: expectations from looking at the raw files (numbers by awk, grep and the eye)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gpudiag.analysis import Analysis
from gpudiag.diagnosis import diagnose
from gpudiag.rules import RULES
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.rule import check_thresholds
from gpudiag.rules._engine.verdict import Severity, Status, Verdict
from gpudiag.run import Run

pytestmark = pytest.mark.corpus

LOUD = (Severity.CRITICAL, Severity.WARNING)


@dataclass(frozen=True)
class Expected:
    """What a log must give. ``found``: all findings above info, with the GPUs they name ("" for none); ``noted``: some
    of those at info; ``clear``: some of the others; ``unknown``: some that the log cannot answer; ``numbers``: evidence
    by rule, within 2 %.
    """

    found: Mapping[str, str]
    clear: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    noted: tuple[str, ...] = ()
    numbers: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


NO_HOST = ("cpu-bound-input", "io-wait", "launch-bound", "loader-slow")
LOGS: dict[str, Expected] = {
    # Four RTX 3090 in 171 tables: one works at 72 % on average and up to 85 %, three show 0 % in each of their rows.
    "nvidia-smi-table/Markshilong__a_MoE_experiments__nvidiasmi_cpuOffload.txt": Expected(
        {"gpu-unused": "1, 2, 3", "gpu-idle-beside-busy": "1, 2, 3", "gpu-imbalance": "1"},
        clear=("gpu-low-utilization", "memory-near-limit", "temperature-high", "gpu-lost"),
        unknown=(*NO_HOST, "gpu-straggler", "clocks-low", "thermal-throttling", "gpu-hardware-errors"),
        noted=("memory-headroom",),
        numbers={"gpu-idle-beside-busy": {"busiest_mean_pct": 71.97, "busiest_max_pct": 85, "max_pct": 0}},
    ),
    # Eight H100: GPUs 0-3 at 98 % with 58 GB, GPUs 4-7 at 0 % with 0.5 GB from 13:39 until a second job comes at 14:12.
    # One process takes 99.8 % of a core in most rows, also while GPUs 4-7 load their model.
    "wandb/0-KaiKai-0__stanford_alpaca__run-20240313-8gpu.stats-only.wandb": Expected(
        {"gpu-low-utilization": "4, 5, 6, 7", "gpu-imbalance": "4", "cpu-bound-input": "4"},
        clear=("gpu-unused", "gpu-idle-beside-busy", "memory-near-limit", "gpu-allocated-idle", "temperature-high"),
        unknown=("io-wait", "clocks-low", "power-throttling"),
        noted=("idle-before-work",),
        numbers={"idle-before-work": {"lead_s": 33 * 60}, "gpu-imbalance": {"most_pct": 98, "jain": 0.58}},
    ),
    # Two RTX A6000 at 85-100 %, 84-87 °C; SM clocks fall from 1845 to 1560-1700 MHz (of 1905) when it is 87 °C.
    "wandb/tkjunsei__OpenAD__run-20241123_154046-te9fbzz8.stats-only.wandb": Expected(
        {"thermal-throttling": "0, 1", "temperature-high": "0, 1"},
        clear=("gpu-low-utilization", "gpu-imbalance", "clocks-low", "gpu-fluctuating", "memory-near-limit"),
        unknown=("power-throttling", "io-wait", "memory-leak"),
        numbers={"temperature-high": {"max_temp_c": 87}},
    ),
    # 1923 rows, 1.43 % on average, 69 of them above 10 %; 35 rows (1.8 %) above 90 % of 20146 MiB, 20137 at most.
    # Memory is held at 0-1 % for 180 s at most; the last row above 10 % comes 25.8 minutes before the end.
    # Before it lie two stretches of 28 and 30 minutes without such a row. Behind it no process has the GPU: without
    # that time the mean is 1.70 %.
    "nvidia-smi-query-csv/beam11221__plato__gpu_log.noheader.csv": Expected(
        {"gpu-low-utilization": "0", "idle-between-work": "0", "memory-near-limit": "0"},
        clear=("gpu-unused", "gpu-allocated-idle", "memory-leak", "temperature-high", "sampling-coverage"),
        unknown=("power-implausible", "clocks-low", *NO_HOST),
        noted=("idle-after-work",),
        numbers={
            "gpu-low-utilization": {"mean_pct": 1.70},
            "memory-near-limit": {"max_used_pct": 99.96, "headroom_mib": 9},
            "idle-after-work": {"trail_s": 25.8 * 60},
            "idle-between-work": {"between_s": 1699 + 1814, "n_between": 2},
        },
    ),
    # Six GPUs in five tables hours apart: GPUs 0 and 1 hold 17 GB at 0 % and P8 in two of them, GPU 3 is at 24086 of
    # 24576 MiB, GPUs 4 and 5 hold 0-3 MiB. Between the fourth and the fifth table lie 11 hours. So few glances do not
    # show that the memory was held between them.
    "nvidia-smi-table/X-yang03__hstu-jagged-dense-optimize-research__gpu_log.txt": Expected(
        {"memory-near-limit": "3", "sampling-coverage": "0, 1, 2, 3, 4, 5"},
        unknown=("gpu-unused", "gpu-idle-beside-busy", "stalls-aperiodic", "memory-leak", "memory-headroom"),
        noted=("sampling-gaps",),
        numbers={"memory-near-limit": {"max_used_pct": 98.0}},
    ),
    # One RTX 3090 every 5 minutes for a week: 14.3 % over 1956 rows; 23 of them at 87 °C or more, 89 at most.
    "homemade-csv/UdonsiKalu__logs__gpu_monitor.prose.log": Expected(
        {"gpu-low-utilization": "0", "temperature-high": "0"},
        clear=("gpu-unused", "gpu-allocated-idle", "memory-near-limit"),
        unknown=("power-implausible", "sensor-stuck", *NO_HOST),
        numbers={"temperature-high": {"max_temp_c": 89}},
    ),
    # A V100 every 17 minutes for a day and a half: 85-98 % with 27114 of 32768 MiB in 137 of 138 tables.
    "nvidia-smi-table/kishandotpandey1352__BabyLM-Challenge_self__gpu_usage_5.log": Expected(
        {},
        clear=("gpu-low-utilization", "memory-near-limit", "memory-headroom", "memory-leak", "temperature-high"),
        unknown=(*NO_HOST, "stalls-periodic", "stalls-aperiodic", "gpu-fluctuating"),
    ),
    # Eight GPUs of one synchronous training: 83.4-84.8 % each over 4.4 minutes with the start, 74 °C at most.
    "homemade-csv/karpathy__nanoGPT__gpu_metrics.8gpu-baseline.csv": Expected(
        {},
        clear=("gpu-unused", "gpu-idle-beside-busy", "gpu-low-utilization", "gpu-imbalance", "temperature-high"),
        unknown=("gpu-fluctuating", "memory-near-limit", "gpu-straggler", *NO_HOST),
    ),
    # A dmon that reads 0 once and then dashes: nothing was seen that could be healthy.
    "nvidia-smi-dmon/samisena__MyBiome__gpu_usage.alldash.log": Expected(
        {}, unknown=("gpu-unused", "gpu-low-utilization", "stalls-periodic", "memory-near-limit", "temperature-high")
    ),
}


def judged(path: Path) -> dict[str, Verdict]:
    run = Run.from_files(str(path), timezone="UTC")
    return {v.rule: v for v in judge_all(RULES, Analysis(run), check_thresholds(RULES, {}))}


@pytest.mark.slow
@pytest.mark.parametrize("file", LOGS)
def test_a_real_log_gives_what_the_eye_sees(file: str, corpus: Path) -> None:
    wanted, verdicts = LOGS[file], judged_once(corpus / "telemetry" / file)
    found = {
        v.rule: v.where.get("gpu", "") for v in verdicts.values() if v.status is Status.FOUND and v.severity in LOUD
    }
    assert found == wanted.found, [verdicts[rule].summary for rule in found]
    for rule in wanted.noted:
        assert (verdicts[rule].status, verdicts[rule].severity) == (Status.FOUND, Severity.NOTE), rule
    for status, rules in ((Status.OK, wanted.clear), (Status.NOT_ASSESSED, wanted.unknown)):
        assert [rule for rule in rules if verdicts[rule].status is not status] == []
    for rule, numbers in wanted.numbers.items():
        for name, value in numbers.items():
            assert verdicts[rule].evidence[name] == pytest.approx(value, rel=0.02, abs=2.0 if value > 5 else 0.01), (
                rule,
                name,
            )


@pytest.mark.slow
@pytest.mark.parametrize("file", LOGS)
def test_no_rule_over_trials_speaks_without_trials(file: str, corpus: Path) -> None:
    for rule in ("failure-rate-high", "pruning-rate-high", "trials-serialised", "trial-gaps", "startup-dominated"):
        assert judged_once(corpus / "telemetry" / file)[rule].status is Status.NOT_ASSESSED


def test_three_minutes_beside_a_hot_core_do_not_explain_half_an_hour_of_idle_gpus(corpus: Path) -> None:
    """GPUs 4 to 7 wait 2.17 GPU-h before their work; the host's data beside GPU 4 account for 0.03 GPU-h."""
    (file,) = [name for name in LOGS if "KaiKai" in name]
    verdicts = judged_once(corpus / "telemetry" / file)
    low, lead, hot = (verdicts[rule] for rule in ("gpu-low-utilization", "idle-before-work", "cpu-bound-input"))
    assert low.lost_gpu_h == pytest.approx(2.23, abs=0.01) and hot.lost_gpu_h == pytest.approx(0.03, abs=0.01)
    assert low.caused_by == "idle-before-work" and lead.caused_by is None and hot.caused_by is None
    assert low.summary.startswith("Mean utilization of GPUs 4, 5, 6 and 7 was 1.4 % to ")
    assert set(lead.evidence) == {"lead_s", "lead_memory_mib"}, "two names that read alike without their units"


@pytest.mark.slow
def test_the_cpu_is_not_asked_for_where_it_was_recorded(corpus: Path) -> None:
    (file,) = [name for name in LOGS if "KaiKai" in name]
    advice = diagnose(Run.from_files(str(corpus / "telemetry" / file), timezone="UTC")).advice
    assert "record-host" not in {one.id for one in advice.recommendations}


_DONE: dict[Path, dict[str, Verdict]] = {}


def judged_once(path: Path) -> dict[str, Verdict]:
    if path not in _DONE:
        _DONE[path] = judged(path)
    return _DONE[path]
