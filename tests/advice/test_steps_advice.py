"""Time outside of steps: what less of it saves, and the interval between checkpoints."""

from __future__ import annotations

import ast
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from gpudiag.advice._engine.situation import Situation
from gpudiag.advice.steps import EVALUATE, SAVE, evaluate_less, evaluate_on_all, save_in_background, save_interval
from gpudiag.measures.steps import StepsProfile
from tests.advice.situations import Told, checks, gain_of, predicted, situation
from tests.rules.small_profiles import profile


def now(series: str = "mmengine", **facts: Any) -> Situation:
    told = Told()
    told.run.steps = pd.DataFrame({"series": [series]})
    told.run.info.inputs = (SimpleNamespace(reader="training log"),)
    return situation(
        profile(StepsProfile, **{"n_evaluations": 2, **facts}), analysis=told, rules=("steps-paused", "steps-lost")
    )


def test_half_of_the_evaluations_is_saved_at_most_on_each_gpu() -> None:
    given = now(evaluations_low_s=3600.0, evaluations_s=3600.0, logged_s=14400.0, logged_gpus=4.0, pauses_pct=30.0)
    assert gain_of(evaluate_less.propose(given)) == (0.0, 2.0, "GPU-h", "evaluation")
    ((fact, sign, limit),) = checks(evaluate_less.propose(given))  # 4,320 s of pauses; half of the 1,800 s is gone
    assert (fact, sign) == ("steps.pauses_pct", "<") and limit == pytest.approx(100 * (4320 - 900) / (14400 - 900))
    assert gain_of(evaluate_less.propose(now(evaluations_s=3600.0))) is None, "on how many GPUs is unknown"
    assert evaluate_less.propose(now(evaluations_s=0.0)) is None
    assert evaluate_less.propose(now(evaluations_s=3600.0, n_evaluations=1)) is None, "of one there is no half"


def test_an_evaluation_on_all_gpus_leaves_each_its_part() -> None:
    """Of 3,600 s on one GPU of four each keeps 900; the other 2,700 s are saved on four GPUs."""
    known = {"evaluations_low_s": 3600.0, "evaluations_s": 3600.0, "logged_s": 14400.0, "logged_gpus": 4.0}
    given = now(**known, pauses_pct=30.0, evaluating_gpus=1.0, waiting_gpus=3.0)
    assert gain_of(evaluate_on_all.propose(given)) == (0.0, 3.0, "GPU-h", "evaluation")
    for evaluating, waiting in ((4.0, 0.0), (0.0, 4.0), (math.nan, math.nan)):
        assert evaluate_on_all.propose(now(**known, evaluating_gpus=evaluating, waiting_gpus=waiting)) is None


def test_nothing_is_done_about_the_smaller_part_where_the_largest_has_no_name() -> None:
    """An hour and a half of evaluations beside eight hours of pauses of which the log says nothing."""
    known = {"evaluations_s": 5400.0, "checkpoints_s": 600.0, "evaluating_gpus": math.nan, "waiting_gpus": math.nan}
    for unnamed_s, proposed in ((28_800.0, False), (5000.0, True)):
        given = now(**known, unnamed_s=unnamed_s)
        assert (evaluate_less.propose(given) is not None) == proposed
        waits = now(**{**known, "evaluating_gpus": 1.0, "waiting_gpus": 3.0}, unnamed_s=unnamed_s)
        assert (evaluate_on_all.propose(waits) is not None) == proposed
        assert (save_in_background.propose(now("megatron", **known, unnamed_s=unnamed_s)) is not None) == proposed


def test_what_may_be_nothing_has_no_check() -> None:
    """Of 4,320 s of pauses in 14,400 s nobody knows how many are evaluations: half as many may save next to nothing,
    and any noise would pass a check for less.
    """
    given = now(evaluations_low_s=0.0, evaluations_s=4320.0, logged_s=14400.0, logged_gpus=1.0, pauses_pct=30.0)
    assert gain_of(evaluate_less.propose(given)) == (0.0, 0.6, "GPU-h", "evaluation")
    assert checks(evaluate_less.propose(given)) == []


def test_all_of_the_checkpoints_is_saved_at_most() -> None:
    given = now(checkpoints_low_s=1800.0, checkpoints_s=1800.0, logged_s=15000.0, logged_gpus=2.0, pauses_pct=12.0)
    assert gain_of(save_in_background.propose(given)) == (0.0, 1.0, "GPU-h", "checkpoints")
    assert checks(save_in_background.propose(given)) == [("steps.pauses_pct", "<", 10.0)]
    assert predicted(save_in_background.propose(given)) == {"steps.pauses_pct": (12.0, pytest.approx(0.0), 12.0)}
    half = now(checkpoints_s=900.0, logged_s=15000.0, logged_gpus=2.0, pauses_pct=12.0)
    left = 100 * 900 / 14100  # 1,800 s of pauses, half of them gone, and so much less in all
    assert predicted(save_in_background.propose(half)) == {"steps.pauses_pct": (12.0, pytest.approx(left), 12.0)}
    assert save_in_background.propose(now("paddle", checkpoints_s=1800.0)) is None, "nothing shows PyTorch"


@pytest.mark.parametrize("dialect", [*EVALUATE, *SAVE])
def test_each_log_gets_the_lines_of_its_framework(dialect: str) -> None:
    given = now(dialect, evaluations_s=60.0, checkpoints_s=60.0)
    for code, item in ((EVALUATE, evaluate_less), (SAVE, save_in_background)):
        made = item.propose(given)
        if dialect in code:
            assert made is not None and made.changes[0].code == code[dialect]
            if not code[dialect].startswith("python "):
                ast.parse(code[dialect])


@pytest.mark.parametrize("n", [1, 3, 10])
def test_the_interval_is_youngs_and_its_ends_those_of_the_rate(n: int) -> None:
    """Garwood's interval by the chi-square distribution, and √(2·C·M)."""
    from scipy.stats import chi2

    span_s, cost_s = 100_000.0, 30.0
    made = save_interval.propose(now(checkpoint_s=cost_s, checkpoint_every_s=50_000.0, n_resumed=n, mttf_s=span_s / n))
    assert made is not None
    ends = [2 * span_s / chi2.ppf(0.975, 2 * n + 2), 2 * span_s / chi2.ppf(0.025, 2 * n)]
    low, high = (math.sqrt(2 * cost_s * end) for end in ends)
    best = math.sqrt(2 * cost_s * span_s / n)
    assert made.changes[0].code.startswith(f"save_every_s = {best:.0f} ")
    inside = {"checkpoint_s": cost_s, "n_resumed": n, "mttf_s": span_s / n}
    for every_s, proposed in ((low * 0.99, True), (low * 1.01, False), (high * 0.99, False), (high * 1.01, True)):
        assert (save_interval.propose(now(checkpoint_every_s=every_s, **inside)) is not None) == proposed


def test_another_interval_saves_the_steps_done_twice_and_not_the_time_down() -> None:
    """An hour lost, of which a quarter went into standing still, on two GPUs."""
    known = {"checkpoint_s": 30.0, "checkpoint_every_s": 50_000.0, "n_resumed": 2, "mttf_s": 5_000.0}
    lost = {"resumption_s": 3600.0, "down_s": 900.0, "logged_gpus": 2.0, "resumption_gpu_h": 2.0}
    assert gain_of(save_interval.propose(now(**known, **lost))) == (0.0, 1.5, "GPU-h", "restart")


@pytest.mark.parametrize("unknown", ["checkpoint_s", "checkpoint_every_s", "mttf_s"])
def test_without_its_numbers_no_interval_is_proposed(unknown: str) -> None:
    known = {"checkpoint_s": 30.0, "checkpoint_every_s": 50_000.0, "n_resumed": 2, "mttf_s": 5_000.0}
    assert save_interval.propose(now(**known)) is not None
    assert save_interval.propose(now(**{**known, unknown: math.nan})) is None


def test_a_longer_interval_saves_the_checkpoints_that_are_left_out() -> None:
    """A checkpoint of a minute each 6 min, failures each 4 h: √(2·60·14,400) s is 22 min."""
    given = now(
        checkpoint_s=60.0, checkpoint_every_s=360.0, n_resumed=2, mttf_s=14_400.0,
        checkpoints_s=4500.0, pauses_pct=16.0, logged_gpus=8.0,
    )  # fmt: skip
    saved_h = 8 * 4500 * (1 - 360 / math.sqrt(2 * 60 * 14_400)) / 3600
    assert gain_of(save_interval.propose(given)) == (0.0, pytest.approx(saved_h), "GPU-h", "checkpoints")
    assert checks(save_interval.propose(given)) == [("steps.pauses_pct", "<", 16.0)]


def test_pauses_ask_for_no_shorter_interval() -> None:
    given = now(checkpoint_s=60.0, checkpoint_every_s=50_000.0, n_resumed=2, mttf_s=14_400.0)
    assert save_interval.propose(given) is not None, "steps were lost"
    only_paused = replace(given, found={"steps-paused": given.found["steps-paused"]})
    assert save_interval.propose(only_paused) is None


def test_the_same_work_saves_no_more_than_gpus_wait_in_pauses() -> None:
    """Two GPUs stand in 1,800 s of checkpoints, in which they still work for 0.4 of their 1.0 GPU-h."""
    known = {"checkpoints_s": 1800.0, "evaluations_s": 1800.0, "logged_s": 15000.0, "logged_gpus": 2.0}
    seen = {**known, "pauses_s": 1800.0, "recorded_pauses_s": 1800.0, "idle_paused_gpu_h": 0.6}
    given = now(**seen, evaluating_gpus=math.nan)
    assert gain_of(save_in_background.propose(given)) == (0.0, 0.6, "GPU-h", "checkpoints")
    half = now(**{**seen, "recorded_pauses_s": 1260.0, "idle_paused_gpu_h": 0.5})
    assert gain_of(save_in_background.propose(half)) == (0.0, pytest.approx(0.8), "GPU-h", "checkpoints"), (
        "540 s unseen"
    )
    assert save_in_background.propose(now(**{**seen, "idle_paused_gpu_h": 0.0})) is None
    less = evaluate_less.propose(now(**{**seen, "idle_paused_gpu_h": 0.3}, evaluating_gpus=math.nan))
    assert less is not None and gain_of(less) == (0.0, 0.5, "GPU-h", "evaluation")
    assert "work left out" in less.assumption, "fewer evaluations spare work as well"
