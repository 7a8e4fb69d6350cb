"""When a budget is met, exceeded or open; expected values are those that the samples were made with."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
from smallruns import gpu, gpus

from gpudiag.diagnosis import diagnose
from gpudiag.errors import ConfigError, NotMeasurable
from gpudiag.pytest_plugin.budget import Budget, check
from gpudiag.pytest_plugin.judged_run import JudgedRun, explained
from gpudiag.run import Run


@pytest.fixture(scope="module")
def run() -> JudgedRun:
    """Sixty samples of 0.2 s, of which 15 are idle, 15 half busy and 30 full, with 4096 MiB in use and 5000 once."""
    util = [0.0] * 15 + [50.0] * 15 + [100.0] * 30
    used = [4096.0] * 59 + [5000.0]
    frame = gpu([n / 5 for n in range(60)], util_pct=util, mem_used_mib=used, mem_total_mib=8192.0)
    return JudgedRun(diagnose(Run(gpu=frame, gpus=gpus(gpu=["0"], mem_total_mib=[8192.0])), rules=()))


def judged(run: JudgedRun, seconds: float = 12.0, **limits: float) -> tuple[str, ...]:
    """How each limit came out, sorted: met, not met or open."""
    made = check(Budget.of(limits), run, seconds)
    found = [*(["not met"] * len(made.exceeded)), *(["met"] * len(made.kept))]
    return tuple(sorted(found + ["open" for names in made.open.values() for _ in names]))


@pytest.mark.parametrize(
    ("limits", "outcome"),
    [
        ({"utilization_pct": 62.4}, "met"),
        ({"utilization_pct": 62.6}, "not met"),
        ({"idle_pct": 25.1}, "met"),
        ({"idle_pct": 24.9}, "not met"),
        ({"memory_mib": 5000}, "met"),
        ({"memory_mib": 4999}, "not met"),
    ],
)
def test_just_within_and_just_beyond(run: JudgedRun, limits: dict[str, float], outcome: str) -> None:
    assert judged(run, **limits) == (outcome,)


def test_a_short_or_half_observed_test_is_open_but_for_a_proven_peak(run: JudgedRun) -> None:
    limits: dict[str, Any] = {"utilization_pct": 99.0, "idle_pct": 1.0}
    assert judged(run, seconds=1.9, memory_mib=9000, **limits) == ("open",) * 3
    assert judged(run, seconds=1.9, memory_mib=4000, **limits) == ("not met", "open", "open")
    assert judged(run, seconds=14.9, **limits) == ("not met", "not met")
    assert judged(run, seconds=15.1, **limits) == ("open", "open")
    assert "12 s of 20 s were observed" in check(Budget.of(limits), run, 20.0).line(20.0)


@pytest.mark.slow
def test_few_samples_are_open() -> None:
    for n, outcome in ((9, "open"), (10, "met")):
        frame = gpu([2.0 * i for i in range(n)], util_pct=[50.0] * n)
        made = JudgedRun(diagnose(Run(gpu=frame, gpus=gpus(gpu=["0"])), rules=()))
        assert judged(made, seconds=2.0 * n, utilization_pct=40) == (outcome,)


def test_numbers_are_those_of_the_samples_and_what_is_unknown_is_none(run: JudgedRun) -> None:
    assert run.gpu.utilization_pct == pytest.approx(62.5, abs=0.5)
    assert run.gpu.idle_pct == pytest.approx(25, abs=0.5)
    assert (run.memory.peak_mib, run.memory.peak_pct) == (5000, pytest.approx(100 * 5000 / 8192))
    nothing = JudgedRun(diagnose(Run(), rules=()))
    for ask in (lambda: nothing.gpu.idle_pct, lambda: nothing.gpu.utilization_pct, lambda: nothing.memory.peak_mib):
        with pytest.raises(NotMeasurable):
            ask()
    with pytest.raises(NotMeasurable, match=r"memory\.peak_pct"):
        run.known("memory.peak_pct", math.nan)
    assert judged(nothing, idle_pct=20, memory_mib=100) == ("open", "open")
    with pytest.raises(ConfigError, match="did you mean 'warning'"):
        run.findings("warnin")


def test_arithmetic_and_copies_are_plain_numbers(run: JudgedRun) -> None:
    doubled = 2 * run.memory.peak_mib
    assert type(doubled) is float and doubled == 10000
    assert type(copy.deepcopy(run.memory.peak_mib)) is float


def test_comparisons_of_others_are_not_explained(run: JudgedRun) -> None:
    assert explained("==", 1.0, 2.0) is None and explained("==", [], [1]) is None
    lines = explained("<", run.gpu.idle_pct, 20)
    assert lines is not None and lines[0] == "gpu.idle_pct 25 % < 20" and lines[2] == f"run: {run.headline}"
