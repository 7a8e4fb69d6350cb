"""Functions from one profile to one verdict. One topic a file, the same names as in measures/.

``RULES`` holds every rule of ``TOPICS`` in written order. A user's own rules go beside them, made with the decorator
:func:`rule`, which turns a function from a profile to :class:`Evidence`, :class:`Passed` or None into a :class:`Rule`:
``diagnose(run, rules=(*RULES, my_rule))``.
"""

from __future__ import annotations

from gpudiag.rules import (
    agreement,
    balance,
    clock,
    collectives,
    costs,
    divergence,
    endings,
    events,
    failure_rates,
    failures,
    feed,
    idleness,
    inputs,
    leak,
    ledger,
    loader,
    memory,
    parallelism,
    power,
    profiled,
    pruning,
    recorder,
    sampling,
    search,
    shift,
    silence,
    stalls,
    standstill,
    steps,
    throttle,
    trials,
    utilization,
)
from gpudiag.rules._engine import names as _names
from gpudiag.rules._engine.evidence import Evidence, NotApplicable, Passed
from gpudiag.rules._engine.rule import Rule, rule
from gpudiag.rules._engine.templates import Given
from gpudiag.rules._engine.verdict import Severity, Status, Verdict

EVIDENCE = _names.EvidenceNames
"""Names of evidence beside those that the profiles declare."""

__all__ = [
    "RULES",
    "TOPICS",
    "Evidence",
    "Given",
    "NotApplicable",
    "Passed",
    "Rule",
    "Severity",
    "Status",
    "Verdict",
    "catalogue",
    "rule",
]

TOPICS = (
    clock,
    utilization,
    ledger,
    balance,
    stalls,
    steps,
    profiled,
    collectives,
    idleness,
    standstill,
    silence,
    shift,
    feed,
    loader,
    memory,
    leak,
    power,
    throttle,
    events,
    endings,
    divergence,
    pruning,
    failures,
    failure_rates,
    trials,
    parallelism,
    costs,
    search,
    agreement,
    sampling,
    recorder,
    inputs,
)

RULES: tuple[Rule, ...] = tuple(r for topic in TOPICS for r in vars(topic).values() if isinstance(r, Rule))


def catalogue() -> list[Rule]:
    """Every rule that comes with gpudiag, in the order of the report."""
    return list(RULES)
