"""What Optuna's own log says of studies and trials, as versions since 2.0 print it.

A trial that completed tells its values, its parameters and which trial is the best so far; one that failed its
parameters (since 3.0) and why; one that was pruned only that it was.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from gpudiag.patterns import late
from gpudiag.readers._batches.log_lines import why_failed

LOOKED_AT = 65_536
"""Characters of a line that are looked at: parameters may be many."""
_STUDY = late(
    r"(?:^|[\s\]:])(?:A new study created (?:in \w{1,20} )?with name: (?P<new>.{1,500}?)"
    r"|Using an existing study with (?:`study_name=(?P<kept>.{3,500}?)`|name (?P<older>'.{1,500}?')) instead of "
    r"creating a new one\.)\s*$"
)
_TRIAL = late(
    r"(?:^|[\s\]:])Trial (?P<number>\d{1,9}) (?:"
    r"finished with values?: (?P<values>.{1,2000}?) and parameters: (?P<given>\{.*\})\.\s?"
    r"(?:Best is trial (?P<best>\d{1,9}) with value: (?P<best_value>\S{1,40})\.)?\s*$"
    r"|(?P<pruned>pruned\.)(?:\s|$)"
    r"|failed(?: with parameters: (?P<tried>\{.*\}))? because of the following error: (?P<why>.+)"
    r"|failed, because (?P<older>.+))"  # 2.x, of values that are none
)
BAR = late(r"^\s*Best trial: \d{1,9}\. Best value: \S{1,40}:\s+\d{1,3}%\|[^|]{0,400}\|\s*\d{1,9}/(\d{1,9}) \[")
"""Optuna's own progress bar, which counts trials."""
_BARE_BAR = late(r"^\s*\d{1,3}%\|[^|]{0,400}\|\s*\d{1,9}/(\d{1,9}) \[")


@dataclass(frozen=True)
class StudyLine:
    """A study was created, or is gone on with."""

    name: str


@dataclass(frozen=True)
class TrialLine:
    """A trial ended; ``best`` and ``best_value``: those of its study by then."""

    number: int
    state: str
    values: tuple[float, ...] = ()
    params: dict[str, object] = field(default_factory=dict)
    best: int | None = None
    best_value: float | None = None
    why: str = ""


def told_by_optuna(line: str) -> StudyLine | TrialLine | None:
    """What the line says, None for any other line."""
    line = line[:LOOKED_AT]
    if "Trial " in line and (match := _TRIAL.search(line)):
        return _trial(match)
    if "study" in line and (match := _STUDY.search(line)):
        quoted = match["kept"] or match["older"]
        name = _literal(quoted) if quoted else match["new"]
        return StudyLine(name) if isinstance(name, str) else None
    return None


def totals_of_bars(lines: list[str]) -> frozenset[str]:
    """How many trials Optuna's progress bars count to in these lines."""
    return frozenset(match[1] for line in lines if (match := BAR.match(line)))


def counts_trials(line: str, totals: frozenset[str]) -> bool:
    """Whether it is Optuna's progress bar, which has no name before a trial completed."""
    if "%|" not in line:
        return False
    bare = _BARE_BAR.match(line) if totals else None
    return BAR.match(line) is not None or (bare is not None and bare[1] in totals)


def _trial(match: re.Match[str]) -> TrialLine | None:
    number = int(match["number"])
    if match["pruned"]:
        return TrialLine(number, "PRUNED")
    if match["values"] is None:
        why = why_failed(match[0]) or match["why"] or match["older"]
        return TrialLine(number, "FAIL", params=_params(match["tried"]), why=why)
    values = _numbers(match["values"])
    if values is None:
        return None
    best = _numbers(match["best_value"] or "")
    return TrialLine(
        number,
        "COMPLETE",
        values,
        _params(match["given"]),
        int(match["best"]) if best else None,
        best[0] if best else None,
    )


def _numbers(text: str) -> tuple[float, ...] | None:
    """``0.5``, ``[0.5, inf]`` or ``{'loss': 0.5}`` as numbers."""
    try:
        return tuple(float(part.rpartition(": ")[2]) for part in text.strip("[]{}").split(", "))
    except ValueError:
        return None


def _params(text: str | None) -> dict[str, object]:
    """Parameters as Python prints them; none where a value is of a kind that no text says, such as a class."""
    found = _literal(text) if text else None
    return {str(name): value for name, value in found.items()} if isinstance(found, dict) else {}


def _literal(text: str) -> object:
    """What Python's constants in the text say: nothing of it is executed."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
