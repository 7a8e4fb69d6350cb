"""What to do, as sections show it."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from sampleruns import diagnosed

import gpudiag as gd
from gpudiag.advice._engine.proposal import Gain
from gpudiag.diagnosis import diagnose
from gpudiag.report._render.blocks import Folded, Note, Number, RecommendationBlock, TableBlock
from gpudiag.report._sections.advice import advice
from gpudiag.report.document import CombinedEntry
from gpudiag.report.kinds.recommendations import TEST_FIRST, code_of, gain, together
from gpudiag.run import Run
from gpudiag.simulation.trainings.spec import Between, LoaderSpec, TrainingSpec
from gpudiag.simulation.trainings.training import simulate_training
from gpudiag.simulation.trainings.world import train


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (None, TEST_FIRST),
        (Gain(1.0, 1.19), "up to 1.19× faster"),
        (Gain(1.0, 1.25), "up to 1.25× faster"),
        (Gain(1.0, 1.2547), "up to 1.26× faster"),
        (Gain(1.0, 1.0099), "no speed-up"),
        (Gain(0.599, 1.0577), "0.59–1.06× as fast"),
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


@pytest.mark.parametrize(
    ("low", "high", "parts", "said"),
    [
        (1.0, 1.0, [Gain(0.0, 0.27, "GPU-h", "evaluation")], ""),
        (1.0, 1.0, [Gain(1.0, 1.0), Gain(0.0, 0.27, "GPU-h", "evaluation")], ""),
        (1.0, 1.0, [None], ""),
        (1.0, 1.0, [Gain(1.0, 1.0), Gain(-0.5, 0.0, "GPU-h")], "no speed-up"),
        (1.0, 1.2, [Gain(1.0, 1.2), Gain(0.0, 0.27, "GPU-h", "evaluation")], "up to 1.2× faster"),
        (1.0, 1.2, [Gain(1.0, 1.2), None], "up to 1.2× faster, as far as gains are known"),
        (1.0, math.inf, [Gain(1.0, math.inf)], ""),
    ],
)
def test_no_speed_up_is_said_only_where_no_time_is_saved(
    low: float, high: float, parts: list[Gain | None], said: str
) -> None:
    assert together(low, high, parts) == said


@pytest.mark.parametrize(
    ("high", "said"),
    [(1.0, " Up to 0.47 GPU-h of this run"), (1.2, " Together: up to 1.2× faster. Besides, up to 0.47 GPU-h of")],
)
@pytest.mark.slow
def test_a_plan_that_saves_gpu_time_is_not_without_effect(high: float, said: str) -> None:
    document = diagnosed("hpo-aggressive-pruning").document
    one = replace(document.recommendations[0], gain=Gain(0.0, 0.47, "GPU-h", "evaluation"))
    entry = replace(document.advice, plan=(one.id,), combined=CombinedEntry(1.0, high, "x", False), saved_gpu_h=0.47)
    (folded, *_) = advice(replace(document, recommendations=(one,), advice=entry))
    assert isinstance(folded, Folded) and isinstance(folded.blocks[0], Note)
    assert folded.blocks[0].text.startswith(f"In the plan: `{one.id}`.{said}")


@pytest.mark.slow
def test_what_a_plan_saves_and_speeds_up_is_one_number_with_known_truth(tmp_path: Path) -> None:
    """Faster loading and fewer pauses: the factor alone holds the first, the number with what is saved holds both."""
    spec = TrainingSpec(
        steps_per_epoch=300,
        loader=LoaderSpec(workers=2, batch_s=0.35),
        between=Between(checkpoint_every=100, checkpoint_s=6.0, evaluate_s=10.0),
    )
    run = gd.load_run(simulate_training(spec, seed=1).write(tmp_path))
    document = diagnose(run).document
    assert {"loader-workers", "save-in-background", "evaluate-less"} <= set(document.advice.plan)
    after = replace(
        spec,
        loader=replace(spec.loader, workers=4),
        between=replace(spec.between, checkpoint_s=0.0, evaluate_s=5.0),
    )
    true = train(spec, 1).end_s / train(after, 1).end_s
    (folded,) = advice(document)
    assert isinstance(folded, Folded) and isinstance(folded.blocks[0], Note) and document.advice.combined is not None
    told = re.search(r"again: with that, up to ([0-9.]+)× faster\.", folded.blocks[0].text)
    assert told is not None and document.advice.combined.high < true <= float(told[1]) < 1.5 * true


def test_nothing_to_do_is_one_line() -> None:
    known = replace(diagnose(Run()).document, recommendations=())
    for level, said in (("note", 1), ("ok", 0), ("unknown", 0)):  # it stands at the top, or nobody can know
        told = advice(replace(known, headline=replace(known.headline, level=level)))
        assert len(told) == said
        assert all(isinstance(one, Note) and one.text.startswith("Nothing needs to be changed") for one in told)


@pytest.mark.slow
def test_options_stand_in_the_order_of_their_cards(samples: Path) -> None:
    document = diagnosed("hpo-aggressive-pruning").document
    (folded,) = advice(document)
    assert isinstance(folded, Folded)
    blocks = folded.blocks
    (table,) = [block for block in blocks if isinstance(block, TableBlock)]
    own = [row for row in table.rows if str(getattr(row[0], "id", "")).startswith("remedy-")]
    assert own and all(row[1:4] == (Number("general advice"), "–", "–") for row in own)
    (row,) = [row for row in table.rows if getattr(row[0], "id", "") == "loader-workers"]
    gain, safety, apply, change = row[1:]
    assert (gain, safety) == (Number(TEST_FIRST), "safe, test first")
    assert (apply, change) == ("next run", "num_workers: 2 → 3")
    (card,) = [block for block in blocks if isinstance(block, RecommendationBlock) and block.id == "loader-workers"]
    assert "memory of the fullest GPU 76 %" in dict(card.notes)["Predicted for after the change"]
    cards = [block.id for block in blocks if isinstance(block, RecommendationBlock)]
    assert cards == [one.id for one in document.recommendations] == [getattr(row[0], "id", "") for row in table.rows]


@pytest.mark.slow
def test_lines_that_only_repeat_the_advice_are_no_code() -> None:
    given = diagnosed("hpo-aggressive-pruning").document.recommendations
    own = [one for one in given if one.is_the_rules_own]
    assert own and all(code_of(one) == "" for one in own)
    assert all(code_of(one) for one in given if one not in own) and code_of(None) == ""


def test_a_plan_names_the_price_of_what_costs_more_than_it_saves() -> None:
    document = diagnosed("hpo-aggressive-pruning").document
    assert document.advice.plan[0] == "pruning-control" and len(document.advice.plan) > 1
    (price,) = [one.gain for one in document.recommendations if one.id == "pruning-control"]
    (folded,) = advice(document)
    assert isinstance(folded, Folded) and isinstance(folded.blocks[0], Note)
    assert price is not None and price.low < -document.advice.saved_gpu_h
    assert folded.blocks[0].text.endswith(f" `pruning-control` costs up to {-price.low:.2g} GPU-h.")
