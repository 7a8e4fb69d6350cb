"""Presets name rules and thresholds that exist."""

from __future__ import annotations

import pytest

from gpudiag.rules import RULES
from gpudiag.rules._engine.presets import PRESETS
from gpudiag.rules._engine.rule import check_thresholds


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_legal_and_changes_what_it_names(name: str) -> None:
    limits = check_thresholds(RULES, PRESETS[name])
    for rule, values in PRESETS[name].items():
        assert {key: limits[rule][key] for key in values} == values


def test_jobstats_takes_only_zero_for_unused() -> None:
    assert check_thresholds(RULES, PRESETS["jobstats"])["gpu-unused"]["max_util_pct"] == 0.0
    assert check_thresholds(RULES, {})["gpu-unused"]["max_util_pct"] == 1.0
