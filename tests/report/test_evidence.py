"""Evidence in words: bounds beside their number, long lists cut, mappings spelt out."""

from __future__ import annotations

from gpudiag.report.evidence import pairs


def test_bounds_stand_beside_their_number() -> None:
    values = {"fail_pct": 7.65, "fail_low_pct": 4.7, "fail_high_pct": 12.2, "n_fail": 15}
    assert pairs(values) == [("fail", "7.7 % (4.7–12.2 %)"), ("fail count", "15")]


def test_bounds_without_a_number_or_without_a_partner_stay() -> None:
    assert pairs({"effective_low": 3.52, "effective_high": 4.02}) == [
        ("effective low", "3.52"),
        ("effective high", "4.02"),
    ]
    assert pairs({"x_s": 61, "x_low_s": 60}) == [("x", "1 min 01 s"), ("x low", "1 min")]


def test_lists_and_mappings() -> None:
    assert pairs({"trials": list(range(10))}) == [("trials", "0, 1, 2, 3, 4, 5, 6, 7 and 2 more")]
    assert pairs({"mean_pct": {"0": 80.0, "1": 0.0}}) == [("mean", "0: 80 %, 1: 0 %")]
    assert pairs({"trials": []}) == [("trials", "none")]
    assert pairs({"limit_w": None}) == [("limit", "–")]
