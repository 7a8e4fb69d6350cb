"""What remedies look at: each number by hand, at its edges and where it is not known."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from gpudiag.advice._engine.gains import GainBounds
from gpudiag.advice._engine.situation import NO_UTILIZATION, Situation
from gpudiag.analysis import Analysis
from gpudiag.measures.memory import GpuMemory, MemoryProfile
from gpudiag.measures.parallelism import ParallelismProfile
from gpudiag.measures.utilization import UtilizationProfile
from gpudiag.rules._engine.verdict import Severity, Status, Verdict
from gpudiag.run import Run
from tests.advice.situations import HALF, Told, found, ledger, memory, situation, trials, use
from tests.rules.small_profiles import profile

NAN = math.nan


def test_only_findings_are_found() -> None:
    clear = Verdict("gpu-unused", "", Status.OK, Severity.WARNING)
    now = Situation.of(Analysis(Run()), {}, (clear, found("io-wait")))
    assert now.has("io-wait") and now.has("gpu-unused", "io-wait") and not now.has("gpu-unused") and not now.has()


@pytest.mark.parametrize(("n_trials", "soon"), [(0, False), (1, True), (600, True), (601, False)])
def test_forecasts_are_made_for_small_studies_only(n_trials: int, soon: bool) -> None:
    told = Told(
        n_trials=n_trials,
        capacity=SimpleNamespace(reason=""),
        forecast=SimpleNamespace(parallel=[SimpleNamespace(k=2), SimpleNamespace(k=3)]),
        replay="replayed",
    )
    now = situation(analysis=told)
    assert (now.capacity is not None) is (now.forecast(3) is not None) is (now.replay(None) == "replayed") is soon  # type: ignore[arg-type]
    assert bool(told.asked) is soon


def test_a_forecast_is_of_that_number_and_a_capacity_without_a_reason() -> None:
    parallel = [SimpleNamespace(k=2), SimpleNamespace(k=3)]
    now = situation(analysis=Told(forecast=SimpleNamespace(parallel=parallel), capacity=SimpleNamespace(reason="Why.")))
    assert now.forecast(3) is now.analysis.forecast(3) and now.forecast(4) is None and now.capacity is None
    nobody = situation(analysis=Told())
    assert nobody.capacity is None and nobody.forecast(2) is None and nobody.replay(None) is None  # type: ignore[arg-type]


def test_facts_are_nan_where_nobody_knows() -> None:
    assert situation(use(41.5)).fact(UtilizationProfile.mean_pct) == 41.5
    for now in (situation(), situation(use(NAN)), situation(use(math.inf))):
        assert math.isnan(now.fact(UtilizationProfile.mean_pct))
    two = situation(memory(g0={"total_mib": 800.0}, g1={"total_mib": 600.0}))
    assert two.least(GpuMemory.total_mib) == 600 and math.isnan(situation().least(GpuMemory.total_mib))


@pytest.mark.parametrize(
    ("busy", "coverage", "worth"), [(80.0, 80.0, True), (80.0, 79.9, False), (91.0, 100.0, False), (NAN, 100.0, False)]
)
def test_idle_time_is_worth_filling_for_a_tenth(busy: float, coverage: float, worth: bool) -> None:
    assert situation(bounds=GainBounds(busy_pct=busy, coverage_pct=coverage)).worth_filling is worth


def test_exactly_a_tenth_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpudiag.advice._engine.situation.MIN_FILL", 1.25)  # 1.1 is no sum of powers of two
    assert situation(bounds=GainBounds(busy_pct=80.0, coverage_pct=100.0)).worth_filling


def test_at_work_is_the_time_of_trials_where_there_are_any() -> None:
    for has, said in ((True, "while trials ran"), (False, "over the whole record")):
        assert situation(ledger({}, {}, has_trials=has)).at_work == said
    assert situation().at_work == "over the whole record"


@pytest.mark.parametrize(("stated", "peak", "parallel"), [(3, 7, 3), (None, 7, 7), (None, 1, 1), (None, 0, None)])
def test_trials_at_once_as_stated_else_as_seen(stated: int | None, peak: int, parallel: int | None) -> None:
    assert situation(profile(ParallelismProfile, peak=peak), parallel=stated).parallel == parallel


def test_without_utilization_there_is_no_assumption() -> None:
    assert situation(bounds=HALF).unless_unknown("Because.") == "Because."
    for bounds in (GainBounds(), GainBounds(busy_pct=0.0)):
        assert situation(bounds=bounds).unless_unknown("Because.") == NO_UTILIZATION
    assert situation(bounds=GainBounds(busy_pct=100.0)).unless_unknown("Because.") == "Because."


@pytest.mark.parametrize(
    ("mean", "wanted"),
    [(41.26, 47.1), (70.0, 73.0), (69.0, 72.1), (96.94, 99.9), (97.0, None), (99.0, None), (NAN, None)],
)
def test_busier_by_a_tenth_of_the_idle_time_and_three_points_at_least(mean: float, wanted: float | None) -> None:
    said = [(check.measure, check.op, check.value) for check in situation(use(mean)).busier()]
    assert said == ([("utilization.mean_pct", ">=", wanted)] if wanted else [])


@pytest.mark.parametrize(
    ("mean", "high", "wanted"),
    [(40.0, 2.5, 46.0), (40.0, 2.0, 44.0), (10.0, 2.0, 13.0), (10.0, 1.31, 13.0), (10.0, 1.3, None), (10.0, 1.0, None)],
)
def test_busier_is_within_what_the_speed_up_can_bring(mean: float, high: float, wanted: float | None) -> None:
    said = [check.value for check in situation(use(mean)).busier(high)]
    assert said == ([wanted] if wanted else [])


def test_utilization_rises_by_the_speed_up_to_100_at_most() -> None:
    now = situation(use(41.0))
    for high, most in ((1.5, 61.5), (2.0, 82.0), (3.0, 100.0)):
        (one,) = now.busier_by(high)
        assert (one.measure, one.baseline, one.low, one.high) == ("utilization.mean_pct", 41.0, 41.0, most)
    assert now.busier_by(NAN) == situation(use(NAN)).busier_by(2.0) == ()


@pytest.mark.parametrize(
    ("failed", "used", "wanted"),
    [
        (12.34, 89.9, [("trials.fail_pct", "<=", 12.3), ("memory.max_used_pct", "<", 90.0)]),
        (0.0, 90.0, [("trials.fail_pct", "<=", 0.0)]),
        (12.34, 97.0, [("trials.fail_pct", "<=", 12.3)]),
        (NAN, 10.0, [("memory.max_used_pct", "<", 90.0)]),
        (NAN, NAN, []),
    ],
)
def test_no_more_failures_and_memory_below_the_limit(failed: float, used: float, wanted: list[object]) -> None:
    said = situation(trials(fail_high_pct=failed), memory(used)).no_new_failures()
    assert [(check.measure, check.op, check.value) for check in said] == wanted


@pytest.mark.parametrize("used", [0.0, -1.0, NAN, 40.0])
def test_memory_is_predicted_by_factors_where_some_was_used(used: float) -> None:
    said = situation(memory(used)).memory_predicted(0.75, 1.5, "So it is.")
    assert [(p.measure, p.baseline, p.low, p.high, p.note) for p in said] == (
        [("memory.max_used_pct", 40.0, 30.0, 60.0, "So it is.")] if used == 40 else []
    )


SPENT = {
    "COMPLETE": {"median_s": 50.0, "total_worker_s": 400.0},
    "PRUNED": {"median_s": 30.0, "total_worker_s": 500.0},
    "FAIL": {"median_s": 9.0, "total_worker_s": 90.0},
}


def test_the_usual_trial_is_of_the_state_that_took_most_time() -> None:
    usual = situation(trials(SPENT)).usual_duration()
    assert usual is not None and usual.key == "trials.state.PRUNED.median_s"
    for state in ("COMPLETE", "FAIL"):
        alone = {**SPENT, "PRUNED": {}, state: {"median_s": 7.0, "total_worker_s": 1000.0}}
        other = situation(trials(alone)).usual_duration()
        assert other is not None and other.key == f"trials.state.{state}.median_s"
    little = situation(trials({"PRUNED": {"median_s": 0.4, "total_worker_s": 0.5}})).usual_duration()
    assert little is not None and little.key == "trials.state.PRUNED.median_s"
    zero = {state: {"total_worker_s": 0.0} for state in SPENT}
    assert situation().usual_duration() is None is situation(trials(zero)).usual_duration()


def test_trials_become_shorter_by_the_speed_up_at_most() -> None:
    (one,) = situation(trials(SPENT)).faster_trials(2.5)
    assert (one.measure, one.baseline, one.low, one.high) == ("trials.state.PRUNED.median_s", 30.0, 12.0, 30.0)
    assert situation(trials(SPENT)).faster_trials(NAN) == () == situation().faster_trials(2.0)


def test_what_fills_idle_time_is_checked_and_predicted_in_full() -> None:
    now = situation(use(41.0), memory(50.0), trials(SPENT, fail_high_pct=5.0))
    verify, predictions = now.fills(2.0)
    assert [check.measure for check in verify] == ["utilization.mean_pct", "trials.fail_pct", "memory.max_used_pct"]
    assert {p.measure: (p.low, p.high) for p in predictions} == {
        "utilization.mean_pct": (41.0, 82.0),
        "memory.max_used_pct": (50.0, 50.0),
        "trials.state.PRUNED.median_s": (15.0, 30.0),
    }
    assert predictions[1].note == "GPU memory is not touched."
    assert predictions[1].measure == MemoryProfile.max_used_pct.key
