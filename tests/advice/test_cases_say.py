"""What the investigators of the five cases had to say, and what their numbers refute: read off the report's JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sampleruns import diagnosed
from test_advice_on_samples import RUNS, advised, document

import gpudiag as gd
from gpudiag.rules._engine.judging import RECORD_COMMAND

CASE_1, CASE_2 = "hpo-aggressive-pruning", "starved-input-pipeline/before"
CASE_4, CASE_5 = "memory-exhaustion", "tiny-batch-laptop"
CASE_3 = ("idle-second-gpu/baseline", "idle-second-gpu/experiment")


def verdict(name: str, rule: str) -> dict[str, Any]:
    return next(v for v in document(name)["verdicts"] if v["rule"] == rule)


def fact(name: str, measure: str) -> Any:
    topic, _, key = measure.partition(".")
    return document(name)["measures"][topic][key]["value"]


def correction(name: str, words: str) -> str:
    (said,) = [text for text in document(name)["advice"]["corrections"] if words in text]
    return said


def test_case_1_counts_and_rates_say_of_what() -> None:
    states = {state: fact(CASE_1, f"trials.state.{state}.n") for state in ("COMPLETE", "PRUNED", "FAIL", "RUNNING")}
    marked, dead = fact(CASE_1, "trials.n_running"), fact(CASE_1, "trials.state.ABANDONED.n")
    assert states == {"COMPLETE": 8, "PRUNED": 173, "FAIL": 15, "RUNNING": marked - dead}
    assert (marked, dead) == (4, fact(CASE_1, "trials.abandoned")) and dead >= 1
    rates = [fact(CASE_1, f"pruning.{base}_pct") for base in ("of_all", "of_finished", "of_decided")]
    assert rates == pytest.approx([100 * 173 / 200, 100 * 173 / 196, 100 * 173 / 181])
    assert fact(CASE_1, "pruning.of_all_low_pct") == pytest.approx(81.1, abs=0.05)
    assert fact(CASE_1, "pruning.of_all_high_pct") == pytest.approx(90.6, abs=0.05)
    assert "173 of 181 trials that finished without failure" in verdict(CASE_1, "pruning-rate-high")["summary"]
    stated = verdict(CASE_1, "stated-counts-differ")
    assert stated["status"] == "found" and stated["summary"] == "COMPLETE: 10 stated, 8 found."


def test_case_1_counts_the_running_for_as_long_as_they_lived() -> None:
    """Counted as running for ever they would make a fifth; their memory was freed, so two of them are dead."""
    assert fact(CASE_1, "parallelism.peak") == fact(CASE_1, "parallelism.configured") == 4
    truth = json.loads(
        (Path(__file__).parents[2] / "data" / "samples" / CASE_1 / "truth.json").read_text(encoding="utf-8")
    )
    assert fact(CASE_1, "parallelism.effective") == pytest.approx(truth["effective_parallelism"], rel=0.01)
    assert fact(CASE_1, "parallelism.effective_low") <= truth["effective_parallelism"]
    dead = verdict(CASE_1, "trials-abandoned")
    assert dead["status"] == "found" and dead["where"] == {"trial": "207, 208"}
    assert dead["summary"].startswith("2 of 4 trials marked RUNNING are dead (trials 207, 208): GPU memory was freed")
    assert verdict(CASE_1, "parallelism-above-configured")["status"] == "ok"
    assert verdict(CASE_1, "parallelism-below-configured")["status"] == "ok"


def test_case_1_configuration_against_what_was_seen() -> None:
    found = verdict(CASE_1, "pruned-before-possible")
    assert found["status"] == "found" and "cannot prune before report 4" in found["summary"]
    assert "configured (not CPU load)" in verdict(CASE_1, "loader-workers-cores")["summary"]
    assert verdict(CASE_1, "startup-dominated")["status"] == "not_assessed", "11 of 200 start-ups were seen"
    assert fact(CASE_1, "costs.startup_only_pct") == pytest.approx(1.2, abs=0.2)  # the truth is 1.2
    patience = advised(CASE_1)["pruner-patience"]
    assert patience["apply"] == "next study" and patience["rollback"] and patience["verify"]


def test_case_2_is_starved_by_its_loader_and_nothing_promises_seven_times() -> None:
    assert fact(CASE_2, "utilization.mean_pct") == pytest.approx(11, abs=1)
    assert verdict(CASE_2, "loader-slow")["status"] == verdict(CASE_2, "gpu-low-utilization")["status"] == "found"
    assert advised(CASE_2)["loader-workers"]["gain"]["high"] <= 4.2  # its wait is 76 % of a step: 1 / (1 - 0.76)
    assert "batch-size" not in advised(CASE_2), "the loader sets the pace, whatever the batch"
    assert "record-host" not in advised(CASE_2), "what the GPU waits for is known"
    assert fact(CASE_2, "memory.max_used_pct") < 50


@pytest.mark.parametrize("name", CASE_3)
def test_case_3_an_idle_gpu_is_critical_with_its_causes(name: str) -> None:
    found = verdict(name, "gpu-idle-beside-busy")
    assert (found["status"], found["severity"], found["where"]["gpu"]) == ("found", "critical", "0")
    assert "while GPU 1 averaged" in found["summary"]
    for cause in ("after CUDA was initialized", "gpu_device_id", "list of devices with one entry", "too few tasks"):
        assert cause in found["remedy"]
    assert verdict(name, "gpu-imbalance")["caused_by"] == "gpu-idle-beside-busy"


def test_case_3_the_mean_is_not_that_of_the_job() -> None:
    said = correction(CASE_3[1], "is not that of the trials")
    assert "they ran for 30 s of 6 min 39 s observed (7.5 %)" in said and "While they ran it was 35 %" in said
    needed = float(said.partition("would have needed ")[2].partition(" %")[0])
    assert needed == pytest.approx(28 * 399 / 29.8, abs=6)
    assert not any("is not that of the trials" in text for text in document(CASE_3[0])["advice"]["corrections"])
    assert (fact(CASE_3[0], "trials.n"), fact(CASE_3[0], "trials.state.FAIL.n")) == (576, 17)
    assert (fact(CASE_3[1], "trials.n"), fact(CASE_3[1], "trials.state.FAIL.n")) == (36, 2)


@pytest.mark.slow
def test_case_4_classes_of_failure_events_and_what_a_streak_shows() -> None:
    assert verdict(CASE_4, "failures-out-of-memory")["status"] == "found"
    assert "24 of them followed another one" in verdict(CASE_4, "failures-device-assert")["summary"]
    assert "102 failed trials are 78 events" in verdict(CASE_4, "failures-poisoned")["summary"]
    assert "an association, not a cause" in verdict(CASE_4, "failures-after-full-memory")["summary"]
    assert "is not a lack of memory" in correction(CASE_4, "device-side assert")
    assert not any("streak of successes" in text for text in document(CASE_4)["advice"]["corrections"]), (
        "workers changed: no rate of the whole run is that of any part"
    )
    said = gd.memory_capacity(diagnosed(CASE_4).run)._repr_markdown_()
    assert f"longest run without a failure was {fact(CASE_4, 'trials.success_streak'):.0f} trials" in said
    assert "The chance of 50 in a row without a crash is" in said and "only a rate below 5.8 %" in said
    assert "log-failures" not in advised(CASE_4), "the log names the kind of each of them"


def test_case_5_a_reading_that_cannot_be_and_a_cause_that_cannot_be_told() -> None:
    power = verdict(CASE_5, "power-implausible")
    assert power["status"] == "found" and power["evidence"]["max_all_w"] == 590
    assert power["evidence"]["mean_w"] == pytest.approx(20.5, abs=0.05)
    assert power["evidence"]["mean_all_w"] == pytest.approx(26.8, abs=0.05)
    unsure = verdict(CASE_5, "batch-or-kernels-small")
    assert unsure["status"] == "not_assessed" and "a slow CPU both look like that" in unsure["reason"]
    assert RECORD_COMMAND in unsure["remedy"]
    assert fact(CASE_5, "bottleneck.label") == "" and fact(CASE_5, "bottleneck.undetermined_pct") == pytest.approx(100)


def test_case_6_has_nothing_above_a_note_and_says_what_it_could_not_see() -> None:
    found = [v for v in document("healthy")["verdicts"] if v["status"] == "found"]
    assert all(v["severity"] == "note" for v in found)
    blind = [v for v in document("healthy")["verdicts"] if v["status"] == "not_assessed"]
    assert {"cpu-bound-input", "io-wait", "gpu-hardware-errors"} <= {v["rule"] for v in blind}
    assert all(v["reason"] and v["remedy"] for v in blind)
    assert fact("healthy", "bottleneck.label") == "compute_bound"


@pytest.mark.parametrize("name", RUNS)
def test_every_remedy_can_be_checked(name: str) -> None:
    for one in advised(name).values():
        if one["id"].startswith("remedy-"):  # words of the rule, and nothing made up around them
            assert not any(one[key] for key in ("verify", "refute", "rollback", "safety_reason", "pros", "cons"))
            continue
        assert one["assumption"] and one["safety_reason"] and one["effort"]
        assert one["tier"] == 0 or (one["refute"] and one["rollback"])
        assert one["changes"] and all(change["code"] for change in one["changes"]) and one["apply"]
        assert one["tier"] < 2 or "results change" in one["safety_reason"] or one["tier"] > 2
        assert one["tier"] != 3 or one["verify_first"] or "fit" in one["assumption"]


@pytest.mark.parametrize("name", RUNS)
def test_no_finding_costs_more_than_the_ledger_holds(name: str) -> None:
    total_h = (document(name)["measures"].get("ledger", {}).get("total_gpu_s", {}).get("value") or 0.0) / 3600
    costs = {v["rule"]: v["lost_gpu_h"] for v in document(name)["verdicts"] if v.get("lost_gpu_h")}
    assert all(cost <= 1.001 * total_h for cost in costs.values()), (costs, total_h)


def test_case_3_tells_the_job_from_what_ran_after_it() -> None:
    """Half a minute of trials in seven minutes of telemetry: the other load is told, and costs nothing."""
    name = CASE_3[1]
    found = verdict(name, "work-outside-trials")
    assert found["status"] == "found" and found["where"] == {"gpu": "1"}
    assert fact(name, "ledger.outside_of_work_pct") == pytest.approx(100 * 348.8 / (348.8 + 29.8), abs=1)
    idle = verdict(name, "gpu-idle-beside-busy")
    assert (
        idle["lost_gpu_h"] == pytest.approx(29.8 / 3600, rel=0.02)
        and "averaged 35 % during the trials" in idle["summary"]
    )
