"""Profiles with every field unknown but those that a test states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from gpudiag.analysis import Analysis
from gpudiag.facts import Declared, Row
from gpudiag.measures import MEASURES, PROFILES
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.rule import Rule, check_thresholds
from gpudiag.rules._engine.verdict import Verdict
from gpudiag.run import Run

NAN = float("nan")
TIMES = pd.Timestamp("2025-10-24", tz="UTC")
UNKNOWN: dict[str, Any] = {"float": NAN, "int": 0, "bool": False, "text": "", "time": TIMES, "any": None}
MEASURE_OF: Mapping[type, Callable[[Run], Any]] = dict(zip(PROFILES.values(), MEASURES, strict=True))


def profile(kind: type[Declared], gpus: Mapping[str, Mapping[str, Any]] | None = None, **stated: Any) -> Any:
    """A profile of that kind; ``gpus`` states columns of ``per_gpu`` by GPU. Coverage is complete unless stated."""
    values: dict[str, Any] = {name: UNKNOWN[fact.kind] for name, fact in kind.facts().items()}
    values |= {name: pd.DataFrame(columns=list(row.declared())) for name, row in kind.tables().items()}
    if "coverage_pct" in values:
        values["coverage_pct"] = 100.0
    if "per_gpu" in values:
        rows = {name: {**blank(kind.tables()["per_gpu"]), **row} for name, row in (gpus or {"0": {}}).items()}
        values["per_gpu"] = pd.DataFrame.from_dict(rows, orient="index").rename_axis("gpu")
    tables = {
        name: stated[name].reindex(columns=[*dict.fromkeys((*stated[name], *row.declared()))])
        for name, row in kind.tables().items()
        if name in stated
    }
    return kind(**{**values, **stated, **tables})


def blank(row: type[Row]) -> dict[str, Any]:
    """A row of which nothing is known."""
    unknown = {**UNKNOWN, "int": NAN, "bool": NAN}
    return {name: unknown[column.kind] for name, column in row.declared().items()}


def verdict(rule: Rule, found: Any, **thresholds: float) -> Verdict:
    """What the engine makes of that rule on that profile."""
    profiles = Analysis(Run(), {MEASURE_OF[type(found)]: found})
    overrides = {rule.id: thresholds} if thresholds else {}
    (one,) = judge_all((rule,), profiles, check_thresholds((rule,), overrides))
    return one
