"""The ends of a record that is longer than the training in its log: not the run's own time where nothing was held."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from smallruns import at, gpu, run, steps_of

from gpudiag.analysis import Analysis
from gpudiag.measures.idleness import measure_idleness
from gpudiag.measures.ledger import measure_ledger
from gpudiag.measures.utilization import measure_utilization
from gpudiag.rules import RULES
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.rule import check_thresholds
from gpudiag.rules._engine.verdict import Severity, Status, Verdict
from gpudiag.run import Run
from gpudiag.schema import EVENTS, conform

BEGINS_S, ENDS_S, LAST_S = 3600.0, 4800.0, 9000.0
MOST_MIB = 80_000.0


def recorded(*, done: bool = True, left_mib: float = 4.0, before_mib: float = 4.0) -> Run:
    """A training of 20 min at 95 %, in a record that begins an hour before it and ends 70 min behind it."""
    at = np.arange(0.0, LAST_S, 10.0)
    works = (at >= BEGINS_S) & (at < ENDS_S)
    used = np.where(works, 60_000.0, np.where(at < BEGINS_S, before_mib, left_mib))
    samples = gpu(at, util_pct=np.where(works, 95.0, 0.0), mem_used_mib=used, mem_total_mib=MOST_MIB)
    lines = [(BEGINS_S + 20.0 * n, 10 * n) for n in range(1, 61)]
    return run(gpu=samples, steps=steps_of(lines, total=600 if done else 900))


def judged(one: Run) -> dict[str, Verdict]:
    asked = [rule for rule in RULES if rule.id in ("idle-before-work", "idle-after-work", "gpu-low-utilization")]
    return {verdict.rule: verdict for verdict in judge_all(asked, Analysis(one), check_thresholds(asked, {}))}


@pytest.mark.slow
def test_a_recorder_that_ran_on_makes_no_idle_time() -> None:
    one = recorded()
    assert measure_ledger(one).total_gpu_s == pytest.approx(ENDS_S - BEGINS_S, abs=20)
    assert measure_utilization(one).mean_pct == pytest.approx(95, abs=1)
    idle = measure_idleness(one)
    assert (idle.lead_free, idle.trail_free) == (True, True)
    assert idle.per_gpu.at["0", "trail_s"] == pytest.approx(LAST_S - ENDS_S, abs=20)
    verdicts = judged(one)
    for rule in ("idle-before-work", "idle-after-work"):
        found = verdicts[rule]
        assert (found.status, found.severity, found.lost_gpu_h) == (Status.FOUND, Severity.NOTE, None)
        assert "Nothing held its memory then" in found.summary and "End the job" not in found.remedy
    assert verdicts["gpu-low-utilization"].status is Status.OK


@pytest.mark.slow
def test_memory_alone_tells_that_no_process_was_there() -> None:
    """Without a log, or with one that states no total, the time at both ends is not the run's own; what it cost if it
    was reserved is said.
    """
    one = recorded()
    unstated = one.steps.assign(total=np.nan)
    for few in (replace(one, steps=one.steps.iloc[:0]), replace(one, steps=unstated)):
        assert measure_utilization(few).mean_pct == pytest.approx(95, abs=1)
        verdicts = judged(few)
        assert verdicts["gpu-low-utilization"].status is Status.OK
        before, after = verdicts["idle-before-work"], verdicts["idle-after-work"]
        assert (before.severity, before.lost_gpu_h, after.lost_gpu_h) == (Severity.NOTE, None, None)
        assert "If it was reserved for the job, that cost 1 GPU-h" in before.summary
        assert "1.2 GPU-h" in after.summary and "tells of all steps" not in after.summary


def test_a_process_with_little_memory_may_have_had_the_gpu() -> None:
    """5 GiB of 78: a tenth of the total counts as held, but nothing without a log says that the job was not there."""
    one = recorded(before_mib=5000.0)
    assert measure_idleness(one).lead_free
    assert not measure_idleness(replace(one, steps=one.steps.iloc[:0])).lead_free


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "lead", "trail"),
    [
        ({"done": False}, True, False),
        ({"left_mib": 60_000.0}, True, False),
        ({"before_mib": 9_000.0}, False, True),
        ({"left_mib": float("nan")}, True, False),
    ],
)
def test_what_may_have_been_held_is_the_runs_own(how: dict[str, float], lead: bool, trail: bool) -> None:
    one = recorded(**how)  # type: ignore[arg-type]
    idle = measure_idleness(one)
    assert (idle.lead_free, idle.trail_free) == (lead, trail)
    own_s = LAST_S - lead * BEGINS_S - trail * (LAST_S - ENDS_S)
    assert measure_ledger(one).total_gpu_s == pytest.approx(own_s, abs=20)
    found = judged(one)["idle-after-work"]
    assert (found.lost_gpu_h is None) == trail


def test_another_gpu_that_held_memory_keeps_the_ends() -> None:
    one = recorded()
    other = one.gpu.assign(gpu="1", util_pct=0.0, mem_used_mib=30_000.0)
    both = run(gpu=pd.concat([one.gpu, other], ignore_index=True), steps=one.steps)
    assert not measure_idleness(both).trail_free


@pytest.mark.slow
@pytest.mark.parametrize(
    ("at_s", "kinds", "lead", "trail", "own_s"),
    [
        ((0.0, LAST_S), ("command_start", "command_end"), False, False, LAST_S),
        ((0.0, ENDS_S + 60), ("command_start", "command_end"), False, True, ENDS_S + 60),
        ((BEGINS_S - 60, LAST_S), ("command_start", "killed"), True, False, LAST_S - BEGINS_S + 60),
        ((0.0,), ("command_start",), False, False, LAST_S),
        ((0.0,), ("record_start",), True, True, ENDS_S - BEGINS_S),
    ],
)
def test_while_a_recorded_command_ran_nothing_is_free(
    at_s: tuple[float, ...], kinds: tuple[str, ...], lead: bool, trail: bool, own_s: float
) -> None:
    told = pd.DataFrame({"time": at(at_s), "kind": kinds, "detail": ""})
    for events in (told, told.assign(path="gpu.csv")):
        one = replace(recorded(), events=conform(events, EVENTS))
        idle = measure_idleness(one)
        assert (idle.lead_free, idle.trail_free) == (lead, trail)
        assert measure_ledger(one).total_gpu_s == pytest.approx(own_s, abs=20)
