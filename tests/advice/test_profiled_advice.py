"""What is advised for profiled steps: which finding brings which change, its gain, and what must have fallen."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from gpudiag.advice._engine.remedy import Remedy
from gpudiag.advice.profiled import compare_ranks, hide_communication, keep_buffers, read_less_often
from gpudiag.measures.profiled import ProfiledProfile
from tests.advice.situations import HALF, Told, checks, gain_of, situation
from tests.rules.small_profiles import profile


def profiled(**stated: Any) -> ProfiledProfile:
    made: ProfiledProfile = profile(ProfiledProfile, **stated)
    return made


@pytest.mark.parametrize(
    ("change", "rule", "check"),
    [
        (read_less_often, "steps-blocked", ("profiled.sync_pct", "<", 5.0)),
        (keep_buffers, "steps-allocation", ("profiled.memory_pct", "<", 5.0)),
        (hide_communication, "steps-communication", ("profiled.communication_pct", "<", 10.0)),
    ],
)
def test_a_change_answers_its_finding_but_not_where_trees_are_boosted(
    change: Remedy, rule: str, check: tuple[str, str, float]
) -> None:
    made = change.propose(situation(profiled(), rules=(rule,), bounds=HALF))
    assert checks(made) == [check]
    assert change.propose(situation(profiled(), rules=("rank-behind",), bounds=HALF)) is None
    trees = Told()
    trees.run.trials = pd.DataFrame({"params.num_leaves": [31]})
    assert change.propose(situation(profiled(), rules=(rule,), bounds=HALF, analysis=trees)) is None


@pytest.mark.parametrize(("late_gpu_h", "gain"), [(8.0, (0.0, 8.0, "GPU-h", "ranks")), (0.0, None), (math.nan, None)])
def test_without_the_late_rank_all_ranks_are_done_sooner(
    late_gpu_h: float, gain: tuple[float, float, str, str] | None
) -> None:
    seen = profiled(late_gpu_h=late_gpu_h, communication_high_pct=44.0)
    made = compare_ranks.propose(situation(seen, rules=("rank-behind",)))
    assert gain_of(made) == gain
    assert checks(made) == [("profiled.communication_low_pct", ">=", 34.0)], "within 10 points of the others"
    assert compare_ranks.propose(situation(seen, rules=("steps-communication",))) is None
