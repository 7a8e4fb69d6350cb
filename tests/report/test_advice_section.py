"""What to do, as sections show it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from sampleruns import diagnosed

from gpudiag.advice._engine.proposal import Gain
from gpudiag.diagnosis import diagnose
from gpudiag.report._render.blocks import Folded, Note, Number, RecommendationBlock, TableBlock
from gpudiag.report._sections.advice import advice
from gpudiag.report.kinds.recommendations import TEST_FIRST, gain
from gpudiag.run import Run


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (None, TEST_FIRST),
        (Gain(1.0, 1.19), "up to 1.2× faster"),
        (Gain(1.2, 1.5), "1.2–1.5× faster"),
        (Gain(0.5, 1.04), "0.5–1.04× as fast"),
        (Gain(1.0, 3.0), "up to 3× faster"),
        (Gain(1.0, 3.1), TEST_FIRST),
        (Gain(0.02, 0.07, "GPU-h"), TEST_FIRST),
        (Gain(0.0, 0.0, "GPU-h"), "no GPU time to save"),
        (Gain(1.0, math.inf), TEST_FIRST),
        (Gain(1.0, 1.0), "no speed-up"),
        (Gain(0.0, 0.13, "GPU-h"), "saves up to 0.13 GPU-h"),
        (Gain(-0.28, 0.0, "GPU-h"), "costs up to 0.28 GPU-h"),
        (Gain(-43.1, 0.11, "GPU-h"), TEST_FIRST),
    ],
)
def test_gains_in_words(interval: Gain | None, text: str) -> None:
    assert gain(interval) == text


def test_nothing_to_do_is_one_line() -> None:
    (note,) = advice(diagnose(Run()).document)
    assert isinstance(note, Note) and note.text.startswith("Nothing needs to be changed")


def test_options_by_safety_and_cards_by_rank(samples: Path) -> None:
    document = diagnosed("hpo-aggressive-pruning").document
    (folded,) = advice(document)
    assert isinstance(folded, Folded)
    blocks = folded.blocks
    (table,) = [block for block in blocks if isinstance(block, TableBlock)]
    tiers = [str(row[2]).partition("tier ")[2][0] for row in table.rows]
    assert tiers == sorted(tiers)
    (row,) = [row for row in table.rows if getattr(row[0], "id", "") == "loader-workers"]
    gain, safety, apply, change = row[1:]
    assert (gain, safety) == (Number(TEST_FIRST), "safe (tier 1), test first")
    assert (apply, change) == ("next study", "num_workers: 2 → 3")
    (card,) = [block for block in blocks if isinstance(block, RecommendationBlock) and block.id == "loader-workers"]
    assert "memory of the fullest GPU 76 %" in dict(card.notes)["Predicted for after the change"]
    cards = [block.id for block in blocks if isinstance(block, RecommendationBlock)]
    assert cards == [one.id for one in document.recommendations]
