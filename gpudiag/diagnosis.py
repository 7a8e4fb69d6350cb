"""A run in, a diagnosis out: measure, judge, and hold what was found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from pathlib import Path

from gpudiag._diagnosis.result import Diagnosis
from gpudiag.analysis import Analysis
from gpudiag.errors import expected
from gpudiag.faults import strict as strictly
from gpudiag.load import RunLike, as_run
from gpudiag.measures import MEASURES
from gpudiag.report.noun import noun_of, worded
from gpudiag.rules import RULES
from gpudiag.rules._engine.gpudiag_toml import GpudiagToml, read_gpudiag_toml
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.own import chosen_rules
from gpudiag.rules._engine.rule import Rule
from gpudiag.rules._engine.suppression import (
    Suppression,
    apply_suppressions,
    check_suppressions,
)
from gpudiag.rules._engine.thresholds import GivenThresholds, effective_thresholds
from gpudiag.rules._engine.verdict import Verdicts
from gpudiag.run import Run

__all__ = ["Diagnosis", "diagnose"]


def diagnose(
    run: RunLike,
    *,
    rules: Iterable[Rule] | str | None = None,
    thresholds: GivenThresholds = "",
    preset: str = "",
    suppress: str | Path | Iterable[Suppression] = (),
    name: str = "",
    strict: bool | None = None,
) -> Diagnosis:
    """Measure a run and judge it.

    >>> d = gd.diagnose("data/samples/memory-exhaustion")
    >>> d.findings["failures-out-of-memory"].status.value
    'found'

    Args:
        run: a run, or what :func:`gpudiag.load_run` reads.
        rules: the rules to judge by, such as ``(*RULES, my_rule)``; or text that names modules with rules of your own
            (``"mypackage.rules, ./more.py"``), which are added to those of gpudiag. Default: gpudiag's and those of
            run.toml's ``rule_modules``.
        thresholds: by rule id and name, or text or a list of texts such as
            ``"gpu-low-utilization.low_pct=30, memory-near-limit.high_pct=95"``; they go before those of run.toml.
        preset: thresholds of another tool to start from, jobstats, sagemaker or traceml; run.toml and
            ``thresholds`` go before them.
        suppress: a gpudiag.toml, or entries like those in it: findings that need not be told. A file's ``docs_url``
            says where reports find the page of a check.
        name: a title in place of the run's own name.
        strict: raise an unexpected exception of a measure, rule, remedy, figure or section, in place of telling it as
            a verdict or note of status ERROR; default: what :func:`gpudiag.faults.strict` says, else False.

    Raises:
        ConfigError: a rule, threshold, preset or suppression is unknown or out of range; nothing was measured then.
    """
    held = as_run(run)
    with strictly(strict):
        chosen = chosen_rules(rules, held.info.rule_modules, held.info.folder)
        return _diagnose(held, chosen, thresholds, preset, suppress, name, strict)


def _diagnose(
    run: Run,
    rules: tuple[Rule, ...],
    thresholds: GivenThresholds,
    preset: str,
    suppress: str | Path | Iterable[Suppression],
    name: str,
    strict: bool | None,
) -> Diagnosis:
    limits = effective_thresholds(run, rules, thresholds, preset)
    asked = _asked(suppress, rules)
    if name:
        run = replace(run, info=replace(run.info, name=name))
    analysis = Analysis(run)
    judged = judge_all(rules, analysis, limits)
    verdicts, applied = apply_suppressions(judged, asked.suppress, run.info.name, date.today())
    made, missing = analysis.profiles(dict.fromkeys((*MEASURES, *(rule.measure for rule in rules))))
    noun = noun_of(run)
    told = Verdicts(worded(tuple(verdicts), noun))
    missing = {topic: worded(gap, noun) for topic, gap in missing.items()}
    return Diagnosis(analysis, told, made, missing, limits, rules, preset, applied, asked.docs_url, strict=strict)


def _asked(given: str | Path | Iterable[Suppression], rules: tuple[Rule, ...]) -> GpudiagToml:
    """What gpudiag.toml says, or entries as if it said them, each of a rule that exists, also if this call judges by
    others.
    """
    known = {rule.id for rule in (*RULES, *rules)}
    if isinstance(given, str | Path):
        return read_gpudiag_toml(given, known) if str(given) else GpudiagToml()
    if not isinstance(given, Iterable):
        raise expected("a gpudiag.toml or entries like those in it", given)
    entries = tuple(given)
    check_suppressions(entries, known, "suppress")
    return GpudiagToml(suppress=entries)
