"""Sentences of rules: each is a template over values that the rule gives, and numbers are written nowhere else."""

from __future__ import annotations

import ast
import pickle
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from string import Formatter

import pytest
from plantedruns import analysis, verdict

import gpudiag
from gpudiag.analysis import Analysis
from gpudiag.errors import NotGiven, NotMeasurable
from gpudiag.report.sentence import render
from gpudiag.rules import RULES
from gpudiag.rules._engine.evidence import Evidence, NotApplicable
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.rule import Rule, check_thresholds, rule
from gpudiag.rules._engine.templates import Given, Sentence, parts, template
from gpudiag.rules._engine.verdict import Verdict
from gpudiag.run import Run, RunInfo

PACKAGE = Path(gpudiag.__file__).parent
EVERY = pytest.mark.parametrize("one", RULES, ids=lambda r: r.id)


def conditions(sentence: Sentence) -> Iterator[str]:
    if isinstance(sentence, Given):
        yield sentence.name
        yield from conditions((sentence.then, sentence.otherwise))
    elif isinstance(sentence, tuple):
        for part in sentence:
            yield from conditions(part)


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def evidence_of(one: Rule) -> Evidence:
    """What the rule gives for its planted fault."""
    evidence = one.judge(analysis(one.id)[one.measure], **one.thresholds)
    assert isinstance(evidence, Evidence)
    return evidence


@EVERY
def test_every_part_of_a_sentence_is_made_of_values_that_the_rule_gives(one: Rule) -> None:
    evidence = evidence_of(one)
    values = evidence.sentence_values()
    assert one.says and not evidence.summary, "the sentence of a rule that comes with gpudiag stands in says="
    for part in parts(one.says):
        assert render(part, values) is not None
        assert placeholders(part) <= set(values)
    assert set(conditions(one.says)) <= set(values)


@EVERY
def test_a_sentence_ends_whichever_parts_stand(one: Rule) -> None:
    values = evidence_of(one).sentence_values()
    for standing in (False, True):
        text = template(one.says, {**values, **dict.fromkeys(conditions(one.says), standing)})
        assert text.endswith((".", "{clock}")) and ".." not in text.replace("...", "") and "  " not in text, text


@EVERY
def test_extras_are_in_no_other_output(one: Rule) -> None:
    evidence, told = evidence_of(one), verdict(one.id)
    assert set(told.evidence) == set(evidence.values) and set(told.where) == set(evidence.where)


def reasons() -> Iterator[tuple[str, ast.Call]]:
    names = ("NotMeasurable", "NotApplicable")
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if any(name in text for name in names) else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", node


@pytest.mark.slow
def test_reasons_name_the_values_that_are_given_to_them() -> None:
    seen = 0
    for place, call in reasons():
        given = {keyword.arg for keyword in call.keywords}
        if not given or None in given:  # None: **values, whose template is rendered in other tests
            continue
        texts = [node.value for arg in call.args for node in ast.walk(arg) if isinstance(node, ast.Constant)]
        named = {name for text in texts if isinstance(text, str) for name in placeholders(text)}
        assert named == given, f"{place}: the text names {sorted(named)}, but {sorted(map(str, given))} are given"
        seen += 1
    assert seen > 30


def test_rules_write_no_numbers() -> None:
    """Evidence of placeholder-columns is a list of texts in the JSON; all else is written by the formatter."""
    for path in (PACKAGE / "rules").glob("*.py"):
        specs = [
            ast.unparse(node.value)
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.FormattedValue) and node.format_spec is not None
        ]
        assert specs == (["row.value"] if path.name == "recorder.py" else []), path.name


def measure_nothing(run: Run) -> float:
    return 4.0


def judged(one: Rule) -> Verdict:
    return judge_all((one,), Analysis(Run()), check_thresholds((one,), {}))[0]


@rule(
    measure=measure_nothing,
    severity="note",
    title="It waits",
    remedy="None.",
    says=("{gpus} waited ", Given("long_s", "for {long_s}", "a little"), Given("missing", "?"), "."),
)
def waits(seconds: float) -> Evidence:
    """A rule with a sentence."""
    return Evidence(values={"n": 1}, where={"gpu": "0, 2"}, extra={"long_s": 551.0, "missing": float("nan")})


@rule(measure=measure_nothing, severity="note", title="It waits", remedy="None.")
def waits_plainly(seconds: float) -> Evidence:
    """A rule with a text of its own."""
    return Evidence("It waited {so} long, 5.50 s.", {"wait_s": 5.5})


@rule(measure=measure_nothing, severity="note", title="It waits", remedy="None.", says="It waited {wait_s}.")
def misspelt(seconds: float) -> Evidence:
    """A rule whose sentence names what it does not give."""
    return Evidence(values={"waits_s": 5.5})


def test_a_sentence_is_rendered_from_the_evidence_and_a_plain_text_is_kept() -> None:
    found = judged(waits)
    assert found.summary == "GPUs 0 and 2 waited for 9 min 11 s."
    assert (found.evidence, found.where) == ({"n": 1}, {"gpu": "0, 2"})
    assert judged(waits_plainly).summary == "It waited {so} long, 5.50 s."


def test_a_misspelt_value_is_an_error() -> None:
    with pytest.raises(KeyError, match="wait_s"):
        misspelt.summary(Evidence(values={"waits_s": 5.5}))


@pytest.mark.parametrize(
    ("value", "text"),
    [(1, "then"), ("a", "then"), (0, "else"), (None, "else"), (float("nan"), "else"), ("", "else"), ([], "else")],
)
def test_a_part_stands_where_its_value_says_something(value: object, text: str) -> None:
    assert template(Given("x", "then", "else"), {"x": value}) == text


def test_reasons_are_templates_only_with_values() -> None:
    error = NotMeasurable(
        "Only {observed_s} of {name} were observed.", "Record {needed_s}.", observed_s=42.0, name="a", needed_s=90.0
    )
    assert (error.reason, error.remedy) == ("Only 42 s of a were observed.", "Record 1 min 30 s.")
    assert str(error) == "Only 42 s of a were observed. Record 1 min 30 s."
    again = pickle.loads(pickle.dumps(error))
    assert (again.reason, again.remedy) == (error.reason, error.remedy)
    plain = NotMeasurable("No {such} thing.")
    assert (plain.reason, plain.remedy, str(plain)) == ("No {such} thing.", "", "No {such} thing.")
    assert str(NotApplicable("Only {n:trial} failed.", n=1)) == "Only 1 trial failed."


@pytest.mark.parametrize("error", [NotMeasurable, NotGiven, NotApplicable])
def test_reasons_give_times_in_the_zone_of_the_run_as_sentences_do(error: type[Exception]) -> None:
    @rule(measure=measure_nothing, severity="note", title="It waits", remedy="None.")
    def waits_since(seconds: float) -> None:
        """A rule."""
        raise error("Nothing is known since {since} UTC.", since=datetime(2025, 10, 24, 22, 30, tzinfo=UTC))

    run = Run(info=RunInfo(timezone="Asia/Taipei"))
    (found,) = judge_all((waits_since,), Analysis(run), check_thresholds((waits_since,), {}))
    assert found.reason == "Nothing is known since 2025-10-25 06:30:00 (Asia/Taipei)."
    assert judged(waits_since).reason == "Nothing is known since 2025-10-24 22:30:00 UTC."
