"""Docs and notebooks are in American English, and refer to methods by links."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "notebooks").glob("*.ipynb")))
WRONG = re.compile(
    r"\b(neighbours?|recognised?|recognises|initialised?|labelled|favour\w*|behaviour\w*"
    r"|for want of|nobody can tell|as it should be|whatever is done|METHODS \d+)\b"
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_in_plain_american_english(page: Path) -> None:
    assert WRONG.findall(page.read_text(encoding="utf-8")) == []
