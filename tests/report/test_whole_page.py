"""The whole report in plain words: its Markdown with nothing folded, and what a terminal prints of it."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import pytest
from sampleruns import diagnosed

from tests.report.test_words import CODE, FORMS, NAMES, RUNS, TURNS, n_words, sentences

MOST_WORDS = 40
"""Of a sentence anywhere on a page; those of rules and remedies have less."""
SAME_WORDS = 6
"""A sentence of so many words stands once before the appendix."""
_LINK = re.compile(r"!\[[^\]]*\]\([^)]*\)|\[([^\]]*)\]\([^)]*\)")


@cache
def page(name: str) -> str:
    """The report with nothing folded, without its pictures."""
    return diagnosed(name).to_markdown()


@cache
def short(name: str) -> str:
    return diagnosed(name).to_markdown(full=False)


def prose(markdown: str) -> list[str]:
    """Paragraphs, items and cells of tables, without code, links, pictures and HTML."""
    text = re.sub(r"```.*?```", "", markdown, flags=re.DOTALL)
    text = _LINK.sub(r"\1", re.sub(r"<[^>]+>", "", text))
    parts: list[str] = []
    for line in text.splitlines():
        line = line.strip().lstrip("#-* ").replace("\\", "").replace("*", "")
        if line.startswith(("Evidence:", "Limits:")) or " · " in line:  # numbers side by side
            parts += re.split(r"; | · ", line)
            continue
        parts += [cell.strip() for cell in line.split("|")] if line.startswith("|") else [line]
    return [part for part in parts if part]


@pytest.mark.slow
@pytest.mark.many
@pytest.mark.parametrize("name", RUNS)
def test_sentences_of_a_page_are_short_and_plain(name: str) -> None:
    found = []
    for part in prose(page(name)):
        for sentence in sentences(part):
            said = CODE.sub("code", sentence)
            words = [turn for turn in (*TURNS, *NAMES) if re.search(rf"\b{re.escape(turn)}\b", said, re.IGNORECASE)]
            words += [what for what, form in FORMS.items() if form.search(CODE.sub("", sentence))]
            words += [f"{n_words(sentence)} words"] if n_words(sentence) > MOST_WORDS else []
            found += [f"{what}: {sentence}" for what in words]
    assert found == []


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_page_says_nothing_twice(name: str) -> None:
    """Of what a reader sees without opening anything; the proof at the top stands again on its card."""
    _, _, rest = short(name).partition("\n## ")
    once = Counter(s for part in prose(rest) for s in sentences(part) if n_words(s) >= SAME_WORDS)
    assert [sentence for sentence, n in once.items() if n > 1] == []


@pytest.mark.parametrize("name", RUNS)
def test_a_short_report_is_short(name: str) -> None:
    assert len(short(name).splitlines()) <= 200
    top = short(name).partition("\n## ")[0]
    assert len(top.split()) <= 150
