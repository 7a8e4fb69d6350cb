"""GPUs that look busy and stand still: fifteen minutes of work at 500 W, then a quarter of an hour at 120 W."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from planted.base import in_workers, log, run, ticks, timestamps, trials

from gpudiag.analysis import Analysis
from gpudiag.measures.standstill import StandstillProfile, measure_standstill
from gpudiag.rules import RULES
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.rule import check_thresholds
from gpudiag.rules._engine.verdict import Severity, Status, Verdict
from gpudiag.run import Run
from gpudiag.schema import STEPS, conform

IDLE_S, WORK_S, LOW_S = 60.0, 900.0, 900.0
FALL_S = IDLE_S + WORK_S
AT = ticks(FALL_S + LOW_S)
LOW = AT > FALL_S
UTIL = np.where(AT < IDLE_S, 0.0, np.where(LOW, 100.0, 96.0))
POWER = np.where(AT < IDLE_S, 70.0, np.where(LOW, 120.0, 500.0))


def hung(gpus: str = "0", **columns: Any) -> Run:
    usual = {"util_pct": UTIL, "power_w": POWER, "power_limit_w": 700.0}
    return run(*(log(AT, name, **{**usual, **columns}) for name in gpus))


def lines(last_s: float, total: int | None, every_s: float = 10.0, goes_on_s: float = 0.0) -> pd.DataFrame:
    at = np.arange(IDLE_S + every_s, last_s, every_s)
    frame = pd.DataFrame({"time": timestamps(at), "step": np.arange(1, len(at) + 1), "total": total})
    frame = frame.assign(line=frame["step"], unit="step", series="steps", meant="", path="train.log")
    frame.loc[frame.index[-1], "last_s"] = goes_on_s
    return conform(frame, STEPS)


def with_log(made: Run, last_s: float, total: int | None, goes_on_s: float = 0.0) -> Run:
    return Run(gpu=made.gpu, gpus=made.gpus, steps=lines(last_s, total, goes_on_s=goes_on_s), info=made.info)


def judged(made: Run) -> Verdict:
    (rule,) = (rule for rule in RULES if rule.id == "busy-without-progress")
    (one,) = judge_all((rule,), Analysis(made), check_thresholds((rule,), {}))
    return one


def row(made: Run) -> Any:
    profile: StandstillProfile = measure_standstill(made)
    return profile.per_gpu.loc["0"]


def test_the_fall_of_power_by_hand() -> None:
    seen = row(hung())
    assert (seen["low_s"], seen["low_util_pct"], seen["low_w"], seen["before_w"]) == (LOW_S, 100.0, 120.0, 500.0)
    assert seen["idle_w"] == 70.0 and seen["low_ratio"] == pytest.approx((120 - 70) / (500 - 70))
    assert seen["low_start"] == timestamps([FALL_S])[0] and bool(seen["is_flat"])


def test_with_telemetry_alone_it_may_be_lighter_work() -> None:
    found = judged(hung("01"))
    assert (found.status, found.severity, found.lost_gpu_h) == (Status.FOUND, Severity.WARNING, None)
    assert "may hang, or do lighter work" in found.summary


def test_with_a_log_that_stops_short_the_time_is_lost() -> None:
    found = judged(with_log(hung("01"), FALL_S, 5000))
    assert (found.status, found.severity) == (Status.FOUND, Severity.CRITICAL)
    assert found.lost_gpu_h == pytest.approx(2 * LOW_S / 3600, rel=0.03), "from the last line on"
    last = len(np.arange(IDLE_S + 10, FALL_S, 10))
    assert f"stops at step {last} of 5,000" in found.summary


@pytest.mark.parametrize("total", [None, len(np.arange(IDLE_S + 10, FALL_S, 10))])
def test_a_log_that_is_complete_or_states_no_total_proves_no_hang(total: int | None) -> None:
    found = judged(with_log(hung(), FALL_S, total))
    assert (found.severity, found.lost_gpu_h) == (Severity.WARNING, None)


@pytest.mark.slow
def test_a_log_that_stops_short_shows_less_of_a_fall_too() -> None:
    half = np.where(LOW, 300.0, POWER)
    assert judged(with_log(hung(power_w=half), FALL_S, 5000)).severity is Severity.WARNING
    assert judged(hung(power_w=half)).status is Status.OK
    same = np.where(LOW, 480.0, POWER)
    assert judged(with_log(hung(power_w=same), FALL_S, 5000)).status is Status.OK, "its log was copied earlier"


def test_a_log_that_stopped_long_before_tells_nothing_of_the_fall() -> None:
    found = judged(with_log(hung(), IDLE_S + 400.0, 5000))
    assert (found.severity, found.lost_gpu_h) == (Severity.WARNING, None)
    assert "for 15 min at" in found.summary and "log stops" not in found.summary


@pytest.mark.slow
def test_a_log_that_goes_on_without_a_step_is_not_silent() -> None:
    half = hung(power_w=np.where(LOW, 250.0, POWER))
    assert judged(with_log(half, FALL_S, 5000)).status is Status.FOUND
    assert judged(with_log(half, FALL_S, 5000, goes_on_s=LOW_S)).status is Status.OK
    parting = judged(with_log(half, FALL_S, 5000, goes_on_s=30.0))
    assert "log stops" in parting.summary, "a word on what was before"
    still = judged(with_log(hung(), FALL_S, 5000, goes_on_s=LOW_S))
    assert (still.severity, still.lost_gpu_h) == (Severity.NOTE, None)
    assert "The log goes on for 14 min 50 s of it, without a step." in still.summary and "stops" not in still.summary
    assert "silent" not in still.remedy


def phases(first_s: float, last_s: float, low_w: float = 250.0, first_w: float = 250.0, then: float = 96.0) -> Run:
    """Work of 15 min, a light phase, 5 min at ``then`` % utilization, 15 min of work, and light work to the end."""
    parts = [(60, 0, 70), (900, 96, 500), (first_s, 100, first_w), (300, then, 500 if then else 70), (900, 96, 500)]
    parts.append((last_s, 100, low_w))
    length = np.array([seconds for seconds, _, _ in parts])
    at = ticks(float(length.sum()))
    place = np.minimum(np.searchsorted(length.cumsum(), at), len(parts) - 1)
    util, power = (np.array([part[i] for part in parts], float)[place] for i in (1, 2))
    made = run(log(at, "0", util_pct=util, power_w=power, power_limit_w=700.0))
    return with_log(made, float(length[:-1].sum()), 9000)


@pytest.mark.slow
def test_a_phase_after_which_the_work_went_on_is_none_at_the_next_time() -> None:
    assert judged(phases(900, 900)).status is Status.OK
    assert judged(phases(500, 900)).status is Status.OK, "phases need not be of one length"
    for other in (phases(400, 900), phases(900, 900, low_w=120.0), phases(900, 900, then=0.0)):
        found = judged(other)
        assert "log stops" in found.summary, "longer by far; lighter than before; ended from outside"


def test_steps_that_go_on_are_progress() -> None:
    assert judged(with_log(hung(), FALL_S + LOW_S - 20, 5000)).status is Status.OK


@pytest.mark.parametrize(
    "columns",
    [
        {"mem_used_mib": np.where(LOW, 9000.0, 15000.0)},
        {"power_w": np.where(LOW, 120.0 + 45.0 * np.sin(AT / 30), POWER)},
        {"util_pct": np.where(LOW, 94.0, UTIL)},
        {"power_w": np.where(AT > FALL_S + LOW_S - 100, 500.0, POWER)},
        {"util_pct": np.where(LOW & (AT % 300 < 10), 0.0, UTIL)},
    ],
    ids=["memory moved", "power moves", "not quite full", "goes on by itself", "in pieces"],
)
def test_lighter_work_that_shows_itself_is_none(columns: dict[str, Any]) -> None:
    assert judged(hung(**columns)).status is Status.OK


def test_a_hang_that_somebody_ends_is_one() -> None:
    killed, after = AT > FALL_S + LOW_S - 200, AT > FALL_S + LOW_S - 100
    util = np.where(after, 96.0, np.where(killed, 0.0, UTIL))
    found = judged(hung(util_pct=util, power_w=np.where(after, 500.0, np.where(killed, 70.0, POWER))))
    assert found.status is Status.FOUND and "for 11 min 40 s" in found.summary


def test_another_trial_is_other_work() -> None:
    made = hung()
    begun = trials(in_workers([WORK_S, LOW_S - 60.0]), start=timestamps([IDLE_S, FALL_S + 1]))
    assert judged(Run(gpu=made.gpu, gpus=made.gpus, trials=begun, info=made.info)).status is not Status.FOUND


def test_without_a_fall_there_is_nothing() -> None:
    seen = row(hung(power_w=np.where(AT < IDLE_S, 70.0, 120.0)))
    assert seen["low_s"] == 0.0 and math.isnan(seen["low_ratio"]), "light throughout: another check tells that"
    assert math.isnan(row(hung(util_pct=96.0))["idle_w"])


def never_idle(low_w: float, before_w: float = 500.0, **columns: Any) -> Run:
    return hung(util_pct=np.where(LOW, 100.0, 96.0), power_w=np.where(LOW, low_w, before_w), **columns)


@pytest.mark.parametrize(
    ("low_w", "expected"),
    # 700 W: idle power is 0 to 233 W, or what the low time reads where that is less.
    [(120.0, Severity.WARNING), (150.0, Severity.NOTE), (280.0, Severity.NOTE), (320.0, None)],
)
def test_without_an_idle_power_what_depends_on_it_is_a_note(low_w: float, expected: Severity | None) -> None:
    found = judged(never_idle(low_w))
    assert found.severity is expected if expected else found.status is Status.OK
    if expected:
        assert math.isnan(found.evidence["idle_w"]) and "It may hang, or do lighter work." in found.summary


def test_the_ratios_of_an_unknown_idle_power_are_bounds() -> None:
    seen = row(never_idle(280.0))
    third = 700 / 3
    assert math.isnan(seen["idle_w"]) and seen["low_ratio"] == pytest.approx(280 / 500)
    assert seen["least_low_ratio"] == pytest.approx((280 - third) / (500 - third))
