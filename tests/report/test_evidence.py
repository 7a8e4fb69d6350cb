"""Evidence in words: bounds beside their number, long lists cut, mappings spelt out."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from gpudiag.facts import LABELS
from gpudiag.report._sections.evidence import pairs
from gpudiag.units import unit_of

RULES = sorted((Path(__file__).resolve().parents[2] / "gpudiag" / "rules").glob("*.py"))


def named_by_rules(path: Path) -> set[str]:
    """Names in the values and the place of every Evidence that a rule file makes."""
    found = set()
    for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Evidence":
            for argument in (*call.args[1:3], *(k.value for k in call.keywords if k.arg in ("values", "where"))):
                texts = {part.value for part in ast.walk(argument) if isinstance(part, ast.Constant)}
                found |= {text for text in texts if isinstance(text, str) and re.fullmatch("[a-z][a-z0-9_]*", text)}
    return found


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_every_name_of_evidence_has_words(path: Path) -> None:
    assert named_by_rules(path) <= set(LABELS)


def test_words_are_words_and_leave_the_unit_to_the_value() -> None:
    assert len(set().union(*map(named_by_rules, RULES))) > 120
    for name, words in LABELS.items():
        assert "_" not in words and words == words.strip()
        assert not (unit_of(name) != "1" and re.search(rf"(?<!\w){unit_of(name)}$", words)), name


def test_bounds_stand_beside_their_number() -> None:
    values = {"fail_pct": 7.65, "fail_low_pct": 4.7, "fail_high_pct": 12.2, "n_fail": 15}
    assert pairs(values) == [("failed", "7.7 % (4.7–12 %)"), ("failed trials", "15")]


def test_the_share_of_trials_is_not_called_that_of_the_time() -> None:
    """13 of 47 trials of a real study repeat others, which took 27.0 % of the time."""
    assert pairs({"n_duplicates": 13, "repeats_pct": 100 * 13 / 47})[1] == ("share of the trials", "27.7 %")


def test_bounds_without_a_number_or_without_a_partner_stay() -> None:
    assert pairs({"effective_low": 3.52, "effective_high": 4.02}) == [
        ("at once, at least", "3.52"),
        ("at once, at most", "4.02"),
    ]
    assert pairs({"x_s": 61, "x_low_s": 60}) == [("x", "1 min 01 s"), ("x low", "1 min")]


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_what_is_unknown_has_no_line(value: float | None) -> None:
    assert pairs({"n_fail": 15, "fail_pct": value, "fail_low_pct": None, "fail_high_pct": value}) == [
        ("failed trials", "15")
    ]


def test_lists_and_mappings() -> None:
    assert pairs({"trials": list(range(10))}) == [("trials", "0, 1, 2, 3, 4, 5, 6, 7 and 2 more")]
    assert pairs({"mean_pct": {"0": 80.0, "1": 0.0}}) == [("mean utilization", "0: 80 %, 1: 0 %")]
    assert pairs({"trials": []}) == [("trials", "none")]


def test_places_are_named_up_to_a_few() -> None:
    trials = [str(n) for n in range(66)]
    assert dict(pairs({"trial": ", ".join(trials)}))["trial"].endswith(" and 58 more")
    assert dict(pairs({"trial": "207, 208"}))["trial"] == "207, 208"


def test_times_are_in_the_zone_of_the_run_to_the_second() -> None:
    when = "2025-12-02T14:55:30.026000+00:00"
    assert pairs({"time": when}, ZoneInfo("Asia/Taipei"))[0][1] == "2025-12-02 22:55:30"
    assert pairs({"time": when})[0][1] == "2025-12-02 14:55:30 UTC"


def test_chances_and_correlations_have_their_own_form() -> None:
    values = [value for _, value in pairs({"drift_p": 6.15e-26, "drift_rho": -0.593, "p": 0.0304})]
    assert values == ["< 0.001", "-0.59", "0.03"]
