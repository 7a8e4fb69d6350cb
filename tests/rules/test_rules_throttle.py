"""A GPU that is slow at all times is never called ok: H100s whose clocks, reasons and limits are set by hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from planted.base import log, run, ticks

import gpudiag as gd
from gpudiag.analysis import Analysis
from gpudiag.rules import RULES
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.rule import check_thresholds
from gpudiag.rules._engine.verdict import Severity, Status, Verdict
from gpudiag.run import Run
from gpudiag.schema import GPUS, conform

H100 = "NVIDIA H100 80GB HBM3"
AT = ticks(1800.0)


def h100(name: str = H100, **columns: Any) -> Run:
    """A GPU that is busy for half an hour at a limit of 700 W."""
    usual = {"power_w": 600.0, "power_limit_w": 700.0, "sm_clock_mhz": 1980.0, "mem_total_mib": 81559.0}
    part = log(AT, **{**usual, **columns})
    listed = conform(pd.DataFrame({"gpu": ["0"], "name": [name], "mem_total_mib": [81559.0]}), GPUS)
    return run(part, gpus=listed)


CHECKS = ("thermal-throttling", "hardware-slowdown", "power-throttling", "clocks-low")
JUDGED = tuple(rule for rule in RULES if rule.id in CHECKS)


def judged(made: Run) -> dict[str, Verdict]:
    return {v.rule: v for v in judge_all(JUDGED, Analysis(made), check_thresholds(JUDGED, {}))}


def found(made: Run) -> dict[str, Severity | None]:
    return {rule: v.severity for rule, v in judged(made).items() if v.status is Status.FOUND and not v.caused_by}


@pytest.mark.parametrize(("bit", "by"), [(0x80, "the power brake of its machine"), (0x8, "its hardware")])
def test_a_brake_that_is_on_at_all_times_is_found(bit: int, by: str) -> None:
    made = h100(throttle_reasons=bit, sm_clock_mhz=915.0, power_w=300.0)
    assert found(made) == {"hardware-slowdown": Severity.WARNING}
    said = judged(made)["hardware-slowdown"].summary
    assert f"slowed down by {by} for 100 % of its busy time, at 915 MHz" in said
    assert "1,830 MHz" in said and "took 2 times as long" in said, "1830 / 915"


def test_without_any_clock_to_compare_with_the_reason_alone_is_told() -> None:
    made = h100("Some Board", throttle_reasons=0x80, sm_clock_mhz=915.0)
    said = judged(made)["hardware-slowdown"]
    assert said.status is Status.FOUND and "at 915 MHz." in said.summary and "times as long" not in said.summary
    assert judged(made)["clocks-low"].status is Status.NOT_ASSESSED


def test_a_cap_at_all_times_without_a_clock_to_compare_with_is_not_ok() -> None:
    capped = judged(h100("Some Board", throttle_reasons=0x4, sm_clock_mhz=1050.0, power_w=695.0))
    assert capped["power-throttling"].status is Status.NOT_ASSESSED
    assert "clocks.max.sm" in capped["power-throttling"].remedy
    stated = h100("Some Board", throttle_reasons=0x4, sm_clock_mhz=1050.0, power_w=695.0, sm_clock_max_mhz=1980.0)
    assert found(stated) == {"power-throttling": Severity.WARNING}, "whose limit that is, is unknown"


def test_a_board_at_its_own_limit_is_no_warning_however_its_log_begins() -> None:
    for first in (1050.0, 1980.0):
        clock = np.where(AT < 60, first, 1050.0)
        bits = np.where(AT < 60, 0x4 * (first < 1980.0), 0x4)
        made = h100(throttle_reasons=bits, sm_clock_mhz=clock, power_w=695.0)
        assert found(made) == {"power-throttling": Severity.NOTE}, first
        assert "700 W is its board's own limit" in judged(made)["power-throttling"].summary
    light = h100(throttle_reasons=0x4, sm_clock_mhz=1600.0, power_w=695.0)
    assert judged(light)["power-throttling"].status is Status.OK, "1600 of 1830 MHz"


def test_a_lowered_limit_is_told_with_what_it_costs() -> None:
    made = h100(throttle_reasons=0x4, sm_clock_mhz=1050.0, power_w=349.0, power_limit_w=350.0)
    assert found(made) == {"power-throttling": Severity.WARNING}
    said = judged(made)["power-throttling"].summary
    assert "lowered to 350 W; 700 W is its board's own" in said
    assert float(re.search(r"took ([\d.]+) times", said).group(1)) == pytest.approx(1830 / 1050, abs=0.005)  # type: ignore[union-attr]
    hardly = h100(throttle_reasons=0x4, sm_clock_mhz=1700.0, power_w=599.0, power_limit_w=600.0)
    assert found(hardly) == {"power-throttling": Severity.NOTE}
    by_log = h100("Some Board", throttle_reasons=0x4, sm_clock_mhz=1700.0, power_limit_w=350.0, power_default_w=700.0)
    assert found(by_log) == {"power-throttling": Severity.NOTE}
    unused = h100(sm_clock_mhz=1980.0, power_w=300.0, power_limit_w=350.0)
    assert found(unused) == {}, "a limit that is never reached costs nothing"


def test_locked_clocks_are_found_where_the_board_is_known() -> None:
    assert found(h100(throttle_reasons=0x2, sm_clock_mhz=1000.0, power_w=350.0)) == {"clocks-low": Severity.WARNING}


def test_heat_is_told_against_the_clock_of_the_peers() -> None:
    slow = {"sm_clock_mhz": 1000.0, "throttle_reasons": 0x40, "temp_c": 88.0}
    parts = [log(AT, name, **(slow if name == "2" else {"sm_clock_mhz": 1980.0})) for name in "0123"]
    made = run(*parts, gpus=conform(pd.DataFrame({"gpu": list("0123"), "name": H100}), GPUS))
    said = judged(made)["thermal-throttling"].summary
    assert "at 1,000 MHz; its peers ran at 1,980 MHz" in said and "1.98 times as long" in said


@pytest.mark.parametrize(("bit", "rule"), [(0x20, "thermal-throttling"), (0x80, "hardware-slowdown")])
def test_the_clock_told_is_that_of_the_slow_time_however_short(bit: int, rule: str) -> None:
    slow = AT % 600 > 480  # a fifth
    made = h100(throttle_reasons=np.where(slow, bit, 0), sm_clock_mhz=np.where(slow, 495.0, 1980.0), temp_c=80.0)
    said = judged(made)[rule].summary
    assert "at 495 MHz; it reached 1,980 MHz" in said and "took 4 times as long" in said


@pytest.mark.parametrize(
    ("rule", "columns"),
    [
        ("power-throttling", {"throttle_reasons": 0x4, "power_limit_w": 500.0}),
        ("thermal-throttling", {"throttle_reasons": 0x20}),
        ("hardware-slowdown", {"throttle_reasons": 0x80}),
        ("clocks-low", {}),
        ("temperature-high", {"temp_c": 90.0}),
        ("gpu-straggler", {}),
    ],
)
def test_each_gpu_that_is_held_back_is_named(rule: str, columns: dict[str, Any]) -> None:
    own = {"2": 900.0, "6": 950.0}  # the clock of those held back
    usual = {"power_w": 600.0, "power_limit_w": 700.0, "sm_clock_mhz": 1980.0, "mem_total_mib": 81559.0}
    parts = [
        log(AT, gpu=gpu, **{**usual, **({"sm_clock_mhz": own[gpu], **columns} if gpu in own else {})})
        for gpu in "012367"
    ]
    names = pd.DataFrame({"gpu": list("012367"), "name": H100, "mem_total_mib": 81559.0, "power_default_w": 700.0})
    checks = [one for one in RULES if one.id == rule]
    said = judge_all(checks, Analysis(run(*parts, gpus=conform(names, GPUS))), check_thresholds(checks, {}))[0]
    assert said.status is Status.FOUND and said.where["gpu"] == "2, 6"
    assert said.summary.startswith("GPU 2 (the worst of GPUs 2 and 6) ")


HEAD = "timestamp, index, utilization.gpu [%], clocks.sm [MHz], clocks.max.sm [MHz], clocks_event_reasons.active"


def of_three(folder: Path, *, held: str = "1", logged: bool = True) -> Verdict:
    """Three GPUs, busy for an hour; those held are at half of their clock for the second half of it."""
    rows, lines = [HEAD], []
    for second in range(0, 3600, 10):
        at = f"2026/03/02 {10 + second // 3600}:{second // 60 % 60:02}:{second % 60:02}.000"
        for gpu in "012":
            slow = gpu in held and second >= 1800
            rows.append(f"{at}, {gpu}, 99 %, {700 if slow else 1400} MHz, 1400 MHz, {0x20 if slow else 0:#018x}")
        lines.append(f"{at.replace('/', '-')[:19]},000 INFO step {second // 2 + 5} loss 2.5")
    (folder / "gpu.csv").write_text("\n".join([*rows, ""]), encoding="utf-8")
    if logged:
        (folder / "train.log").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return judged(gd.load_run(folder))["thermal-throttling"]


@pytest.mark.parametrize(
    ("held", "logged", "said", "title"),
    [
        ("1", True, "together, at the pace of the slowest: that cost at most 0.75 GPU-h of 3 GPU-h.", "others wait"),
        ("12", True, "together, at the pace of the slowest: that cost at most 1.5 GPU-h of 3 GPU-h.", "slows GPUs"),
        ("1", False, "at most 0.25 GPU-h; if the 3 GPUs do each step together, at most 0.75 GPU-h of", "slows GPUs"),
    ],
)
def test_one_slow_clock_holds_all_gpus_that_do_each_step_together(
    tmp_path: Path, held: str, logged: bool, said: str, title: str
) -> None:
    found = of_three(tmp_path, held=held, logged=logged)
    assert said in found.summary and "took 2 times as long." in found.summary and title in found.title
    assert found.lost_gpu_h is None, "only a bound of it is known"


def test_trials_do_not_wait_for_a_slow_gpu(tmp_path: Path) -> None:
    table = ["number,value,datetime_start,datetime_complete,state"]
    table += [f"{n},0.5,2026-03-02 10:{6 * n:02}:00,2026-03-02 10:{6 * n + 5:02}:00,COMPLETE" for n in range(9)]
    (tmp_path / "trials.csv").write_text("\n".join([*table, ""]), encoding="utf-8")
    assert of_three(tmp_path, logged=False).summary.endswith("at most 0.25 GPU-h.")


@pytest.mark.slow
def test_gpus_that_wait_for_a_slow_one_are_busy_and_not_well_used(tmp_path: Path) -> None:
    of_three(tmp_path)
    first = gd.diagnose(gd.load_run(tmp_path)).document.headline.sentences[0]
    assert first == "The 3 GPUs were busy (99 % on average), but heat slows one GPU, and the others wait for it."


def test_a_laptop_at_a_limit_that_nothing_tells_is_a_note() -> None:
    """2,370 of 3,105 MHz at 100 W, as it prints: what the driver allows is held under no load. Beside a clock that the
    GPU reached itself the same is a warning.
    """
    at = {"throttle_reasons": 0x4, "sm_clock_mhz": 2370.0, "power_w": 100.0, "power_limit_w": None}
    made = h100("NVIDIA GeForce RTX 4070 Laptop GPU", **at, sm_clock_max_mhz=3105.0)
    assert found(made) == {"power-throttling": Severity.NOTE}
    said = judged(made)["power-throttling"].summary
    assert "Its own limit is unknown" in said and "times as long" not in said
    free = np.arange(len(AT)) < 20
    reached = {**at, "sm_clock_mhz": np.where(free, 3105.0, 2370.0), "throttle_reasons": np.where(free, 0, 4)}
    assert found(h100("NVIDIA GeForce RTX 4070 Laptop GPU", **reached)) == {"power-throttling": Severity.WARNING}
