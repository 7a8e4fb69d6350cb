"""What is advised for the input: numbers, bounds and doubts by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from gpudiag.advice import input as advised
from gpudiag.advice._engine.gains import GainBounds
from gpudiag.advice._engine.proposal import Proposal
from gpudiag.advice._engine.remedy import Remedy
from gpudiag.measures.causes import CausesProfile
from gpudiag.measures.loader import LoaderProfile
from gpudiag.measures.stalls import StallsProfile
from gpudiag.measures.steps import StepsProfile
from gpudiag.rules._engine.verdict import Status, Verdict
from gpudiag.rules.loader import loader_workers_cores
from tests.advice.situations import HALF, checks, gain_of, predicted, situation, trials, use
from tests.rules.small_profiles import profile, verdict

NAN = math.nan
UNSHOWN = "Nothing recorded shows that the GPU waits for the loader."
LINE = {"num_workers": 2, "prefetch_factor": 2, "persistent_workers": False, "pin_memory": False}
HELD = ("gpu_s", "low_gpu_s", "high_gpu_s")
FILLERS = (
    advised.loader_workers,
    advised.persistent_workers,
    advised.prefetch_more,
    advised.pin_memory,
    advised.cache_input,
)


def waits(of_step_pct: float) -> LoaderProfile:
    made: LoaderProfile = profile(LoaderProfile, of_step_pct=of_step_pct)
    return made


def proposed(item: Remedy, *profiles: Any, bounds: GainBounds = HALF, **stated: Any) -> Proposal | None:
    return item.propose(situation(*profiles, bounds=bounds, **{**LINE, **stated}))


def causes(observed_s: float, unused_s: float, has_log: bool = True, **seconds: tuple[float, float, float]) -> Any:
    """Causes by log: seconds of GPU time, at least and at most."""
    rows = {
        cause: {
            "source": "record" if cause == "outside" else "" if cause == "unknown" else "log",
            **dict(zip(HELD, one, strict=True)),
        }
        for cause, one in seconds.items()
    }
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["source", *HELD])
    stated = {"observed_gpu_s": observed_s, "unused_gpu_s": unused_s, "has_log": has_log, "trace_fit": "none"}
    return profile(CausesProfile, by_cause=table, **stated)


@pytest.mark.parametrize(
    ("present", "parallel", "cores", "workers"),
    [
        (2, 1, 16, 4),  # twice as many
        (3, 2, 11, 5),  # as many as fit: 11 // 2
        (4, 2, 9, None),  # 4 of 4.5: nothing to gain
        (5, 2, 9, None),  # more than fit, though not two a core: left as it is
        (9, 2, 9, None),  # 18 workers are two a core
        (10, 2, 9, 4),  # 20 are more: as many as fit
        (7, 3, 2, 1),  # never fewer than one
        (0, 1, 16, 2),  # none becomes two
        (0, 8, 4, 1),  # or what fits
        (1, 1, 16, 2),
        (0, 1, None, 2),
        (3, 1, None, 6),
        (1, 1, None, 2),
    ],
)
def test_loader_workers_within_the_cores(present: int, parallel: int, cores: int | None, workers: int | None) -> None:
    made = proposed(advised.loader_workers, num_workers=present, parallel=parallel, cpu_cores=cores)
    assert (made and made.changes[0].proposed) == workers
    if made is None:
        return
    (change,) = made.changes
    budget = f"{workers} x {parallel} trials at once = {workers * parallel} of {cores or 'an unknown number of'} cores"
    assert change.present == present
    assert change.code == f"DataLoader(..., num_workers={workers})  # was {present}; {budget}"
    assert made.assumption.endswith(f"Workers are bounded by {budget}.")
    ratio = workers / present if workers > present > 0 else math.inf
    assert gain_of(made) == (1.0, pytest.approx(min(2.5, ratio)), "x", "idle")


@pytest.mark.parametrize(
    ("present", "parallel", "cores", "workers"),
    [
        (4, 1, 24, 17),  # 70 % of 24 are 16.8
        (2, 3, 16, 4),  # 11.2 of 16: 3.7 each
        (3, 2, 11, 5),  # twice as many, as far as they fit, are more than 70 %
        (1, 2, 3, 2),  # 2.1 of 3: the check allows up to two a core
        (10, 2, 9, 4),  # too many: as many as fit
    ],
)
def test_after_the_advice_the_check_of_workers_finds_nothing(
    present: int, parallel: int, cores: int, workers: int
) -> None:
    def check(n: int) -> Verdict:
        seen = {"workers_per_trial": n, "parallel": parallel, "n_workers": n * parallel, "cores": cores}
        return verdict(loader_workers_cores, profile(LoaderProfile, **seen, of_cores_pct=100 * n * parallel / cores))

    stated = {**LINE, "num_workers": present, "parallel": parallel, "cpu_cores": cores}
    made = advised.loader_workers.propose(situation(rules=(check(present),), bounds=HALF, **stated))
    assert check(present).status is Status.FOUND
    assert made is not None and made.changes[0].proposed == workers and check(workers).status is Status.OK


def test_what_is_to_be_seen_is_within_what_is_predicted() -> None:
    """At 11 % utilization twice the workers bring 22 % at most: 20 % is no floor for having worked."""
    made = proposed(advised.loader_workers, use(11.0), waits(75.0), num_workers=1, cpu_cores=4)
    assert predicted(made)["utilization.mean_pct"] == (11.0, 11.0, 22.0) and checks(made) == [
        ("utilization.mean_pct", ">=", 14.0)
    ]
    little = proposed(advised.loader_workers, use(11.0), waits(20.0), num_workers=1, cpu_cores=4)
    assert predicted(little)["utilization.mean_pct"] == (11.0, 11.0, 13.75) and checks(little) == []


def test_one_trial_at_once_unless_stated() -> None:
    made = proposed(advised.loader_workers, cpu_cores=3)
    assert made is not None and "3 x 1 trials at once = 3 of 3 cores" in made.changes[0].code


@pytest.mark.parametrize(
    ("pct", "most"), [(0.0, 1.0), (20.0, 1.25), (50.0, 2.0), (90.0, 2.0), (100.0, 2.0), (NAN, 2.0)]
)
def test_a_stated_wait_bounds_the_gain(pct: float, most: float) -> None:
    made = proposed(advised.loader_workers, waits(pct), cpu_cores=16)
    known = "loader" if 0 <= pct < 100 else "idle"
    assert gain_of(made) == (1.0, most, "x", known)  # twice the workers bring twice as much, if that


@pytest.mark.parametrize(
    ("pct", "high"),
    [(-1.0, 2.5), (0.0, 1.0), (0.5, 1 / 0.995), (59.0, 1 / 0.41), (99.0, 2.5), (100.0, 2.5), (150.0, 2.5)],
)
def test_without_the_wait_a_step_takes_the_rest(pct: float, high: float) -> None:
    for item in (advised.prefetch_more, advised.cache_input):
        made = proposed(item, waits(pct))
        known = "loader" if 0 <= pct < 100 else "idle"
        assert gain_of(made) == (1.0, pytest.approx(high), "x", known)


@pytest.mark.parametrize(("pct", "shown"), [(NAN, False), (0.0, False), (0.5, True), (30.0, True)])
def test_doubt_unless_a_wait_was_recorded(pct: float, shown: bool) -> None:
    made = proposed(advised.loader_workers, waits(pct), cpu_cores=16)
    assert made is not None and made.verify_first == ("" if shown else UNSHOWN)
    assert made.assumption.startswith(
        "Steps wait " if shown else "The GPU waits for the loader; nothing recorded shows"
    )
    if shown:
        assert (
            f"{'30 %' if pct == 30 else '0.5 %'} of their time for the loader; at best all of that goes."
            in made.assumption
        )


@pytest.mark.parametrize("rule", ["loader-slow", "cpu-bound-input", "io-wait"])
def test_no_doubt_where_a_check_rests_on_waits(rule: str) -> None:
    for item in (advised.loader_workers, advised.prefetch_more):
        sure = item.propose(situation(rules=(rule,), bounds=HALF, cpu_cores=16, **LINE))
        low = item.propose(situation(rules=("gpu-low-utilization",), bounds=HALF, cpu_cores=16, **LINE))
        assert sure is not None and sure.verify_first == (advised.DISK if rule == "io-wait" else "")
        assert low is not None and low.verify_first == UNSHOWN


def test_unknown_cores_are_a_doubt_of_their_own() -> None:
    made = proposed(advised.loader_workers, waits(10.0))
    assert made is not None and made.verify_first == advised.NO_CORES
    both = proposed(advised.loader_workers)
    assert both is not None and both.verify_first == f"{UNSHOWN} {advised.NO_CORES}"


@pytest.mark.parametrize("item", FILLERS, ids=lambda item: item.id)
def test_each_is_checked_by_utilization_and_predicts_up_to_its_gain(item: Remedy) -> None:
    spent = trials({"COMPLETE": {"median_s": 60.0, "total_worker_s": 600.0}}, fail_high_pct=5.0)
    made = item.propose(situation(use(40.0), spent, bounds=HALF, parallel=2, cpu_cores=16, **LINE))
    high = gain_of(made)[1]  # type: ignore[index]
    assert 1 < high <= 2.5
    wanted = round(40.0 + 40.0 * (high - 1) / 10, 1)
    assert ("utilization.mean_pct", ">=", wanted) in checks(made) and ("trials.fail_pct", "<=", 5.0) in checks(made)
    assert predicted(made) == {
        "utilization.mean_pct": (40.0, 40.0, pytest.approx(40.0 * high)),
        "trials.state.COMPLETE.median_s": (60.0, pytest.approx(60.0 / high), 60.0),
    }


@pytest.mark.parametrize("item", FILLERS, ids=lambda item: item.id)
def test_without_utilization_there_is_no_gain_and_nothing_predicted(item: Remedy) -> None:
    made = item.propose(situation(use(40.0), bounds=GainBounds(), cpu_cores=16, **LINE))
    assert gain_of(made) is None and predicted(made) == {}
    assert made is not None and made.assumption.startswith("No utilization was observed while trials ran")


@pytest.mark.parametrize("item", FILLERS, ids=lambda item: item.id)
def test_nothing_is_proposed_for_a_loader_that_nobody_stated(item: Remedy) -> None:
    assert item.propose(situation(bounds=HALF, rules=("loader-slow",), parallel=2, cpu_cores=16)) is None


@pytest.mark.parametrize(
    ("parallel", "idle", "high"), [(1, 30.0, 1 / 0.7), (1, 75.0, 2.5), (1, 100.0, 2.5), (2, 30.0, 2.5), (1, NAN, 2.5)]
)
def test_workers_kept_bring_the_idle_time_of_one_trial_alone(parallel: int, idle: float, high: float) -> None:
    bounds = GainBounds(busy_pct=40.0, idle_pct=idle)
    made = proposed(advised.persistent_workers, bounds=bounds, parallel=parallel)
    assert gain_of(made) == (1.0, pytest.approx(high), "x", "idle")
    assert made is not None and made.changes[0].code == "DataLoader(..., persistent_workers=True)  # was False"
    assert (made.changes[0].present, made.changes[0].proposed) == (False, True)


@pytest.mark.parametrize(("kept", "workers"), [(True, 2), (None, 2), (False, 0)])
def test_workers_are_kept_only_where_they_start_anew(kept: bool | None, workers: int) -> None:
    assert proposed(advised.persistent_workers, persistent_workers=kept, num_workers=workers) is None


def test_periodic_stalls_speak_for_workers_that_are_kept() -> None:
    made = advised.persistent_workers.propose(situation(rules=("stalls-periodic",), bounds=HALF, **LINE))
    assert made is not None and made.verify_first == ""
    for reading, doubt in (("waits", False), ("step", True), ("beat", True), ("open", True)):
        stalls = profile(StallsProfile, {"0": {"reading": reading}})
        made = advised.persistent_workers.propose(situation(stalls, rules=("stalls-periodic",), bounds=HALF, **LINE))
        assert made is not None, "waits in each step are not those between epochs"
        assert made.verify_first == (advised.UNSHOWN_STARTS if doubt else "")


@pytest.mark.parametrize(
    ("starts_pct", "high"), [(20.0, 1.25), (0.5, 1 / 0.995), (50.0, 2.0), (90.0, 2.5), (100.0, 2.5)]
)
def test_recorded_waits_at_the_start_of_epochs_bound_what_kept_workers_bring(starts_pct: float, high: float) -> None:
    told = profile(LoaderProfile, starts_pct=starts_pct, avg_ms=1.0)
    for rules in (("gpu-low-utilization",), ("loader-slow",), ("stalls-periodic",)):
        made = advised.persistent_workers.propose(situation(told, rules=rules, bounds=HALF, **LINE))
        assert gain_of(made) == (1.0, pytest.approx(high), "x", "loader") and made is not None
        assert made.verify_first == ""
        assert (f"Epochs wait {starts_pct:g} % of their time" in made.assumption) == (starts_pct < 100)


@pytest.mark.parametrize(
    ("rules", "passed", "facts", "offered"),
    [
        (("loader-slow",), (), {"starts_pct": 0.0}, False),  # a recording shows no such wait
        (("stalls-periodic",), (), {"starts_pct": 0.0}, False),
        (("gpu-low-utilization",), ("loader-slow",), {"avg_ms": 1.0}, False),  # steps do not wait
        (("stalls-periodic",), ("loader-slow",), {"avg_ms": 1.0}, True),  # but something long does, at intervals
        (("gpu-low-utilization",), (), {}, True),
    ],
)
def test_workers_are_not_kept_where_nothing_waits_for_them(
    rules: tuple[str, ...], passed: tuple[str, ...], facts: dict[str, float], offered: bool
) -> None:
    told = profile(LoaderProfile, **facts)
    now = replace(situation(told, rules=rules, bounds=HALF, **LINE), passed=frozenset(passed))
    assert (advised.persistent_workers.propose(now) is not None) == offered


@pytest.mark.parametrize(("present", "more"), [(1, 2), (2, 4), (8, 16), (9, 16), (15, 16), (16, None), (20, None)])
def test_prefetch_is_doubled_up_to_sixteen(present: int, more: int | None) -> None:
    made = proposed(advised.prefetch_more, prefetch_factor=present, num_workers=3)
    assert (made and made.changes[0].proposed) == more
    if made is not None and more is not None:
        assert made.changes[0].code.endswith(f"# was {present}; queue {3 * present} -> {3 * more}")
    assert proposed(advised.prefetch_more, prefetch_factor=present, num_workers=0) is None


@pytest.mark.parametrize(("low", "high", "steady"), [(40.0, 59.9, True), (40.0, 60.0, False), (40.0, 80.0, False)])
def test_steady_utilization_speaks_against_late_batches(low: float, high: float, steady: bool) -> None:
    busiest = {"mean_pct": 50.0, "p5_pct": low, "p95_pct": high}
    seen = use(45.0, {"0": busiest, "1": {"mean_pct": 30.0, "p5_pct": 0.0, "p95_pct": 100.0 - high + low}})
    made = proposed(advised.prefetch_more, seen, waits(10.0))
    said = "Utilization was steady (p5 40 %, p95 60 %): nothing shows that single batches were late."
    assert made is not None and made.verify_first == (said if steady else "")
    for rule in ("gpu-fluctuating", "stalls-aperiodic"):
        made = advised.prefetch_more.propose(situation(seen, waits(10.0), rules=(rule,), bounds=HALF, **LINE))
        assert made is not None and made.verify_first == ""


def test_pinned_memory_comes_with_the_copy_that_uses_it() -> None:
    for present in (False, None):
        made = proposed(advised.pin_memory, pin_memory=present, rules=("gpu-low-utilization",))
        assert made is not None and made.verify_first == "Nothing recorded shows that copies take time worth saving."
        assert [(change.what, change.present, change.proposed) for change in made.changes] == [
            ("pin_memory", present, True), ("copy to the GPU", None, "non_blocking")
        ]  # fmt: skip
        code = "DataLoader(..., pin_memory=True)" + ("" if present is None else "  # was False")
        assert made.changes[0].code == code
    assert proposed(advised.pin_memory, pin_memory=True) is None


@pytest.mark.parametrize(
    ("rules", "ram", "doubt"),
    [
        ((), 64.0, "Whether the data fit into the host's 64.0 GiB is not known."),
        ((), None, "The host's memory is not known."),
        (("io-wait",), 64.0, ""),
        (("io-wait",), None, "The host's memory is not known."),
    ],
)
def test_data_go_into_memory_without_doubt_where_the_disk_was_seen_to_be_slow(
    rules: tuple[str, ...], ram: float | None, doubt: str
) -> None:
    made = advised.cache_input.propose(situation(rules=rules, bounds=HALF, ram_gib=ram, **LINE))
    assert made is not None and made.verify_first == doubt
    alone = advised.cache_input.propose(situation(rules=rules, bounds=HALF, ram_gib=ram))
    assert (alone is None) is (not rules)  # a slow disk is known without the loader


def test_no_more_loader_workers_than_cores_or_than_steps_wait_for() -> None:
    """The log shows workers at the number of cores, or that nothing waits: the remedy's own refutation holds."""
    warned = {"workers_per_trial": 4.0, "cores": 4.0, "n_warned": 1}
    item = advised.loader_workers
    seen = profile(LoaderProfile, **warned)
    assert item.propose(situation(seen, bounds=HALF)) is None
    assert item.propose(situation(seen, bounds=HALF, num_workers=4)) is None, "cores are those of the warning"
    assert item.propose(situation(seen, bounds=HALF, num_workers=4, cpu_cores=16)) is None, "the warning was seen"
    seen = profile(LoaderProfile, workers_per_trial=16.0, cores=4.0, n_warned=1)
    made = item.propose(situation(seen, bounds=HALF))
    assert made is not None and made.changes[0].proposed == 4, "fewer of them are"
    seen = profile(LoaderProfile, avg_ms=0.4, of_step_pct=1.0)
    for passed, some in ((frozenset[str](), True), (frozenset({"loader-slow"}), False)):
        now = replace(situation(seen, bounds=HALF, num_workers=4, cpu_cores=16, prefetch_factor=2), passed=passed)
        assert (item.propose(now) is not None) is some
        assert (advised.prefetch_more.propose(now) is not None) is some
        assert (advised.cache_input.propose(now) is not None) is some


def test_a_pause_without_a_name_may_be_a_wait_for_the_loader() -> None:
    """1,000 s of steps that wait 20 %, and 500 s of pauses that nobody named: without both 800 of 1,500 s remain."""
    steps = profile(StepsProfile, logged_s=1500.0, unnamed_s=500.0)
    for item in (advised.prefetch_more, advised.cache_input):
        assert gain_of(proposed(item, waits(20.0), steps))[1] == pytest.approx(1500 / 800)  # type: ignore[index]


def test_waits_of_steps_are_no_part_of_evaluations() -> None:
    """A quarter of the time evaluates: half of the rest is what steps wait, not half of all."""
    told = causes(1000.0, 700.0, evaluation=(250.0, 250.0, 250.0), loader=(375.0, 0.0, 375.0))
    assert gain_of(proposed(advised.cache_input, waits(50.0), told))[1] == pytest.approx(1000 / 625)  # type: ignore[index]


def test_no_more_than_what_is_surely_of_no_other_cause() -> None:
    """Of 200 s of idle time 150 s are checkpoints and 30 s outside: at most 20 of 970 s can be the loader's."""
    told = causes(
        1000.0, 200.0, outside=(30.0, 30.0, 30.0), checkpoint=(160.0, 150.0, 160.0), unknown=(10.0, 10.0, 20.0)
    )
    high = pytest.approx(970 / 950)
    for item in (advised.prefetch_more, advised.persistent_workers):
        assert gain_of(proposed(item, told))[1] == high  # type: ignore[index]
    silent = replace(told, has_log=False)
    assert gain_of(proposed(advised.prefetch_more, silent))[1] == 2.5  # type: ignore[index]


def test_more_workers_and_longer_queues_leave_the_start_of_epochs() -> None:
    told = profile(LoaderProfile, of_step_pct=30.0, starts_pct=20.0)
    for item, high in (
        (advised.loader_workers, 100 / 90), (advised.prefetch_more, 100 / 90), (advised.cache_input, 100 / 70)
    ):  # fmt: skip
        made = proposed(item, told, cpu_cores=16)
        assert gain_of(made)[1] == pytest.approx(high)  # type: ignore[index]
    made = proposed(advised.loader_workers, told, cpu_cores=16)
    assert made is not None and made.assumption.startswith("Within epochs steps wait 10 % of their time for the loader")


@pytest.mark.parametrize(("between_s", "high"), [(100.0, 1 / 0.9), (4.0, 1 / 0.996), (NAN, 2.5)])
def test_a_log_bounds_the_start_of_epochs(between_s: float, high: float) -> None:
    steps = profile(StepsProfile, logged_s=1000.0, between_epochs_s=between_s)
    made = proposed(advised.persistent_workers, steps)
    assert gain_of(made) == (1.0, pytest.approx(high), "x", "loader" if between_s > 0 else "idle")


@pytest.mark.parametrize(("named_s", "speaks"), [(0.0, True), (90.0, True), (110.0, False)])
def test_waits_that_a_log_names_do_not_speak_for_workers_that_are_kept(named_s: float, speaks: bool) -> None:
    """Dips at intervals cost 20 % of 1,000 s: 200 s. What the log names may be more than half of them."""
    stalls = profile(StallsProfile, {"0": {"reading": "waits", "lost_pct": 20.0, "work_s": 1000.0}})
    told = causes(1000.0, 250.0, checkpoint=(named_s, named_s, named_s))
    now = situation(stalls, told, profile(LoaderProfile, avg_ms=0.1), rules=("stalls-periodic",), bounds=HALF, **LINE)
    made = advised.persistent_workers.propose(now)
    assert made is not None and made.verify_first == ("" if speaks else advised.UNSHOWN_STARTS)
    fed = replace(now, passed=frozenset({"loader-slow"}))
    assert (advised.persistent_workers.propose(fed) is not None) == speaks, "steps do not wait, and pauses are named"


@pytest.mark.parametrize(("between_s", "shown"), [(60.0, True), (40.0, False)])
def test_pauses_where_epochs_change_speak_for_workers_that_are_kept(between_s: float, shown: bool) -> None:
    steps = profile(StepsProfile, logged_s=1000.0, pauses_s=100.0, unnamed_s=90.0, unnamed_between_epochs_s=between_s)
    made = advised.persistent_workers.propose(situation(steps, rules=("steps-paused",), bounds=HALF, **LINE))
    assert made is not None and made.leaves == (() if shown else ("steps-paused",))
    assert made.verify_first == ("" if shown else advised.UNSHOWN_STARTS)


@pytest.mark.parametrize(
    ("least", "batches", "offered", "doubt"),
    [
        (60.0, 400.0, True, "Reports state about the same wait (100 ms, 95 % of them 60 ms or more): nothing shows"),
        (49.0, 16.0, True, ""),  # some reports state far shorter waits
        (60.0, 16.0, False, ""),  # alike in every four queues of two workers with two batches each
        (60.0, 17.0, True, "Reports state about the same wait"),
        (60.0, NAN, True, "Reports state about the same wait"),
    ],
)
def test_waits_that_are_alike_speak_against_a_longer_queue(
    least: float, batches: float, offered: bool, doubt: str
) -> None:
    told = profile(LoaderProfile, n_lines=5, avg_ms=100.0, least_ms=least, line_batches=batches, of_step_pct=50.0)
    made = proposed(advised.prefetch_more, told)
    assert (made is not None) == offered
    if made is not None:
        assert made.verify_first.startswith(doubt) and bool(made.verify_first) == bool(doubt)
        few = proposed(advised.prefetch_more, replace(told, n_lines=4))
        assert few is not None and few.verify_first == ""
        uneven = situation(told, rules=("gpu-fluctuating",), bounds=HALF, **LINE)
        assert advised.prefetch_more.propose(uneven).verify_first == ""  # type: ignore[union-attr]


def test_a_copy_does_not_wait_for_the_loader() -> None:
    """Steps wait half of their time; of 600 s of idle time 250 s are surely waits for data."""
    told = causes(1000.0, 600.0, loader=(500.0, 250.0, 500.0), unknown=(100.0, 100.0, 350.0))
    rules = ("gpu-low-utilization",)
    assert gain_of(proposed(advised.pin_memory, told, rules=rules))[1] == pytest.approx(1000 / 650)  # type: ignore[index]
    both = proposed(advised.pin_memory, told, waits(70.0), rules=rules)
    assert gain_of(both)[1] == pytest.approx(1 / 0.7)  # type: ignore[index]


def test_memory_is_not_pinned_where_other_waits_explain_the_idle_time() -> None:
    told = causes(1000.0, 600.0, loader=(560.0, 250.0, 580.0), unknown=(40.0, 0.0, 350.0))
    assert proposed(advised.pin_memory, told, rules=("loader-slow",)) is None
    seen = proposed(advised.pin_memory, told, rules=("loader-slow", "steps-copies"))
    assert seen is not None and seen.verify_first == "", "a trace shows the copies"


def test_idle_time_alone_asks_for_pinned_memory_only_where_it_is_stated_not_to_be() -> None:
    assert advised.pin_memory.fills_idle
    assert proposed(advised.pin_memory) is not None and proposed(advised.pin_memory, pin_memory=None) is None


def test_how_many_ranks_load_on_several_gpus_is_not_assumed() -> None:
    """Eight ranks with eight workers each on 64 cores: sixteen each would be two a core."""
    two = use(40.0)
    two = replace(two, per_gpu=pd.concat([two.per_gpu, two.per_gpu.set_axis(["1"])]))
    for gpus, stated, doubt in ((two, {}, True), (two, {"parallel": 1}, False), (use(40.0), {}, False)):
        now = situation(gpus, waits(20.0), bounds=HALF, cpu_cores=64, **{**LINE, "num_workers": 8}, **stated)
        made = advised.loader_workers.propose(now)
        assert made is not None and (advised.NO_PARALLEL in made.verify_first) == doubt
