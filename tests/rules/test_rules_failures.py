"""What is advised for trials that failed: fewer at once only where more than one shared the GPU."""

from __future__ import annotations

import pandas as pd
import pytest
from small_profiles import profile, verdict

from gpudiag.measures.failures import FailuresProfile
from gpudiag.rules.failures import failures_after_full_memory, failures_out_of_memory


def failures(alone: list[bool]) -> FailuresProfile:
    rows = pd.DataFrame({"trial": range(len(alone)), "name": "a", "kind": "oom", "follows": False, "alone": alone})
    kinds = pd.DataFrame({"kind": ["oom"], "n": [len(alone)], "n_events": [0]})
    seen = {"n_fail": len(alone), "n_told": len(alone), "p_memory": 0.001, "fail_before_pct": 97.0}
    return profile(FailuresProfile, failures=rows, by_kind=kinds, **seen)


@pytest.mark.parametrize("alone", [[True] * 3, [True, False, True], [False] * 3])
def test_fewer_at_once_is_no_advice_for_one_at_a_time(alone: list[bool]) -> None:
    for rule in (failures_out_of_memory, failures_after_full_memory):
        remedy = verdict(rule, failures(alone)).remedy
        assert ("fewer trials at once" in remedy.lower()) is not all(alone)
        assert ("had their GPU to themselves" in remedy) is all(alone) and "parameters that take memory" in remedy
