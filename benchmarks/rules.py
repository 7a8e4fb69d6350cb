"""False alarms of every rule over healthy simulated runs, and whether planted faults are found.

    python benchmarks/rules.py [RUNS]

writes benchmarks/rules.md. Seeds are fixed: the same version gives the same table.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from planted import FAULTS
from planted.base import Gives
from planted.healthy import healthy_run
from planted.simulated import faulty_run

from gpudiag.analysis import Analysis
from gpudiag.rules import RULES
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.rule import Rule, check_thresholds
from gpudiag.rules._engine.verdict import Severity, Status, Verdict
from gpudiag.run import Run

RUNS = 200
FAULTY_RUNS = 6
MAX_RULE_PCT, MAX_LOUD_PCT = 2.0, 10.0


def judged(run: Run) -> dict[str, Verdict]:
    """Verdict by rule."""
    return {v.rule: v for v in judge_all(RULES, Analysis(run), check_thresholds(RULES, {}))}


def judged_by(run: Run, name: str) -> Verdict:
    """The verdict of one rule."""
    (rule,) = (rule for rule in RULES if rule.id == name)
    (one,) = judge_all((rule,), Analysis(run), check_thresholds((rule,), {}))
    return one


def loud(verdicts: dict[str, Verdict]) -> list[str]:
    """Rules that found something above a note."""
    return [r for r, v in verdicts.items() if v.status is Status.FOUND and v.severity is not Severity.NOTE]


@dataclass
class Alarms:
    """What rules said of healthy runs, by rule; ``n_loud`` counts the runs with any finding above a note."""

    runs: int
    n_loud: int = 0
    above: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    clear: Counter[str] = field(default_factory=Counter)

    @property
    def too_many(self) -> dict[str, int]:
        """Rules whose findings, at any severity, exceed what is allowed; at least two."""
        both = self.above + self.notes
        return {rule: n for rule, n in both.items() if n > max(self.runs * MAX_RULE_PCT / 100, 1)}


def false_alarms(runs: int) -> Alarms:
    """Judge that many healthy runs."""
    out = Alarms(runs)
    for seed in range(runs):
        verdicts = judged(healthy_run(seed))
        names = loud(verdicts)
        out.n_loud += bool(names)
        out.above.update(names)
        out.notes.update(r for r, v in verdicts.items() if v.status is Status.FOUND and r not in names)
        out.clear.update(r for r, v in verdicts.items() if v.status is Status.OK)
    return out


def edges_right(rule: Rule) -> tuple[int, int]:
    """Of the runs just short of and just past each threshold of a rule, how many are judged right; and their number."""
    right = total = 0
    for name, edge in FAULTS[rule.id].edges.items():
        limit = {} if edge.limit is None else {name: edge.limit}
        thresholds = check_thresholds((rule,), {rule.id: limit})
        for knobs, wanted in ((edge.short, edge.short_gives), (edge.past, edge.past_gives)):
            (one,) = judge_all((rule,), Analysis(FAULTS[rule.id].make(**knobs)), thresholds)
            right += gives(one, wanted)
            total += 1
    return right, total


def gives(verdict: Verdict, wanted: Gives) -> bool:
    """True if the verdict is that status, or a finding of that severity."""
    if isinstance(wanted, Severity):
        return verdict.status is Status.FOUND and verdict.severity is wanted
    return verdict.status is wanted


def sensitivity(rule: Rule, runs: int) -> tuple[int, int]:
    """In how many simulated runs with its fault the rule found it; and their number."""
    found = total = 0
    for seed in range(runs):
        run = faulty_run(rule.id, seed)
        if run is not None:
            found += judged_by(run, rule.id).status is Status.FOUND
            total += 1
    return found, total


def report(runs: int, faulty: int) -> str:
    """The table as Markdown."""
    alarms = false_alarms(runs)
    lines = [
        "# Rules: false alarms and planted faults", "",
        f"**Healthy runs.** {runs} simulated runs without a fault (searches with and without pruning, batches, long "
        "trainings; 1-4 GPUs of seven boards from V100 to H100 and a laptop's, 1-12 workers, sampled every 1-30 s, "
        f"some with host metrics and logs). {alarms.n_loud} of them had a finding above a note "
        f"({100 * alarms.n_loud / runs:.1f} %, at most {MAX_LOUD_PCT:.0f} % allowed; {MAX_RULE_PCT:.0f} % by rule).",
        "",
        "**Thresholds.** Runs just short of and just past each threshold of the rule (`benchmarks/planted/`), from "
        "tables to verdict: how many were judged as they should be.",
        "",
        f"**Faults.** Of {faulty} simulated runs with the fault, each on another board and at another period, how many "
        "were found; a dash where simulation cannot express the fault.",
        "",
        "Made by `python benchmarks/rules.py`.", "",
        "| rule | severity | healthy: above a note | note | all clear | thresholds | faults found |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]  # fmt: skip
    for rule in RULES:
        (right, edges), (found, planted) = edges_right(rule), sensitivity(rule, faulty)
        lines.append(
            f"| {rule.id} | {rule.severity.value} | {alarms.above[rule.id]} | {alarms.notes[rule.id]} | "
            f"{alarms.clear[rule.id]} | {right} of {edges} | {f'{found} of {planted}' if planted else '-'} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=int, nargs="?", default=RUNS, help="healthy runs")
    text = report(parser.parse_args().runs, FAULTY_RUNS)
    Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
