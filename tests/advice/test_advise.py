"""From findings to advice: what is offered, why, with which doubts, and what a plan takes of it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from gpudiag import faults
from gpudiag.advice._engine.advise import Advice, advise
from gpudiag.advice._engine.gains import GainBounds
from gpudiag.advice._engine.proposal import Change, Gain, Prediction, Proposal, SuccessCheck
from gpudiag.advice._engine.recommendation import Recommendation, Recommendations
from gpudiag.advice._engine.remedy import Remedy
from gpudiag.errors import ConfigError
from gpudiag.facts import Key
from gpudiag.measures.base import Profile
from gpudiag.report.kinds.recommendations import gain_of
from gpudiag.rules._engine.verdict import Severity, Verdict
from tests.advice.situations import HALF, Told, found, ledger

ASKED = "No finding asks for it, only idle time: measure what a trial waits for."


def proposal(gain: Gain | None = None, **more: Any) -> Proposal:
    return Proposal((Change("a", 1, 2, "a = 2"),), gain, "If so.", **more)


def made(name: str, answers: tuple[str, ...] = (), given: Proposal | None = None, *, fills: bool = False) -> Remedy:
    out = proposal() if given is None else given
    return Remedy(name, "made", name, answers, 1, "minutes", "now", ("p",), ("c",), "r", "b", lambda now: out, fills)


def advice(remedies: tuple[Remedy, ...], *findings: Verdict, profiles: dict[str, Profile] | None = None) -> Advice:
    return advise(Told(), profiles or covered(100.0), findings, remedies)  # type: ignore[arg-type]


def covered(percent: float, busy: float = 400.0) -> dict[str, Profile]:
    return {
        "ledger": replace(
            ledger({"busy": busy, "waiting": 1000 - busy}, {"busy": busy}, has_trials=True), coverage_pct=percent
        )
    }


def test_a_remedy_is_offered_for_the_findings_that_it_answers() -> None:
    one = made("one", ("io-wait", "loader-slow"))
    (given,) = advice((one, made("other", ("gpu-unused",))), found("loader-slow"), found("io-wait")).recommendations
    assert given.id == "one" and given.rules == ("loader-slow", "io-wait") and given.rule == "loader-slow"
    assert given.why == "loader-slow it is. io-wait it is." and given.verify_first == ""
    assert not advice((one,)).recommendations


def test_a_proposal_may_leave_a_finding_to_others() -> None:
    some = made("one", ("io-wait", "loader-slow"), proposal(leaves=("io-wait",)))
    given = advice((some,), found("io-wait", remedy="A."), found("loader-slow", remedy="B."))
    assert [one.id for one in given.recommendations] == ["one", "remedy-io-wait"]
    assert given.recommendations[0].rules == ("loader-slow",) and given.recommendations[0].why == "loader-slow it is."
    assert [one.id for one in advice((some,), found("io-wait", remedy="A.")).recommendations] == ["remedy-io-wait"]


@pytest.mark.parametrize(
    ("fills", "percent", "busy", "offered"),
    [(True, 100.0, 400.0, True), (False, 100.0, 400.0, False), (True, 70.0, 400.0, False), (True, 100.0, 950.0, False)],
)
def test_idle_time_alone_is_filled_only_where_it_is_worth_it(
    fills: bool, percent: float, busy: float, offered: bool
) -> None:
    given = advice((made("one", given=proposal(verify_first="Why."), fills=fills),), profiles=covered(percent, busy))
    assert [one.verify_first for one in given.recommendations] == ([f"Why. {ASKED}"] if offered else [])
    if offered:
        (one,) = given.recommendations
        assert one.why == "Mean utilization while trials ran was 40 %: the rest may be filled."
        assert one.rule is None and one.rules == ()


@pytest.mark.parametrize(
    ("gain", "percent", "doubted"),
    [
        (Gain(1.0, 2.0), 79.0, True),
        (Gain(1.0, 2.0), 80.0, False),
        (Gain(1.0, 2.0, "x", "work"), 79.0, False),
        (Gain(0.0, 2.0, "GPU-h", "idle"), 79.0, False),
        (None, 79.0, False),
    ],
)
def test_a_gain_of_idle_time_needs_a_run_that_was_observed(gain: Gain | None, percent: float, doubted: bool) -> None:
    (one,) = advice(
        (made("one", ("io-wait",), proposal(gain)),), found("io-wait"), profiles=covered(percent)
    ).recommendations
    said = "Only 79 % of the run was observed, so its utilization is not known well."
    assert one.verify_first == (said if doubted else "") and one.gain == gain


def test_a_remedy_may_have_nothing_to_propose() -> None:
    silent = Remedy("s", "t", "s", ("io-wait",), 1, "m", "now", (), (), "r", "b", lambda now: None)
    given = advice((silent,), found("io-wait", remedy="Do it."))
    assert [one.id for one in given.recommendations] == ["remedy-io-wait"] and not given.errors


def test_checks_and_predictions_of_unknown_numbers_are_left_out() -> None:
    keys = [Key(f"t.{name}") for name in "abcd"]
    values = (1.5, math.nan, math.inf, 0.0)
    checks = tuple(SuccessCheck(key, ">", value, "1") for key, value in zip(keys, values, strict=True))
    guesses = tuple(
        Prediction(key, base, math.nan, 2.0, "1") for key, base in zip(keys, (1.5, math.nan, None, 0.0), strict=True)
    )
    (one,) = advice(
        (made("one", ("io-wait",), proposal(verify=checks, predictions=guesses)),), found("io-wait")
    ).recommendations
    assert [check.measure for check in one.verify] == ["t.a", "t.d"]
    assert [(p.measure, p.low, p.high) for p in one.predictions] == [("t.a", None, 2.0), ("t.d", None, 2.0)]


def test_what_rules_advise_themselves_comes_last_and_only_unanswered() -> None:
    answered, own, silent = found("io-wait", remedy="A."), found("gpu-lost", remedy="B."), found("clocks-low")
    given = advice((made("one", ("io-wait",)),), own, answered, silent)
    assert [one.id for one in given.recommendations] == ["one", "remedy-gpu-lost"]


def test_what_answers_the_worst_finding_comes_first() -> None:
    better = made("better", ("io-wait",), proposal(Gain(2.0, 3.0)))
    wanted = made("wanted", ("gpu-unused",))
    note = found("io-wait", severity=Severity.NOTE)
    assert [one.id for one in advice((better, wanted), note, found("gpu-unused")).recommendations] == [
        "wanted",
        "better",
    ]
    assert [one.id for one in advice((better, wanted), found("io-wait"), found("gpu-unused")).recommendations] == [
        "better", "wanted"
    ]  # fmt: skip


def test_corrections_are_for_a_run_with_findings_or_idle_time() -> None:
    full = covered(100.0, 950.0)
    assert advice((), found("io-wait"), profiles=full).corrections and not advice((), profiles=full).corrections
    assert advice(()).corrections and advice((), found("io-wait")).corrections


def broken(*_: Any) -> Any:
    raise ZeroDivisionError


def test_a_fault_in_one_remedy_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = Remedy("bad", "t", "bad", ("io-wait",), 1, "m", "now", (), (), "r", "b", broken)
    with faults.strict(False):
        given = advice((bad, made("good", ("io-wait",))), found("io-wait"))
        assert [one.id for one in given.recommendations] == ["good"] and given.corrections
        assert [fault.part for fault in given.errors] == ["remedy bad"]
        monkeypatch.setattr("gpudiag.advice._engine.advise.corrections", broken)
        blind = advice((made("good", ("io-wait",)),), found("io-wait"))
        assert blind.corrections == () and [fault.part for fault in blind.errors] == ["corrections"]
        assert [one.id for one in blind.recommendations] == ["good"]
        monkeypatch.setattr("gpudiag.advice._engine.situation.bounds_of", broken)
        none = advice((made("good", ("io-wait",)),), found("io-wait", remedy="Do it."))
        assert [one.id for one in none.recommendations] == ["remedy-io-wait"]
        assert [fault.part for fault in none.errors] == ["bounds of gains"] and math.isnan(none.bounds.busy_pct)


def recommended(*names: str, doubtful: tuple[str, ...] = ()) -> Advice:
    given = (
        Recommendation.of(made(name), proposal(Gain(1.0, 1.5), verify_first="?" if name in doubtful else ""), (), "")
        for name in names
    )
    return Advice(Recommendations(given), (), HALF)


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (("warm-worker", "isolate-trials"), ("warm-worker",)),
        (("isolate-trials", "x", "warm-worker"), ("isolate-trials", "x")),
        (("more-workers", "fewer-workers"), ("more-workers",)),
        (("pruner-min-resource", "pruner-patience"), ("pruner-min-resource",)),
        (("warm-worker", "more-workers"), ("warm-worker", "more-workers")),
        (("x", "y"), ("x", "y")),
    ],
)
def test_a_plan_takes_the_first_of_those_that_exclude_each_other(
    names: tuple[str, ...], taken: tuple[str, ...]
) -> None:
    assert tuple(one.id for one in recommended(*names).choose()) == taken


def test_a_plan_takes_nothing_doubtful_unless_it_is_named() -> None:
    given = recommended("more-workers", "fewer-workers", "x", doubtful=("more-workers",))
    assert [one.id for one in given.choose()] == ["fewer-workers", "x"]
    assert [one.id for one in given.choose(["x", "more-workers"])] == ["more-workers", "x"]
    assert given.choose([]) == ()
    with pytest.raises(ConfigError, match="no remedy 'z' is recommended for this run; "):
        given.choose(["x", "z"])
    with pytest.raises(ConfigError, match="'z' is recommended for this run; nothing is recommended for this run"):
        recommended().choose(["z"])


@pytest.mark.parametrize(
    ("first", "source", "taken"),
    [
        (Gain(1.0, 1.0, "x", "none"), "loader", ["watch", "b"]),
        (Gain(1.0, 1.0, "x", "none"), "idle", ["watch"]),
        (Gain(1.0, 1.2), "loader", ["watch"]),
    ],
)
def test_a_plan_tests_what_a_measured_wait_bounds_where_the_others_only_observe(
    first: Gain, source: str, taken: list[str]
) -> None:
    """'a' is of unknown gain, and 'b' and 'c' bring at most 2.5x by the wait of the steps."""
    doubtful = {name: proposal(gain, verify_first="?") for name, gain in (
        ("a", None), ("b", Gain(1.0, 2.5, source=source)), ("c", Gain(1.0, 2.5, source=source)))}  # fmt: skip
    given = {"watch": proposal(first), **doubtful}
    several = Recommendations(Recommendation.of(made(name), one, (), "") for name, one in given.items())
    advice = Advice(several, (), HALF)
    assert [one.id for one in advice.choose()] == taken
    said = gain_of(several[2])
    assert said == ("up to 2.5× faster: test this first" if source == "loader" else "gain unknown: test this first")


def test_together_they_are_bounded_by_the_idle_time() -> None:
    given = recommended("x", "y", "z")
    together = given.combined(given.recommendations)
    assert together is not None and (together.high, together.ceiling, together.clipped) == (2.5, 2.5, True)
    two = given.combined(given.choose(["x", "y"]))
    assert two is not None and two.high == 2.25
    assert replace(given, bounds=GainBounds()).combined(given.recommendations) is None


def test_the_frame_of_advice_is_that_of_its_options() -> None:
    assert recommended("x", "y").to_frame()["id"].tolist() == ["x", "y"]
