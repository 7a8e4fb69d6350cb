"""What is to be done is about what holds the pauses, as far as the log says so."""

from __future__ import annotations

from typing import Any

import pytest

from gpudiag.measures.steps import StepsProfile
from gpudiag.rules.steps import (
    AT_MULTIPLES,
    EVALUATE_LESS,
    EVALUATE_ON_ALL,
    FIND_OUT,
    KEEP_WORKERS,
    SAVE_LESS,
    _remedy,
    steps_paused,
)
from gpudiag.rules.utilization import gpu_fluctuating, gpu_low_utilization
from tests.rules.small_profiles import profile, verdict


@pytest.mark.parametrize(
    ("stated", "remedy"),
    [
        ({"evaluations_s": 600.0}, EVALUATE_LESS),
        ({"checkpoints_s": 600.0}, SAVE_LESS),
        ({"evaluations_s": 300.0, "checkpoints_s": 300.0}, ""),
        ({"evaluations_s": 600.0, "evaluating_gpus": 8.0, "waiting_gpus": 0.0}, EVALUATE_LESS),
        ({"evaluations_s": 600.0, "evaluating_gpus": 1.0, "waiting_gpus": 7.0}, EVALUATE_ON_ALL),
        ({"evaluations_s": 6.0, "unnamed_s": 1140.0}, FIND_OUT),  # of 19 of 20 pauses the log says nothing
        ({"checkpoints_s": 6.0, "unnamed_s": 1140.0, "unnamed_between_epochs_s": 500.0}, FIND_OUT),
        ({"unnamed_s": 1146.0, "unnamed_between_epochs_s": 700.0}, KEEP_WORKERS),
        ({"evaluations_s": 480.0, "checkpoints_s": 166.0, "unnamed_s": 500.0}, FIND_OUT),  # the largest of three
        ({"evaluations_s": 520.0, "checkpoints_s": 126.0, "unnamed_s": 500.0}, ""),
        ({"evaluations_s": 90.0, "unnamed_s": 478.0, "n_unnamed_every": 20.0}, AT_MULTIPLES),
    ],
)
def test_the_remedy_names_what_holds_most_of_the_pauses(stated: dict[str, float], remedy: str) -> None:
    none = {"evaluations_s": 0.0, "checkpoints_s": 0.0, "unnamed_s": 0.0, "unnamed_between_epochs_s": 0.0}
    assert _remedy(profile(StepsProfile, pauses_s=1146.0, n_pauses=20, **{**none, **stated})) == remedy


def test_pauses_every_so_many_steps_may_be_those_of_epochs_that_the_log_does_not_count() -> None:
    assert "steps in an epoch" in AT_MULTIPLES and "persistent_workers=True" in AT_MULTIPLES
    assert max(len(sentence.split()) for sentence in AT_MULTIPLES.split(". ")) <= 30


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"evaluating_gpus": 1.0, "waiting_gpus": 3.0}, "10 min of it (1 GPU worked while 3 GPUs waited)."),
        ({"evaluating_gpus": 4.0, "waiting_gpus": 0.0}, "10 min of it."),
        ({"unnamed_between_epochs_s": 700.0, "evaluations_s": 0.0}, "in 20 pauses, mostly where epochs begin. The"),
        ({"unnamed_s": 700.0}, "10 min of it. The log does not name 11 min 40 s of it."),
        ({"unnamed_s": 700.0, "n_unnamed_every": 20.0}, "11 min 40 s of it, which came every 20 steps."),
    ],
)
def test_the_sentence_says_where_and_for_whom(stated: dict[str, Any], said: str) -> None:
    longest = profile(StepsProfile).pauses.reindex([0]).assign(paused_s=60.0, after_step=50, behind=False)
    known = {"pauses_s": 1146.0, "pauses_pct": 30.0, "n_pauses": 20, "pauses": longest, "evaluations_low_s": 600.0}
    made = verdict(steps_paused, profile(StepsProfile, **{**known, "evaluations_s": 600.0, **stated}))
    assert said in made.summary


def test_pauses_explain_what_they_look_like_from_the_gpu() -> None:
    assert "steps-paused" in gpu_fluctuating.explained_by and "steps-paused" in gpu_low_utilization.explained_by
