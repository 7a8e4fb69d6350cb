"""No recommendation saves more GPU-hours than the finding that it answers cost."""

from __future__ import annotations

import pytest
from sampleruns import diagnosed

from gpudiag.advice.steps import LESS_WORK

SAMPLES = ("slow-rank", "memory-exhaustion", "hpo-aggressive-pruning", "starved-input-pipeline/before")


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_no_more_is_saved_than_was_lost(name: str) -> None:
    d = diagnosed(name)
    cost = {one.rule: one.lost_gpu_h for one in d.findings if one.lost_gpu_h is not None}
    for one in d.recommendations:
        answered = [cost[rule] for rule in one.rules if rule in cost]
        if one.gain is not None and one.gain.unit == "GPU-h" and answered and LESS_WORK not in one.assumption:
            assert one.gain.high <= max(answered) * (1 + 1e-9), one.id
