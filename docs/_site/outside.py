"""Links from docs/ to other files of the repository, which lead to the page of the site that holds them.

The texts in docs/ are read on GitHub as well, where ``../benchmarks/accuracy.md`` is a file. On the site that file is
the page of `PAGES` whose source is replaced by it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
PAGES = {
    "changelog": "CHANGELOG.md",
    "concepts/accuracy": "benchmarks/accuracy.md",
    "concepts/false-alarms": "benchmarks/rules.md",
    "concepts/speed": "benchmarks/README.md",
    "concepts/speed-fleet": "benchmarks/fleet.md",
    "concepts/speed-record": "benchmarks/record.md",
    "concepts/speed-traces": "benchmarks/traces.md",
    "concepts/speed-trials": "benchmarks/trials.md",
}
"""By page of the site the file that is its text."""
_PAGE_OF = {ROOT / file: DOCS / f"{page}.md" for page, file in PAGES.items()} | {
    ROOT / "benchmarks": DOCS / "concepts/speed.md"
}
_LINK = re.compile(r"\]\((?!\w+:|#|<)([^)#\s]+)(#[^)\s]*)?\)")


def _replaced(app: Sphinx, page: str, source: list[str]) -> None:
    """The source of a page, where it is a file of `PAGES` that file; links lead to pages of the site."""
    folder = (DOCS / page).parent
    written_in = folder
    if page in PAGES:
        file = ROOT / PAGES[page]
        source[0], written_in = file.read_text(encoding="utf-8"), file.parent
        app.env.note_dependency(str(file))

    def link(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(written_in / match[1]))
        if written_in == folder and target.is_relative_to(DOCS):
            return match[0]
        return f"]({os.path.relpath(_PAGE_OF.get(target, target), folder)}{match[2] or ''})"

    source[0] = _LINK.sub(link, source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", _replaced)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
