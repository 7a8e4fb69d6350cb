"""Every block in every renderer, with text that wants to be markup."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from html.parser import HTMLParser
from typing import Any, get_args

import pytest

from gpudiag.measures.base import RECORD_GPU
from gpudiag.report._render import blocks, fragments, markdown, terminal
from gpudiag.report._render.blocks import (
    MARKS,
    NAMES,
    Banner,
    Block,
    Chip,
    Figure,
    FindingBlock,
    Folded,
    Heading,
    Masthead,
    Note,
    Number,
    Pictured,
    RecommendationBlock,
    Summary,
    TableBlock,
    TextWithId,
    Tiles,
    TrialTable,
)

EVIL = "[bold]<script>alert('1')</script> \"a\" | *b* `<i>` \x1b[31m & $x$\n# c"
ONE_OF_EACH: tuple[Block, ...] = (
    Masthead(EVIL, ((EVIL, EVIL),)),
    Banner("critical", EVIL, ((EVIL, EVIL),), (Chip("warning", EVIL),)),
    Summary("critical", "well", EVIL, EVIL, ((EVIL, EVIL),), EVIL, 'id"><b>', (Chip("warning", EVIL),)),
    FindingBlock(
        "rule-id",
        "warning",
        EVIL,
        EVIL,
        EVIL,
        ((EVIL, EVIL),),
        (("limit_pct", EVIL),),
        EVIL,
        EVIL,
        EVIL,
        EVIL,
        "x = 1  # <b> ``` &",
        EVIL,
    ),
    RecommendationBlock("remedy-id", EVIL, EVIL, EVIL, "x = 1  # <b> ``` &", ((EVIL, EVIL),)),
    TableBlock(
        (EVIL, "n"), ((EVIL, Number("1")), (Chip("ok"), Number("2")), (TextWithId(EVIL, "id"), Number("3"))), EVIL
    ),
    Tiles(((EVIL, EVIL),)),
    Note(EVIL, "unknown"),
    Heading(EVIL),
    Figure("timeline"),
    Pictured("timeline", EVIL, EVIL, "image/png", "AAAA"),
    Folded(EVIL, (Note(EVIL), TableBlock((EVIL,), ((EVIL,),)))),
    TrialTable(3, TableBlock((EVIL,), ((EVIL,),)), "AAAA"),
)
SECTIONING = {
    "header",
    "h1",
    "h3",
    "article",
    "details",
    "summary",
    "p",
    "div",
    "span",
    "strong",
    "small",
    "code",
    "pre",
}
ALLOWED = SECTIONING | {
    "a",
    "button",
    "figure",
    "figcaption",
    "img",
    "dl",
    "dt",
    "dd",
    "table",
    "caption",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
}


class Tags(HTMLParser):
    """Start and end tags seen, and the text between."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.started: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[Any]) -> None:
        self.started.append(tag)
        if tag != "img":
            self.open.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_each_kind_of_block_is_here() -> None:
    assert {type(block) for block in ONE_OF_EACH} == set(get_args(Block))
    assert set(MARKS) == set(NAMES) and len(set(MARKS.values())) == len(MARKS)


@pytest.mark.parametrize("block", ONE_OF_EACH, ids=lambda block: type(block).__name__)
def test_html_is_well_formed_and_escaped(block: Block) -> None:
    tags = Tags(fragments.render([block]))
    assert set(tags.started) <= ALLOWED
    assert tags.open == []
    assert "\x1b" not in tags.text
    if any(value == EVIL for value in _texts(block)):
        assert "<script>alert('1')</script>" in tags.text


@pytest.mark.parametrize("block", ONE_OF_EACH, ids=lambda block: type(block).__name__)
def test_markdown_keeps_text_as_text(block: Block) -> None:
    text = markdown.render([block])
    outside_code = re.sub(r"`[^`]*`", "", text)
    assert not re.search(r"(?<!\\)<script", outside_code)
    assert "\x1b" not in text and "\n# c" not in text
    assert not re.search(r"(?<!\\)\$x", outside_code)


@pytest.mark.parametrize("block", ONE_OF_EACH, ids=lambda block: type(block).__name__)
def test_a_terminal_shows_markup_as_text_and_colours_are_only_added(block: Block) -> None:
    text = terminal.render([block], 400)
    assert "\x1b" not in text and "`" not in text.replace("```", "")
    if any(value == EVIL for value in _texts(block)) and not isinstance(block, TrialTable):
        assert "[bold]<script>alert('1')</script> \"a\" | *b* <i> [31m & $x$ # c" in text
    assert re.sub("\x1b\\[[0-9;]*m", "", terminal.render([block], 400, color=True)) == text


def test_in_a_terminal_commands_and_code_stay_whole_and_sentences_go_below() -> None:
    command = "--query-gpu=" + ",".join("abcdefghijklmnop")
    rows = tuple((Chip("ok"), "A title", f"{n} {command} " + "many words " * 9) for n in (1, 2))
    text = terminal.render([TableBlock(("Result", "What", "Why"), rows)], 40)
    assert text.startswith("  Result  What\n  ✓ ok    A title\n          1\n          " + command + "\n          many")
    block = RecommendationBlock("id", "A", "safe", "Do it.", f"    run  {command} x", ())
    assert f"\n        run  {command} x" in terminal.render([block], 40)


def test_a_recommendation_without_code_has_no_empty_block() -> None:
    block = RecommendationBlock("id", "A", "safe", "Do it.", "", ())
    assert "`" not in markdown.render([block]).replace("`id`", "")


def test_columns_that_do_not_fit_follow_beside_the_names_of_their_rows() -> None:
    names = ("row", *(f"column number {n}" for n in range(9)))
    table = TableBlock(names, (("first", *(Number(str(n)) for n in range(9))),))
    lines = terminal.render([table], 80).splitlines()
    assert max(map(len, lines)) <= 80 and all(any(name in line for line in lines) for name in names)
    assert [line.split()[0] for line in lines if line].count("first") == 3
    assert [n for line in lines for n in line.split() if n.isdigit() and "column" not in line] == list("012345678")


def _texts(thing: Any) -> list[Any]:
    if is_dataclass(thing):
        return [text for spec in fields(thing) for text in _texts(getattr(thing, spec.name))]
    if isinstance(thing, tuple):
        return [text for item in thing for text in _texts(item)]
    return [thing]


def test_a_level_is_told_by_word_and_shape_not_by_colour_alone() -> None:
    for level, name in NAMES.items():
        html = fragments.chip(Chip(level))
        assert name in html and MARKS[level] in html


def test_numbers_stand_to_the_right_and_keep_their_unit() -> None:
    table = TableBlock(("what", "share"), (("a", Number("3 %")), ("b", Number("84.1 %"))))
    html = fragments.render([table])
    assert html.count('class="gd-number"') == 3 and "84.1&nbsp;%" in html
    assert markdown.render([table]).splitlines()[1] == "|---|--:|"
    assert fragments.inline("GPU 0: 9 min 11 s, 12 windows") == "GPU&nbsp;0: 9&nbsp;min&nbsp;11&nbsp;s, 12 windows"


def test_only_tables_too_wide_for_a_narrow_screen_stack() -> None:
    words = TableBlock(("fault", "why"), (("a", "b"), ("c", Number("3"))))
    four = TableBlock(("Category", "Time", "Share", "What it means"),
                      (("start-up only", Number("1.14 GPU-h"), Number("97.4 %"), "five words " * 7),))  # fmt: skip
    for fits in (words, four):
        html = fragments.render([fits])
        assert "gd-stack" not in html and "data-column" not in html
    numbers = TableBlock(tuple("abcdefghi"), (("GPU 0", *(Number("2 min 43 s"),) * 8),))
    prose = TableBlock(("fault", "why", "what"), (("a word", "many words " * 20, "and more " * 20),))
    for wide in (numbers, prose):
        html = fragments.render([wide])
        assert '<table class="gd-stack">' in html and html.count("data-column=") == len(wide.columns)


def test_no_line_breaks_within_a_unit() -> None:
    assert fragments.inline("42 GPU-h of 3 GPU-hours") == (
        '42<span class="gd-unit">&nbsp;GPU-h</span> of 3<span class="gd-unit">&nbsp;GPU-hours</span>'
    )
    assert fragments.inline("lost GPU-hours") == 'lost <span class="gd-unit">GPU-hours</span>'
    assert fragments.inline("2 h 05 min") == "2&nbsp;h&nbsp;05&nbsp;min"
    row = fragments.render([TableBlock(("a",), ((Number("0.5 worker-h"),),))])
    assert '0.5<span class="gd-unit">&nbsp;worker-h</span>' in row


def test_a_command_at_the_end_of_a_sentence_stands_in_a_box() -> None:
    html = fragments.render([Note(f"There is none. {RECORD_GPU}", "unknown")])
    words, _, command = html.partition("<pre")
    assert words.endswith("Record the GPU with:</p>") and command.count("nvidia-smi --query-gpu") == 1
    assert "&gt; gpu.csv</span></code></pre>" in command and "gd-command" in command
    run_on = Note(f"{RECORD_GPU} So there is more.")
    assert "<pre" not in fragments.render([run_on]), "what follows it is no part of it"


def test_markdown_of_a_finding() -> None:
    finding = FindingBlock("gpu-unused", "critical", "A GPU was never used", "GPU 1 slept.", "cost 2.08 GPU-h",
                      (("GPU", "1"),), (("max_util_pct", "1 %"),), "Use `it`.", "", "It is paid for.")  # fmt: skip
    assert markdown.render([finding]) == (
        "### ■ critical: A GPU was never used · cost 2.08 GPU-h\n\nGPU 1 slept.\n\n**Do:** Use `it`.\n\n<details>\n"
        "<summary>Evidence, limits and reasons</summary>\n\n- **Evidence:** GPU 1\n- **Limits:** `max_util_pct` 1 %\n"
        "- **Why it matters:** It is paid for.\n- **Rule:** `gpu-unused`\n\n</details>"
    )


def test_code_in_backticks_and_a_stray_backtick() -> None:
    assert fragments.inline("run `a<b`") == "run <code>a&lt;b</code>"
    assert fragments.inline("it`s") == "it`s"
    assert markdown.inline("run `a_b` c_d") == "run `a_b` c\\_d"
    assert "`" not in markdown.inline("it`s")


def test_an_empty_table_is_nothing() -> None:
    empty = blocks.TableBlock(("a",), ())
    assert fragments.render([empty]) == markdown.render([empty]) == ""
