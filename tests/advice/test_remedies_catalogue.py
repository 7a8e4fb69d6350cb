"""Every remedy is complete, answers rules that exist, and is in docs/remedies.md as the code says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudiag.advice import REMEDIES, TOPICS
from gpudiag.advice._engine.advise import EXCLUSIVE
from gpudiag.advice._engine.proposal import REVERSIBILITY, TIERS, WHEN
from gpudiag.advice._engine.remedy import Remedy
from gpudiag.report.remedies import remedies_markdown
from gpudiag.rules import RULES

PACKAGE = Path(__file__).resolve().parents[2] / "gpudiag" / "advice"
FRAMEWORK = {
    "__init__",
    "capacity",
    "card",
    "recommendation",
    "corrections",
    "engine",
    "export",
    "gains",
    "plan",
    "ranking",
    "remedy",
    "resources",
    "situation",
}
IDS = [item.id for item in REMEDIES]


def test_every_topic_file_is_listed() -> None:
    files = {path.stem for path in PACKAGE.glob("*.py")} - FRAMEWORK
    assert files == {topic.__name__.rpartition(".")[2] for topic in TOPICS}


def test_ids_are_unique_and_what_excludes_each_other_exists() -> None:
    assert len(IDS) == len(set(IDS)) >= 20
    assert {name for group in EXCLUSIVE for name in group} <= set(IDS)


@pytest.mark.parametrize("item", REMEDIES, ids=IDS)
def test_a_remedy_is_complete(item: Remedy) -> None:
    known = {rule.id for rule in RULES}
    assert set(item.answers) <= known, f"no such rule: {set(item.answers) - known}"
    assert item.answers or item.fills_idle
    assert len(set(item.answers)) == len(item.answers)
    assert 0 <= item.tier < len(TIERS) == len(REVERSIBILITY) and item.apply in WHEN
    assert item.safety in ("safe", "moderate", "risky")
    assert item.title and item.docstring and item.pros and item.effort
    assert item.tier == 0 or (item.refute and item.rollback)
    assert item.tier < 2 or item.cons


def test_safer_tiers_can_be_taken_back_at_least_as_well() -> None:
    assert list(REVERSIBILITY) == sorted(REVERSIBILITY, reverse=True)


def test_what_changes_results_says_so() -> None:
    assert "results change" in TIERS[2][1]


def test_docs_remedies_md_is_current(root: Path) -> None:
    text = (root / "docs" / "remedies.md").read_text(encoding="utf-8")
    assert text == remedies_markdown(), "stale: run make docs-texts"
