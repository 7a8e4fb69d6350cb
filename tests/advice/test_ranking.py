"""The order of recommendations, on made-up remedies."""

from __future__ import annotations

from dataclasses import replace

from gpudiag.advice._engine.gains import NOTHING, GainBounds
from gpudiag.advice._engine.proposal import Change, Gain, Proposal
from gpudiag.advice._engine.ranking import rank
from gpudiag.advice._engine.recommendation import Recommendation
from gpudiag.advice._engine.remedy import Remedy

BOUNDS = GainBounds(busy_pct=50.0, trial_gpu_h=10.0)


def made(
    name: str, tier: int, gain: Gain | None, verify_first: str = "", rules: tuple[str, ...] = ()
) -> Recommendation:
    proposal = Proposal((Change("a", 1, 2, "a = 2"),), gain, "", verify_first=verify_first)
    remedy = Remedy(name, "made", name, (), tier, "minutes", "now", ("p",), ("c",), "r", "b", lambda now: proposal)
    return Recommendation.of(remedy, proposal, rules, "")


def order(*given: Recommendation) -> list[str]:
    return [one.id for one in rank(given, BOUNDS)]


def test_what_must_be_verified_goes_last_however_much_it_promises() -> None:
    assert order(made("doubtful", 0, Gain(1.5, 2.0), "who knows"), made("sure", 4, None)) == ["sure", "doubtful"]


def test_lower_bound_times_reversibility_comes_first() -> None:
    risky, safe = made("risky", 3, Gain(1.0, 2.0)), made("safe", 1, Gain(1.0, 1.1))
    assert order(risky, safe) == ["safe", "risky"]
    certain = made("certain", 3, Gain(2.5, 2.6))  # 2.5 x 0.5 is more than 1.0 x 1.0
    assert order(safe, certain) == ["certain", "safe"]


def test_then_the_upper_bound_then_the_safer_one() -> None:
    much, little = made("much", 1, Gain(1.0, 1.5)), made("little", 0, Gain(1.0, 1.2))
    assert order(little, much) == ["much", "little"]
    assert order(made("loader", 1, Gain(1.0, 1.2)), little) == ["little", "loader"]


def test_of_what_must_be_tested_first_the_quicker_test_goes_before_the_higher_bound() -> None:
    copies, workers = made("copies", 1, Gain(1.0, 2.5), "fits?"), made("workers", 1, Gain(1.0, 2.0), "cores?")
    assert order(replace(copies, effort="an hour"), workers) == ["workers", "copies"]
    assert order(workers, copies) == ["copies", "workers"]
    assert order(made("sure", 1, Gain(1.0, 2.0)), replace(made("longer", 1, Gain(1.0, 2.5)), effort="an hour")) == [
        "longer", "sure",
    ]  # fmt: skip


def test_hours_and_factors_are_compared_as_factors() -> None:
    hours, factor = made("hours", 1, Gain(0.0, 5.0, "GPU-h", "failures")), made("factor", 1, Gain(1.0, 1.9))
    assert order(factor, hours) == ["hours", "factor"]  # 5 of 10 GPU-hours saved are a factor of 2
    assert order(factor, made("costs", 1, Gain(-1.0, 0.0, "GPU-h", "control"))) == ["factor", "costs"]


def test_what_answers_the_worst_finding_goes_before_what_gains_more_but_after_no_doubt() -> None:
    gains, answers = made("gains", 1, Gain(1.0, 2.0)), made("answers", 1, None, rules=("worst",))
    doubtful = made("doubtful", 1, Gain(1.0, 3.0), "who knows", ("worst",))
    assert [one.id for one in rank((doubtful, gains, answers), BOUNDS, "worst")] == ["answers", "gains", "doubtful"]
    assert order(doubtful, gains, answers) == ["gains", "answers", "doubtful"]


def test_what_only_observes_goes_after_what_may_bring_something() -> None:
    """A larger batch that may bring 8 times is timed in two minutes; a record of the CPU brings nothing by itself."""
    watch, batch = made("watch", 0, NOTHING, rules=("worst",)), made("batch", 2, Gain(1.0, 8.0), rules=("worst",))
    assert [one.id for one in rank((watch, batch), BOUNDS, "worst")] == ["batch", "watch"]
    assert order(watch, made("sure", 1, None)) == ["sure", "watch"]
    other = made("other", 1, Gain(1.0, 2.0))
    assert [one.id for one in rank((other, watch), BOUNDS, "worst")] == ["watch", "other"], "it answers the worst"


def test_hours_are_compared_where_nobody_knows_of_how_many() -> None:
    """All of the checkpoints is more than half of the evaluations."""
    half, all_ = made("half", 1, Gain(0.0, 0.22, "GPU-h", "a")), made("all", 1, Gain(0.0, 0.33, "GPU-h", "b"))
    assert [one.id for one in rank((half, all_), GainBounds(busy_pct=50.0))] == ["all", "half"]
