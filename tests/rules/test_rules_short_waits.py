"""Waits that samples blur cost all the time without a kernel, and that share of the work is said."""

from __future__ import annotations

import numpy as np
import pytest
from small_profiles import profile, verdict
from smallruns import gpu, run

from gpudiag.measures.stalls import StallsProfile, measure_stalls
from gpudiag.measures.utilization import UtilizationProfile
from gpudiag.rules.stalls import stalls_aperiodic, stalls_periodic
from gpudiag.rules.utilization import gpu_fluctuating

SINGLE = {
    "work_s": 7200.0, "p95_pct": 90.0, "stalled_pct": 15.0, "stalled_s": 1080.0, "n_stalls": 900.0,
    "longest_stall_s": 2.0, "no_kernel_pct": 68.0,
}  # fmt: skip
DIPS = {
    "work_s": 3600.0, "acf": 0.8, "regular_pct": 90.0, "n_dips": 900.0, "period_s": 3.7, "depth_pct": 59.0,
    "width_s": 2.0, "lost_pct": 54.0, "most_lost_pct": 68.0, "beat_s": 3.7,
}  # fmt: skip
TURNS = {"active_s": 7200.0, "active_p5_pct": 0.0, "active_p95_pct": 71.0, "active_idle_phases": 20.0,
         "trial_s": float("nan"), "idle_in_trials_gpu_h": 1.0, "mean_pct": 40.0, "max_pct": 100.0}  # fmt: skip


@pytest.mark.parametrize(("single", "cost_s"), [(True, 4896.0), (False, 1080.0)])
def test_single_samples_below_a_tenth_are_the_least_of_short_waits(single: bool, cost_s: float) -> None:
    one = verdict(stalls_aperiodic, profile(StallsProfile, {"0": {**SINGLE, "is_single": single}}))
    assert one.lost_gpu_h == pytest.approx(cost_s / 3600)
    assert ("No kernel ran in 68 % of its work." in one.summary) == single


def test_single_samples_have_no_length_that_steps_could_go_on_through() -> None:
    """What a log of 2 s steps leaves open is how long waits are, which is not told of single samples."""
    for single, status in ((True, "found"), (False, "not_assessed")):
        given = {"0": {**SINGLE, "is_single": single, "through_s": 2.0}}
        assert verdict(stalls_aperiodic, profile(StallsProfile, given)).status.value == status


@pytest.mark.parametrize(
    ("reading", "lost_pct", "said"),
    [
        ("step", 68.0, "GPU 0 waits in each step of 3.7 s: no kernel ran in 68 % of its work."),
        ("waits", 54.0, "GPU 0 drops by 59 points every 3.7 s, for 2 s each time: 54 % of its work is lost."),
    ],
)
def test_waits_in_each_step_lack_more_than_their_dips(reading: str, lost_pct: float, said: str) -> None:
    one = verdict(stalls_periodic, profile(StallsProfile, {"0": {**DIPS, "reading": reading}}))
    assert one.summary == said and one.lost_gpu_h == pytest.approx(lost_pct / 100)
    assert one.evidence["lost_pct"] == lost_pct
    assert one.remedy.startswith("Waits in each step") == (reading == "step")


@pytest.mark.parametrize(
    ("n_dips", "lost_pct", "said"),
    [  # of an hour at work; a drop lacks 16 of its 21 s
        (43.0, 19.0, ", in 25 % of the time at work: 19 % of its work is lost."),
        (120.0, 53.0, ", in 70 % of the time at work: 53 % of its work is lost."),
        (171.0, 76.0, ": 76 % of its work is lost."),
    ],
)
def test_drops_in_some_of_the_work_say_in_how_much_of_it(n_dips: float, lost_pct: float, said: str) -> None:
    """As where one trial of four waits: by the drops alone three quarters of all would be lost."""
    of_gpu = {**DIPS, "reading": "waits", "n_dips": n_dips, "period_s": 21.0, "width_s": 16.0, "lost_pct": lost_pct}
    assert verdict(stalls_periodic, profile(StallsProfile, {"0": of_gpu})).summary == (
        f"GPU 0 drops by 59 points every 21 s, for 16 s each time{said}"
    )


@pytest.mark.parametrize(
    ("mean_pct", "idle_h", "cost_h"),
    [
        (31.0, 0.64, 1.38),  # 69 % of two hours without a kernel, of which 32 % show
        (45.0, 0.64, 0.64),  # of 37 % that are missing from 71 % nearly all is idle
    ],
)
def test_idle_samples_that_hold_a_part_of_what_is_missing_cost_more(
    mean_pct: float, idle_h: float, cost_h: float
) -> None:
    given = {"0": {**TURNS, "active_mean_pct": mean_pct, "active_idle_gpu_h": idle_h}}
    one = verdict(gpu_fluctuating, profile(UtilizationProfile, given))
    assert one.lost_gpu_h == pytest.approx(cost_h)
    assert ("No kernel ran in 69 % of it." in one.summary) == (cost_h > idle_h)


@pytest.mark.parametrize(("brief", "said"), [(True, "in 900 waits or more"), (False, "in 900 waits of up to 40 s")])
def test_waits_between_short_work_are_more_than_seen(brief: bool, said: str) -> None:
    given = {**SINGLE, "longest_stall_s": 40.0, "is_single": False, "is_brief": brief}
    one = verdict(stalls_aperiodic, profile(StallsProfile, {"0": given}))
    assert said in one.summary and ("How long the longest was is open" in one.summary) == brief
    assert one.lost_gpu_h == pytest.approx(1080 / 3600), "the share of the time holds all the same"


def test_work_shorter_than_the_samples_are_apart_is_seen_by_its_single_samples() -> None:
    """Requests of 2 to 9 s at random, seen each ten seconds: work of a minute has more samples than one."""
    rng = np.random.default_rng(5)
    for busy_s, brief in (((2.0, 9.0), True), ((50.0, 70.0), False)):
        edges = np.cumsum([length for _ in range(60) for length in (rng.exponential(40.0) + 1, rng.uniform(*busy_s))])
        at = np.arange(0.0, edges[-1], 10.0)
        works = np.searchsorted(edges, at, "right") % 2 == 1
        seen = measure_stalls(run(gpu=gpu(at, util_pct=np.where(works, 90.0, 0.0)))).per_gpu.loc["0"]
        assert bool(seen["is_brief"]) is brief
        assert seen["n_stalls"] <= 60


@pytest.mark.parametrize(
    ("every_s", "length_s", "said"),
    [
        (18.3, 2.5, "drops of a single sample cost 12 % of the work"),  # 3.66 samples
        (23.3, 2.9, "drops of a single sample cost 11 % of the work"),
        (17.0, 0.4, ""),  # 2 % of the work at most, whatever their times
        (17.0, 2.0, "every 35 s or a fraction of that, for 5 s"),  # drops are seen at each second one
        (33.0, 2.64, "every 1 min 05 s or a fraction of that, for 5 s"),
        (61.7, 12.0, "every 1 min 02 s, for 10 s"),
    ],
)
def test_drops_that_samples_miss_are_neither_irregular_nor_as_rare_as_they_look(
    every_s: float, length_s: float, said: str
) -> None:
    """Each sample, 5 s from the next, shows the second before it."""
    at = np.arange(0.0, 3600.0, 5.0)
    second = at[:, None] - np.linspace(0.0, 1.0, 101)
    seen = 95.0 * (second % every_s >= length_s).mean(axis=1)
    one = verdict(stalls_periodic, measure_stalls(run(gpu=gpu(at, util_pct=seen.round()))))
    assert one.status.value == ("not_assessed" if said.startswith("drops") else "found" if said else "ok")
    assert said in (one.summary or one.reason)
