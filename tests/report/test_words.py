"""Every text that a person reads is plain: short sentences, the names of the field, numbers in their one form."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from sampleruns import diagnosed

from gpudiag.advice import REMEDIES
from gpudiag.report._render.terminal import render
from gpudiag.report.text import whole
from gpudiag.rules import RULES

RUNS = (
    "healthy",
    "hpo-aggressive-pruning",
    "starved-input-pipeline/before",
    "starved-input-pipeline/after",
    "idle-second-gpu/baseline",
    "idle-second-gpu/experiment",
    "memory-exhaustion",
    "tiny-batch-laptop",
)
MOST_WORDS = 30
MEAN_WORDS = 20
TURNS = (
    "for want of", "as it should be", "nobody can", "nobody knows", "lest", "a way back", "whatever is done",
    "can tell", "be told", "is told", "are told", "at the cost of", "verify first", "would be refuted",
)  # fmt: skip
NAMES = (
    "decided trials", "slot", "slots", "lane", "orphan", "orphans", "ledger cell", "stamps", "effectively",
    "trials at once, effectively", "no signature", "not stated", "METHODS", "initialised", "serialised", "neighbour",
    "coloured", "colour",
)  # fmt: skip
FORMS = {
    "an interval in words": re.compile(r"95 % interval [\d.]"),
    "nothing with a unit": re.compile(r"(?<![\d.])0 GPU-h – "),
    "microseconds": re.compile(r"\d\d:\d\d:\d\d\.\d{3,}|\+00:00"),
    "x before a factor": re.compile(r"(?<!\w)x\d+\.\d"),
    "a value that is no setting": re.compile(r"True → False|→ its text|as stated →|not stated →"),
    "MB for MiB": re.compile(r"\d MB\b"),
    "a thin space in a count": re.compile(r"\d \d{3}\b(?! ?%)"),
    "an exponent": re.compile(r"\d(\.\d+)?e[-+]\d\d"),
}
CODE = re.compile(r"`[^`]*`|\S*[_=/(]\S*|--\S+")


def sentences(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=[.!?])\s+(?=[A-Z0-9\"'`])", text.strip()) if part]


def n_words(sentence: str) -> int:
    """Words of prose: code and commands count as one each."""
    return len(CODE.sub("code", sentence).split())


def of_rules() -> Iterator[tuple[str, str]]:
    for rule in RULES:
        for name in ("title", "checks", "remedy", "refuted_by"):
            yield f"{rule.id} {name}", getattr(rule, name)
        yield f"{rule.id} why", rule.why.partition("\n\n")[0]  # what follows defines the thresholds


def of_remedies() -> Iterator[tuple[str, str]]:
    for item in REMEDIES:
        for text in (item.title, item.refute, item.rollback, *item.pros, *item.cons):
            yield item.id, text


def of_run(name: str) -> Iterator[tuple[str, str]]:
    """What rules and recommendations say of one run."""
    document = diagnosed(name).document
    for verdict in document.verdicts:
        for part in ("summary", "reason", "remedy"):
            yield f"{verdict.rule} {part}", getattr(verdict, part)
    for one in document.recommendations:
        for text in (one.title, one.assumption, one.verify_first, one.safety_reason):
            yield one.id, text


def wrong(texts: Iterator[tuple[str, str]]) -> list[str]:
    """What is not plain in these texts: where, why and the sentence."""
    out = []
    for where, text in texts:
        for sentence in sentences(text):
            said = CODE.sub("code", sentence)
            found = [turn for turn in (*TURNS, *NAMES) if re.search(rf"\b{re.escape(turn)}\b", said, re.IGNORECASE)]
            found += [what for what, form in FORMS.items() if form.search(sentence)]
            if n_words(sentence) > MOST_WORDS:
                found.append(f"{n_words(sentence)} words")
            out += [f"{where}: {what}: {sentence}" for what in found]
    return out


def mean_words(texts: Iterator[tuple[str, str]]) -> float:
    lengths = [n_words(sentence) for _, text in texts for sentence in sentences(text)]
    return sum(lengths) / len(lengths)


def test_the_words_of_rules_are_plain() -> None:
    assert wrong(of_rules()) == []
    assert mean_words(of_rules()) <= MEAN_WORDS


def test_the_words_of_remedies_are_plain() -> None:
    assert wrong(of_remedies()) == []


@pytest.mark.parametrize("name", RUNS)
def test_what_a_run_is_told_is_plain(name: str) -> None:
    assert wrong(of_run(name)) == []
    assert mean_words(of_run(name)) <= MEAN_WORDS


@pytest.mark.parametrize("name", RUNS)
def test_no_finding_says_what_another_says(name: str) -> None:
    findings = [one.summary for one in diagnosed(name).document.findings]
    said = [sentence for text in findings for sentence in sentences(text)]
    assert len(set(said)) == len(said)


@pytest.mark.parametrize("name", RUNS)
def test_numbers_in_the_terminal_have_one_form(name: str) -> None:
    lines = render(whole(diagnosed(name).document), width=400).splitlines()
    assert [(what, line) for line in lines for what, form in FORMS.items() if form.search(CODE.sub("", line))] == []


@pytest.mark.parametrize(
    ("sentence", "what"),
    [
        ("173 of 181 decided trials were pruned.", "decided trials"),
        ("It was 7.7 % (95 % interval 4.7 % to 12 %).", "an interval in words"),
        ("heartbeat: not stated → 60.", "not stated"),
        (" ".join(["word"] * 31) + ".", "31 words"),
    ],
)
def test_the_linter_sees_what_it_should(sentence: str, what: str) -> None:
    assert any(what in found for found in wrong(iter([("here", sentence)])))
