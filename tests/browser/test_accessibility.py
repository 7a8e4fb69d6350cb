"""axe-core finds nothing wrong on the pages that are written for people, whatever their colours and width."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def _violations(axe: Any, page: Any) -> list[str]:
    """What axe-core finds, with everything that can be opened or shown standing open."""
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    if page.locator("#show-code").count():
        page.locator("#show-code").set_checked(True)
    options = {"resultTypes": ["violations"], "runOnly": {"type": "tag", "values": TAGS}}
    found = axe.run(page, options=options).response
    assert len(found["passes"]) > 20
    return [f"{v['impact']}: {v['id']}: {node['target']}" for v in found["violations"] for node in v["nodes"]]


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
@pytest.mark.parametrize("kind", ["report", "index_page"])
def test_axe_finds_no_violation(
    kind: str, scheme: str, width: int, browser: Any, axe: Any, request: pytest.FixtureRequest
) -> None:
    path: Path = request.getfixturevalue(kind)
    page = browser.new_page(viewport={"width": width, "height": 900}, reduced_motion="reduce", color_scheme=scheme)
    try:
        page.goto(path.as_uri())
        assert _violations(axe, page) == []
    finally:
        page.close()


def test_axe_would_find_them(browser: Any, axe: Any) -> None:
    page = browser.new_page()
    page.set_content("<html><body><img src=data:,><p style='color:#aaa'>pale</p></body></html>")
    found = " ".join(violation["id"] for violation in axe.run(page).response["violations"])
    page.close()
    assert "image-alt" in found and "color-contrast" in found and "html-has-lang" in found
