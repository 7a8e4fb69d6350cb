"""Thresholds as people give them: text, several texts, a mapping, run.toml and a preset; each checked once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpudiag.errors import ConfigError
from gpudiag.rules import RULES
from gpudiag.rules._engine import thresholds
from gpudiag.rules._engine.thresholds import GivenThresholds, effective_thresholds, parse_thresholds
from gpudiag.run import Run, RunInfo

ITEMS = ["gpu-unused.max_util_pct=2", "trial-gaps.max_gap_s: 10, memory-near-limit.high_pct=95"]
BY_RULE = {
    "gpu-unused": {"max_util_pct": 2},
    "trial-gaps": {"max_gap_s": 10},
    "memory-near-limit": {"high_pct": 95},
}


def test_one_item_may_hold_several() -> None:
    assert parse_thresholds([" a.x=1, a.y = 2.5,b.z: 3 ,"]) == {"a": {"x": 1.0, "y": 2.5}, "b": {"z": 3.0}}
    assert parse_thresholds(["a.x=1", "b.z: 3, a.x=4"]) == {"a": {"x": 4.0}, "b": {"z": 3.0}}
    assert parse_thresholds([]) == parse_thresholds([""]) == {}


@pytest.mark.parametrize("given", [ITEMS, tuple(ITEMS), ", ".join(ITEMS), BY_RULE], ids=["list", "tuple", "text", "by"])
def test_the_same_in_every_form(given: GivenThresholds) -> None:
    limits = effective_thresholds(Run(), RULES, given)
    assert {rule: {name: limits[rule][name] for name in BY_RULE[rule]} for rule in BY_RULE} == BY_RULE
    assert set(limits) == {rule.id for rule in RULES}


@pytest.mark.parametrize("given", [5, [5], {"gpu-unused": 5}])
def test_another_type_is_refused(given: object) -> None:
    with pytest.raises(ConfigError, match="expected thresholds as text, or by rule id and name"):
        effective_thresholds(Run(), RULES, given)  # type: ignore[arg-type]


def test_who_goes_before_whom_and_each_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[dict[str, dict[str, float]]] = []
    check = thresholds.check_thresholds
    monkeypatch.setattr(thresholds, "check_thresholds", lambda *args: (checked.append(dict(args[1])), check(*args))[1])
    stated = {"gpu-unused": {"max_util_pct": 3.0}, "gpu-low-utilization": {"low_pct": 33.0}}
    run = replace(Run(), info=RunInfo(thresholds=stated))
    limits = effective_thresholds(run, RULES, ["gpu-unused.max_util_pct=4"], "jobstats")
    assert limits["gpu-unused"]["max_util_pct"] == 4.0
    assert (limits["gpu-low-utilization"]["low_pct"], limits["gpu-low-utilization"]["very_low_pct"]) == (33.0, 15.0)
    assert [one.get("gpu-unused", {}).get("max_util_pct") for one in checked] == [0.0, 3.0, 4.0]
    assert effective_thresholds(Run(), RULES)["gpu-unused"]["max_util_pct"] == 1.0
