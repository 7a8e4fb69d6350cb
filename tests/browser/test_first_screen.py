"""A report is understood in ten seconds: what its first screen holds, and how long it is, in a real browser."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sampleruns import report_of

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SHOWN = """() => {
    const main = document.querySelector('main'), end = document.querySelector('#appendix');
    const before = main.innerText.split('\\nAppendix')[0];
    const bottom = selector => document.querySelector(selector)?.getBoundingClientRect().bottom;
    return {words: before.split(/\\s+/).length, length: end.getBoundingClientRect().top,
            summary: bottom('.gd-summary'), picture: bottom('[id^=figure-overview]'),
            width: document.documentElement.scrollWidth, cards: document.querySelectorAll('.gd-finding').length,
            open: [...document.querySelectorAll('.gd-finding')].filter(one => one.checkVisibility()).length};
}"""
LIMITS = {  # screens and words before the appendix
    "hpo-aggressive-pruning": (6.1, 1200),
    "memory-exhaustion": (6.2, 1200),
    "idle-second-gpu/experiment": (4.7, 900),
    "healthy": (2.2, 400),
    "tiny-batch-laptop": (3.6, 650),
}


@pytest.fixture(scope="module", params=LIMITS)
def sample(request: pytest.FixtureRequest) -> tuple[str, Path]:
    return request.param, report_of(request.param) / "report.html"


@pytest.fixture(scope="module")
def wide(browser, sample: tuple[str, Path]) -> Iterator[Any]:
    page = browser.new_page(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    page.goto(sample[1].as_uri())
    yield page
    page.close()


@pytest.fixture(scope="module")
def narrow(browser, sample: tuple[str, Path]) -> Iterator[Any]:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(sample[1].as_uri())
    yield page
    page.close()


def test_the_first_screen_holds_headline_numbers_next_step_and_picture(wide, narrow) -> None:
    assert (
        wide.evaluate(SHOWN)["picture"] <= 820
    )  # a headline of two lines and a proof of two leave the axis label below the edge
    found = narrow.evaluate(SHOWN)
    assert found["summary"] <= 844 and found["width"] == 390


def test_it_is_short(wide, sample: tuple[str, Path]) -> None:
    screens, words = LIMITS[sample[0]]
    found = wide.evaluate(SHOWN)
    assert found["length"] <= screens * 800 and found["words"] <= words and found["open"] <= 5


@pytest.mark.parametrize("name", ["hpo-aggressive-pruning", "memory-exhaustion"])
def test_on_paper_the_longest_have_ten_pages_at_most(browser, name: str) -> None:
    page = browser.new_page()
    page.goto((report_of(name) / "report.html").as_uri())
    assert page.pdf(format="A4").count(b"/Type /Page\n") <= 10
    page.close()


def test_the_headline_leads_to_its_finding(wide) -> None:
    link = wide.locator(".gd-do a")
    if link.count():
        link.click()
        card = wide.locator(link.get_attribute("href"))
        assert card.is_visible() and 0 <= card.bounding_box()["y"] <= 800


def test_the_picture_of_a_narrow_screen_keeps_its_colors_on_a_dark_page(narrow) -> None:
    """It is the SVG for narrow screens, with its own style sheet for dark paper, and nothing inverts it."""
    for scheme in ("dark", "light"):
        narrow.emulate_media(color_scheme=scheme)
        used, source = narrow.evaluate(
            "(img => [getComputedStyle(img).filter, img.currentSrc])"
            "(document.querySelector('[id^=figure-overview] img'))"
        )
        kind, _, svg = source.partition(",")
        assert used == "none" and kind == "data:image/svg+xml;base64"
        assert "@media (prefers-color-scheme: dark)" in b64decode(svg).decode()
