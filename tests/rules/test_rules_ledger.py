"""Rules on the clock, the ledger and the costs, just below and above their thresholds, and on planted runs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from planted.base import log, run, trials
from poolrun import Pool, make
from small_profiles import profile

import gpudiag as gd
from gpudiag.alignment import apply_clock, establish_clock
from gpudiag.analysis import Analysis
from gpudiag.measures.clock import ClockProfile, measure_clock
from gpudiag.measures.costs import CostsProfile, measure_costs
from gpudiag.measures.ledger import LedgerProfile, measure_ledger
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.rule import Rule, check_thresholds
from gpudiag.rules._engine.verdict import Severity, Status, Verdict
from gpudiag.rules.clock import clocks_apart, clocks_differ
from gpudiag.rules.costs import startup_dominated
from gpudiag.rules.ledger import foreign_load, idle_without_trial, work_outside_trials
from gpudiag.run import ClockRecord, Run
from gpudiag.simulation import Foreign, simulate

NAN = float("nan")


def judged(rule: Rule, found: Any) -> Verdict:
    analysis = Analysis(Run(), {rule.measure: found})
    return judge_all((rule,), analysis, check_thresholds((rule,), {}))[0]


def on(rule: Rule, run: Run) -> Verdict:
    return judge_all((rule,), Analysis(run), check_thresholds((rule,), {}))[0]


def ledger(foreign_s: float, pct: float, **stated: Any) -> LedgerProfile:
    cells = pd.DataFrame({"gpu": ["0", "1"], "cell": ["foreign", "foreign"], "gpu_s": [foreign_s, 0.0]})
    return profile(
        LedgerProfile, cells=cells, foreign_of_no_trial_pct=pct, has_trials=True, coverage_pct=100.0, **stated
    )


@pytest.mark.parametrize(
    ("seconds", "pct", "found"), [(60, 5.1, True), (59, 50, False), (600, 5, False), (60, NAN, False)]
)
def test_foreign_load(seconds: float, pct: float, found: bool) -> None:
    verdict = judged(foreign_load, ledger(seconds, pct))
    assert (verdict.status is Status.FOUND) == found
    if found:
        assert verdict.where == {"gpu": "0"} and verdict.lost_gpu_h == pytest.approx(seconds / 3600)
        assert "GPU 0 worked for 1 min while no trial ran on it" in verdict.summary


def test_foreign_load_of_several_gpus() -> None:
    cells = pd.DataFrame({"gpu": ["0", "1"], "cell": ["foreign", "foreign"], "gpu_s": [30.0, 30.0]})
    both = profile(LedgerProfile, cells=cells, foreign_of_no_trial_pct=50.0, has_trials=True, coverage_pct=100.0)
    said = "GPUs 0 and 1 worked for 1 min while no trial ran there, 50 % of the time without a trial that samples show."
    assert judged(foreign_load, both).summary == said


def test_foreign_load_needs_trials_on_known_gpus() -> None:
    assert judged(foreign_load, profile(LedgerProfile)).status is Status.NOT_APPLICABLE
    assert judged(foreign_load, ledger(600, 50, n_unknown_gpu=1)).status is Status.NOT_APPLICABLE
    assert judged(foreign_load, replace(ledger(0, 0), coverage_pct=70.0)).status is Status.NOT_ASSESSED


@pytest.mark.parametrize(
    ("idle_s", "no_trial_s", "status"),
    [(59, 59, Status.NOT_ASSESSED), (60, 60, Status.OK), (60, 121, Status.NOT_ASSESSED), (60, 120, Status.OK)],
)
def test_trials_that_leave_a_gpu_no_pause_hide_foreign_load(idle_s: float, no_trial_s: float, status: Status) -> None:
    """GPU 1 never had a trial: its idle time tells nothing of GPU 0."""
    cells = [("0", "idle_no_trial", idle_s), ("0", "foreign", 0.0), ("0", "busy", 9e3), ("1", "idle_no_trial", 9e3)]
    seen = profile(
        LedgerProfile,
        cells=pd.DataFrame(cells, columns=["gpu", "cell", "gpu_s"]),
        per_gpu=pd.DataFrame({"no_trial_s": [no_trial_s, 9e3]}, index=["0", "1"]),
        foreign_of_no_trial_pct=0.0,
        has_trials=True,
        coverage_pct=100.0,
        exact=True,
    )
    verdict = judged(foreign_load, seen)
    assert verdict.status is status
    shown = "59 s" if idle_s == 59 else "1 min"
    assert status is Status.OK or f"Samples show GPU 0 for {shown}" in verdict.reason


@pytest.mark.parametrize(
    ("ratio", "p", "status"),
    [
        (1.1, 0.009, Status.FOUND),
        (1.09, 0.0, Status.OK),
        (1.5, 0.011, Status.OK),
        (1.0, NAN, Status.OK),
        (NAN, NAN, Status.NOT_APPLICABLE),
    ],
)
def test_a_process_beside_a_training(ratio: float, p: float, status: Status) -> None:
    known = {"beside_name": "/home/b/python", "beside_gpus": "0, 1", "beside_s": 3600.0, "beside_mib": 2048.0}
    found = profile(LedgerProfile, beside_ratio=ratio, beside_p=p, beside_lost_gpu_h=0.5, **known)
    verdict = judged(foreign_load, found)
    assert verdict.status is status
    if status is Status.FOUND:
        assert verdict.lost_gpu_h == 0.5 and verdict.where == {"gpu": "0, 1"}
        assert verdict.summary.startswith("While /home/b/python held 2.0 GiB of GPUs 0 and 1, for 1 h of the training")


@pytest.mark.parametrize(("ratio", "p"), [(NAN, NAN), (1.0, NAN), (1.5, 0.5)])
def test_commands_that_are_all_there_throughout_are_named(ratio: float, p: float) -> None:
    found = profile(LedgerProfile, beside_ratio=ratio, beside_p=p, beside_throughout="gmx mdrun, python")
    verdict = judged(foreign_load, found)
    assert verdict.status is Status.NOT_ASSESSED and "all the time: gmx mdrun, python." in verdict.reason


def test_foreign_load_that_was_planted_is_found_and_its_length_told() -> None:
    made = simulate(seed=1, workers=1, n_trials=15, gap_s=(60.0, 60.0), foreign=(Foreign(0, 0.0, 5000.0),))
    verdict = on(foreign_load, made.run)
    truth = made.truth.ledger.query("cell == 'foreign'")["gpu_s"].sum()
    assert verdict.status is Status.FOUND and verdict.lost_gpu_h == pytest.approx(truth / 3600, rel=0.1)
    assert on(foreign_load, simulate(seed=1, workers=1, n_trials=15, gap_s=(60.0, 60.0)).run).status is Status.OK


def paused(idle_s: float, busy_s: float, other: str = "busy") -> LedgerProfile:
    """GPU 0 idle without a trial for a while, GPU 1 never given a trial, or given one (``other``)."""
    at = pd.Timestamp("2026-02-03", tz="UTC")
    cells = [
        ("0", "unobserved", 5000.0), ("0", "idle_no_trial", idle_s), ("0", "busy", busy_s),
        ("1", "idle_no_trial", 90000.0), ("1", other, 10000.0),
    ]  # fmt: skip
    spans = [("0", 0.7 * idle_s), ("0", 0.3 * idle_s), ("1", 90000.0)]
    return profile(
        LedgerProfile,
        cells=pd.DataFrame(cells, columns=["gpu", "cell", "gpu_s"]),
        spans=pd.DataFrame(
            [(gpu, at, at + pd.Timedelta(seconds=s), "idle_no_trial") for gpu, s in spans],
            columns=["gpu", "start", "end", "cell"],
        ),
        has_trials=True,
        coverage_pct=100.0,
    )


@pytest.mark.parametrize(
    ("idle_s", "busy_s", "found"),
    [(600, 5000, True), (599, 5000, False), (36000, 14400, True), (1000, 9000, False), (1001, 9000, True)],
)
def test_idle_without_trial(idle_s: float, busy_s: float, found: bool) -> None:
    """Of the GPUs that trials ran on alone: one that never had any is another rule's."""
    verdict = judged(idle_without_trial, paused(idle_s, busy_s, "foreign"))
    assert (verdict.status is Status.FOUND) == found
    if found:
        assert verdict.where == {"gpu": "0"} and verdict.lost_gpu_h == pytest.approx(idle_s / 3600)
        assert verdict.evidence["no_trial_pct"] == pytest.approx(100 * idle_s / (idle_s + busy_s))
        assert verdict.evidence["longest_s"] == pytest.approx(0.7 * idle_s)


def test_idle_without_trial_counts_every_gpu_that_had_one() -> None:
    verdict = judged(idle_without_trial, paused(36000, 14400))
    assert verdict.where == {"gpu": "0, 1"} and verdict.lost_gpu_h == pytest.approx(35.0)
    assert (
        "were idle without a trial for 1 d 11 h, 84 % of the search; the longest stretch took 1 d 1 h"
        in verdict.summary
    )
    assert judged(idle_without_trial, profile(LedgerProfile)).status is Status.NOT_APPLICABLE


@pytest.mark.slow
def test_a_night_without_trials_is_the_first_finding() -> None:
    """Three trials, ten hours of nothing, three trials: it costs more than what else there is to find."""
    lives = [(0.0, 1800.0), (1800.0, 3600.0), (39600.0, 41400.0), (41400.0, 43200.0)]
    at = np.arange(2.5, 43200.0, 5.0)
    util = np.where((at > 3600) & (at < 39600), 0.0, 20.0)
    made = run(log(at, util_pct=util), trials=trials([("COMPLETE", *life) for life in lives], gpu="0"))
    first, *others = gd.diagnose(made).findings
    assert first.rule == "idle-without-trial" and first.lost_gpu_h == pytest.approx(10.0, abs=0.01)
    assert "gpu-low-utilization" in {one.rule for one in others}


def costs(worker: float, gpu: float, n: int = 10, n_trials: int = 200, most: float | None = None) -> CostsProfile:
    return profile(
        CostsProfile, startup_share_pct=worker, startup_only_pct=gpu, startup_law_pct=0.1, parallel=4.0, n_startups=n,
        startup_median_s=40.0, startup_only_gpu_h=0.2, n_workers=4, trials=pd.DataFrame(index=range(n_trials)),
        startup_only_high_pct=gpu if most is None else most,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("worker", "gpu", "status", "severity"),
    [
        (25.1, 1, Status.FOUND, Severity.NOTE), (25, 10, Status.OK, None),
        (10, 10.1, Status.FOUND, Severity.WARNING),
        (NAN, 11, Status.FOUND, Severity.WARNING), (NAN, 5, Status.NOT_ASSESSED, None),
    ],
)  # fmt: skip
def test_startup_dominated(worker: float, gpu: float, status: Status, severity: Severity | None) -> None:
    verdict = judged(startup_dominated, costs(worker, gpu))
    assert verdict.status is status and (severity is None or verdict.severity is severity)
    assert "nan" not in verdict.summary


@pytest.mark.parametrize(
    ("n_trials", "status"), [(1, Status.NOT_APPLICABLE), (4, Status.NOT_APPLICABLE), (5, Status.FOUND)]
)
def test_start_ups_of_workers_that_ran_one_trial_cannot_be_kept(n_trials: int, status: Status) -> None:
    """Four trials at once."""
    assert judged(startup_dominated, costs(37.0, 20.0, n_trials=n_trials)).status is status


@pytest.mark.slow
def test_start_ups_explain_the_idle_time_that_they_hold() -> None:
    """Forty trials of a minute, 40 s of it start-up; and three at once, whose start-ups never leave the GPU idle."""
    at = np.arange(2.5, 2400.0, 5.0)
    table = trials([("COMPLETE", 60.0 * i, 60.0 * i + 59) for i in range(40)], gpu="0")
    found = {
        one.rule: one
        for one in gd.diagnose(run(log(at, util_pct=np.where(at % 60 < 40, 0.0, 95.0)), trials=table)).findings
    }
    symptoms = {rule for rule, one in found.items() if one.caused_by == "startup-dominated"}
    assert symptoms == {"gpu-low-utilization"} and "gpu-fluctuating" not in found
    assert next(iter(found)) == "startup-dominated"
    assert judged(startup_dominated, costs(40.0, 0.0)).held_gpu_h == 0.2, "of hours that are known, none is unknown"


@pytest.mark.parametrize(
    ("worker", "most", "status", "said"),
    [
        (10, 10.0, Status.OK, ""),
        (10, 12.0, Status.NOT_ASSESSED, "alone held the GPU for 5 % to 12 % of the time"),
        (NAN, 30, Status.NOT_ASSESSED, "too few to tell a typical one. Alone they held the GPU for 5 % to 30 %"),
        (30, 40, Status.FOUND, "start-ups alone held it for 5 % to 40 % of the time with trials."),
    ],
)
def test_idle_time_that_may_be_start_up_is_no_health(worker: float, most: float, status: Status, said: str) -> None:
    verdict = judged(startup_dominated, costs(worker, 5.0, most=most))
    assert verdict.status is status and said in (verdict.summary or verdict.reason)


def test_startup_says_both_prices() -> None:
    summary = judged(startup_dominated, costs(30, 0.8)).summary
    assert "Trials spent 30 % of their time in start-up (median 40 s)" in summary
    assert "With 4 at once on a GPU, start-ups alone held it for 0.8 % of the time with trials" in summary
    assert judged(startup_dominated, costs(NAN, NAN, n=2)).status is Status.NOT_ASSESSED


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "status"), [(1, Status.FOUND), (4, Status.NOT_ASSESSED)])
def test_the_same_start_up_costs_the_gpu_less_when_trials_overlap(workers: int, status: Status) -> None:
    """Of four trials at once too few start-ups are seen to tell what they take of the workers' time."""
    made = simulate(seed=2, workers=workers, n_trials=120, startup_s=(60.0, 60.0), epochs=6, gpu_share_pct=(20.0, 20.0))
    verdict = on(startup_dominated, made.run)
    assert verdict.status is status and (status is Status.NOT_ASSESSED or verdict.severity is Severity.WARNING)
    profile = measure_costs(made.run)
    assert (profile.startup_only_pct > 10) == (workers == 1)
    assert profile.startup_share_pct > 25 if workers == 1 else math.isnan(profile.startup_share_pct)


def clock(**stated: Any) -> ClockProfile:
    return profile(
        ClockProfile, **{"joined": True, "offset_s": 0.0, "applied_s": 0.0, "confidence": "strong", **stated}
    )


def test_clocks_apart() -> None:
    verdict = judged(clocks_apart, clock(joined=False, evidence="They share no time."))
    assert verdict.status is Status.FOUND and verdict.summary == "They share no time."
    assert judged(clocks_apart, clock()).status is Status.OK
    assert judged(clocks_apart, clock(joined=False, set_by_s=-90.0)).status is Status.OK


@pytest.mark.parametrize(
    ("stated", "severity"),
    [
        ({"applied_s": 28800.0, "offset_s": 28800.0}, Severity.NOTE),
        ({"parts": pd.DataFrame({"study": ["s"], "first_trial": [3], "offset_s": [28800.0]})}, Severity.NOTE),
        ({"offset_s": 28800.0, "confidence": "weak"}, Severity.WARNING),
        ({"set_by_s": 3600.0}, Severity.NOTE),
        ({"set_by_s": -90.0, "confidence": "undetermined", "joined": False}, Severity.WARNING),
        ({"offset_s": 0.0, "confidence": "weak"}, None),
        ({"confidence": "undetermined", "method": "none", "joined": False}, None),
        ({}, None),
    ],
)
def test_clocks_differ(stated: dict[str, Any], severity: Severity | None) -> None:
    verdict = judged(clocks_differ, clock(**stated))
    assert verdict.status is (Status.OK if severity is None else Status.FOUND)
    assert severity is None or verdict.severity is severity


@pytest.mark.parametrize("method", ["none", "correlation"])
def test_clocks_of_which_nothing_tells_are_not_assessed(method: str) -> None:
    verdict = judged(clocks_differ, clock(confidence="undetermined", method=method, evidence="Nothing changed."))
    assert verdict.status is Status.NOT_ASSESSED and verdict.reason.endswith("Nothing changed.")


@pytest.mark.parametrize(("util", "exact"), [((97, 97), True), ((0, 0), True), ((97, 0), False)])
def test_no_clock_changes_what_a_gpu_does_that_always_does_the_same(util: tuple[float, float], exact: bool) -> None:
    run = make(1, Pool(hours=0.3, workers=1, gap_s=20))[0]
    halves = np.where(np.arange(len(run.gpu)) % 60 < 30, *util)
    info = replace(run.info, clock=ClockRecord(confidence="undetermined", method="none"))
    found = measure_ledger(replace(run, gpu=run.gpu.assign(util_pct=halves.astype(float)), info=info))
    gaps_s = (run.trials["start"].shift(-1) - run.trials["end"]).dt.total_seconds().sum()
    cells = found.totals.set_index("cell")["gpu_s"]
    assert found.exact == exact and found.doubt_s == np.inf
    assert cells["foreign"] + cells["idle_no_trial"] == pytest.approx(gaps_s if exact else 0, abs=10)


@pytest.mark.parametrize(
    ("outside_s", "doubt_s", "within_s", "status"),
    [(70, 0, 900, "found"), (70, 50, 900, "found"), (70, 70, 900, "not_assessed"), (0, 70, 900, "not_assessed"),
     (0, 50, 900, "ok"), (3600, 70, 900, "found"), (70, np.inf, 75, "found"), (70, np.inf, 900, "not_assessed"),
     (0, np.inf, 900, "not_assessed")],
)  # fmt: skip
def test_work_outside_trials_is_told_if_the_clocks_cannot_explain_it(
    outside_s: float, doubt_s: float, within_s: float, status: str
) -> None:
    """As much work again lies within the trials, which took ``within_s``: of 140 s that time can hold 75."""
    per_gpu = pd.DataFrame({"outside_busy_s": [outside_s]}, index=["0"])
    stated = {"has_trials": True, "coverage_pct": 100.0, "n_gpus": 1, "doubt_s": doubt_s, "per_gpu": per_gpu}
    stated |= {"total_gpu_s": within_s}
    found = profile(LedgerProfile, **stated, outside_busy_gpu_s=outside_s, outside_of_work_pct=50.0 if outside_s else 0)
    assert judged(work_outside_trials, found).status.value == status


@pytest.mark.slow
def test_an_offset_in_the_data_is_told() -> None:
    run = simulate(seed=3, workers=2, n_trials=40, offset_s=28800.0).run
    settled = apply_clock(run, establish_clock(run))
    verdict = on(clocks_differ, settled)
    assert verdict.status is Status.FOUND and "best at +8 h" in verdict.summary
    assert on(clocks_apart, settled).status is Status.OK and measure_clock(settled).joined
    far = replace(run, trials=run.trials.assign(**{c: run.trials[c] + pd.Timedelta(days=9) for c in ("start", "end")}))
    assert on(clocks_apart, apply_clock(far, establish_clock(far))).status is Status.FOUND
    assert not measure_ledger(apply_clock(far, establish_clock(far))).has_trials
    assert np.isnan(measure_costs(apply_clock(far, establish_clock(far))).total_gpu_h)
