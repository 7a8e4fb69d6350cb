"""Findings that somebody knows about and does not want to be told again, for a while: ``[[suppress]]`` of gpudiag.toml.

A suppressed finding is still judged and shown with its reason, but counts for nothing: not for the headline, not for
``--fail-on``, and nothing is advised for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fnmatch import fnmatchcase
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from gpudiag.errors import ConfigError, expected, nearest
from gpudiag.rules._engine.verdict import Status, Verdict


class Suppression(BaseModel):
    """One entry of gpudiag.toml. ``reason`` is required: nobody remembers why a finding was silenced."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)

    rule: str
    reason: str = Field(min_length=1)
    run: str = Field("*", min_length=1)
    until: date | None = None


SuppressionState = Literal["applied", "expired", "unused"]


@dataclass(frozen=True)
class Applied:
    """One suppression and what came of it for one run: ``applied``, ``expired``, or ``unused`` (nothing was found)."""

    entry: Suppression
    state: SuppressionState


def check_suppressions(entries: Sequence[Suppression], rule_ids: Iterable[str], where: str) -> None:
    """Raise one ConfigError that names every unknown rule id."""
    for entry in entries:
        if not isinstance(entry, Suppression):
            raise expected("entries like those in gpudiag.toml", entry)
    known = set(rule_ids)
    unknown = [entry.rule for entry in entries if entry.rule not in known]
    if unknown:
        listed = "; ".join(f"'{name}' ({nearest(name, known)})" for name in dict.fromkeys(unknown))
        raise ConfigError(f"{where}: suppresses rules that do not exist: {listed}")


def apply_suppressions(
    verdicts: Sequence[Verdict], entries: Sequence[Suppression], run_name: str, today: date
) -> tuple[tuple[Verdict, ...], tuple[Applied, ...]]:
    """The verdicts with those findings suppressed, and what came of each entry that is meant for this run.

    An entry holds until the end of its last day. Of several entries for one rule the first that holds counts.
    """
    meant = [entry for entry in entries if fnmatchcase(run_name, entry.run)]
    holding: dict[str, Suppression] = {}
    for entry in meant:
        if entry.until is None or today <= entry.until:
            holding.setdefault(entry.rule, entry)
    out = tuple(_suppressed(v, holding[v.rule]) if _hit(v, holding) else v for v in verdicts)
    silenced = {v.rule for v in out if v.status is Status.SUPPRESSED}
    return out, tuple(Applied(entry, _state(entry, today, silenced)) for entry in meant)


def _hit(verdict: Verdict, holding: dict[str, Suppression]) -> bool:
    return verdict.status is Status.FOUND and verdict.rule in holding


def _suppressed(verdict: Verdict, entry: Suppression) -> Verdict:
    until = f" (until {entry.until})" if entry.until else ""
    return replace(verdict, status=Status.SUPPRESSED, reason=f"{entry.reason}{until}")


def _state(entry: Suppression, today: date, silenced: set[str]) -> SuppressionState:
    if entry.until is not None and entry.until < today:
        return "expired"
    return "applied" if entry.rule in silenced else "unused"
