"""What some rules say of a run, as in its diagnosis, without all that a diagnosis measures."""

from __future__ import annotations

from gpudiag.analysis import Analysis
from gpudiag.report.noun import noun_of, worded
from gpudiag.rules import RULES
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.thresholds import effective_thresholds
from gpudiag.rules._engine.verdict import Verdict, Verdicts
from gpudiag.run import Run


def verdicts_of(run: Run, *names: str) -> Verdicts:
    """The verdicts of the rules of these names: causes among them alone."""
    rules = [rule for rule in RULES if rule.id in names]
    judged = judge_all(rules, Analysis(run), effective_thresholds(run, rules))
    return Verdicts(worded(judged, noun_of(run)))


def verdict_of(run: Run, name: str) -> Verdict:
    (verdict,) = verdicts_of(run, name)
    return verdict
