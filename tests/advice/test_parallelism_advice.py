"""What is advised for trials at once, by hand: when it is offered, its interval, and how to tell that it worked."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gpudiag.advice._engine.gains import GainBounds
from gpudiag.advice._engine.processes import started
from gpudiag.advice._engine.situation import NO_UTILIZATION
from gpudiag.advice.parallelism import MAY_SLOW, fewer_workers, more_workers, restart_workers, worker_processes
from gpudiag.advice.startup import warm_worker
from gpudiag.forecast.memory.net import NetGains
from gpudiag.measures.parallelism import ParallelismProfile
from tests.advice.capacities import costs, levels
from tests.advice.situations import HALF, Told, checks, gain_of, memory, predicted, situation, trials, use
from tests.rules.small_profiles import profile

NAN = math.nan
SPENT = {"COMPLETE": {"median_s": 60.0, "total_worker_s": 600.0}}
ROOM = {"total_mib": 1000.0, "min_mib": 80.0}  # 900 MiB for trials


def at_once(**stated: float) -> ParallelismProfile:
    made: ParallelismProfile = profile(ParallelismProfile, **stated)
    return made


def more(k: int | None = 2, cores: int | None = 16, *, each: float = 100.0, **stated: Any) -> Any:
    given = (
        use(40.0),
        memory(50.0, g0=ROOM),
        costs([each] * 8),
        trials(SPENT, fail_high_pct=5.0),
        at_once(effective=1.876),
    )
    stated = {"bounds": HALF, **stated}
    return more_workers.propose(situation(*given, parallel=k, cpu_cores=cores, **stated))


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("rule", ["loader-slow", "cpu-bound-input", "io-wait"])
def test_no_further_trial_waits_beside_those_that_wait_for_their_input(k: int, rule: str) -> None:
    assert more(k, rules=(rule,)) is None
    assert k == 1 or more(k, rules=("gpu-low-utilization",)) is not None


@pytest.mark.parametrize(("k", "high"), [(2, 1.5), (4, 1.25), (3, 4 / 3)])
def test_one_more_at_once_brings_its_ratio_at_most(k: int, high: float) -> None:
    made = more(k)
    (change,) = made.changes
    assert (change.present, change.proposed) == (k, k + 1)
    assert change.code == f"for i in $(seq {k + 1}); do python train.py & done; wait  # was {k}"
    assert gain_of(made) == (pytest.approx(0.92), pytest.approx(high), "x", "idle") and made.verify_first == MAY_SLOW
    assert made.assumption == (
        "That is so only if the CPU keeps up. At worst nothing is idle at the right time and one more costs all 8 %. "
        f"The {k + 1} largest trials together need {(k + 1) * 100} MiB of 900 MiB: they fit."
    )
    higher = pytest.approx(1.88 * (1 + 0.5 / k), abs=0.01)
    assert checks(made) == [
        ("parallelism.effective", ">", higher), ("trials.fail_pct", "<=", 5.0), ("memory.max_used_pct", "<", 90.0)
    ]  # fmt: skip
    longest = 60 * (k + 1) / k
    assert predicted(made) == {
        "utilization.mean_pct": (40.0, 40.0, pytest.approx(40 * high)),
        "memory.max_used_pct": (50.0, 50.0, pytest.approx(50 * (k + 1) / k)),
        "trials.state.COMPLETE.median_s": (60.0, pytest.approx(longest / high), pytest.approx(longest)),
    }


@pytest.mark.parametrize(("busy", "high"), [(80.0, 1.25), (99.0, 1 / 0.99)])
def test_one_more_at_once_fills_no_more_than_is_idle(busy: float, high: float) -> None:
    made = more(bounds=GainBounds(busy_pct=busy))
    assert gain_of(made) == (pytest.approx(0.92), pytest.approx(high), "x", "idle")
    assert predicted(made)["trials.state.COMPLETE.median_s"] == (60.0, pytest.approx(90 / high), 90.0)


@pytest.mark.parametrize(
    ("k", "cores", "workers", "offered"),
    [
        (None, 16, None, False),
        (1, 16, None, False),
        (2, 16, None, True),
        (2, None, None, True),
        (2, None, 64, True),
        (2, 3, None, True),
        (2, 2, None, False),
        (2, 12, 4, True),
        (2, 11, 4, False),
        (2, 13, 4, True),
        (2, 3, 0, True),
        (2, 2, 0, False),
        (3, 12, 3, True),
        (3, 11, 3, False),
    ],
)
def test_one_more_needs_a_search_and_cores_where_they_are_known(
    k: int | None, cores: int | None, workers: int | None, offered: bool
) -> None:
    assert (more(k, cores, num_workers=workers) is not None) is offered


@pytest.mark.parametrize(
    "rule",
    ["memory-near-limit", "failures-out-of-memory", "failures-after-full-memory", "gpu-idle-beside-busy", "gpu-unused"],
)
def test_no_more_where_memory_is_full_or_another_gpu_idle(rule: str) -> None:
    assert more(rules=(rule,)) is None and more(rules=("startup-dominated",)) is not None


@pytest.mark.parametrize(
    ("n_timed", "rules", "offered"),
    [
        (4, (), False),
        (5, (), True),
        (NAN, (), False),
        (60, ("gpu-low-utilization",), True),
        (60, ("loader-slow",), False),
        (60, ("cpu-bound-input",), False),
        (60, ("io-wait",), False),
    ],
)
def test_a_second_trial_beside_one_is_for_searches_that_do_not_wait_for_input(
    n_timed: float, rules: tuple[str, ...], offered: bool
) -> None:
    """Stated, or seen from the trials: nobody has to write parallel = 1 down."""
    for stated, peak in ((1, NAN), (None, 1)):
        seen = at_once(effective=0.9, n_timed=n_timed, peak=peak)
        made = more_workers.propose(situation(seen, use(23.0), parallel=stated, cpu_cores=16, bounds=HALF, rules=rules))
        assert (made is not None) is offered
        if made is not None:
            assert made.changes[0].proposed == 2 and gain_of(made) == (pytest.approx(0.92), 2.0, "x", "idle")


def test_unknown_cores_are_looked_at_first() -> None:
    assert "number of CPU cores is not stated" in more(cores=None).verify_first and "CPU" not in more().verify_first


def test_nothing_idle_is_nothing_to_fill() -> None:
    assert more(bounds=GainBounds(busy_pct=100.0)) is None
    unknown = more(bounds=GainBounds())
    assert unknown is not None and unknown.gain is None and unknown.assumption.startswith(NO_UTILIZATION)
    assert list(predicted(unknown)) == ["memory.max_used_pct"]


def test_what_does_not_fit_or_ran_beyond_the_number_is_verified_first() -> None:
    shown = "The 3 largest trials together need 1.2 GiB of 900 MiB: they do not fit."
    crowd = "More trials ran at once than were configured: find out how many workers there really are."
    assert more(each=400.0).verify_first == f"{shown} {MAY_SLOW}" and shown not in more(each=400.0).assumption
    assert more(rules=("parallelism-above-configured",)).verify_first == f"{MAY_SLOW} {crowd}"
    assert more(each=400.0, rules=("parallelism-above-configured",)).verify_first == f"{shown} {MAY_SLOW} {crowd}"
    assert "known for 0 of 8" in more(each=NAN).verify_first and not more(each=NAN).assumption.endswith("only.")


def scenario(low: float, high: float, *, bounds_only: bool = False, now: int = 1) -> Told:
    """Three at once over so many now; the GPUs of two have one each."""
    gain = SimpleNamespace(low=low, high=high, bounds_only=bounds_only)
    known = {
        2: SimpleNamespace(k=2, placed={"0": 1, "1": 1}),
        3: SimpleNamespace(k=3, gain=gain, placed={"0": 2, "1": 1}),
    }
    return Told(forecast=SimpleNamespace(parallel=[known[3]], now=now, spread=None, at=lambda k: known[k]))


@pytest.mark.parametrize(
    ("low", "high", "gain"),
    [
        (1.1, 1.2, (1.1, 1.2)),
        (1.1, 1.8, (1.1, 1.5)),
        (1.7, 1.8, (1.5, 1.5)),
        (0.9, 1.2, (0.9, 1.2)),
        (1.2, 1.2, (1.2, 1.2)),
        (NAN, 1.2, (pytest.approx(0.92), 1.5)),
        (1.1, NAN, (pytest.approx(0.92), 1.5)),
        (0.8, 1.0, None),
        (0.8, 1.01, (0.8, 1.01)),
        (0.4, 0.5, None),
    ],
)
def test_a_forecast_narrows_the_bounds(low: float, high: float, gain: tuple[float, float] | None) -> None:
    made = more(analysis=scenario(low, high))
    assert (made and (made.gain.low, made.gain.high)) == gain
    if made is not None:
        assert (made.verify_first == MAY_SLOW) is (made.gain.low <= 1), "a number one may rely on, or a test"
        assert ("Forecast from this log, by a re-simulation" in made.assumption) is not math.isnan(low + high)
        assert predicted(made)["utilization.mean_pct"] == (40.0, 40.0, pytest.approx(40 * gain[1]))  # type: ignore[index]


def test_the_forecast_over_the_same_number_knows_its_own_bounds_and_where_the_next_one_runs() -> None:
    made = more(analysis=scenario(1.1, 1.7, now=2))
    assert gain_of(made)[:2] == (1.1, 1.7) and "taken to run on GPU 0, which has 1 of the 2 now." in made.assumption
    assert "GPU 0" not in more(analysis=scenario(1.1, 1.7, now=1)).assumption


def test_a_forecast_of_bounds_says_so_and_needs_utilization() -> None:
    assert "by bounds alone, for the model failed" in more(analysis=scenario(1.0, 1.2, bounds_only=True)).assumption
    assert more(analysis=scenario(1.0, 1.2), bounds=GainBounds()).gain is None


def capacity(rows: list[dict[str, Any]] | pd.DataFrame, n_gpus: int = 1, **more: Any) -> Told:
    told = {"reason": "", "n_gpus": n_gpus, "table": pd.DataFrame(rows), "limits": False, "recommended_k": NAN, **more}
    told = {"gains": NetGains(), "hard_fit_k": NAN, **told}
    return Told(capacity=SimpleNamespace(overflow=lambda k: SimpleNamespace(high=0.7 * k), **told))


@pytest.mark.parametrize("kind", [bool, np.bool_])
@pytest.mark.parametrize(("n_gpus", "each"), [(1, 3), (2, 2), (3, 1)])
@pytest.mark.parametrize("fit", [True, False])
def test_whether_they_fit_is_by_the_trials_of_one_gpu(kind: Any, n_gpus: int, each: int, fit: bool) -> None:
    column = pd.Series([not fit, fit], dtype=object if kind is bool else bool)
    table = pd.DataFrame({"k": [each + 1, each], "hard_fit": column})
    made = more(analysis=capacity(table, n_gpus))
    noun = "trial" if each == 1 else "trials"
    unsure = "is not sure to fit" if each == 1 else "are not sure to fit"
    said = (
        f"The largest {each} {noun} {'fit' if fit else unsure} together; at most {0.7 * each:.1f} % of trials "
        f"end when {each} at once exceed the memory."
    )
    assert made.verify_first == (MAY_SLOW if fit else f"{said} {MAY_SLOW}")
    assert made.assumption.endswith(said) is fit


@pytest.mark.parametrize(
    ("limits", "each", "n_gpus", "offered"),
    [(True, 2.0, 1, False), (True, 3.0, 1, True), (True, 1.0, 2, False), (True, 2.0, 2, True), (False, 2.0, 1, True)],
)
def test_no_more_at_once_than_memory_is_known_to_hold(limits: bool, each: float, n_gpus: int, offered: bool) -> None:
    told = capacity([{"k": 2, "hard_fit": True}], n_gpus, limits=limits, recommended_k=each)
    assert (more(analysis=told) is not None) is offered


def test_what_the_capacity_does_not_know_is_looked_up_by_trial() -> None:
    for rows in ([{"k": 3, "hard_fit": None}], [{"k": 3, "hard_fit": NAN}], [{"k": 9, "hard_fit": False}]):
        made = more(analysis=capacity(rows))
        assert made.verify_first == MAY_SLOW and made.assumption.endswith("need 300 MiB of 900 MiB: they fit.")


FULL = {1: 305.0, 2: 600.0, 3: 700.0, 4: 990.0}
LOST = GainBounds(trial_gpu_h=10.0, lost_gpu_h={"failures": 1.5, "abandoned": 0.5})


def fewer(
    most: dict[int, float] = FULL,
    bounds: GainBounds = LOST,
    rules: tuple[str, ...] = ("memory-near-limit",),
    **stated: Any,
) -> Any:
    used, seen = levels(most, **{name: stated.pop(name) for name in ("time_s",) if name in stated})
    return fewer_workers.propose(situation(used, seen, trials(fail_low_pct=7.34), bounds=bounds, rules=rules, **stated))


@pytest.mark.parametrize(
    ("rules", "offered"),
    [
        ((), False),
        (("failures-by-number-at-once",), False),
        (("memory-near-limit",), True),
        (("failures-out-of-memory",), True),
        (("failures-after-full-memory",), True),
        (("failures-out-of-memory", "failures-by-number-at-once"), True),
    ],
)
def test_fewer_at_once_is_for_memory_that_a_finding_says_was_full(rules: tuple[str, ...], offered: bool) -> None:
    """Failures that go with the number of trials at once may have any reason: alone they are none for it."""
    assert (fewer(rules=rules) is not None) is offered


def test_fewer_at_once_goes_to_the_largest_level_that_was_safe() -> None:
    made = fewer()
    (change,) = made.changes
    assert (change.present, change.proposed, change.code) == (
        4,
        3,
        "for i in $(seq 3); do python train.py & done; wait  # was up to 4",
    )
    assert gain_of(made) == (0.75, pytest.approx(1.25), "x", "failures")
    assert "1 at once: 30.5 %; 2 at once: 60 %; 3 at once: 70 %; 4 at once: 99 %." in made.assumption
    assert "20 % of trial time failed. Failures of another kind go on." in made.assumption
    assert "at worst in proportion to the workers" in made.assumption and not made.verify_first
    assert checks(made) == [
        ("memory.max_used_pct", "<", 90.0), ("trials.fail_pct", "<", 7.3)
    ], "no streak of so many: a shorter run cannot have one"  # fmt: skip
    (one,) = made.predictions
    assert (one.measure, one.low, one.high) == ("memory.max_used_pct", None, 70.0) and one.note


@pytest.mark.parametrize(("at_last", "present"), [(5, 4), (4, 4), (3, None), (2, None), (0, 4)])
def test_fewer_at_once_counts_from_the_workers_of_the_end(at_last: int, present: int | None) -> None:
    """Workers went from four to three by themselves: nobody has to be told to do so."""
    used, seen = levels(FULL)
    seen = replace(seen, workers=pd.DataFrame({"from_s": [0.0, 900.0], "n_workers": [4, at_last]}))
    given = situation(used, seen, trials(fail_low_pct=7.34), bounds=LOST, rules=("memory-near-limit",))
    made = fewer_workers.propose(given)
    assert (made and made.changes[0].present) == present


@pytest.mark.parametrize(
    ("lost", "total", "high"),
    [
        ({"failures": 5.0}, 10.0, 2.0),
        ({"failures": 0.5}, 1.0, 2.0),
        ({"failures": 0.0, "abandoned": 0.0}, 10.0, 1.0),
        ({"failures": 10.0}, 10.0, None),
        ({"failures": 12.0}, 10.0, None),
        ({"failures": NAN, "abandoned": 5.0}, 10.0, None),
        ({"failures": 5.0}, 0.0, None),
        ({"failures": 5.0}, NAN, None),
        (None, 10.0, None),
    ],
)
def test_fewer_at_once_brings_at_most_the_time_that_was_lost(
    lost: dict[str, float] | None, total: float, high: float | None
) -> None:
    """Without a bound where that is unknown, which is not the same as nothing."""
    made = fewer(bounds=GainBounds(trial_gpu_h=total, lost_gpu_h=lost))
    assert made.gain is None if high is None else gain_of(made) == (0.75, pytest.approx(high), "x", "failures")


def test_what_failed_trials_took_is_no_nothing_where_it_is_unknown() -> None:
    made = fewer(bounds=GainBounds(trial_gpu_h=10.0, lost_gpu_h={"failures": NAN, "abandoned": 0.0}))
    assert "What failed trials took is not known." in made.assumption and "0 %" not in made.assumption.split("99 %")[1]


@pytest.mark.parametrize("most", [{1: 300.0, 2: 600.0}, {1: 950.0, 2: 990.0}, {}, {1: 300.0}])
def test_fewer_at_once_is_for_levels_that_were_too_full(most: dict[int, float]) -> None:
    assert fewer(most) is None


@pytest.mark.parametrize(
    ("hard_fit", "worst_mib", "offered", "said"),
    [
        (1.0, 500.0, 1, "The largest 1 trial fits, the largest 2 may not. "),
        (2.0, 800.0, 2, "The largest 2 trials fit together, the largest 3 may not. "),
        (3.0, 900.0, None, ""),
        (NAN, NAN, None, ""),
    ],
)
def test_where_fewer_were_not_tried_the_largest_trials_say_how_many_fit(
    hard_fit: float, worst_mib: float, offered: int | None, said: str
) -> None:
    table = pd.DataFrame({"k": [1, 2, 3], "worst_high_mib": worst_mib})
    room = SimpleNamespace(total_mib=1000.0)
    told = capacity(table, hard_fit_k=hard_fit, room=room, recommended_k=hard_fit, workers=lambda now: int(hard_fit))
    made = fewer({3: 990.0}, analysis=told)
    assert (made and made.changes[0].proposed) == offered
    if made:
        assert made.assumption.startswith(f"{said}Most memory seen with 3 at once: 99 %.")
        assert predicted(made)["memory.max_used_pct"][2] == worst_mib / 10
    assert fewer({3: 990.0}, rules=(), analysis=told) is None


@pytest.mark.parametrize(("time_s", "present"), [(600.0, 4), (599.9, None)])
def test_a_level_seen_for_a_moment_is_none(time_s: float, present: int | None) -> None:
    made = fewer(time_s={1: 6000.0, 2: 700.0, 3: 700.0, 4: time_s})
    assert (made and made.changes[0].present) == present


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(4, 100.0, 120.0), (3, 90.0, 130.0)], True),
        ([(4, 100.0, 100.0), (3, 90.0, 90.0)], True),
        ([(4, 100.0, 99.0), (3, 90.0, 130.0)], False),
        ([(4, 100.0, 120.0), (3, NAN, 130.0)], False),
        ([(4, 100.0, 120.0)], False),
        ([(3, 100.0, 120.0)], False),
    ],
)
def test_trials_a_day_at_both_numbers_where_the_capacity_knows(
    rows: list[tuple[int, float, float]], said: bool
) -> None:
    table = [{"k": k, "net_day_low": low, "net_day_high": high} for k, low, high in rows]
    made = fewer(analysis=capacity(table, recommended_k=3.0, workers=lambda now: 3))
    assert ("Good trials a day: (" in made.assumption) is said
    if said:
        (_, a, b), (_, c, d) = rows
        assert f"({c:.0f}–{d:.0f}) with 3, ({a:.0f}–{b:.0f}) with 4 at once." in made.assumption
        assert ("is not shown" in made.assumption) is (max(a, c) <= min(b, d))
        assert gain_of(made)[:2] == (pytest.approx(c / b), pytest.approx(d / a))
    half_known = capacity([{"k": n, "net_day_low": 1.0} for n in (3, 4)], recommended_k=3.0, workers=lambda now: 3)
    assert "at worst in proportion to the workers" in fewer(analysis=half_known).assumption


@pytest.mark.parametrize(
    ("effective", "high"),
    [(3.0, 4 / 3), (1.0, 10 / 3), (2.5, 1.6), (3.99, 4 / 3.99), (4.0, None), (5.0, None), (NAN, None)],
)
def test_workers_that_stopped_are_started_again(effective: float, high: float | None) -> None:
    given = (at_once(configured=4.0, effective=effective), use(40.0), trials(fail_high_pct=5.0))
    made = restart_workers.propose(situation(*given, bounds=HALF, command="run.sh"))
    assert (made is None) is (high is None)
    if made is None or high is None:
        return
    assert gain_of(made) == (1.0, pytest.approx(high), "x", "between trials")
    assert made.changes[0].text == ""
    assert "$(seq 4); do\n  (until run.sh;" in made.changes[0].code
    assert checks(made) == [("parallelism.efficiency_pct", ">=", 75.0), ("trials.fail_pct", "<=", 5.0)]
    assert predicted(made) == {"utilization.mean_pct": (40.0, 40.0, pytest.approx(min(100.0, 40 * high)))}
    never = restart_workers.propose(situation(at_once(configured=4.0, effective=effective, peak=3), bounds=HALF))
    assert never is not None and never.changes[0].text == "workers: 3 → 4" and "never started" in never.assumption
    unstated = restart_workers.propose(situation(*given, bounds=GainBounds()))
    assert unstated is not None and "until python train.py;" in unstated.changes[0].code
    assert unstated.gain is None and unstated.assumption == NO_UTILIZATION and predicted(unstated) == {}


@pytest.mark.parametrize(("configured", "offered"), [(0.0, False), (NAN, False), (1.0, True), (3.0, True)])
def test_threads_become_processes_where_a_number_was_configured(configured: float, offered: bool) -> None:
    given = (at_once(configured=configured, effective=1.25), use(40.0))
    made = worker_processes.propose(situation(*given, bounds=HALF))
    assert (made is not None) is offered
    if made is not None:
        high = max(1.0, configured / 1.25)
        assert gain_of(made) == (1.0, pytest.approx(high), "x", "between trials")
        assert f"$(seq {configured:.0f}); do python" in made.changes[0].code
        assert checks(made) == [("parallelism.effective", ">", 1.2)]
        assert predicted(made) == {"utilization.mean_pct": (40.0, 40.0, pytest.approx(40 * high))}
        assert predicted(worker_processes.propose(situation(*given, bounds=GainBounds()))) == {}


@pytest.mark.parametrize(
    ("share", "busy", "high"),
    [
        (9.9, 40.0, None),
        (10.0, 40.0, 1 / 0.9),
        (35.5, 40.0, 1 / 0.645),
        (80.0, 40.0, 2.5),
        (100.0, 40.0, None),
        (50.0, NAN, 2.0),
        (20.0, 0.5, 1.25),
        (NAN, 40.0, None),
    ],
)
def test_a_warm_worker_saves_start_ups_up_to_what_the_gpu_can_take(
    share: float, busy: float, high: float | None
) -> None:
    bounds = GainBounds(busy_pct=busy, startup_pct=share, startup_only_pct=4.3, parallel=2.5)
    made = warm_worker.propose(situation(use(30.0), bounds=bounds))
    assert (made is None) is (high is None)
    if made is None or high is None:
        return
    assert gain_of(made) == (1.0, pytest.approx(high), "x", "idle")
    assert "with 2.5 trials at once" in made.assumption and "for 4.3 % of" in made.assumption
    assert checks(made) == [
        ("costs.startup_share_pct", "<", round(share / 2, 1)),
        ("utilization.mean_pct", ">=", 30 + max(3, 30 * (high - 1) / 10)),
    ]
    assert predicted(made) == {"utilization.mean_pct": (30.0, 30.0, pytest.approx(30 * high))}


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (None, "for i in $(seq 3); do python train.py & done; wait  # was 2"),
        ("./run.sh", "for i in $(seq 3); do ./run.sh & done; wait  # was 2"),
        ("python hpo.py --parallel 2", "python hpo.py --parallel 3  # was 2"),
        ("python hpo.py --workers=2 -v", "python hpo.py --workers=3 -v  # was 2"),
        ("python hpo.py --parallel 3", "python hpo.py --parallel 3  # was 2"),
    ],
)
def test_workers_are_started_by_the_commands_own_option_or_one_by_one(command: str | None, code: str) -> None:
    assert started(command, 3, "was 2") == code
