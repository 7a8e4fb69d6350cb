"""Planted faults as their makers make them, each run made and measured once a session: for tests that only look."""

from __future__ import annotations

from functools import cache

from planted import FAULTS

from gpudiag.analysis import Analysis
from gpudiag.rules import RULES
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.rule import check_thresholds
from gpudiag.rules._engine.verdict import Verdict

RULE = {rule.id: rule for rule in RULES}


@cache
def analysis(rule: str) -> Analysis:
    """The run with the planted fault of this rule, and what is made of it."""
    return Analysis(FAULTS[rule].make())


@cache
def verdict(rule: str) -> Verdict:
    """What the rule says of its planted fault."""
    (one,) = judge_all((RULE[rule],), analysis(rule), check_thresholds((RULE[rule],), {}))
    return one
