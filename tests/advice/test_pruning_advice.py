"""What is advised for a search that prunes, by hand: which number is changed, what it costs, and when it is offered."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from gpudiag.advice._engine.gains import GainBounds
from gpudiag.advice._engine.remedy import Remedy
from gpudiag.advice.pruning import (
    CENSORED,
    LAXER,
    NOT_THE_PRUNER,
    log_pruner,
    optuna_code,
    pruner_min_resource,
    pruner_patience,
    pruner_warmup,
    pruning_control,
)
from gpudiag.measures._trials.pruner_spec import parse_pruner
from gpudiag.measures.pruning import PruningProfile
from tests.advice.situations import Told, checks, gain_of, memory, predicted, situation, trials
from tests.rules.small_profiles import profile

NAN = math.nan
UNPRICED = "Its cost in GPU time is unknown: the curves could not be replayed."


def pruned(**stated: float) -> PruningProfile:
    given = {"of_decided_pct": 40.0, "of_decided_low_pct": 33.37, "median_step": 6.5, **stated}
    made: PruningProfile = profile(PruningProfile, **given)
    return made


def replayed(saved: tuple[float, float] = (-2.5, -0.5), rate: tuple[float, float] = (20.0, 30.0)) -> Told:
    low_high = (SimpleNamespace(low=low, high=high) for low, high in (saved, rate))
    return Told(
        replay=SimpleNamespace(**dict(zip(("saved_gpu_h", "pruned_pct"), low_high, strict=True)), identified_pct=75.0)
    )


def laxer(item: Remedy, pruner: str | None, analysis: Any = None, **stated: Any) -> Any:
    rules = stated.pop("rules", ())
    states = {"PRUNED": {"median_s": 30.0}}
    return item.propose(
        situation(pruned(**stated), memory(50.0), trials(states), rules=rules, pruner=pruner, analysis=analysis)
    )


@pytest.mark.parametrize(("present", "more"), [(0, 1), (1, 3), (2, 5), (4, 9)])
def test_patience_is_doubled_and_one_more(present: int, more: int) -> None:
    made = laxer(pruner_patience, f"patient(hyperband(max_resource=81),patience={present})")
    (change,) = made.changes
    assert (change.what, change.present, change.proposed) == ("pruner patience", present, more)
    assert change.code == (
        "pruner=optuna.pruners.PatientPruner(optuna.pruners.HyperbandPruner(min_resource=1, max_resource=81, "
        f"reduction_factor=3, bootstrap_count=0), patience={more}, min_delta=0.0)  # patience was {present}"
    )
    for other in ("hyperband()", "median()", None):
        assert laxer(pruner_patience, other) is None


@pytest.mark.parametrize(
    ("pruner", "present", "more"),
    [
        ("hyperband(min_resource=2)", 2, 6),
        ("sha(min_resource=3)", 3, 12),
        ("sha(min_resource=1,reduction_factor=2)", 1, 2),
        ("patient(hyperband(min_resource=2,reduction_factor=4),patience=1)", 2, 8),
        ("sha()", None, None),
        ("median()", None, None),
        ("patient(median(),patience=1)", None, None),
        (None, None, None),
    ],
)
def test_the_first_budget_becomes_the_next_rung(pruner: str | None, present: int | None, more: int | None) -> None:
    made = laxer(pruner_min_resource, pruner)
    assert (made and (made.changes[0].present, made.changes[0].proposed)) == (more and (present, more))
    if made is not None:
        assert (
            f"min_resource={more}" in made.changes[0].code and f"# min_resource was {present}" in made.changes[0].code
        )
        assert ("PatientPruner" in made.changes[0].code) is ("patient" in str(pruner))


@pytest.mark.parametrize(
    ("pruner", "step", "more"),
    [
        ("median(n_warmup_steps=2)", 6.5, 7),
        ("median(n_warmup_steps=2)", 6.0, 7),
        ("percentile(25.0)", 1.0, 2),
        ("median(n_warmup_steps=6)", 6.0, 7),
        ("median(n_warmup_steps=7)", 6.0, None),
        ("median(n_warmup_steps=9)", 6.0, None),
        ("median()", NAN, None),
        ("hyperband()", 6.0, None),
        (None, 6.0, None),
    ],
)
def test_warm_up_ends_after_the_median_step_of_the_cuts(pruner: str | None, step: float, more: int | None) -> None:
    made = laxer(pruner_warmup, pruner, median_step=step)
    assert (made and made.changes[0].proposed) == more


@pytest.mark.parametrize(
    ("saved", "gain", "said"),
    [
        ((-2.5, -0.5), (-2.5, -0.5), "it costs up to 2.5 GPU-h of GPU time."),
        ((-2.5, 0.0), (-2.5, 0.0), "it costs up to 2.5 GPU-h of GPU time."),
        ((-2.5, 0.5), (-2.5, 0.5), "it costs up to 2.5 GPU-h of GPU time, or saves up to 0.5 GPU-h."),
        ((0.5, 1.5), (0.5, 1.5), "it costs up to 0 GPU-h of GPU time, or saves up to 1.5 GPU-h."),
        ((NAN, 1.0), None, UNPRICED),
        ((-1.0, NAN), None, UNPRICED),
        ((-math.inf, 1.0), None, UNPRICED),
    ],
)
def test_the_price_is_what_the_replay_says(
    saved: tuple[float, float], gain: tuple[float, float] | None, said: str
) -> None:
    told = replayed(saved)
    made = laxer(pruner_warmup, "median()", told)
    assert gain_of(made) == (gain and (*gain, "GPU-h", "pruner"))
    assert made.assumption.startswith(LAXER) and said in made.assumption
    assert set(told.asked) == {str(parse_pruner("median(n_warmup_steps=7)"))}, "the changed pruner is replayed"


@pytest.mark.parametrize(
    ("logged", "rate", "low", "high"),
    [
        (40.0, (20.0, 30.0), 20.0, 30.0),
        (40.0, (30.0, 55.0), 30.0, 40.0),  # a laxer pruner cuts no more than were cut
        (40.0, (45.0, 55.0), 40.0, 40.0),
        (50.0, (0.0, 50.0), 0.0, 50.0),
        (40.0, (0.0, 50.5), None, 40.0),
        (50.5, (20.0, 30.0), None, 50.5),
        (40.0, (NAN, 30.0), None, 40.0),
    ],
)
def test_the_rate_is_predicted_where_the_replay_is_narrow_enough(
    logged: float, rate: tuple[float, float], low: float | None, high: float
) -> None:
    made = laxer(pruner_warmup, "median()", replayed(rate=rate), of_decided_pct=logged)
    said = predicted(made)
    assert said["pruning.of_decided_pct"] == (logged, low, high)
    assert said["trials.state.PRUNED.median_s"] == (30.0, 30.0, None)
    assert said["memory.max_used_pct"] == (50.0, 50.0, 50.0)
    notes = {p.measure: p.note for p in made.predictions}
    assert (notes["pruning.of_decided_pct"] == CENSORED) is (low is None) is ("pruned (75 % of" not in made.assumption)
    assert notes["trials.state.PRUNED.median_s"] == CENSORED
    if rate == (20.0, 30.0) and low is not None:
        assert "prunes 20 % to 30 % of them, where 40 % were pruned (75 % of the trials" in made.assumption


def test_without_a_replay_the_rate_is_bounded_by_the_present_one() -> None:
    made = laxer(pruner_warmup, "median()")
    assert gain_of(made) is None and made.assumption == f"{LAXER} {UNPRICED}"
    assert predicted(made)["pruning.of_decided_pct"] == (40.0, None, 40.0)
    assert checks(made) == [("pruning.of_decided_pct", "<", 33.4)] and made.verify_first == ""
    assert laxer(pruner_warmup, "median()", rules=("pruned-before-possible",)).verify_first == NOT_THE_PRUNER


@pytest.mark.parametrize(
    ("n", "full", "cut", "parallel", "cost"),
    [
        (150, 7200.0, 3600.0, 4.0, 3.75),
        (1500, 7200.0, 3600.0, 1.0, 15.0),
        (150, 3600.0, 3600.5, 1.0, 0.0),
        (150, 3600.0, 3599.0, 1.0, 15 / 3600),
        (150, NAN, 3600.0, 1.0, None),
        (150, 7200.0, 3600.0, NAN, None),
    ],
)
def test_fifteen_trials_cost_the_rest_of_their_length(
    n: int, full: float, cut: float, parallel: float, cost: float | None
) -> None:
    states = {"COMPLETE": {"median_s": full}, "PRUNED": {"mean_s": cut}}
    rate = profile(PruningProfile, of_decided_pct=80.0)
    made = pruning_control.propose(situation(trials(states, n=n), rate, bounds=GainBounds(parallel=parallel)))
    assert gain_of(made) == (None if cost is None else (pytest.approx(-cost), 0.0, "GPU-h", "control"))
    assert made is not None and checks(made) == [("pruning.of_decided_pct", "<=", 76.0 if n == 150 else 79.6)]
    assert (made.changes[0].present, made.changes[0].proposed) == (True, False)
    assert made.changes[0].code.startswith(f"if trial.number % {n // 15} and trial.should_prune():")
    said = "none completed." if math.isnan(full) else "15 trials of full length."
    if math.isnan(parallel):
        said = "15 trials of full length; each takes 1 h more of its worker."
    assert made.assumption.endswith(said)


@pytest.mark.parametrize(("n", "failed_pct"), [(30, 0.0), (44, NAN), (200, 10.0), (200, 50.0), (1000, 0.0)])
def test_fifteen_controls_end_without_failure(n: int, failed_pct: float) -> None:
    made = pruning_control.propose(situation(trials({}, n=n, fail_pct=failed_pct), bounds=GainBounds(parallel=1)))
    assert made is not None
    every = int(made.changes[0].code.split("% ")[1].split()[0])
    controls = len(range(0, n, every)) * (1 if math.isnan(failed_pct) else 1 - failed_pct / 100)
    assert controls >= 15, "trials whose number every divides"
    assert len(range(0, n, every + 1)) * (1 if math.isnan(failed_pct) else 1 - failed_pct / 100) <= 17, "and few more"


@pytest.mark.parametrize(("n", "failed_pct"), [(29, 0.0), (32, 10.0), (NAN, 0.0)])
def test_no_controls_where_they_were_half_of_the_study(n: float, failed_pct: float) -> None:
    assert pruning_control.propose(situation(trials({}, n=n, fail_pct=failed_pct))) is None


@pytest.mark.parametrize(("pruner", "present"), [("median()", "as stated"), (None, None)])
def test_the_pruner_that_runs_is_written_down(pruner: str | None, present: str | None) -> None:
    made = log_pruner.propose(situation(pruner=pruner))
    assert made is not None and made.changes[0].present == present
    assert gain_of(made) == (1.0, 1.0, "x", "none") and checks(made) == [("pruning.before_possible", "<=", 0.0)]


def test_the_call_names_what_is_set_and_nothing_else() -> None:
    assert optuna_code(parse_pruner("nop()")) == "optuna.pruners.NopPruner()"
    assert optuna_code(parse_pruner("threshold(upper=2.5)")) == (
        "optuna.pruners.ThresholdPruner(upper=2.5, n_warmup_steps=0, interval_steps=1)"
    )
    assert "max_resource='auto'" in optuna_code(parse_pruner("hyperband()"))
