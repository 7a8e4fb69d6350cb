"""Every threshold of every rule, from tables to verdict: a run just short of it, and one just past it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
from planted import FAULTS, Fault
from planted.base import Gives
from plantedruns import RULE, analysis, verdict

from gpudiag.analysis import Analysis
from gpudiag.rules import RULES
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.rule import Rule, check_thresholds
from gpudiag.rules._engine.verdict import Severity, Status, Verdict
from gpudiag.run import Run

EVERY = pytest.mark.parametrize("planted", FAULTS.values(), ids=lambda planted: planted.rule)
EDGES = [
    pytest.param(planted, name, id=f"{planted.rule}:{name}", marks=pytest.mark.slow if i else ())
    for planted in FAULTS.values()
    for i, name in enumerate(planted.edges)
]
"""Of each rule the first threshold at once, the others with the slow tests."""


def judged(rule: Rule, run: Run, thresholds: Mapping[str, float] | None = None) -> Verdict:
    (one,) = judge_all((rule,), Analysis(run), check_thresholds((rule,), {rule.id: dict(thresholds or {})}))
    return one


def gives(verdict: Verdict, wanted: Gives) -> bool:
    if isinstance(wanted, Severity):
        return verdict.status is Status.FOUND and verdict.severity is wanted
    return verdict.status is wanted


def test_every_rule_and_every_threshold_has_a_planted_fault() -> None:
    planted = {(rule, name) for rule, fault in FAULTS.items() for name in fault.edges if name}
    wanted = {(rule.id, name) for rule in RULES for name in rule.thresholds}
    lacking = sorted(wanted - planted) + sorted({rule.id for rule in RULES} - set(FAULTS))
    assert not lacking, f"plant in benchmarks/planted/<topic>.py, with an Edge for each threshold: {lacking}"
    assert wanted == planted and {rule.id for rule in RULES} == set(FAULTS)
    assert all(fault.edges and fault.bigger for fault in FAULTS.values())


@pytest.mark.parametrize(("planted", "name"), EDGES)
def test_short_of_the_threshold_and_past_it(planted: Fault, name: str) -> None:
    rule, edge = RULE[planted.rule], planted.edges[name]
    limit = {} if edge.limit is None else {name: edge.limit}
    short, past = (judged(rule, planted.make(**knobs), limit) for knobs in (edge.short, edge.past))
    assert gives(short, edge.short_gives), (short.status, short.severity, short.reason or short.summary)
    assert gives(past, edge.past_gives), (past.status, past.severity, past.reason or past.summary)
    assert edge.says not in short.summary or not edge.says
    assert edge.says in past.summary
    if past.status is Status.FOUND and edge.short_gives is not Status.FOUND and edge.limit is None:
        assert past.margin is None or past.margin >= 0


@EVERY
def test_a_finding_says_what_where_and_how_much(planted: Fault) -> None:
    rule, found = RULE[planted.rule], verdict(planted.rule)
    assert found.status is Status.FOUND and found.evidence
    assert found.summary.endswith(".") and not {"nan", "inf", "None"} & set(found.summary.replace(",", " ").split())
    assert any(_known(value) for value in found.evidence.values())
    run = analysis(planted.rule).given
    if len(run.gpu) and rule.topic not in OF_TRIALS:
        assert set(found.where.get("gpu", "").split(", ")) <= set(run.gpu["gpu"]) and found.where.get("gpu")
    if found.lost_gpu_h is not None:
        observed_h = len(run.gpu) and float((run.gpu["time"].max() - run.gpu["time"].min()).total_seconds() + 60) / 3600
        assert 0 < found.lost_gpu_h <= observed_h * run.gpu["gpu"].nunique()


OF_TRIALS = {
    "clock",
    "costs",
    "endings",
    "divergence",
    "failures",
    "search",
    "parallelism",
    "trials",
    "pruning",
    "agreement",
    "loader",
    "steps",
    "events",
    "inputs",
}
"""Topics whose finding is about trials, clocks or logs; the others name a GPU."""


def _known(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


COSTLY = {
    *("gpu-unused", "gpu-idle-beside-busy", "gpu-low-utilization", "gpu-fluctuating", "foreign-load"),
    *("stalls-periodic", "stalls-aperiodic", "idle-before-work", "idle-after-work", "idle-between-work"),
    "gpu-allocated-idle",
    *("gpu-level-shift", "cpu-bound-input", "io-wait", "startup-dominated"),
}


@pytest.mark.parametrize("rule", sorted(COSTLY))
def test_what_idles_a_gpu_is_counted_in_gpu_hours(rule: str) -> None:
    assert (verdict(rule).lost_gpu_h or 0) > 0


@EVERY
def test_the_biggest_fault_stays_found(planted: Fault) -> None:
    found = judged(RULE[planted.rule], planted.make(**planted.bigger[-1]))
    assert found.status is Status.FOUND, found.reason
    assert found.severity.rank <= verdict(planted.rule).severity.rank


@pytest.mark.many
@pytest.mark.slow
@pytest.mark.parametrize("planted", [fault for fault in FAULTS.values() if len(fault.bigger) > 1], ids=lambda f: f.rule)
def test_a_bigger_fault_stays_found(planted: Fault) -> None:
    """A bigger fault never turns FOUND into OK, nor a finding into a milder one."""
    rank = verdict(planted.rule).severity.rank
    for knobs in planted.bigger:
        found = judged(RULE[planted.rule], planted.make(**knobs))
        assert found.status is Status.FOUND, (knobs, found.reason)
        assert found.severity.rank <= rank, knobs
        rank = found.severity.rank
