"""The index of a batch in a real browser: it sorts without a network, its links lead to the reports, and it prints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpudiag.report.index import COLUMNS

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CELLS = "rows => rows.map(row => row.cells[{}].dataset.sort)"


@pytest.fixture(params=[1280, 390])
def page(browser: Any, index_page: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The index opened; on leaving, the console must have been silent and every request a file."""
    page = browser.new_page(viewport={"width": request.param, "height": 900}, reduced_motion="reduce")
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.route("**/*", lambda ask: ask.continue_() if ask.request.url.startswith("file:") else ask.abort())
    page.goto(index_page.as_uri())
    yield page
    page.close()
    assert said == []


WIDE = pytest.mark.parametrize("page", [1280], indirect=True)
"""On a narrow screen rows are blocks without a head."""


def _sorted_by(page: Any, column: int) -> list[str]:
    return page.locator("#runs tbody tr").evaluate_all(CELLS.format(column))


@WIDE
def test_a_column_sorts_up_and_down(page: Any) -> None:
    for column, name in enumerate(COLUMNS):
        head = page.locator("#runs thead th").nth(column)
        before = _sorted_by(page, column)
        key = float if all(_is_number(text) for text in before) else str
        button = head.get_by_role("button", name=name)
        button.focus()
        page.keyboard.press("Enter")
        assert head.get_attribute("aria-sort") == "ascending", name
        assert _sorted_by(page, column) == sorted(before, key=key), name
        button.click()
        assert head.get_attribute("aria-sort") == "descending", name
        assert _sorted_by(page, column) == sorted(before, key=key, reverse=True), name
        assert page.locator("#runs [aria-sort]").count() == 1, name


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@WIDE
def test_numbers_are_sorted_as_numbers_and_the_unknown_come_first(page: Any) -> None:
    page.get_by_role("button", name="GPU time").click()
    shown = page.locator("#runs tbody tr td:nth-child(3)").all_inner_texts()
    assert shown[0] == "–" and len(shown) == 4
    assert [float(text) for text in _sorted_by(page, 2)] == sorted(map(float, _sorted_by(page, 2)))


def test_links_lead_to_the_report_of_their_row(page: Any, index_page: Path) -> None:
    rows = page.locator("#runs tbody tr")
    names = [text.replace("\xa0", " ") for text in rows.locator("td:nth-child(1)").all_inner_texts()]
    assert len(names) == 4 and page.locator("#runs a").count() == 2 * 3  # the failed one has no report
    for link in page.locator("#runs a").evaluate_all("links => links.map(a => [a.href, a.ariaLabel])"):
        page.goto(link[0])
        if link[0].endswith(".html"):
            assert link[1] == f"Report of {page.title()}" and page.title() in names
        else:
            assert page.locator("body").inner_text().startswith("# ")


def test_no_part_is_wider_than_the_screen(page: Any) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


def test_text_from_runs_stays_text(page: Any) -> None:
    assert page.get_by_text("<b>not bold</b>").count() == 1
    assert page.locator("#runs b").count() == 0
