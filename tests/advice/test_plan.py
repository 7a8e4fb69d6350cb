"""plan.json: written, checked against its schema, read back, and verified against numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from documents import fits
from sampleruns import diagnosed

from gpudiag.advice._engine.plan import holds, load_plan, make_plan, plan_json
from gpudiag.advice._engine.proposal import SuccessCheck
from gpudiag.diagnosis import Diagnosis, diagnose
from gpudiag.errors import ConfigError, InputError, InputNotFound
from gpudiag.load import load_run

SAMPLES = Path(__file__).resolve().parents[2] / "data" / "samples"


def case_1() -> Diagnosis:
    return diagnosed("hpo-aggressive-pruning")


def test_a_plan_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    path = case_1().save_plan(tmp_path / "plan.json")
    plan = load_plan(path)
    assert plan == make_plan(case_1().run, case_1().advice)
    assert [one.id for one in plan.remedies] == case_1().to_dict()["advice"]["plan"]
    assert {item.path for item in plan.inputs} == {record.path for record in case_1().run.info.inputs}
    assert all(len(item.sha256) == 64 for item in plan.inputs)
    fits(json.loads(path.read_text()), "plan-1")


@pytest.mark.slow
def test_the_same_run_gives_the_same_plan() -> None:
    again = diagnose(load_run(SAMPLES / "hpo-aggressive-pruning"))
    assert plan_json(make_plan(again.run, again.advice)) == plan_json(make_plan(case_1().run, case_1().advice))


def test_remedies_can_be_chosen_by_id(tmp_path: Path) -> None:
    plan = load_plan(case_1().save_plan(tmp_path / "p.json", ["log-failures", "loader-workers"]))
    assert [one.id for one in plan.remedies] == ["log-failures", "loader-workers"]
    assert plan.combined is not None and plan.combined.high == pytest.approx(plan.ceiling)
    with pytest.raises(ConfigError, match=r"no remedy 'loader-worker' is recommended.*did you mean 'loader-workers'"):
        case_1().save_plan(tmp_path / "q.json", ["loader-worker"])
    assert not (tmp_path / "q.json").exists()


def test_what_is_no_plan_is_refused_with_the_place(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    with pytest.raises(InputNotFound, match=r"expected a plan\.json"):
        load_plan(path)
    good = json.loads(plan_json(make_plan(case_1().run, case_1().advice)))
    path.write_text(json.dumps({**good, "remedies": 3}))
    with pytest.raises(InputError, match=r"is no plan of the form gpudiag.plan/1: remedies"):
        load_plan(path)
    path.write_text(json.dumps({**good, "extra": 3}))
    with pytest.raises(InputError, match="extra"):
        load_plan(path)
    path.write_text(json.dumps({**good, "schema": "gpudiag.plan/9"}))
    with pytest.raises(InputError, match=r"expected a plan of the form gpudiag.plan/1, but it says 'gpudiag.plan/9'"):
        load_plan(path)


def test_a_check_holds_fails_or_is_unknown() -> None:
    for op, expected in ((">=", True), (">", False), ("<=", True), ("<", False)):
        assert holds(SuccessCheck("utilization.mean_pct", op, 91.0, "%"), 91.0) is expected
    assert holds(SuccessCheck("utilization.idle_pct", "<", 5.0, "%"), None) is None
    assert holds(SuccessCheck("clock.confidence", "<", 5.0, ""), "high") is None


def test_options_by_safety() -> None:
    table = case_1().recommendations.to_frame()
    assert isinstance(table, pd.DataFrame) and table["tier"].is_monotonic_increasing
    row = table.set_index("id").loc["loader-workers"]
    assert (row["present"], row["proposed"]) == ("num_workers: 2", "3")
    assert row["memory_low"] == row["memory_high"] == row["memory_now"]
    assert row["trial_time_low"] == pytest.approx(row["trial_time_now"] / row["gain_high"])
