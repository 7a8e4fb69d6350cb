"""What to do, as sections show it."""

from __future__ import annotations

from pathlib import Path

import pytest
from sampleruns import diagnosed

from gpudiag.advice._engine.proposal import Gain
from gpudiag.diagnosis import diagnose
from gpudiag.report._render.blocks import Note, Number, RecommendationBlock, TableBlock
from gpudiag.report._sections.advice import advice, gain
from gpudiag.run import Run


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (None, "–"),
        (Gain(1.0, 1.19), "1–1.2×"),
        (Gain(1.0, 1.0), "no speed-up"),
        (Gain(0.0, 0.13, "GPU-h"), "0–0.13 GPU-h"),
        (Gain(-0.28, 0.0, "GPU-h"), "no speed-up, costs up to 0.28 GPU-h"),
        (
            Gain(-43.1, 0.11, "GPU-h"),
            "no speed-up, costs up to 43 GPU-h, or saves up to 0.11 GPU-h",
        ),
    ],
)
def test_gains_in_words(interval: Gain | None, text: str) -> None:
    assert gain(interval) == text


def test_nothing_to_do_is_one_line() -> None:
    (note,) = advice(diagnose(Run()).document)
    assert isinstance(note, Note) and note.text.startswith("Nothing needs to be changed")


def test_options_by_safety_and_cards_by_rank(samples: Path) -> None:
    document = diagnosed("hpo-aggressive-pruning").document
    blocks = advice(document)
    (table,) = [block for block in blocks if isinstance(block, TableBlock)]
    tiers = [str(row[2]).partition("tier ")[2][0] for row in table.rows]
    assert tiers == sorted(tiers)
    (row,) = [row for row in table.rows if getattr(row[0], "id", "") == "loader-workers"]
    gain, safety, apply, change = row[1:]
    assert (gain, safety) == (Number("1–1.2×"), "safe (tier 1), verify first")
    assert (apply, change) == ("next study", "DataLoader num_workers: 2 → 3")
    (card,) = [block for block in blocks if isinstance(block, RecommendationBlock) and block.id == "loader-workers"]
    assert "memory of the fullest GPU 76 %" in dict(card.notes)["Predicted for after the change"]
    cards = [block.id for block in blocks if isinstance(block, RecommendationBlock)]
    assert cards == [one.id for one in document.recommendations]
