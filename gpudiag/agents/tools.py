"""What an assistant may ask: each answer is a short text and the same as typed data. Nothing is written anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gpudiag.agents import citing
from gpudiag.agents.folders import Folders
from gpudiag.agents.found import FoundRun, found_runs
from gpudiag.agents.kept import Diagnoses
from gpudiag.agents.quoted import quoted, text
from gpudiag.agents.results import ListedRun, RunList
from gpudiag.comparison.compare import Comparison, compare
from gpudiag.errors import ConfigError, nearest
from gpudiag.forecast.parallelism.what_if import what_if
from gpudiag.plain_data import JsonObject, plain_object
from gpudiag.report._render.blocks import Block, Note
from gpudiag.report._render.shown import blocks_of
from gpudiag.report._render.terminal import render
from gpudiag.report._sections.answers import recommended
from gpudiag.report.check_page import check_blocks, check_title
from gpudiag.report.comparison import text as comparison_text
from gpudiag.report.document import Document, VerdictEntry
from gpudiag.report.format import plural, timestamp, zone
from gpudiag.report.kinds.recommendations import card as recommendation_card
from gpudiag.report.sections import card
from gpudiag.report.text import screen
from gpudiag.report.text import whole as whole_diagnosis
from gpudiag.rules import RULES
from gpudiag.rules._engine.verdict import Status

WIDTH = 100
MOST_RUNS = 50
LONGEST_ID = 60
REST = "ask for the whole to see all"


@dataclass(frozen=True)
class Answer:
    """The text that an assistant reads, and the same as data."""

    text: str
    data: JsonObject


class Tools:
    """The tools, over some folders."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._diagnoses = Diagnoses(folders)

    def list_runs(self, folder: str = "") -> Answer:
        """The runs below the folders, or below one folder in them; nothing is diagnosed."""
        found = found_runs(self._folders, self._folders.find(folder) if folder else None)
        listed = tuple(self._listed(one) for one in found[:MOST_RUNS])
        result = RunList(tuple(map(str, self._folders.given)), listed, len(found) - len(listed))
        blocks: list[Block] = [Note(_said(one)) for one in listed] or [Note("There is no run.")]
        if result.left_out:
            blocks.append(Note(f"{plural(result.left_out, 'more run')}: name a folder."))
        return _answer(blocks, result)

    def _listed(self, found: FoundRun) -> ListedRun:
        known = self._diagnoses.known(found.path)
        headline = known.document.headline.sentences[0] if known else ""
        return ListedRun(str(found.path), found.changed.isoformat(), headline)

    def diagnose(self, run: str, *, whole: bool = False) -> Answer:
        """What is wrong with a run, on a screen; with ``whole`` every finding and every check."""
        path = self._folders.find(run)
        document = self._diagnoses.of(path).document
        blocks = whole_diagnosis(document) if whole else screen(document, REST)
        result = citing.diagnosis(str(path), document, whole=whole)
        ids = ", ".join(one.id for one in result.findings)
        cited = [Note(f"Ids of the findings, to cite and to explain: {ids}.")] if ids else []
        # the whole says these itself
        unknown = (
            [] if whole else [Note(f"Not assessed ({', '.join(o.checks)}): {o.reason}") for o in result.not_assessed]
        )
        return _answer([*blocks, *cited, *unknown], result)

    def explain(self, what: str, run: str = "") -> Answer:
        """A check by its id; with a run what it concluded there, or a recommendation for the run by its id."""
        if not run:
            rules = {rule.id: rule for rule in RULES}
            if what not in rules:
                raise _unknown(what, rules, "check")
            rule = rules[what]
            return _answer([check_title(rule), *check_blocks(rule)], citing.check(rule))
        path = self._folders.find(run)
        document = self._diagnoses.of(path).document
        recommendations = {one.id: one for one in document.recommendations}
        verdicts = {one.rule: one for one in document.verdicts}
        if what in recommendations:
            one = recommendations[what]
            return _answer([recommendation_card(one)], citing.recommended_for(str(path), one))
        if what not in verdicts:
            raise _unknown(what, [*recommendations, *verdicts], "check or recommendation")
        verdict = verdicts[what]
        return _answer(_explained(document, verdict), citing.verdict(str(path), document, verdict))

    def compare(self, baseline: str, experiment: str, plan: str = "", *, whole: bool = False) -> Answer:
        """Whether two runs may be compared, in what they differ, and whether the plan of the baseline came true; with
        ``whole`` every quantity and every setting that differs.
        """
        first, second = self._folders.find(baseline), self._folders.find(experiment)
        made_plan = self._folders.find(plan) if plan else None
        pair = compare(self._diagnoses.of(first), self._diagnoses.of(second), plan=made_plan)
        if not isinstance(pair, Comparison):
            raise TypeError("one experiment gives one comparison")
        result = citing.comparison(str(first), str(second), pair.document)
        if whole:
            return _answer(comparison_text(pair.document), result)
        return Answer(text(pair.summary()), _data(result))

    def what_if(self, run: str, parallel: Sequence[int] = (), pruner: str = "") -> Answer:
        """What other numbers of trials at once, or another pruner, would bring."""
        path = self._folders.find(run)
        held = self._diagnoses.of(path).analysis.run  # it keeps what is forecast
        key = ("what_if", tuple(parallel), pruner)
        made = held.memo.once(key, lambda: what_if(held, list(parallel) or None, pruner=pruner or None))
        return _answer(blocks_of(made), citing.forecast(str(path), made.document))


def _said(one: ListedRun) -> str:
    """A run on a line: its path is no cell of a table, which would break it where it is long."""
    changed = f"{one.run}, changed {timestamp(one.changed, zone('UTC'))} UTC"
    return f"{changed}, diagnosed: {one.headline}" if one.headline else changed


def _explained(document: Document, one: VerdictEntry) -> list[Block]:
    """A finding with its evidence, limits and what would refute it, and the recommendation that answers it."""
    if one.status is not Status.FOUND:
        status = one.status.value.lower().replace("_", " ")
        said = " ".join(filter(None, (one.summary, one.reason, one.remedy)))
        return [Note(f"{one.name} ({one.rule}): {status}. {said}".rstrip())]
    blocks: list[Block] = [replace(card(document, one), code="")]
    blocks += [Note(said) for said in (*one.why.split("\n\n"), one.refuted_by) if said]
    if best := recommended(document, one.rule):
        blocks += [Note(f"What answers it (recommendation {best.id}):"), recommendation_card(best)]
    return blocks


def _unknown(name: str, known: Iterable[str], what: str) -> ConfigError:
    return ConfigError(f"there is no {what} '{name[:LONGEST_ID]}'; {nearest(name, known)}")


def _answer(blocks: Iterable[Block], result: object) -> Answer:
    return Answer(text(render(blocks, WIDTH)), _data(result))


def _data(result: object) -> JsonObject:
    held = quoted(plain_object(result))
    if not isinstance(held, dict):
        raise TypeError("a result is an object")
    return held
