"""The generated part of docs/reference: written before Sphinx reads its sources, and never committed.

A page a check (with its planted case), the list of them, the commands, the formats and the JSON Schemas. What did not
change is not written, so that Sphinx reads it once.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(DOCS.parent / "benchmarks"))

from check_pages import list_of_checks, page_of_check  # noqa: E402
from commands_page import commands_page  # noqa: E402
from formats_page import formats_page  # noqa: E402
from planted_cases import planted_cases  # noqa: E402
from schemas_page import schemas_page  # noqa: E402

from gpudiag.report.check_page import with_id_links  # noqa: E402
from gpudiag.rules import RULES  # noqa: E402

MADE = ("commands.md", "formats.md", "schemas.md")
_FENCE = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)
_RULES_MD = re.compile(r"\]\((?:\.\./)*rules\.md(?:#([a-z0-9-]+))?\)")


def pages(folder: Path) -> Iterator[tuple[Path, str]]:
    """Each page that is made, and its text."""
    cases = planted_cases(DOCS / "_build" / "planted")
    yield folder / "checks" / "index.md", list_of_checks()
    for rule in RULES:
        yield folder / "checks" / f"{rule.id}.md", page_of_check(rule, cases[rule.id])
    for name, text in zip(MADE, (commands_page(), formats_page(), schemas_page()), strict=True):
        yield folder / name, text


def write(folder: Path) -> None:
    """Write what changed into docs/reference, and remove pages of checks that are no more."""
    checks = folder / "checks"
    checks.mkdir(parents=True, exist_ok=True)
    wanted = dict(pages(folder))
    for old in set(checks.glob("*.md")) - set(wanted):
        old.unlink()
    for path, text in wanted.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _made(app: Sphinx) -> None:
    write(DOCS / "reference")


def _to_checks(app: Sphinx, page: str, source: list[str]) -> None:
    """The id of a check in backticks is a link to its page; so are links to docs/rules.md, which GitHub shows."""

    def place(rule: str) -> str:
        return os.path.relpath(DOCS / "reference" / "checks" / f"{rule}.md", (DOCS / page).parent)

    text = _RULES_MD.sub(lambda found: f"]({place(found[1] or 'index')})", source[0])
    if not page.startswith("reference/checks/"):
        places = {rule.id: place(rule.id) for rule in RULES}
        text = "".join(part if part.startswith("```") else with_id_links(part, places) for part in _FENCE.split(text))
    source[0] = text


def _plain(app: Sphinx, what: str, name: str, object_: object, options: object, lines: list[str]) -> None:
    """Properties begin with an empty line: napoleon takes ``words: more words`` of a first one for a type."""
    if what in ("property", "attribute", "data") and lines:
        lines.insert(0, "")


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", _made)
    app.connect("autodoc-process-docstring", _plain, priority=400)  # before napoleon
    app.connect("source-read", _to_checks, priority=600)  # after links from elsewhere are relative to their page
    return {"parallel_read_safe": True, "parallel_write_safe": True}
