"""The document for a terminal: verdict, why, what next, then every check."""

from __future__ import annotations

import textwrap

from gpudiag.report.blocks import MARKS, NAMES
from gpudiag.report.document import Document
from gpudiag.report.format import label, named, plural, quantity, safe
from gpudiag.report.sections import QUESTIONS, unassessed

_COLORS = {"critical": "1;31", "warning": "33", "info": "36", "clear": "32", "unknown": "35", "none": "2"}
_LEVELS = {"CLEAR": "clear", "NOT_ASSESSED": "unknown", "NOT_APPLICABLE": "none"}


def render(document: Document, width: int = 80, color: bool = False) -> str:
    """The whole diagnosis as lines of at most ``width`` characters, ANSI colours if asked for."""
    width = max(width, 40)
    lines = [headline(document, width, color), ""]
    for verdict in document["verdicts"]:
        if verdict["status"] == "FOUND":
            lines += [*_finding(verdict, width, color), ""]
    lines += _table(document, width, color)
    return "\n".join(lines) + "\n"


def headline(document: Document, width: int = 80, color: bool = False) -> str:
    """The verdict and the three sentences."""
    head = document["headline"]
    verdict = [_paint(line, head["level"], color) for line in _wrap(head["verdict"], width, "  ")]
    lines = [safe(document["run"]["name"]), *verdict, ""]
    for question, answer in zip(QUESTIONS, head["sentences"], strict=True):
        lines += _wrap(f"{question}: {_plain(answer)}", width, "  ")
    return "\n".join(lines)


def _finding(verdict: dict, width: int, color: bool) -> list[str]:
    level = verdict["severity"]
    cost = f" ({quantity(verdict['lost_gpu_h'], 'GPU-h')})" if verdict["lost_gpu_h"] else ""
    title = _wrap(f"{MARKS[level]} {NAMES[level]}: {safe(verdict['title'])}{cost}", width, "    ")
    lines = [_paint(line, level, color) for line in title]
    lines += _wrap(_plain(verdict["summary"]), width, "    ", "    ")
    if verdict["remedy"]:
        lines += _wrap(f"Do: {_plain(verdict['remedy'])}", width, "    ", "    ")
    limits = ", ".join(f"{label(name)} {named(name, value)}" for name, value in verdict["thresholds"].items())
    return lines + _wrap(f"Rule {verdict['rule']}" + (f"; limits: {limits}" if limits else ""), width, "    ", "    ")


def _table(document: Document, width: int, color: bool) -> list[str]:
    """One line a check; those that could not be assessed together, by the reason."""
    lines = ["All checks, by the fault looked for"]
    for verdict in document["verdicts"]:
        level = _LEVELS.get(verdict["status"], verdict["severity"])
        if level == "unknown":
            continue
        mark = _paint(f"{MARKS[level]} {NAMES[level]:<14}", level, color)
        title = textwrap.shorten(safe(verdict["title"]), max(width - 20, 20), placeholder=" ...")
        lines.append(f"  {mark}  {title}")
    for reason, verdicts in unassessed(document).items():
        mark = _paint(f"{MARKS['unknown']} {NAMES['unknown']:<14}", "unknown", color)
        lines.append(f"  {mark}  {plural(len(verdicts), 'check')}")
        remedies = dict.fromkeys(verdict["remedy"] for verdict in verdicts)
        titles = "; ".join(verdict["title"] for verdict in verdicts)
        for text in (" ".join((reason, *remedies)), titles):
            lines += _wrap(_plain(text), width, " " * 20, " " * 20)
    return lines


def _wrap(text: str, width: int, later: str, first: str = "") -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    )


def _plain(text: str) -> str:
    return safe(text).replace("`", "")


def _paint(text: str, level: str, color: bool) -> str:
    return f"\x1b[{_COLORS[level]}m{text}\x1b[0m" if color else text
