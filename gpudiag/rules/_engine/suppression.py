"""gpudiag.toml: findings that somebody knows about and does not want to be told again, for a while.

    [[suppress]]
    rule = "loader-workers-cores"
    reason = "the host is shared: six cores are not ours"
    run = "nightly-*"                 # pattern of the run's name; without it every run
    until = 2027-01-31                # last day on which it holds; without it for good

A suppressed finding is still judged and shown with its reason, but counts for nothing: not for the headline, not for
``--fail-on``, and nothing is advised for it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gpudiag.errors import ConfigError, InputNotFound, expected, nearest
from gpudiag.rules._engine.verdict import Status, Verdict

FILE_NAME = "gpudiag.toml"


class Suppression(BaseModel):
    """One entry of gpudiag.toml. ``reason`` is required: nobody remembers why a finding was silenced."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)

    rule: str
    reason: str = Field(min_length=1)
    run: str = Field("*", min_length=1)
    until: date | None = None


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    suppress: tuple[Suppression, ...] = ()


SuppressionState = Literal["applied", "expired", "unused"]


@dataclass(frozen=True)
class Applied:
    """One suppression and what came of it for one run: ``applied``, ``expired``, or ``unused`` (nothing was found)."""

    entry: Suppression
    state: SuppressionState


def read_suppressions(path: str | Path, rule_ids: Iterable[str]) -> tuple[Suppression, ...]:
    """Read and check one gpudiag.toml.

    Raises InputNotFound, or ConfigError that names the entry and what is wrong with it; ids must be among ``rule_ids``.
    """
    path = Path(path)
    if not path.is_file():
        raise InputNotFound(f"{path}: no such file; expected a {FILE_NAME} with [[suppress]] entries.")
    try:
        entries = _File.model_validate(tomllib.loads(path.read_text(encoding="utf-8"))).suppress
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: is not valid TOML ({error}).") from error
    except ValidationError as error:
        raise ConfigError(_explain(error.errors()[0], str(path))) from error
    check_suppressions(entries, rule_ids, str(path))
    return entries


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


def _explain(item: Any, where: str) -> str:
    """One sentence for one pydantic complaint."""
    keys = [str(part) for part in item["loc"]]
    dotted = ".".join(keys)
    if item["type"] == "extra_forbidden":
        model: type[BaseModel] = _File if len(keys) == 1 else Suppression
        return f"{where}: unknown key '{dotted}'; {nearest(keys[-1], model.model_fields)}"
    if item["type"] == "missing":
        return f"{where}: '{dotted}' is missing; each [[suppress]] entry needs a rule and a reason."
    return f"{where}: key '{dotted}': {item['msg']}, but got {item['input']!r}."
