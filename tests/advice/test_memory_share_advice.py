"""What is advised where memory runs out, by hand: shares, what comes back, and how to tell that it worked."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from gpudiag.advice._engine.gains import GainBounds
from gpudiag.advice.memory import catch_oom, free_memory, isolate_trials, keep_fewer, memory_constraint
from gpudiag.forecast.memory.constraint import Constraint, share_code
from gpudiag.forecast.memory.net import NetGains
from gpudiag.measures.leak import LeakProfile
from tests.advice.capacities import levels
from tests.advice.situations import Told, checks, gain_of, memory, predicted, situation, trials
from tests.rules.small_profiles import profile

LOST = GainBounds(lost_gpu_h={"failures": 3.5, "abandoned": 1.25})
FEWER = ("trials.fail_pct", "<", 7.3)
BELOW = ("memory.max_used_pct", "<", 90.0)


def share(*, total: float = 1000.0, used: float = 96.0, parallel: int | None = 3, **more: Any) -> Any:
    seen = memory(used, g0={"total_mib": total}, g1={"total_mib": 2 * total})
    more = {"rules": ("failures-out-of-memory",), **more}
    return memory_constraint.propose(situation(seen, trials(fail_low_pct=7.34), bounds=LOST, parallel=parallel, **more))


@pytest.mark.parametrize(
    ("rules", "offered"),
    [
        ((), False),
        (("failures-by-number-at-once",), False),
        (("memory-near-limit",), True),
        (("failures-out-of-memory",), True),
        (("failures-after-full-memory",), True),
        (("failures-share-parameter",), True),
        (("memory-near-limit", "failures-by-number-at-once"), True),
    ],
)
def test_a_share_is_for_memory_that_a_finding_says_ran_out(rules: tuple[str, ...], offered: bool) -> None:
    """Failures that go with the number of trials at once may have any reason: alone they are none for it."""
    assert (share(rules=rules) is not None) is offered


def test_without_single_trials_each_gets_its_share_of_what_stays_below_the_limit() -> None:
    made = share()
    (change,) = made.changes
    assert (change.what, change.present, change.proposed) == ("memory of one trial, MiB", None, 300)
    assert change.code == share_code(300) and not made.verify_first
    assert "300 MiB is 90 % of the GPU's 1,000 MiB, shared by 3 at once" in made.assumption
    assert gain_of(made) == (0.0, 3.5, "GPU-h", "failures") and checks(made) == [BELOW, FEWER]
    assert predicted(made) == {"memory.max_used_pct": (96.0, 0.0, pytest.approx(90.0))}
    assert predicted(share(used=60.0)) == {"memory.max_used_pct": (60.0, 0.0, 60.0)}


@pytest.mark.parametrize(
    ("total", "parallel", "limit"),
    [(1000.0, 1, 900), (999.0, 2, 449), (1000.0, None, None), (0.0, 2, None), (math.nan, 2, None)],
)
def test_a_share_needs_a_total_and_a_number(total: float, parallel: int | None, limit: int | None) -> None:
    made = share(total=total, parallel=parallel)
    assert (made and made.changes[0].proposed) == limit


def test_the_share_is_by_the_level_that_was_safe_before_the_one_that_was_stated() -> None:
    seen = levels({1: 300.0, 2: 600.0, 3: 950.0})
    made = memory_constraint.propose(situation(*seen, bounds=LOST, parallel=3, rules=("memory-near-limit",)))
    assert made is not None and made.changes[0].proposed == 450


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize(
    ("best", "said"),
    [
        (None, "memory."),
        (True, "memory. The best trial was among them."),
        (False, "memory. The best trial was not among them."),
    ],
)
def test_a_known_capacity_sets_the_share_and_says_whom_it_refuses(k: int, best: bool | None, said: str) -> None:
    one = Constraint(
        k=k, limit_mib=420.9, n=40, n_refused=6, n_oom=5, n_oom_refused=4, best_refused=best, code="# lines"
    )
    room = SimpleNamespace(usable_mib=980.0, total_mib=1000.0)
    told = Told(capacity=SimpleNamespace(reason="", needed_constraint=lambda: one, recommended_k=2.0, room=room))
    made = share(analysis=told)
    assert made.verify_first == ""
    told.capacity.recommended_k = k - 0.5
    assert "Of use only with" in share(analysis=told).verify_first
    assert made.changes[0].proposed == 420 and made.changes[0].code == "# lines" and made.changes[0].present is None
    equal = "an equal share for 2 at once, so that any 2 fit" if k == 2 else "what is usable"
    assert f"420 MiB is {equal}. It would have refused 6 of 40 trials" in made.assumption
    assert made.assumption.endswith(f"4 of the 5 that ran out of {said}")
    assert gain_of(made) == (0.0, 3.5, "GPU-h", "failures") and checks(made) == [FEWER]
    assert predicted(made) == {"memory.max_used_pct": (96.0, 0.0, pytest.approx(98.0))}, (
        "all that is usable may be used"
    )
    refuse_none = Told(capacity=SimpleNamespace(reason="", needed_constraint=lambda: None, recommended_k=2.0))
    assert share(analysis=refuse_none) is None


@pytest.mark.parametrize(
    ("low", "fewer"), [(7.34, [FEWER]), (0.4, [("trials.fail_pct", "<", 0.4)]), (0.0, []), (math.nan, [])]
)
def test_fewer_failures_are_expected_where_some_are_certain(low: float, fewer: list[Any]) -> None:
    now = situation(trials(fail_low_pct=low, fail_streak=5), bounds=LOST)
    freed, alone = free_memory.propose(now), isolate_trials.propose(now)
    assert checks(freed) == [BELOW, *fewer]
    assert checks(alone) == [("trials.fail_streak", "<=", 1.0), *fewer]
    assert gain_of(freed) == gain_of(alone) == (0.0, 3.5, "GPU-h", "failures")
    assert alone is not None and "longest streak 5)" in alone.assumption


def test_an_overflow_survived_saves_the_trials_left_running() -> None:
    made = catch_oom.propose(situation(bounds=LOST))
    assert gain_of(made) == (0.0, 1.25, "GPU-h", "abandoned")
    assert checks(made) == [("trials.abandoned", "<=", 0.0)]
    assert gain_of(catch_oom.propose(situation(bounds=GainBounds()))) is None


def test_memory_that_no_check_finds_in_use_need_not_be_freed() -> None:
    now = situation(bounds=LOST)
    assert free_memory.propose(now) is not None
    assert free_memory.propose(replace(now, passed=frozenset({"memory-leak", "memory-residual"}))) is None
    assert free_memory.propose(replace(now, passed=frozenset({"memory-residual"}))) is not None


def test_a_training_by_itself_has_no_trials_to_set_apart() -> None:
    now = situation(profile(LeakProfile), bounds=LOST, rules=("memory-leak",), analysis=Told(n_trials=0))
    assert isolate_trials.propose(now) is None and free_memory.propose(now) is None


@pytest.mark.parametrize(("freed_pct", "passed", "offered"), [
    (97.0, {"memory-leak"}, False),
    (0.0, {"memory-leak"}, True),  # each process keeps what its trials took
    (math.nan, {"memory-leak"}, True),
    (97.0, set(), True),  # it grows all the same, or nobody knows
])  # fmt: skip
def test_memory_that_trials_free_at_their_end_need_not_be_freed(
    freed_pct: float, passed: set[str], offered: bool
) -> None:
    now = situation(profile(LeakProfile, freed_pct=freed_pct), bounds=LOST)
    assert (free_memory.propose(replace(now, passed=frozenset(passed))) is not None) is offered


FULL = {1: 305.0, 2: 600.0, 3: 700.0, 4: 990.0}


def kept(
    at_last: list[int], most: dict[int, float] = FULL, rules: tuple[str, ...] = ("memory-near-limit",), **more: Any
) -> Any:
    used, seen = levels(most)
    held = pd.DataFrame({"from_s": [900.0 * i for i in range(len(at_last))], "n_workers": at_last})
    seen = replace(seen, workers=held)
    return keep_fewer.propose(situation(used, seen, trials(fail_low_pct=7.34), bounds=LOST, rules=rules, **more))


@pytest.mark.parametrize(
    ("at_last", "most", "offered"),
    [
        ([4, 3], FULL, 3),
        ([4, 3, 2], FULL, 2),
        ([3, 4], FULL, None),  # it ended with too many: another remedy tells
        ([4, 0], FULL, None),
        ([3], {1: 305.0, 2: 600.0, 3: 700.0}, None),  # it never had too many
        ([4, 3], {3: 950.0, 4: 990.0}, None),  # what it ended with was too many as well
        ([4, 1], {2: 600.0, 4: 990.0}, None),  # nobody saw memory at the number that it ended with
    ],
)
def test_a_search_that_ended_with_a_number_that_fits_stays_there(
    at_last: list[int], most: dict[int, float], offered: int | None
) -> None:
    made = kept(at_last, most)
    assert (made and (made.changes[0].present, made.changes[0].proposed)) == (offered and (4, offered))


def test_what_a_search_began_with_is_not_called_its_number_of_now() -> None:
    assert kept([4, 3, 2]).changes[0].text == "initial trials at once: 4 → 2"


def test_keeping_fewer_says_what_failures_cost_and_no_gain_where_the_time_of_trials_is_unknown() -> None:
    made = kept([4, 3])
    assert gain_of(made) is None, "how much time the trials took is not known"
    assert checks(made) == [BELOW, FEWER]
    assert "The run went from 4 to 3 at once itself" in made.assumption and "cost 3.5 GPU-h at most" in made.assumption
    assert "With 3 at once memory was filled up to 70 %" in made.assumption
    assert predicted(made)["memory.max_used_pct"][1:] == (None, 70.0)
    assert kept([4, 3], rules=()) is None and kept([4, 3], rules=("failures-by-number-at-once",)) is None


@pytest.mark.parametrize(("recommended", "offered"), [(3.0, True), (2.0, False), (4.0, False), (math.nan, True)])
def test_a_search_stays_at_the_number_that_the_memory_recommends_and_at_no_other(
    recommended: float, offered: bool
) -> None:
    rates = {"net_day": [160.0, 200.0], "net_day_low": [135.0, 157.0], "net_day_high": [186.0, 245.0]}
    table = pd.DataFrame({"k": [3, 4], **rates})
    capacity = SimpleNamespace(reason="", n_gpus=1, gains=NetGains(), table=table, recommended_k=recommended)
    made = kept([4, 3], analysis=Told(capacity=capacity))
    assert (made is not None) is offered
    if offered:
        assert "160 (135–186) with 3, 200 (157–245) with 4 at once. Which number has most is not" in made.assumption
        assert "it is not faster" in made.assumption
        assert gain_of(made) == (pytest.approx(135 / 245), pytest.approx(186 / 157), "x", "failures")


def test_every_number_between_is_weighed() -> None:
    rows = {"k": [2, 3, 4], "net_day": [90.0, 190.0, 150.0], "net_day_low": [80.0, 170.0, 140.0]}
    table = pd.DataFrame({**rows, "net_day_high": [100.0, 210.0, 160.0]})
    capacity = SimpleNamespace(reason="", n_gpus=1, gains=NetGains(), table=table, recommended_k=math.nan)
    said = kept([4, 2], analysis=Told(capacity=capacity)).assumption
    assert "90 (80–100) with 2, 190 (170–210) with 3, 150 (140–160) with 4 at once" in said
    assert "More at once would bring more of them" in said
