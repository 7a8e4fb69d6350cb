"""The five cases: what is advised, what it can bring, and the claims that the numbers refute."""

from __future__ import annotations

import json
import operator
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from documents import fits
from sampleruns import diagnosed

pytestmark = pytest.mark.slow  # each sample is diagnosed

SAMPLES = Path(__file__).resolve().parents[2] / "data" / "samples"
RUNS = (
    "healthy",
    "hpo-aggressive-pruning",
    "starved-input-pipeline/before",
    "idle-second-gpu/baseline",
    "idle-second-gpu/experiment",
    "memory-exhaustion",
    "tiny-batch-laptop",
)


@cache
def document(name: str) -> dict[str, Any]:
    return json.loads(diagnosed(name).to_json())


def advised(name: str) -> dict[str, dict[str, Any]]:
    return {one["id"]: one for one in document(name)["recommendations"]}


def change(name: str, remedy: str) -> dict[str, Any]:
    return advised(name)[remedy]["changes"][0]


def busy_pct(name: str) -> float:
    """Utilization over the time in which trials ran, straight from the profile of utilization."""
    table = diagnosed(name).profiles["utilization"].per_gpu
    column = "trial_mean_pct" if table["trial_mean_pct"].notna().any() else "mean_pct"
    return float(table[column].max())


@pytest.mark.many
@pytest.mark.parametrize("name", RUNS)
def test_the_document_fits_its_schema(name: str) -> None:
    fits(document(name), "diagnosis-4")


@pytest.mark.parametrize("name", RUNS)
def test_no_gain_at_constant_work_beats_the_idle_time(name: str) -> None:
    ceiling = 100 / busy_pct(name)
    for one in advised(name).values():
        gain = one["gain"]
        assert gain is None or gain["low"] <= gain["high"]
        if gain and gain["unit"] == "x" and one["id"] not in ("pin-gpu", "mixed-precision", "fewer-workers"):
            assert 1 <= gain["high"] <= 1.01 * ceiling, one["id"]
    if "pin-gpu" not in advised(name):
        combined = document(name)["advice"]["combined"]
        assert combined is None if not document(name)["advice"]["plan"] else combined["high"] <= 1.01 * ceiling


@pytest.mark.parametrize("name", RUNS)
def test_nothing_is_advised_that_has_succeeded_already(name: str) -> None:
    """Of what shall be seen after a change at least one thing is not so yet."""
    measures = document(name)["measures"]
    meets = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
    for one in advised(name).values():
        met = []
        for check in one["verify"]:
            topic, _, fact = check["measure"].partition(".")
            now = measures[topic][fact]["value"]
            met.append(now is not None and meets[check["op"]](now, check["value"]))
        assert not met or not all(met), one["id"]


@pytest.mark.parametrize("name", RUNS)
def test_checks_and_predictions_name_numbers_of_the_document(name: str) -> None:
    measures = document(name)["measures"]
    for one in advised(name).values():
        for stated in (*one["verify"], *one["predictions"]):
            topic, _, fact = stated["measure"].partition(".")
            assert measures[topic][fact]["unit"] == stated["unit"], stated
        for predicted in one["predictions"]:
            topic, _, fact = predicted["measure"].partition(".")
            assert predicted["baseline"] == pytest.approx(measures[topic][fact]["value"])
            assert predicted["note"] or None not in (predicted["low"], predicted["high"])


@pytest.mark.parametrize("name", RUNS)
def test_plan_holds_nothing_that_must_be_verified_first(name: str) -> None:
    remedies = advised(name)
    assert all(not remedies[one]["verify_first"] for one in document(name)["advice"]["plan"])


@pytest.mark.parametrize("name", RUNS)
def test_what_answers_no_finding_must_be_verified_first(name: str) -> None:
    assert all(one["rules"] or one["verify_first"] for one in advised(name).values())


def test_healthy_needs_nothing() -> None:
    found = [v for v in document("healthy")["verdicts"] if v["status"] == "found" and v["severity"] != "note"]
    assert not found and not advised("healthy")
    show = diagnosed("healthy").show
    assert "Nothing needs to be changed." in repr(show.verdict)
    assert repr(show.advice).strip() == "", "the headline has said it"


def test_case_1_fills_at_most_a_fifth_whatever_is_combined() -> None:
    entry = document("hpo-aggressive-pruning")["advice"]
    assert entry["combined"]["high"] <= entry["ceiling"] == pytest.approx(1.2, abs=0.02)
    assert "loader-workers" not in entry["plan"], "nothing recorded shows that the loader is waited for"
    assert entry["combined"]["low"] == 1.0
    advice = diagnosed("hpo-aggressive-pruning").advice
    everything = advice.combined(advice.recommendations)
    assert everything is not None and everything.clipped and everything.high == pytest.approx(entry["ceiling"])


def test_case_1_corrects_that_start_up_dominates() -> None:
    (said,) = [text for text in document("hpo-aggressive-pruning")["advice"]["corrections"] if "Start-up" in text]
    costs = document("hpo-aggressive-pruning")["measures"]["costs"]
    only_pct = costs["startup_only_pct"]["value"]
    assert only_pct < 2 and f"for {only_pct:.1f} % of the time with a trial" in said and "does not dominate" in said
    # Of four trials at once few start-ups are seen: no share of the workers' time is claimed.
    assert costs["n_startups"]["value"] < 60 and costs["startup_share_pct"]["value"] is None
    assert "is not known" in said


def test_case_1_repeats_no_guessed_percentage() -> None:
    text = diagnosed("hpo-aggressive-pruning").to_markdown().replace("–", "-")
    for guess in (r"\+\s?5-10", r"10-15\s?%", r"15-20\s?%", r"13-18\s?%"):
        assert re.search(guess, text) is None, guess


def test_case_1_options_respect_cores_pruner_and_memory() -> None:
    name = "hpo-aggressive-pruning"
    workers = change(name, "loader-workers")
    assert (workers["present"], workers["proposed"]) == (2, 3)  # 4 workers x 4 trials would be 16 on 12 cores
    assert "12 of 12 cores" in workers["code"]
    patience = advised(name)["pruner-patience"]
    assert patience["safety"] == "moderate" and "not comparable" in patience["safety_reason"]
    assert "The stated pruner is not the one that ran" in patience["verify_first"]
    assert "PatientPruner(optuna.pruners.HyperbandPruner(min_resource=1" in patience["changes"][0]["code"]
    assert "patience=5" in patience["changes"][0]["code"]
    assert "more-workers" not in advised(name), "four fit, and no more are sure to"


def test_case_1_pruning_cannot_be_predicted_from_cut_curves() -> None:
    predicted = advised("hpo-aggressive-pruning")["pruner-patience"]["predictions"]
    (rate,) = [p for p in predicted if p["measure"] == "pruning.of_decided_pct"]
    assert rate["low"] is None and rate["high"] == pytest.approx(95.58, abs=0.01) and "pruned" in rate["note"]


def test_case_2_more_workers_bring_at_most_what_steps_wait_for() -> None:
    """70 % of 24 cores are 17 workers, more than four times as many; steps wait 25.3 of 33.3 ms."""
    name = "starved-input-pipeline/before"
    workers = advised(name)["loader-workers"]
    assert (workers["changes"][0]["present"], workers["changes"][0]["proposed"]) == (4, 17)
    run_s, in_steps_s = 7 * 690.0, 7 * (690.0 - 9.0) - 14.0  # nine seconds of each epoch validate, 14 are the start
    high = run_s / (run_s - in_steps_s * 25.3 / 33.3)
    assert workers["gain"] == {"low": 1.0, "high": pytest.approx(high, rel=0.02), "unit": "x"}
    assert document(name)["recommendations"][0]["id"] == "loader-workers"
    (util,) = [p for p in workers["predictions"] if p["measure"] == "ledger.mean_util_pct"]
    assert util["high"] == pytest.approx(workers["gain"]["high"] * util["baseline"])
    wanted = util["baseline"] + (util["high"] - util["baseline"]) / 10
    assert workers["verify"][0] == {
        "measure": "ledger.mean_util_pct", "op": ">=", "value": round(wanted, 1), "unit": "%"
    }  # fmt: skip


def test_case_3_pins_by_environment_and_by_argument() -> None:
    for name in ("idle-second-gpu/baseline", "idle-second-gpu/experiment"):
        first = document(name)["recommendations"][0]
        only = 100 / (100 - busy_pct(name))  # the same workers wait for the GPU in the time in which it is busy
        assert first["id"] == "pin-gpu"
        assert first["gain"] == {"low": 1.0, "high": pytest.approx(only, rel=1e-3), "unit": "x"}
        code = first["changes"][0]["code"]
        assert "env=env" in code and "CUDA_VISIBLE_DEVICES" in code and '"--device", "0"' in code
        assert {"measure": "ledger.gpu.0.mean_util_pct", "op": ">", "value": 10.0, "unit": "%"} in first["verify"]
        assert {"check-devices", "log-parameters"} <= set(advised(name))


def test_case_4_has_fewer_at_once_already_and_may_have_a_constraint() -> None:
    name = "memory-exhaustion"
    assert "fewer-workers" not in advised(name), "it went on with two for its last day, and two fit"
    assert diagnosed(name).profiles["parallelism"].workers["n_workers"].tolist() == [4, 3, 2]
    assert change(name, "keep-fewer")["proposed"] == diagnosed(name).analysis.capacity.recommended_k == 2
    assert (
        "keep-fewer" in document(name)["advice"]["plan"] and "memory-constraint" not in document(name)["advice"]["plan"]
    )
    assert "recommended 2 the largest trials fit" in advised(name)["memory-constraint"]["verify_first"]
    limit = change(name, "memory-constraint")  # three at once fit if none takes more than a third of what is usable
    assert limit["proposed"] == pytest.approx((0.98 * 24564 - 350) / 3, abs=5)
    assert "so that any 3 fit" in advised(name)["memory-constraint"]["assumption"]
    assert "('large', 128)" in limit["code"] and "TrialPruned" in limit["code"]
    assert "isolate-trials" in advised(name)
    assert advised(name)["find-assert"]["rules"] == ["failures-device-assert"], "the faulty operation comes first"
    assert "failures-device-assert" not in advised(name)["isolate-trials"]["rules"]
    price = document(name)["headline"]["sentences"][2]
    assert "4 → 2" in price and "as fast" in price, "fewer at once are not sold without their price"
    assert not {"catch-oom", "free-memory"} & set(advised(name)), "each failed alone, and no memory stayed in use"
    # Of 1.1 GPU-h of failed trials 0.73 were out of memory; 24 that followed another one lasted 74 s in all.
    gains = {name: one["gain"]["high"] for name, one in advised(name).items() if one["gain"]}
    assert gains["memory-constraint"] == pytest.approx(0.73, abs=0.02) and gains["isolate-trials"] < 0.01
    assert any("not in proportion" in text for text in document(name)["advice"]["corrections"])


def test_case_5_room_for_a_batch_is_no_speed() -> None:
    name = "tiny-batch-laptop"
    batch = advised(name)["batch-size"]
    assert (batch["changes"][0]["present"], batch["changes"][0]["proposed"]) == (32, 256)
    assert batch["gain"] == {"low": 1.0, "high": 8, "unit": "x"}
    assert "none where each sample costs the same CPU time" in batch["assumption"]
    assert "record-host" in advised(name)
    assert document(name)["recommendations"][0]["id"] == "record-host", "a CPU that is too slow is not excluded"
    assert "slow input" in batch["verify_first"] and "batch-size" not in document(name)["advice"]["plan"]
    assert "Record the CPU" in document(name)["headline"]["sentences"][2]
    assert any("not what is faster" in text for text in document(name)["advice"]["corrections"])
