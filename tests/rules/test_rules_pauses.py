"""What is to be done less often is what holds the pauses, as far as the log says so."""

from __future__ import annotations

import pytest

from gpudiag.measures.steps import StepsProfile
from gpudiag.rules.steps import EVALUATE_LESS, SAVE_LESS, _less_of
from tests.rules.small_profiles import profile


@pytest.mark.parametrize(
    ("evaluations_s", "checkpoints_s", "remedy"),
    [
        (600.0, 0.0, EVALUATE_LESS),
        (0.0, 600.0, SAVE_LESS),
        (6.0, 0.0, ""),  # of 19 of 20 pauses the log says nothing
        (0.0, 6.0, ""),
        (300.0, 300.0, ""),
    ],
)
def test_the_remedy_names_what_holds_half_of_the_pauses(
    evaluations_s: float, checkpoints_s: float, remedy: str
) -> None:
    stated = {"evaluations_s": evaluations_s, "checkpoints_s": checkpoints_s}
    assert _less_of(profile(StepsProfile, pauses_s=1146.0, n_pauses=20, **stated)) == remedy
