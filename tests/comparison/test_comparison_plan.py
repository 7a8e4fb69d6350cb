"""A plan against what happened, and how often plans held."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from batchruns import batch, with_telemetry

from gpudiag.advice._engine.plan import Plan, PlanInput, PlannedGain, PlannedRemedy, plan_json
from gpudiag.advice._engine.processes import AT_ONCE
from gpudiag.advice._engine.proposal import Change, Prediction, SuccessCheck
from gpudiag.analysis import Analysis
from gpudiag.comparison.calibration import calibration
from gpudiag.comparison.changes_made import left_alone, made_beside, made_otherwise, was_set
from gpudiag.comparison.compare import Comparison, compare
from gpudiag.comparison.intervals import Ratio
from gpudiag.comparison.plan_check import _gain, check_plan, verdict_on
from gpudiag.comparison.quantity import INVALID, TIME, make
from gpudiag.comparison.side import Side
from gpudiag.errors import InputError, InputNotFound
from gpudiag.manifest import DataLoader, Settings
from gpudiag.report._render.blocks import Number
from gpudiag.report.comparison.sections import outcome_row
from gpudiag.run import InputRecord, Run

MEDIAN = "trials.state.COMPLETE.median_s"
A = np.random.default_rng(31).lognormal(3, 0.3, 30)


def run(name: str, seconds: np.ndarray, util: float, workers: int) -> Run:
    values = util + np.random.default_rng(len(name)).normal(0, 3, 500)
    return with_telemetry(batch(name, seconds, params={"p": 1}, dataloader=DataLoader(num_workers=workers)), values)


def plan(**changes: object) -> Plan:
    remedy = PlannedRemedy(
        id="loader-workers", title="More workers", safety="safe", tier=1, apply="now", gain=None, assumption="",
        verify_first="", changes=(Change("DataLoader num_workers", 2, 8, ""),),
        predictions=(
            Prediction("ledger.mean_util_pct", 40.0, 55.0, 75.0, "%"),
            Prediction("trials.state.COMPLETE.median_s", 20.0, 40.0, 50.0, "s"),
            Prediction("pruning.of_decided_pct", 0.0, None, None, "%", "nobody can tell"),
            Prediction("memory.max_used_pct", 10.0, 16.0, 16.0, "%"),
        ),
        verify=(SuccessCheck("trials.fail_pct", "<=", 5.0, "%"), SuccessCheck("ledger.mean_util_pct", ">=", 90.0, "%"),
                SuccessCheck("throttle.nothing", ">=", 1.0, "1")), rollback="",
    )  # fmt: skip
    made = Plan("gpudiag.plan/1", "0", "before", (PlanInput("gpu.csv", "aa"),), (remedy,),
                PlannedGain(1.2, 2.0, "x"), 2.5, None)  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]


def checked(experiment: Run, **changes: object) -> Comparison:
    found = compare(run("before", A, 40, 2), experiment, plan=plan(**changes))
    assert isinstance(found, Comparison)
    found.to_json()
    return found


@pytest.mark.parametrize(
    ("measured", "interval", "low", "high", "status"),
    [
        (5.0, None, 4.0, 6.0, "came true"),
        (7.0, (5.5, 8.5), 4.0, 6.0, "cannot tell"),
        (7.0, (6.5, 7.5), 4.0, 6.0, "missed"),
        (7.0, None, 4.0, 6.0, "missed"),
        (6.2, None, 4.0, 6.0, "cannot tell"),
        (3.0, None, None, 6.0, "came true"),
        (9.0, None, 4.0, None, "came true"),
        (33.9, None, 33.0, 33.0, "came true"),
        (40.0, None, 33.0, 33.0, "missed"),
        (0.0, None, 0.0, 0.0, "came true"),
        (None, None, 4.0, 6.0, "cannot tell"),
        (5.0, None, None, None, "cannot tell"),
        (float("nan"), None, 4.0, 6.0, "cannot tell"),
    ],
)
def test_a_number_against_an_interval(
    measured: float | None, interval: tuple[float, float] | None, low: float | None, high: float | None, status: str
) -> None:
    assert verdict_on(measured, interval, low, high)[0] == status


@pytest.mark.slow
def test_each_prediction_comes_true_is_missed_or_cannot_be_told() -> None:
    found = checked(run("after", 0.7 * A, 60, 8))
    outcomes = {(o.kind, o.measure): o for o in found.plan}
    use = outcomes["prediction", "ledger.mean_util_pct"]
    assert use.status == "came true" and use.measured == pytest.approx(60, abs=1)
    assert use.measured_low is not None and use.measured_low < use.measured < (use.measured_high or 0)
    assert outcomes["prediction", "trials.state.COMPLETE.median_s"].status == "missed"
    assert outcomes["prediction", "pruning.of_decided_pct"].reason == "nobody can tell"
    assert outcomes["prediction", "memory.max_used_pct"].status == "came true"
    assert outcomes["check", "trials.fail_pct"].status == "came true"
    assert outcomes["check", "ledger.mean_util_pct"].status == "missed"
    assert outcomes["check", "throttle.nothing"].status == "cannot tell"
    assert outcomes["check", "throttle.nothing"].reason.startswith("Nothing measured is called 'throttle.nothing'; ")
    gain = outcomes["gain", "throughput"]
    assert gain.status == "came true" and gain.measured == pytest.approx(1 / 0.7)
    assert gain.measured == pytest.approx(found.quantity("throughput").ratio)


@pytest.mark.parametrize(
    ("ratios", "measured"),
    [
        ({"logged_step_time": 0.5}, 2.0),
        ({"logged_step_time": 0.5, "logged_wall_time": 0.8}, 1.25),
        ({"logged_step_time": 2.0, "logged_work_time": 0.5}, 2.0),
        ({"logged_step_time": 0.5, "time_per_item": 0.625}, 1.6),
        ({"duration": 0.5}, None),
    ],
)
def test_the_gain_is_that_of_the_work_that_both_did(ratios: dict[str, float], measured: float | None) -> None:
    """Of items where there are any, else of steps with their pauses, or of what a step holds where that differs."""
    found = [make(name, "", "s", TIME, (1.0, r), Ratio(r, 0.99 * r, 1.01 * r)) for name, r in ratios.items()]
    (gain,) = _gain(plan(), found, "", made=True)
    assert gain.measured == (measured if measured is None else pytest.approx(measured))
    assert gain.status == ("cannot tell" if measured is None else "came true")
    (void,) = _gain(plan(), [replace(one, verdict=INVALID) for one in found], "", made=True)
    assert void.status == "cannot tell"


@pytest.mark.parametrize("observes", [False, True])
def test_a_plan_that_changes_nothing_predicts_no_pace_and_cannot_be_missed(observes: bool) -> None:
    """Neither one without a remedy nor one that records more; one of at most 2x can be missed."""
    found = [make("logged_step_time", "", "s", TIME, (1.0, 0.4), Ratio(0.4, 0.39, 0.41))]
    records = replace(plan().remedies[0], tier=0, gain=PlannedGain(1.0, 1.0, "x"))
    nothing = plan(remedies=(records,) if observes else (), combined=PlannedGain(1.0, 1.0, "x"))
    assert _gain(nothing, found, "", made=False) == []
    some = replace(plan().remedies[0], gain=PlannedGain(1.0, 2.0, "x"))
    (bounded,) = _gain(plan(combined=PlannedGain(1.0, 2.0, "x"), remedies=(some,)), found, "", made=False)
    assert (bounded.low, bounded.high, bounded.status) == (1.0, 2.0, "missed")


@pytest.mark.slow
def test_a_median_has_the_interval_of_its_durations() -> None:
    seconds = 0.7 * A
    found = checked(run("after", seconds, 60, 8))
    median = next(o for o in found.plan if o.measure == MEDIAN)
    drawn = np.random.default_rng(0).choice(seconds, (20_000, len(seconds)))
    low, high = np.percentile(np.median(drawn, axis=1), [2.5, 97.5])  # bootstrap, in place of order statistics
    assert median.measured == pytest.approx(np.median(seconds))
    assert (median.measured_low, median.measured_high) == pytest.approx((low, high), rel=0.05)


@pytest.mark.slow
def test_a_median_just_beside_what_was_predicted_is_not_missed() -> None:
    limit = float(np.median(A)) * 0.995
    one = replace(plan().remedies[0], predictions=(Prediction(MEDIAN, 40.0, limit / 2, limit, "s"),))
    found = checked(run("after", A[::-1], 60, 8), remedies=(one,))
    median = next(o for o in found.plan if o.measure == MEDIAN)
    assert median.measured is not None and limit < median.measured
    assert (median.status, median.reason.partition(",")[0]) == ("cannot tell", "Outside of what was predicted")


@pytest.mark.slow
def test_a_change_that_was_not_made_proves_nothing() -> None:
    found = checked(run("after", 0.7 * A, 60, 2))
    assert {o.status for o in found.plan if o.remedy == "loader-workers"} == {"cannot tell"}
    assert any(o.reason == "The change was not made: DataLoader num_workers is still 2." for o in found.plan)


def open_plan(*changes: Change, check: SuccessCheck | None = None) -> tuple[PlannedRemedy]:
    """A remedy whose predictions begin at no effect, for the run "before" of ``checked``."""
    use = "ledger.mean_util_pct"
    before = float(np.median(A)) + 1e-6  # times are whole microseconds
    predictions = (Prediction(use, 40.0, 39.0, 75.0, "%"), Prediction(MEDIAN, before, before / 2, before, "s"),
                   Prediction("memory.max_used_pct", 16.3, 16.3, 16.3, "%"))  # fmt: skip
    verify = (check or SuccessCheck(use, ">=", 45.0, "%"), SuccessCheck("trials.fail_pct", "<=", 20.0, "%"))
    return (replace(plan().remedies[0], changes=changes, predictions=predictions, verify=verify),)


def statuses(found: Comparison) -> dict[str, str]:
    return {o.measure.split(".")[-1]: o.status for o in found.plan if o.kind != "check"}


UNSEEN_CHANGE = Change("start of a trial", "imports and data", "neither", "")
UNKNOWN = dict.fromkeys(("mean_util_pct", "median_s", "max_used_pct", "throughput"), "cannot tell")
HELD = dict.fromkeys(UNKNOWN, "came true")
OPEN_GAIN = PlannedGain(1.0, 2.0, "x")


@pytest.mark.slow
def test_where_nothing_moved_a_range_that_begins_at_no_effect_shows_nothing() -> None:
    same = run("after", A[::-1], 40, 2)
    found = checked(same, remedies=open_plan(UNSEEN_CHANGE), combined=OPEN_GAIN)
    assert statuses(found) == UNKNOWN
    assert {o.reason.partition(",")[0] for o in found.plan if o.kind != "check"} == {
        "It is not told apart from the baseline"
    }
    assert [o.status for o in found.plan if o.kind == "check"] == ["missed", "came true"]  # of the experiment alone
    part = statuses(checked(run("after", 0.7 * A, 40, 2), remedies=open_plan(UNSEEN_CHANGE), combined=OPEN_GAIN))
    assert part == UNKNOWN | {"median_s": "came true", "throughput": "came true"}


@pytest.mark.slow
def test_what_moved_shows_that_the_change_was_made() -> None:
    faster = run("after", 0.7 * A, 60, 2)
    assert statuses(checked(faster, remedies=open_plan(UNSEEN_CHANGE), combined=OPEN_GAIN)) == HELD
    both_needed = open_plan(UNSEEN_CHANGE, check=SuccessCheck("ledger.mean_util_pct", ">=", 65.0, "%"))
    assert statuses(checked(faster, remedies=both_needed, combined=OPEN_GAIN))["max_used_pct"] == "cannot tell"


@pytest.mark.slow
def test_a_setting_that_is_as_proposed_makes_no_effect_a_result() -> None:
    set_ = open_plan(Change("num_workers", None, 8, ""))
    assert statuses(checked(run("after", A[::-1], 40, 8), remedies=set_, combined=OPEN_GAIN)) == HELD


@pytest.mark.slow
def test_what_changed_beside_the_plan_or_not_at_all_is_not_laid_to_it() -> None:
    def reason(experiment: Run, change: Change) -> str:
        found = checked(experiment, remedies=open_plan(change), combined=OPEN_GAIN)
        laid = [o for o in found.plan if o.kind != "check"]
        assert {o.status for o in laid} == {"cannot tell"}
        (said,) = {o.reason for o in laid}
        return said

    beside = "No remedy of the plan changes num_workers, and it went from 2 to 8."
    assert reason(run("after", 0.7 * A, 60, 8), UNSEEN_CHANGE) == beside
    at_once = Change("trials at once", 1, 2, "")
    assert (
        reason(run("after", 0.7 * A, 60, 2), at_once)
        == "The change was not made: the number of trials at once is still 1."
    )
    unstated = Change("num_workers", None, 8, "")
    assert reason(run("after", 0.7 * A, 60, 2), unstated) == "The change was not made: num_workers is still 2."


@pytest.mark.slow
def test_criteria_hold_or_do_not_whatever_else_changed() -> None:
    """Utilization of 60 % against a wanted 45 and 90 %; num_workers went from 2 to 8, and no remedy names it."""
    wanted = (
        SuccessCheck("ledger.mean_util_pct", ">=", 45.0, "%"),
        SuccessCheck("ledger.mean_util_pct", ">=", 90.0, "%"),
    )
    remedy = replace(plan().remedies[0], changes=(UNSEEN_CHANGE,), verify=wanted)
    found = checked(run("after", 0.7 * A, 60, 8), remedies=(remedy,))
    checks = [o for o in found.plan if o.kind == "check"]
    assert [o.status for o in checks] == ["came true", "missed"]
    assert checks[1].reason == ("It does not hold. No remedy of the plan changes num_workers, and it went from 2 to 8.")
    still = checked(run("after", 0.7 * A, 60, 2), remedies=(replace(plan().remedies[0], verify=wanted),))
    assert {o.status for o in still.plan if o.kind == "check"} == {"cannot tell"}


def at_once(name: str, seconds: np.ndarray, workers: int) -> Run:
    """Items back to back on so many workers, of which run.toml says nothing."""
    made = with_telemetry(batch(name, seconds, workers=workers, params={"p": 1}), np.full(500, 60.0))
    return replace(made, info=replace(made.info, settings=Settings()))


@pytest.mark.slow
def test_the_number_at_once_that_the_trials_show_is_a_change_beside_the_plan() -> None:
    seconds = np.tile([50.0, 60.0, 70.0, 80.0], 10)
    before, after = at_once("before", seconds, 1), at_once("after", seconds[::-1], 2)
    found = compare(before, after, plan=plan(remedies=open_plan(UNSEEN_CHANGE)))
    assert isinstance(found, Comparison)
    assert {o.status for o in found.plan if o.kind != "check"} == {"cannot tell"}
    said = "No remedy of the plan changes the number of trials at once, and the trials show another."
    assert {said in o.reason for o in found.plan} == {True}
    named = open_plan(Change("trials at once", 1, 2, ""))
    moved = compare(before, after, plan=plan(remedies=named))
    assert isinstance(moved, Comparison)
    assert not any(o.reason.startswith(said) for o in moved.plan)


@pytest.mark.slow
def test_one_item_that_begins_before_the_one_before_it_ended_is_no_other_number_at_once() -> None:
    seconds = np.tile([50.0, 60.0, 70.0, 80.0], 10)
    before, after = at_once("before", seconds, 1), at_once("after", seconds[::-1], 1)
    after.trials.loc[5, "start"] -= pd.Timedelta(seconds=3)
    found = compare(before, after, plan=plan(remedies=open_plan(UNSEEN_CHANGE)))
    assert isinstance(found, Comparison)
    assert not any("at once" in o.reason for o in found.plan)


@pytest.mark.slow
def test_an_invalid_comparison_tells_nothing_about_predictions() -> None:
    before = run("before", A, 40, 2)
    found = compare(before, before, plan=plan())
    assert isinstance(found, Comparison)
    assert {o.status for o in found.plan if o.kind in ("prediction", "gain")} == {"cannot tell"}


@pytest.mark.slow
def test_an_invalid_comparison_counts_nothing_as_true_and_plans_counts_the_same(tmp_path: Path) -> None:
    before = run("before", A, 95, 2)
    found = compare(before, before, plan=plan())
    assert isinstance(found, Comparison) and found.invalid
    checks = [o for o in found.plan if o.kind == "check"]
    assert any(o.measured is not None and o.measured >= 90 and o.measure == "ledger.mean_util_pct" for o in checks)
    assert {o.status for o in found.plan} == {"cannot tell"}
    found.save(tmp_path / "comparison.json")
    held = calibration(tmp_path).overall
    assert (held.came_true, held.missed, held.cannot_tell) == (0, 0, 5)
    said = "of 5 predictions 5 cannot be told; of 3 checks 3 cannot be told."
    assert said in found.headline["sentences"][2] and said in found.summary() and said in found.to_markdown()


@pytest.mark.slow
def test_compare_counts_predictions_as_plans_does(tmp_path: Path) -> None:
    found = checked(run("after", 0.7 * A, 60, 8))
    found.save(tmp_path / "comparison.json")
    held = calibration(tmp_path).overall
    counts = f"of 5 predictions {held.came_true} came true, {held.missed} missed, {held.cannot_tell} cannot be told"
    assert f"The plan: {counts}; of 3 checks 1 came true, 1 missed, 1 cannot be told." in found.headline["sentences"][2]


@pytest.mark.slow
def test_a_plan_for_another_run_is_named() -> None:
    before = run("before", A, 40, 2)
    known = replace(before, info=replace(before.info, inputs=(InputRecord("gpu.csv", "telemetry", sha256="bb"),)))
    found = compare(known, run("after", 0.7 * A, 60, 8), plan=plan())
    assert isinstance(found, Comparison) and "made for the run 'before', whose inputs are none" in found.plan_note
    assert found.to_dict()["plan_of"]["note"] == found.plan_note


@pytest.mark.slow
def test_calibration_counts_what_held(tmp_path: Path) -> None:
    made = plan()
    (tmp_path / "plan.json").write_text(plan_json(made), encoding="utf-8")
    (tmp_path / "other.json").write_text(plan_json(plan(run="another")), encoding="utf-8")
    (tmp_path / "noise.json").write_text("{not json", encoding="utf-8")
    (tmp_path / "list.json").write_text("[1]", encoding="utf-8")
    found = checked(run("after", 0.7 * A, 60, 8))
    (tmp_path / "b").mkdir()
    for name in ("comparison.json", "copy.json"):
        found.save(tmp_path / "b" / name)
    held = calibration(tmp_path)
    predicted = [o for o in found.plan if o.kind != "check"]
    assert held.overall.came_true == sum(o.status == "came true" for o in predicted) == 3
    assert (held.overall.missed, held.overall.cannot_tell) == (1, 1)
    assert held.overall.held_pct == pytest.approx(75)
    low, high = held.overall.held_interval_pct
    assert low < 75 < high
    assert held.checked == ("b/comparison.json",) and held.pending == ("other.json",)
    assert {t.name: t.known for t in held.by_remedy} == {"loader-workers": 3, "all together": 1}
    assert sum(t.came_true for t in held.by_measure) == 3


def test_calibration_of_nothing_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps({"schema": "something"}), encoding="utf-8")
    with pytest.raises(InputError, match="holds no plan and no comparison with a plan"):
        calibration(tmp_path)
    with pytest.raises(InputNotFound, match="no such folder"):
        calibration(tmp_path / "nowhere")


def test_a_file_that_is_not_of_its_form_is_named(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    written = json.loads(plan_json(plan()))
    path.write_text(json.dumps({**written, "later": 1}), encoding="utf-8")
    assert calibration(tmp_path).pending == ("plan.json",)  # an unknown key is passed over
    path.write_text(json.dumps({**written, "run": 3}), encoding="utf-8")
    with pytest.raises(InputError, match=r"plan\.json: is not of the form gpudiag\.plan/1, as it says: run: "):
        calibration(tmp_path)
    (tmp_path / "good.json").write_text(json.dumps(written), encoding="utf-8")
    held = calibration(tmp_path)
    assert held.pending == ("good.json",) and "plan.json: is not of the form" in held.unread[0]


@pytest.mark.slow
def test_a_plan_is_about_the_time_of_the_job_and_not_about_the_whole_record() -> None:
    """The recorder runs for as long again before the trials and after them: that is no utilization of the job."""
    before = run("before", A, 40, 2)
    busier = Prediction("ledger.mean_util_pct", 40.0, 55.0, 75.0, "%")
    old = Prediction("utilization.mean_pct", 40.0, 55.0, 75.0, "%")
    made = plan()
    remedy = replace(made.remedies[0], predictions=(busier, old), verify=())
    span = float(A.sum())
    longer = replace(run("after", 0.7 * A, 60, 8), gpu=pd.concat([
        with_telemetry(batch("after", 0.7 * A), 60.0).gpu,
        with_telemetry(batch("after", 0.7 * A), 0.0, lag_s=span).gpu.iloc[int(0.7 * span / 5):],
    ], ignore_index=True))  # fmt: skip
    found = compare(before, longer, plan=replace(made, remedies=(remedy,)))
    assert isinstance(found, Comparison)
    within, over = found.plan[:2]
    assert within.status == "came true" and within.measured == pytest.approx(60, abs=1)
    assert over.measured is not None and over.measured < 30
    assert over.status == "cannot tell" and "whole record" in over.reason


@pytest.mark.parametrize(
    ("saved_gpu_h", "gain", "status"),
    [
        (None, PlannedGain(1.0, 1.0, "x"), "missed"),
        (0.4, PlannedGain(0.0, 0.4, "GPU-h"), "came true"),
        (None, None, "came true"),
    ],
)
def test_what_a_plan_saves_or_nobody_knows_is_no_upper_end_of_its_factor(
    saved_gpu_h: float | None, gain: PlannedGain | None, status: str
) -> None:
    """An experiment that is a quarter faster, after a plan whose factors bring nothing."""
    remedy = replace(plan().remedies[0], gain=gain, predictions=(), verify=())
    changes = {"remedies": (remedy,), "combined": PlannedGain(1.0, 1.0, "x"), "saved_gpu_h": saved_gpu_h}
    made = checked(run("after", 0.8 * A, 40, 8), **changes)
    (found,), (entry,) = made.plan, made.document.plan
    assert (found.measure, found.status) == ("throughput", status)
    assert found.measured == pytest.approx(1.25, rel=0.02) and found.high == (1.0 if status == "missed" else None)
    assert outcome_row(entry)[4] == Number("1.00×" if status == "missed" else "at least 1.00×")


MORE_AT_ONCE = Change(AT_ONCE, 1, 2, "")


@pytest.mark.slow
@pytest.mark.parametrize(("ran", "status"), [(1, "cannot tell"), (2, "missed")])
def test_a_number_at_once_that_did_not_run_is_no_test_of_the_plan(ran: int, status: str) -> None:
    """Two at once are stated either way; with two that ran and no gain the prediction was wrong."""
    made = plan()
    remedy = replace(made.remedies[0], changes=(MORE_AT_ONCE,), predictions=(), verify=())
    a = batch("a", A, named=False, params={"p": 1})
    b = batch("b", ran * A[::-1], workers=ran, named=False, params={"p": 1})
    stated = replace(b, info=replace(b.info, settings=Settings(parallel=2)))
    found = compare(a, stated, plan=replace(made, remedies=(remedy,), combined=PlannedGain(1.5, 2.0, "x")))
    assert isinstance(found, Comparison)
    (gain,) = found.plan
    assert gain.status == status and ("had no effect" in gain.reason) == (ran == 1)


@pytest.mark.slow
def test_another_host_beside_the_plan_is_no_test_of_it() -> None:
    made = plan()
    remedy = replace(made.remedies[0], changes=(MORE_AT_ONCE,), predictions=(), verify=())
    sides = [
        batch(name, A, workers=k, named=False, params={"p": 1}, settings={"cpu_cores": cores})
        for name, k, cores in (("a", 1, 32), ("b", 2, 8))
    ]
    found = compare(sides[0], sides[1], plan=replace(made, remedies=(remedy,)))
    assert isinstance(found, Comparison)
    assert found.plan[-1].status == "cannot tell" and "cpu_cores" in found.plan[-1].reason
    hardware = {check.check: check for check in found.gate}["parameters-applied"]
    assert hardware.status == "unknown" and "CPU cores (32; 8)" in str(hardware.evidence)


def sides(*limits_w: float) -> list[Side]:
    runs = [
        with_telemetry(batch(name, A[:6], params={"p": 1}), 60.0, limit_w=w)
        for name, w in zip(("a", "b"), limits_w, strict=True)
    ]
    return [Side(Analysis(run), run.info.name) for run in runs]


RESTORED = Change("power limit of GPU 0, W", 250, 400, "")


@pytest.mark.parametrize(("reached_w", "other"), [(400.0, ""), (250.0, "is still 250"), (300.0, "400 was proposed")])
def test_a_power_limit_that_the_plan_restores_is_looked_up(reached_w: float, other: str) -> None:
    made = replace(plan().remedies[0], changes=(RESTORED,))
    a, b = sides(250.0, reached_w)
    assert was_set(made, a, b) is (not other)
    said = left_alone(made, a, b) or made_otherwise(made, a, b)
    assert other in said and bool(said) is bool(other)
    assert made_beside(plan(remedies=(made,)), a, b) == ""


def test_a_power_limit_beside_the_plan_is_no_test_of_it() -> None:
    assert "power limit, and it went from 250 W to 400 W" in made_beside(plan(), *sides(250.0, 400.0))
    assert made_beside(plan(), *sides(400.0, 395.0)) == ""


@pytest.mark.parametrize(
    ("failed", "status"), [([], "missed"), (["same-unit"], "missed"), (["same-unit", "same-workload"], "cannot tell")]
)
def test_how_busy_gpus_are_needs_no_unit_of_work(failed: list[str], status: str) -> None:
    """Utilization of 60 % is not the 90 % that the remedy wants; how many trials fail is a number of the work."""
    made = replace(plan().remedies[0], changes=(Change("devices", None, "all", ""),), predictions=())
    outcomes = {one.measure: one for one in check_plan(plan(remedies=(made,)), *sides(400.0, 400.0), [], failed)}
    assert outcomes[USE].status == status
    assert outcomes["trials.fail_pct"].status == ("cannot tell" if failed else "came true")


MEMORY = "memory.max_used_pct"
USE = "ledger.mean_util_pct"


def remedy(name: str, change: Change, *predictions: Prediction, verify: SuccessCheck | None = None) -> PlannedRemedy:
    one = plan().remedies[0]
    return replace(one, id=name, changes=(change,), predictions=predictions, verify=(verify,) if verify else ())


def two(experiment: Run, *, wanted: SuccessCheck | None = None) -> dict[tuple[str, str], tuple[str, str]]:
    """A plan of two remedies that move utilization, of which one moves memory too and the other is not to."""
    loader = remedy(
        "loader", Change("num_workers", 2, 8, ""), Prediction(USE, 40.0, 40.0, 75.0, "%"),
        Prediction(MEMORY, 8.0, 10.0, 40.0, "%"),
    )  # fmt: skip
    warm = remedy(
        "warm", UNSEEN_CHANGE, Prediction(USE, 40.0, 40.0, 45.0, "%"), Prediction(MEMORY, 16.3, 16.3, 16.3, "%"),
        verify=wanted,
    )  # fmt: skip
    found = checked(experiment, remedies=(loader, warm), combined=PlannedGain(1.2, 2.0, "x"))
    return {(o.remedy, o.measure): (o.status, o.reason) for o in found.plan if o.kind != "check"}


@pytest.mark.slow
def test_a_number_that_two_remedies_move_is_no_test_of_either() -> None:
    """Both made it 60 %, where one alone was to make it 45 at most; all together are judged by the speed-up."""
    told = two(run("after", 0.7 * A, 60, 8))
    alone = "of the plan moves this number as well, and each prediction is of its remedy alone."
    assert told["warm", USE] == ("cannot tell", f"loader {alone}") and told["loader", USE] == (
        "cannot tell",
        f"warm {alone}",
    )
    assert told["warm", MEMORY] == ("cannot tell", f"loader {alone}")
    assert told["loader", MEMORY][0] == "came true", "the other one was predicted not to move it"
    assert told["all together", "throughput"][0] == "came true"


@pytest.mark.slow
def test_a_remedy_that_shows_no_effect_moves_nothing_and_leaves_the_plan_undone() -> None:
    """Its own criterion, a median of 10 s at most, is failed as before: 60 % are the other one's work."""
    told = two(run("after", 1.02 * A, 60, 8), wanted=SuccessCheck(MEDIAN, "<", 10.0, "s"))
    said = (
        "warm shows no effect, or was not made: trials.state.COMPLETE.median_s has not come nearer to what is wanted."
    )
    assert told["loader", USE][0] == "came true"
    assert told["warm", USE] == told["all together", "throughput"] == ("cannot tell", said)
    nearer = two(run("after", 0.6 * A, 60, 8), wanted=SuccessCheck(MEDIAN, "<", 10.0, "s"))
    assert nearer["loader", USE][0] == "cannot tell" and nearer["all together", "throughput"][0] == "came true"


@pytest.mark.slow
def test_a_remedy_that_was_not_made_leaves_the_other_to_be_judged() -> None:
    told = two(run("after", 0.7 * A, 60, 2))
    assert told["warm", USE][0] == "missed", "60 % where 45 were the most, and nothing else was done"
    assert told["loader", USE] == ("cannot tell", "The change was not made: num_workers is still 2.")


@pytest.mark.slow
def test_a_number_other_than_proposed_is_no_test_but_moves_what_it_moves() -> None:
    told = two(run("after", 0.7 * A, 60, 4))
    said = "The change was not made as proposed: num_workers is 4, and 8 was proposed."
    assert told["loader", USE] == told["all together", "throughput"] == ("cannot tell", said)
    assert told["warm", USE][1].startswith("loader of the plan moves this number as well")


@pytest.mark.slow
@pytest.mark.parametrize("stated", [True, False])
@pytest.mark.parametrize(("ran", "status"), [(2, "missed"), (3, "cannot tell"), (4, "cannot tell")])
def test_more_at_once_than_proposed_is_no_test_of_the_plan(ran: int, status: str, stated: bool) -> None:
    """Two were proposed, from one: they were to bring 1.5 times as much at least, and brought nothing."""
    one = replace(plan().remedies[0], changes=(MORE_AT_ONCE,), predictions=(), verify=())
    a = batch("a", A, named=False, params={"p": 1})
    b = batch("b", ran * A[::-1], workers=ran, named=False, params={"p": 1})
    b = replace(b, info=replace(b.info, settings=Settings(parallel=ran if stated else None)))
    found = compare(a, b, plan=plan(remedies=(one,), combined=PlannedGain(1.5, 2.0, "x")))
    assert isinstance(found, Comparison)
    (gain,) = found.plan
    assert gain.status == status and (ran == 2 or "proposed" in gain.reason)


@pytest.mark.slow
def test_fewer_at_once_than_proposed_are_no_test_of_the_plan() -> None:
    """Of one to six were proposed; four ran, more than half of the way."""
    one = replace(plan().remedies[0], changes=(Change(AT_ONCE, 1, 6, ""),), predictions=(), verify=())
    long = np.tile(A, 2)
    a = batch("a", long, named=False, params={"p": 1})
    b = batch("b", 4 * long[::-1], workers=4, named=False, params={"p": 1})
    b = replace(b, info=replace(b.info, settings=Settings()))
    found = compare(a, b, plan=plan(remedies=(one,), combined=PlannedGain(1.5, 2.0, "x")))
    assert isinstance(found, Comparison)
    assert found.plan[-1].status == "cannot tell" and "at once that was proposed" in found.plan[-1].reason


def test_a_plan_says_what_it_saves_beside_its_speed_up() -> None:
    made = plan(saved_gpu_h=0.4, remedies=(replace(plan().remedies[0], gain=PlannedGain(1.2, 2.0, "x")),))
    assert "together 1.2–2× faster, and up to 0.4 GPU-h need not be spent again" in " ".join(repr(made).split())
