"""Outputs as a notebook shows them that is not trusted: nothing that says or places something is lost with their style.

The lists are those of JupyterLab's sanitizer (@jupyterlab/apputils, sanitizer.ts); tests/browser/test_jupyterlab.py
opens such a notebook.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from toyrun import TOY_RULES, toy_run

from gpudiag.diagnosis import diagnose
from gpudiag.report._render import fragments
from gpudiag.report._render.blocks import Note, Tiles
from gpudiag.report._render.show import words
from gpudiag.report._render.untrusted import GREY, LEVELS, bare, styled
from gpudiag.rules import RULES

EVIL = '<b style="color: red"> & \' style="x" `code`'
TAGS = {
    "a", "article", "b", "br", "caption", "code", "dd", "details", "div", "dl", "dt", "em", "figcaption",
    "figure", "h1", "h2", "h3", "h4", "header", "i", "img", "li", "p", "pre", "section", "small", "span",
    "strong", "summary", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
"""Of those that it keeps, the ones that we use; it keeps a button too, and shows it though it is hidden."""
UNWRAPPED = {"picture", "source"}
"""Without them the image stays that is in them."""
PROPERTIES = {
    "align-items", "background", "border", "border-left", "border-radius", "caption-side", "display", "flex",
    "flex-direction", "flex-wrap", "float", "font-size", "font-weight", "gap", "justify-content",
    "line-height", "margin", "overflow-x", "padding", "padding-left", "text-align", "vertical-align",
    "white-space", "width",
}  # fmt: skip
NUMBER = r"[+-]?(?:\d*\.)?\d+"
VALUE = rf"(?:{NUMBER}(?:px|em|rem|%)?|[a-z-]+|#[0-9a-f]{{6}}|rgba\(\d+,\d+,\d+,{NUMBER}\))"
FLOWS = {"gd-chip", "gd-pan", "gd-figure"}
"""Laid out by the sheet, and as good without."""


class Seen(HTMLParser):
    """Elements as (tag, attributes), and the text outside of style sheets."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self._within = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._within = tag
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        self._within = ""

    def handle_data(self, data: str) -> None:
        self.text += "" if self._within == "style" else data


@pytest.fixture(scope="module")
def outputs(undrawn_for_all: None) -> list[dict[str, str]]:
    """Of a report with every section, every level and every kind of finding."""
    notebook = diagnose(toy_run(EVIL), rules=(*RULES, *TOY_RULES))._notebook()
    made = [output["data"] for cell in notebook.cells for output in cell.get("outputs", [])]
    assert len(made) > 12
    return made


@pytest.fixture(scope="module")
def seen(outputs: list[dict[str, str]]) -> list[Seen]:
    return [Seen(data["text/html"]) for data in outputs]


@pytest.mark.slow
def test_every_element_stays_and_none_is_hidden(seen: list[Seen]) -> None:
    tags = {tag for one in seen for tag, _ in one.elements}
    assert tags - TAGS - UNWRAPPED == {"style"}
    assert not [attributes for one in seen for _, attributes in one.elements if "hidden" in attributes]


@pytest.mark.slow
def test_every_style_of_an_element_stays(seen: list[Seen]) -> None:
    styles = {attributes["style"] for one in seen for _, attributes in one.elements if "style" in attributes}
    assert len(styles) > 15
    for style in styles:
        for declaration in style.split("; "):
            name, _, value = declaration.partition(": ")
            assert name in PROPERTIES and re.fullmatch(rf"{VALUE}(?: {VALUE})*", value), declaration


@pytest.mark.slow
def test_no_layout_rests_on_a_class_alone(seen: list[Seen]) -> None:
    sheet = re.sub(r"/\*.*?\*/", "", fragments.style_sheet(), flags=re.DOTALL)
    always = re.sub(r"@(?:media|container)[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", sheet)
    laid_out = {
        name
        for selector, rules in re.findall(r"([^{}]+)\{([^{}]*)\}", always)
        if re.search(r"display: (?:inline-)?(?:flex|grid)|border-left|overflow-x: auto", rules)
        for name in re.findall(r"\.(gd-[a-z]+)(?= *(?:,|$))", selector.strip())
    }
    assert {"gd-tiles", "gd-facts", "gd-finding", "gd-summary", "gd-chips", "gd-scroll"} <= laid_out
    for one in seen:
        for _, attributes in one.elements:
            classes = set(attributes.get("class", "").split())
            if classes & laid_out - FLOWS:
                assert attributes.get("style"), classes
    assert 'content: "' not in always, "words of a style sheet are lost"


@pytest.mark.slow
def test_what_jupyterlab_floats_or_aligns_to_the_right_is_set_back(seen: list[Seen]) -> None:
    found = [(tag, attributes.get("style", "")) for one in seen for tag, attributes in one.elements]
    assert all("float: none" in style for tag, style in found if tag in ("dt", "dd"))
    assert all("text-align: " in style for tag, style in found if tag in ("th", "td", "caption"))


def test_every_output_can_be_read_as_text(outputs: list[dict[str, str]]) -> None:
    for data in outputs:
        text = data.get("text/markdown", data["text/plain"])
        assert len(text.strip()) > 20 and data["text/plain"].strip()
        assert "<div" not in text and 'style="font' not in text


def test_a_page_has_the_sheet_and_none_of_these_styles(outputs: list[dict[str, str]]) -> None:
    for data in outputs:
        page = fragments.on_page(data["text/html"])
        assert not any("style" in attributes for _, attributes in Seen(page).elements)
    findings = next(data["text/html"] for data in outputs if "gd-goto" in data["text/html"])
    ways = [attributes for tag, attributes in Seen(fragments.on_page(findings)).elements if tag == "button"]
    assert ways and all("hidden" in one and one["data-gd-goto"].startswith("finding:") for one in ways)


def test_words_of_a_run_stay_what_they_are() -> None:
    html = fragments.render((Tiles(((EVIL, EVIL),)), Note(EVIL)))
    assert bare(styled(html)) == html
    assert Seen(styled(html)).text == Seen(html).text and "color: red" in Seen(html).text
    data, _ = words((Note(EVIL),))
    assert "color: red" in Seen(fragments.on_page(data["text/html"])).text


def luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("color", LEVELS.values())
@pytest.mark.parametrize("ground", ["#ffffff", "#111111"])
def test_levels_are_seen_on_light_and_on_dark(color: str, ground: str) -> None:
    light, dark = sorted((luminance(color), luminance(ground)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 3
    assert GREY.startswith("rgba(")
