"""Rules over trials, pruning and parallelism, just below and just above each threshold."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest
from small_profiles import NAN, profile, verdict

from gpudiag.measures._trials.horizon import Sign
from gpudiag.measures._trials.proportions import wilson_pct
from gpudiag.measures.parallelism import ParallelismProfile, measure_parallelism
from gpudiag.measures.pruning import PruningProfile
from gpudiag.measures.search import SearchProfile
from gpudiag.measures.trials import TrialsProfile
from gpudiag.rules._engine.verdict import Severity, Status
from gpudiag.rules.parallelism import (
    parallelism_above_configured,
    parallelism_below_configured,
    trial_gaps,
    trials_serialised,
)
from gpudiag.rules.pruning import pruned_before_possible, pruned_late, pruning_rate_high
from gpudiag.rules.search import trial_duration_drift
from gpudiag.rules.trials import failure_rate_high, trials_abandoned
from gpudiag.statement import Statement
from tests.smallruns import run, trials

FOUND, OK, NOT_ASSESSED, NOT_APPLICABLE = Status.FOUND, Status.OK, Status.NOT_ASSESSED, Status.NOT_APPLICABLE
CRITICAL, WARNING, NOTE = Severity.CRITICAL, Severity.WARNING, Severity.NOTE


def failing(n_fail: int, n: int, **stated: Any) -> TrialsProfile:
    low, high = wilson_pct(n_fail, n)
    share = 100 * n_fail / n if n else NAN
    values = {"n_finished": n, "n_fail": n_fail, "fail_pct": share, "fail_low_pct": low, "fail_high_pct": high}
    return profile(TrialsProfile, **{**values, "fail_worker_h": 0.5, **stated})


@pytest.mark.parametrize(
    ("n_fail", "n", "severity"),
    [
        (15, 196, WARNING),
        (17, 576, None),
        (2, 36, None),
        (1, 5, WARNING),
        (70, 200, CRITICAL),
        (60, 200, WARNING),
        (1, 1, NOTE),
        (0, 50, None),
    ],
)
def test_failure_rate_by_its_lower_bound(n_fail: int, n: int, severity: Severity | None) -> None:
    found = verdict(failure_rate_high, failing(n_fail, n))
    assert found.status is (FOUND if severity else OK)
    if severity:
        assert found.severity is severity


@pytest.mark.parametrize(("low", "status"), [(2.0, OK), (2.01, FOUND), (NAN, OK)])
def test_failure_rate_boundary(low: float, status: Status) -> None:
    assert verdict(failure_rate_high, failing(9, 100, fail_low_pct=low)).status is status


def test_failure_rate_prints_its_interval_and_a_streak() -> None:
    found = verdict(failure_rate_high, failing(15, 196, fail_streak=9, p_fail_streak=1e-6))
    assert found.summary == (
        "15 of 196 finished trials failed, 7.7 % (4.7–12 %). That took 30 min of trial time. "
        "9 failed in a row, more than by chance."
    )
    assert {"fail_streak", "p_fail_streak"} <= set(found.evidence)
    untimed = verdict(failure_rate_high, failing(15, 196, fail_worker_h=NAN))
    assert untimed.summary == "15 of 196 finished trials failed, 7.7 % (4.7–12 %)."
    assert "fail_worker_h" not in untimed.evidence
    killed = verdict(failure_rate_high, failing(15, 196, n_died=8))
    assert " 8 of these ended with their process, which reported no error." in killed.summary
    assert "what ended these processes" in killed.remedy
    killed_less = verdict(failure_rate_high, failing(15, 196, n_died=7))
    assert "what ended" not in killed_less.remedy
    of_batch = {"n_fail_with": 15, "n_fail_compared": 15, "n_well_with": 0, "n_well_compared": 180}
    condition = Statement("{name} = {value}", name="batch_size", value=256.0)
    shared = verdict(failure_rate_high, failing(15, 196, fail_condition=condition, p_condition=0.009, **of_batch))
    assert (
        "15 of 15 failed trials had batch_size = 256; of those that ended well meanwhile, 0 of 180." in shared.summary
    )
    assert shared.remedy == killed_less.remedy
    named = verdict(
        failure_rate_high, failing(15, 196, fail_study="b", fail_condition=condition, p_condition=0.009, **of_batch)
    )
    assert " In study b, 15 of 15 failed trials had batch_size = 256;" in named.summary
    by_chance = verdict(failure_rate_high, failing(15, 196, fail_condition=condition, p_condition=0.011, **of_batch))
    assert "batch_size" not in by_chance.summary and "p_condition" not in by_chance.evidence
    chance = verdict(failure_rate_high, failing(15, 196, fail_streak=2, p_fail_streak=0.5))
    assert "in a row" not in chance.summary and not {"fail_streak", "p_fail_streak"} & set(chance.evidence)


def test_nothing_finished_is_not_assessed() -> None:
    assert verdict(failure_rate_high, failing(0, 0)).status is NOT_ASSESSED


def running(n: int, reasons: list[str], abandoned: list[bool]) -> TrialsProfile:
    names = pd.Series([str(number) for number in range(7, 7 + len(reasons))], dtype=object)
    opens = pd.DataFrame({"name": names, "reason": reasons, "abandoned": abandoned})
    return profile(TrialsProfile, n_running=n, abandoned=sum(abandoned), open_trials=opens)


def test_abandoned() -> None:
    assert verdict(trials_abandoned, running(0, [], [])).status is OK
    found = verdict(trials_abandoned, running(2, ["reused", "?"], [True, False]))
    assert found.status is FOUND and found.where == {"trial": "7"}
    assert found.summary == "1 of 2 trials marked RUNNING is dead (trial 7): the worker started another trial."
    alive = verdict(trials_abandoned, running(2, ["?", "?"], [False, False]))
    assert alive.status is NOT_ASSESSED and "heartbeat" in alive.remedy
    assert "without a start" in verdict(trials_abandoned, running(3, ["?"], [False])).reason


def test_orphans_of_several_studies_are_named_with_theirs() -> None:
    opens = pd.DataFrame({"name": ["a/7", "b/7"], "reason": ["vanished", "?"], "abandoned": [True, False]})
    found = verdict(trials_abandoned, profile(TrialsProfile, n_running=2, abandoned=1, open_trials=opens))
    assert found.summary.endswith("dead (trial a/7): the process left the GPU.") and found.where == {"trial": "a/7"}


def test_orphans_that_only_the_configured_number_shows_are_hedged() -> None:
    found = verdict(trials_abandoned, running(4, [Sign.CROWDED, "?", "?", "?"], [True, False, False, False]))
    assert found.summary.startswith("At least 1 of 4 trials marked RUNNING is dead")
    assert found.summary.endswith(": otherwise more trials ran at once than were configured.")


@pytest.mark.parametrize("sign", [Sign.CROWDED, Sign.BEYOND])
def test_no_more_than_all_trials_marked_running_can_be_dead(sign: Sign) -> None:
    found = verdict(trials_abandoned, running(3, [sign] * 3, [True] * 3))
    assert found.summary.startswith("3 of 3 trials marked RUNNING are dead (trials 7, 8, 9): otherwise more")


def test_where_nothing_was_configured_the_reason_says_nothing_of_it() -> None:
    found = verdict(trials_abandoned, running(4, [Sign.BEYOND, "?", "?", "?"], [True, False, False, False]))
    assert found.summary.startswith("At least 1 of 4 trials marked RUNNING is dead")
    assert "configured" not in found.summary and "than before and after" in found.summary


def pruned(n_pruned: int, n_complete: int, **stated: Any) -> PruningProfile:
    n = n_pruned + n_complete
    low, high = wilson_pct(n_pruned, n)
    values = {
        "n_pruned": n_pruned, "n_decided": n, "of_decided_pct": 100 * n_pruned / n, "of_decided_low_pct": low,
        "of_decided_high_pct": high, "cost_pct": 40.0, "at_first_pct": 10.0, "first_step": 2.0, "n_unended": 0,
    }  # fmt: skip
    return profile(PruningProfile, **{**values, **stated})


@pytest.mark.parametrize(
    ("stated", "severity"),
    [
        ({}, NOTE),
        ({"of_decided_low_pct": 80.0}, None),
        ({"of_decided_low_pct": 80.1}, NOTE),
        ({"cost_pct": 50.0}, NOTE),
        ({"cost_pct": 50.1}, WARNING),
        ({"at_first_pct": 50.0}, NOTE),
        ({"at_first_pct": 50.1}, WARNING),
        ({"cost_pct": NAN, "at_first_pct": NAN}, NOTE),
        ({"of_decided_low_pct": NAN}, None),
    ],
)
def test_pruning_rate(stated: dict[str, float], severity: Severity | None) -> None:
    found = verdict(pruning_rate_high, pruned(173, 8, **stated))
    assert found.status is (FOUND if severity else NOT_ASSESSED)
    if severity:
        assert found.severity is severity
        assert "173 of 181 trials that finished without failure were pruned: 95.6 %" in found.summary


def test_a_study_of_which_no_trial_is_left_has_no_result() -> None:
    found = verdict(pruning_rate_high, pruned(40, 0))
    assert found.severity is CRITICAL and "No trial completed: the study has no result." in found.summary
    assert verdict(pruning_rate_high, pruned(15, 0)).severity is CRITICAL, "all ended, and there is no result"
    open_ones = verdict(pruning_rate_high, pruned(15, 0, n_unended=1))
    assert open_ones.status is NOT_ASSESSED, "the next may complete"
    assert "15 of 15 trials that finished without failure were pruned" in open_ones.reason
    assert "No trial has completed so far." in verdict(pruning_rate_high, pruned(40, 0, n_unended=1)).summary
    assert verdict(pruning_rate_high, pruned(4, 0)).status is NOT_ASSESSED
    assert "completed" not in verdict(pruning_rate_high, pruned(173, 1)).summary


def test_few_trials_prove_no_rate_and_none_is_no_question() -> None:
    assert verdict(pruning_rate_high, pruned(9, 1)).status is NOT_ASSESSED, "9 of 10 may be fewer than 80 %"
    assert verdict(pruning_rate_high, pruned(8, 2)).status is OK
    assert verdict(pruning_rate_high, pruned(0, 5)).status is NOT_APPLICABLE


@pytest.mark.parametrize(
    ("stated", "status"),
    [
        ({"before_possible": 1.0}, FOUND),
        ({"before_possible": 0.0}, OK),
        ({"before_possible": NAN}, NOT_ASSESSED),
        ({"pruner": "", "before_possible": NAN}, NOT_ASSESSED),
        ({"n_pruned": 0}, NOT_APPLICABLE),
    ],
)
def test_pruned_before_possible(stated: dict[str, Any], status: Status) -> None:
    given = {"pruner": "patient(median(),patience=2)", "config_first_report": 4.0, **stated}
    found = verdict(pruned_before_possible, profile(PruningProfile, **{"n_pruned": 20, **given}))
    assert found.status is status
    if status is FOUND:
        assert found.summary == ("The stated pruner cannot prune before report 4; 1 of 20 pruned trials ended earlier.")


def test_a_pruner_that_never_prunes_is_said() -> None:
    found = verdict(
        pruned_before_possible, pruned(3, 5, pruner="nop", before_possible=3.0, config_first_report=math.inf)
    )
    assert found.summary.startswith("The stated pruner never prunes, but 3 trials were pruned.")


def parallel(**stated: Any) -> ParallelismProfile:
    values = {
        "configured": 4.0, "effective": 4.0, "effective_low": 4.0, "effective_high": 4.0, "n_timed": 50, "peak": 4,
        "peak_closed": 4, "above_configured_s": 0.0, "busy_s": 3600.0, "window_s": 3600.0, "n_workers": 4,
        "median_gap_s": 1.0, "handover_pct": 0.0, "gap_worker_h": 0.4,
        "gaps": pd.DataFrame({"gap_s": [1.0] * 5}),
    }  # fmt: skip
    if "effective" in stated:
        values |= {"effective_low": stated["effective"], "effective_high": stated["effective"]}
    return profile(ParallelismProfile, **{**values, **stated})


@pytest.mark.parametrize(
    ("stated", "status"),
    [
        ({"effective": 2.99}, FOUND),
        ({"effective": 3.0}, OK),
        ({"effective_low": 1.89, "effective_high": 3.89}, NOT_ASSESSED),
        ({"configured": NAN, "effective": 1.0}, NOT_APPLICABLE),
        ({"configured": 1.0, "effective": 1.0}, NOT_APPLICABLE),
        ({"n_timed": 3, "effective": 1.0}, NOT_APPLICABLE),
        ({"effective": NAN}, OK),
        ({"effective": 2.0, "effective_begun": 2.99}, FOUND),
        ({"effective": 2.0, "effective_begun": 3.0}, OK),
    ],
)
def test_below_configured(stated: dict[str, Any], status: Status) -> None:
    assert verdict(parallelism_below_configured, parallel(**stated)).status is status


@pytest.mark.parametrize(
    ("stated", "status"),
    [
        ({"peak": 5, "above_configured_s": 5.1}, FOUND),
        ({"peak": 5, "above_configured_s": 5.0}, OK),
        ({"configured": NAN, "above_configured_s": NAN}, NOT_APPLICABLE),
    ],
)
def test_above_configured(stated: dict[str, Any], status: Status) -> None:
    assert verdict(parallelism_above_configured, parallel(**stated)).status is status


def test_case_1_offers_both_explanations_and_closed_trials_only_one() -> None:
    found = verdict(parallelism_above_configured, parallel(peak=5, peak_closed=3, above_configured_s=551.0))
    assert found.summary == (
        "Up to 5 trials ran at once with 4 workers configured, for 9 min 11 s: a trial marked RUNNING is dead, or "
        "another worker took part."
    )
    certain = verdict(parallelism_above_configured, parallel(peak=5, peak_closed=5, above_configured_s=551.0))
    assert certain.summary.endswith("9 min 11 s: another worker took part.")


@pytest.mark.parametrize(
    ("gap", "handover", "status"),
    [(5.1, 49.9, FOUND), (5.0, 0.0, OK), (5.1, 50.0, OK), (NAN, NAN, OK)],
)
def test_gaps_between_trials(gap: float, handover: float, status: Status) -> None:
    found = verdict(trial_gaps, parallel(median_gap_s=gap, handover_pct=handover))
    assert found.status is status
    if status is FOUND:
        assert "gaps take 9.1 % of the workers' time" in found.summary  # 0.4 h beside 4 h of trials


@pytest.mark.parametrize(("gap_worker_h", "status"), [(0.210, OK), (0.211, FOUND)])
def test_gaps_that_take_little_of_the_time_are_no_fault(gap_worker_h: float, status: Status) -> None:
    """Beside 4 h of trials: 5 % is 0.2105 h."""
    said = verdict(trial_gaps, parallel(median_gap_s=60.0, gap_worker_h=gap_worker_h))
    assert said.status is status and (status is OK or said.severity is WARNING)
    if status is OK:
        assert said.summary == "1 min at the median, 5 % of the workers' time (limit 5 %)."


def test_no_gap_no_question() -> None:
    assert verdict(trial_gaps, parallel(gaps=pd.DataFrame({"gap_s": []}))).status is NOT_APPLICABLE


@pytest.mark.parametrize(("n", "gaps"), [(1, "1 gap"), (4, "4 gaps")])
def test_few_gaps_have_no_median_to_speak_of(n: int, gaps: str) -> None:
    found = verdict(trial_gaps, parallel(gaps=pd.DataFrame({"gap_s": [99.0] * n}), median_gap_s=99.0))
    assert found.status is NOT_ASSESSED
    assert f"The trials have only {gaps} between them; 5 are needed." in found.reason


@pytest.mark.parametrize(
    ("stated", "status"),
    [
        ({"effective": 1.2}, FOUND),
        ({"effective": 1.21}, OK),
        ({"effective_low": 1.0, "effective_high": 2.0}, NOT_ASSESSED),
        ({"configured": NAN}, NOT_APPLICABLE),
    ],
)
def test_serialised(stated: dict[str, Any], status: Status) -> None:
    assert verdict(trials_serialised, parallel(**stated)).status is status


def late(n_late: int, n: int, **stated: Any) -> PruningProfile:
    low = 100 * (n_late / n + 1.96**2 / (2 * n) - 1.96 * math.sqrt((n_late / n * (1 - n_late / n) + 0.9604 / n) / n))
    low /= 1 + 1.96**2 / n
    times = {"pruned_median_s": 95.0, "complete_median_s": 100.0, "cost_pct": 20.0}
    return profile(
        PruningProfile, **({"n_pruned": n, "n_late": n_late, "n_late_known": n, "late_low_pct": low} | times | stated)
    )


def test_pruned_late() -> None:
    found = verdict(pruned_late, late(25, 30))
    assert found.status is FOUND and found.severity is NOTE
    assert "25 of 30 pruned trials ran as long as complete ones" in found.summary
    assert "(median 1 min 35 s, complete 1 min 40 s)" in found.summary
    several = verdict(pruned_late, late(25, 30, pruned_median_s=NAN, complete_median_s=NAN)).summary
    assert several.startswith("25 of 30 pruned trials ran as long as complete ones of their study. Pruned trials")
    assert verdict(pruned_late, late(25, 30, cost_pct=25.1)).severity is WARNING
    assert verdict(pruned_late, late(18, 30)).status is NOT_ASSESSED, "60 % of 30 may be a half"
    assert verdict(pruned_late, late(3, 3)).status is NOT_ASSESSED, "three prove nothing"
    assert verdict(pruned_late, late(15, 30)).status is OK
    assert verdict(pruned_late, profile(PruningProfile, n_pruned=0)).status is NOT_APPLICABLE
    assert verdict(pruned_late, profile(PruningProfile, n_pruned=4, n_late_known=0)).status is NOT_ASSESSED


def test_the_trials_that_a_drift_was_sought_in_are_said() -> None:
    """8 COMPLETE trials, of which 5 ran with one number of workers: the sentence must not read as if there were 5."""
    few = {"n_drift": 5, "drift_p": NAN, "drift_rho": NAN, "drift_ratio": NAN, "drift_study": "", "drift_workers": 0}
    reason = verdict(trial_duration_drift, profile(SearchProfile, **few)).reason
    assert reason == "Only 5 COMPLETE trials with times; 20 are needed."
    held = verdict(trial_duration_drift, profile(SearchProfile, **{**few, "drift_workers": 4, "drift_study": "b"}))
    assert held.reason == "Only 5 COMPLETE trials with times of study b, all with 4 workers running; 20 are needed."


@pytest.mark.parametrize(("stops", "status"), [(False, OK), (True, FOUND)])
def test_a_search_without_trials_left_needs_no_worker_more(stops: bool, status: Status) -> None:
    # Three workers take 60 s a trial, and the last trial 900 s. Of one that stops the others go on with its trials.
    rows = [("COMPLETE", 60.0 * turn, 60.0 * turn + 60) for turn in range(20) for worker in range(3 - stops * 2)]
    found = measure_parallelism(run(trials=trials([*rows, ("COMPLETE", 1200.0, 2100.0)]), settings={"parallel": 3}))
    assert verdict(parallelism_below_configured, found).status is status
