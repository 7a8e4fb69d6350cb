from __future__ import annotations

from pathlib import Path

from gpudiag.report.rules import rule_text, rules_markdown
from gpudiag.rules import RULES


def test_the_catalogue_in_docs_is_what_the_code_says(root: Path) -> None:
    written = (root / "docs" / "rules.md").read_text(encoding="utf-8")
    assert written.rstrip() == rules_markdown(RULES).rstrip(), "docs/rules.md is stale; run: make docs-texts"


def test_every_rule_is_explained_with_its_limits_and_remedy() -> None:
    for rule in RULES:
        text = " ".join(rule_text(rule).split())
        assert " ".join(rule.why.split()) in text and "What to do: " in text
        assert all(f"{rule.id}.{name} = " in text for name in rule.thresholds)
