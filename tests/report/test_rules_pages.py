from __future__ import annotations

from pathlib import Path

from gpudiag.report.check_page import rules_markdown
from gpudiag.rules import RULES


def test_the_catalogue_in_docs_is_what_the_code_says(root: Path) -> None:
    written = (root / "docs" / "rules.md").read_text(encoding="utf-8")
    assert written.rstrip() == rules_markdown(RULES).rstrip(), "docs/rules.md is stale; run: make docs-texts"
