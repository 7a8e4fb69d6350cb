"""axe-core finds nothing wrong on the pages that are written for people, whatever their colours and width."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def _violations(page: Any) -> list[str]:
    """What axe-core finds, with everything that can be opened or shown standing open."""
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    if page.locator("#show-code").count():
        page.locator("#show-code").set_checked(True)
    options = {"resultTypes": ["violations"], "runOnly": {"type": "tag", "values": TAGS}}
    found = Axe().run(page, options=options).response
    assert len(found["passes"]) > 20
    return [f"{v['impact']}: {v['id']}: {node['target']}" for v in found["violations"] for node in v["nodes"]]


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
@pytest.mark.parametrize("kind", ["report", "index_page"])
def test_axe_finds_no_violation(
    kind: str, scheme: str, width: int, browser: Any, request: pytest.FixtureRequest
) -> None:
    path: Path = request.getfixturevalue(kind)
    page = browser.new_page(viewport={"width": width, "height": 900}, reduced_motion="reduce", color_scheme=scheme)
    try:
        page.goto(path.as_uri())
        assert _violations(page) == []
    finally:
        page.close()


def test_axe_would_find_them(browser: Any) -> None:
    page = browser.new_page()
    page.set_content("<html><body><img src=data:,><p style='color:#aaa'>pale</p></body></html>")
    found = " ".join(_rules(page))
    page.close()
    assert "image-alt" in found and "color-contrast" in found and "html-has-lang" in found


def _rules(page: Any) -> list[str]:
    return [violation["id"] for violation in Axe().run(page).response["violations"]]
