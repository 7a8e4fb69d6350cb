"""What is said of a GPU that is split (MIG), of which the least that it was busy is known."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.analysis import Analysis
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.rule import check_thresholds
from gpudiag.rules.utilization import (
    NO_UTILIZATION,
    gpu_fluctuating,
    gpu_idle_beside_busy,
    gpu_low_utilization,
    gpu_unused,
)
from gpudiag.schema import GPU, GPUS, conform

N = 400
NAN = float("nan")


def run(*gpus: dict[str, float]) -> gd.Run:
    times = pd.date_range("2026-03-01 10:00", periods=N, freq="5s", tz="UTC")
    parts = [pd.DataFrame({"time": times, "gpu": str(at), **columns}) for at, columns in enumerate(gpus)]
    return gd.Run(gpu=conform(pd.concat(parts), GPU))


def statuses(run: gd.Run) -> list[str]:
    rules = (gpu_unused, gpu_idle_beside_busy, gpu_low_utilization, gpu_fluctuating)
    return [verdict.status.value for verdict in judge_all(rules, Analysis(run), check_thresholds(rules, {}))]


OK, OPEN = "ok", "not_assessed"


@pytest.mark.parametrize(
    ("least", "given"),
    [
        ({"engine_active_pct": 62.0}, [OK, OK, OK, OPEN]),
        ({"sm_active_pct": 50.0}, [OK, OK, OK, OPEN]),
        ({"engine_active_pct": 49.0, "sm_active_pct": 3.0}, [OK, OK, OPEN, OPEN]),
        ({"engine_active_pct": 9.0}, [OK, OPEN, OPEN, OPEN]),
        ({"engine_active_pct": 0.0}, [OPEN] * 4),
        ({"power_w": 300.0}, [OPEN] * 4),
    ],
)
def test_activity_clears_what_the_least_is_enough_for_and_finds_nothing(
    least: dict[str, float], given: list[str]
) -> None:
    assert statuses(run({"util_pct": 95.0}, {"util_pct": NAN, **least})) == given


def test_activity_of_a_part_of_the_record_clears_nothing() -> None:
    one = run({"util_pct": 95.0}, {"util_pct": NAN, "engine_active_pct": 62.0})
    late = (one.gpu["gpu"] == "1") & (one.gpu["time"] >= one.gpu["time"].iloc[N // 2])
    one.gpu.loc[late, "engine_active_pct"] = NAN
    assert statuses(one) == [OPEN] * 4


@pytest.mark.slow
def test_a_gpu_that_reports_nothing_is_not_well_used() -> None:
    first, *_ = gd.diagnose(run({"util_pct": 95.0}, {"util_pct": NAN, "power_w": 300.0})).document.headline.sentences
    assert first == "1 of 2 GPUs reported utilization and was well used (95 %)."
    first, *_ = gd.diagnose(run({"util_pct": 95.0}, {"util_pct": 95.0}, {"power_w": 1.0})).document.headline.sentences
    assert first == "2 of 3 GPUs reported utilization and were well used (95 % on average)."


def test_activity_alone_is_said(tmp_path: Path) -> None:
    diagnosis = gd.diagnose(run({"engine_active_pct": 40.0}, {"engine_active_pct": 72.0}))
    reason = next(v.reason for v in diagnosis.verdicts if v.rule == "gpu-unused")
    assert reason == "Utilization is not reported; by DCGM's activity GPU 1 was busy for at least 72 % of the time."


@pytest.mark.slow
def test_the_advice_comes_true(tmp_path: Path) -> None:
    """A log of the fields that the advice names, of a whole GPU and a split one, settles what it is given for."""
    open_ = gd.diagnose(run({"util_pct": 95.0}, {"util_pct": NAN, "power_w": 300.0}))
    asked = {verdict.rule for verdict in open_.verdicts if verdict.remedy == NO_UTILIZATION}
    fields = re.search(r"-e ([\d,]+)", NO_UTILIZATION)
    assert fields is not None and asked == {"gpu-unused", "gpu-idle-beside-busy", "gpu-low-utilization"}
    tags = {"203": ("GPUTL", "95", "N/A"), "155": ("POWER", "360", "300"), "252": ("FBUSD", "60000", "60000"),
            "1001": ("GRACT", "0.960", "0.620")}  # fmt: skip
    names, whole, split = zip(*(tags[number] for number in fields[1].split(",")), strict=True)
    tick = f"GPU 0 {' '.join(whole)}\nGPU 1 {' '.join(split)}\n"
    (tmp_path / "dcgmi.log").write_text(f"#Entity {' '.join(names)}\nID\n" + tick * 600)
    settled = {verdict.rule for verdict in gd.diagnose(tmp_path).verdicts if verdict.status.value == OK}
    assert asked <= settled


@pytest.mark.slow
@pytest.mark.parametrize(
    ("named", "command"),
    [
        ({"name": ["NVIDIA A100-SXM4-40GB MIG 3g.20gb"]}, "dcgmi dmon"),
        ({"uuid": ["MIG-2f1b8c5e-1111-2222-3333-444455556666"]}, "dcgmi dmon"),
        ({"name": ["NVIDIA A100-SXM4-40GB"]}, "nvidia-smi"),
    ],
)
def test_what_made_the_record_of_an_instance_is_not_asked_for_again(named: dict[str, list[str]], command: str) -> None:
    recorded = run({"mem_used_mib": 15_000.0, "mem_total_mib": 40_960.0, "power_w": 250.0})
    made = gd.diagnose(gd.Run(gpu=recorded.gpu, gpus=conform(pd.DataFrame({"gpu": ["0"], **named}), GPUS)))
    silent = [v for v in made.verdicts if v.reason.startswith("No GPU reports utilization")]
    assert len(silent) > 20 and {v.remedy.partition("; ")[0] for v in silent if command not in v.remedy} == set()
    if command == "dcgmi dmon":
        assert not any("nvidia-smi " in v.remedy for v in silent)
    else:  # the board of instances has no MIG in its name
        assert all("If it states N/A as utilization, as under MIG" in v.remedy for v in silent)
    assert made.plot.timeline() is not None, "memory is drawn"
