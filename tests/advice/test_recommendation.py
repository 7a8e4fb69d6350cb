"""One recommendation: what it takes over from its remedy, what a rule advises itself, and how both look in a table."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from gpudiag.advice._engine.advise import Advice
from gpudiag.advice._engine.gains import Combined, GainBounds
from gpudiag.advice._engine.plan import Plan, PlanInput, PlannedGain, PlannedRemedy, holds, make_plan
from gpudiag.advice._engine.proposal import TIERS, Change, Gain, Prediction, Proposal, SuccessCheck
from gpudiag.advice._engine.recommendation import Recommendation, Recommendations, by_safety
from gpudiag.advice._engine.remedy import Remedy, remedy
from gpudiag.advice._engine.situation import Situation
from gpudiag.facts import Key
from gpudiag.report.kinds.recommendations import gain_of
from gpudiag.run import InputRecord, Run, RunInfo
from gpudiag.shown import Shown
from tests.advice.situations import HALF, found


def option(
    name: str, tier: int, gain: Gain | None = None, present: Any = None, predictions: tuple[Prediction, ...] = ()
) -> Recommendation:
    given = Proposal((Change("setting", present, 3, "x"), Change("other", 1, 2, "y")), gain, "If.", (), predictions, "")
    item = Remedy(
        name, "t", f"Do {name}", (), tier, "minutes", "next study", ("p",), ("c",), "r", "b", lambda now: given
    )
    return Recommendation.of(item, given, ("a", "b"), "why")


@pytest.mark.parametrize("tier", range(5))
def test_a_recommendation_is_its_remedy_with_the_numbers_of_a_run(tier: int) -> None:
    one = option("it", tier, Gain(1.0, 2.0), present=2)
    assert (one.rule, one.rules, one.why) == ("a", ("a", "b"), "why")
    assert one.text == "setting: 2 → 3" and option("it", tier).text == "setting=3"
    assert (one.safety, one.safety_reason) == TIERS[tier] and one.tier == tier
    assert (one.effort, one.apply, one.refute, one.rollback, one.pros, one.cons) == (
        "minutes", "next study", "r", "b", ("p",), ("c",)
    )  # fmt: skip
    assert not one.is_the_rules_own


def test_what_a_rule_advises_itself_is_its_words_and_no_more() -> None:
    advised = "Do this, and then look whether the other thing that was said above still happens. " * 3
    one = Recommendation.own(found("gpu-lost", remedy=advised.strip()))
    assert one.is_the_rules_own and one.id == "remedy-gpu-lost" and one.rules == ("gpu-lost",)
    assert (one.tier, one.safety, one.gain, one.predictions) == (2, "moderate", None, ())
    assert one.text == one.changes[0].proposed == advised.strip()
    made_up = (one.verify, one.verify_first, one.refute, one.rollback, one.pros, one.cons, one.assumption, one.effort)
    assert not any(made_up) and gain_of(one) == "general advice"
    assert Advice(Recommendations((one,)), (), HALF).choose() == (), "it is in no plan unless it is named"
    lines = one.changes[0].code.split("\n")
    assert all(line.startswith("# ") and len(line) <= 88 for line in lines) and len(lines) == 3
    assert " ".join(line.removeprefix("# ") for line in lines) == advised.strip()


def test_a_prediction_is_found_by_any_of_its_names() -> None:
    first, second = (Prediction(Key(key), 1.0, 2.0, 3.0, "%") for key in ("t.a", "t.b"))
    one = option("it", 1, predictions=(first, second))
    assert one.predicted(("t.b", "t.z")) is second and one.predicted(("t.a", "t.b")) is first
    assert one.predicted(("t.c",)) is None
    assert one.to_frame().to_dict("list") == {
        "measure": ["t.a", "t.b"], "baseline": [1.0] * 2, "low": [2.0] * 2, "high": [3.0] * 2, "unit": ["%"] * 2,
        "note": [""] * 2,
    }  # fmt: skip


def test_options_are_the_safest_first_in_the_given_order() -> None:
    given = [option("c", 3), option("a", 1), option("d", 0), option("b", 1)]
    assert [one.id for one in by_safety(given)] == ["d", "a", "b", "c"]
    assert Recommendations(given).to_frame()["id"].tolist() == ["d", "a", "b", "c"]


def test_an_option_as_a_row() -> None:
    known = Prediction(Key("memory.max_used_pct"), 50.0, None, 60.0, "%")
    first, second = (
        Recommendations((option("a", 1, Gain(1.0, 2.0), 2, (known,)), option("b", 2))).to_frame().to_dict("records")
    )
    assert {name: first[name] for name in ("title", "tier", "safety", "apply", "present", "proposed")} == {
        "title": "Do a", "tier": 1, "safety": "safe", "apply": "next study", "present": "setting: 2", "proposed": "3"
    }  # fmt: skip
    assert (first["gain_low"], first["gain_high"], first["gain_unit"]) == (1.0, 2.0, "x")
    assert (first["memory_now"], first["memory_high"]) == (50.0, 60.0) and math.isnan(first["memory_low"])
    assert second["present"] == "setting: unknown" and second["gain_unit"] == ""
    assert all(
        math.isnan(second[f"{name}_{part}"])
        for name in ("memory", "util", "trial_time")
        for part in ("now", "low", "high")
    )
    assert math.isnan(second["gain_low"]) and math.isnan(second["gain_high"])


def test_a_remedy_takes_its_name_and_topic_from_its_function() -> None:
    def try_it_twice(now: Situation) -> Proposal | None:
        """Twice is better."""
        return None

    words: dict[str, Any] = {"effort": "m", "pros": (), "cons": (), "refute": "r", "rollback": "b"}
    made = remedy(title="T", answers=("io-wait",), tier=3, **words)(try_it_twice)
    assert (made.id, made.topic, made.docstring, made.safety) == (
        "try-it-twice",
        "test_recommendation",
        "Twice is better.",
        "risky",
    )
    assert (made.apply, made.fills_idle, made.tier) == ("now", False, 3)
    assert remedy(title="T", answers=(), tier=0, fills_idle=True, apply="next study", **words)(try_it_twice).fills_idle


@pytest.mark.parametrize(
    "kind",
    [Advice, Change, Combined, Gain, GainBounds, Plan, PlannedGain, PlannedRemedy, PlanInput, Prediction, Proposal,
     Recommendation, Remedy, Situation, SuccessCheck],
)  # fmt: skip
def test_what_was_advised_cannot_be_changed(kind: type) -> None:
    empty = object.__new__(kind)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(empty, dataclasses.fields(kind)[0].name, None)


@pytest.mark.parametrize("kind", [Advice, Plan, Recommendation])
def test_what_was_advised_shows_itself(kind: type) -> None:
    assert kind.__repr__ is Shown.__repr__


def planned(*given: Recommendation, bounds: GainBounds = HALF) -> Plan:
    record = InputRecord("gpu.csv", "telemetry", "toy", "ab" * 32, 7)
    return make_plan(Run(info=RunInfo(name="it", inputs=(record,))), Advice(Recommendations(given), (), bounds))


def test_a_plan_holds_what_its_remedies_bring_together() -> None:
    saves = option("c", 1, Gain(0.0, 1.5, "GPU-h", "failures"))
    plan = planned(option("a", 1, Gain(1.25, 2.0)), option("b", 2, Gain(1.0, 2.0), 2), saves)
    assert (plan.run, plan.schema, plan.inputs) == ("it", "gpudiag.plan/1", (PlanInput("gpu.csv", "ab" * 32),))
    assert plan.combined == PlannedGain(1.25, 2.5, "x") and (plan.ceiling, plan.saved_gpu_h) == (2.5, 1.5)
    table = plan.to_frame()
    assert table["remedy"].tolist() == ["a", "b", "c"] and table["tier"].tolist() == [1, 2, 1]
    assert table["change"].tolist() == ["setting=3", "setting: 2 → 3", "setting=3"]
    assert table.loc[2, ["gain_low", "gain_high", "gain_unit"]].tolist() == [0.0, 1.5, "GPU-h"]


def test_the_heading_of_a_plan_says_no_speed_up_only_where_no_time_is_saved() -> None:
    saves = option("c", 1, Gain(0.0, 1.5, "GPU-h", "failures"))
    watches = option("w", 0, Gain(1.0, 1.0, "x", "none"))
    assert "no speed-up" not in str(planned(saves)).splitlines()[0]
    assert "together no speed-up" in str(planned(watches)).splitlines()[0]
    assert "together up to 2× faster" in str(planned(saves, option("a", 1, Gain(1.0, 2.0)))).splitlines()[0]


def test_a_plan_without_a_remedy_predicts_nothing() -> None:
    plan = planned()
    assert plan.remedies == () and plan.combined is None and planned(option("a", 1, Gain(1.0, 2.0))).combined


def test_a_plan_without_known_gains_says_none() -> None:
    plan = planned(option("a", 1), bounds=GainBounds())
    assert plan.combined is plan.ceiling is plan.saved_gpu_h is plan.remedies[0].gain is None
    row = plan.to_frame().iloc[0]
    assert math.isnan(row["gain_low"]) and math.isnan(row["gain_high"]) and row["gain_unit"] == ""


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("<", (True, False, False)),
        ("<=", (True, True, False)),
        (">", (False, False, True)),
        (">=", (False, True, True)),
    ],
)
def test_a_check_holds_below_at_and_above(op: str, expected: tuple[bool, ...]) -> None:
    check = SuccessCheck(Key("t.a.b"), op, 5.0, "%")
    for values in ((4.0, 5.0, 6.0), (4, 5, 6)):
        assert tuple(holds(check, value) for value in values) == expected
    assert holds(check, "5") is None is holds(check, None)
