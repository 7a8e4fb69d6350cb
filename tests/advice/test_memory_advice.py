"""What is advised where memory runs out: the constraint that the memory capacity shows, and no other."""

from __future__ import annotations

import pytest
from sampleruns import sample

import gpudiag as gd
from gpudiag.simulation import Gpu
from tests.forecast.memoryruns import mixed_run


def advised(run: gd.Run, name: str) -> list[dict[str, object]]:
    document = gd.diagnose(run).to_dict()
    return [one for one in document["recommendations"] if one["id"] == name]


@pytest.mark.slow
def test_the_lines_are_those_of_the_capacity() -> None:
    run = sample("memory-exhaustion")
    one = gd.memory_capacity(run).needed_constraint()
    (found,) = advised(run, "memory-constraint")
    assert one is not None and one.n_refused
    assert found["changes"][0]["code"] == one.code == gd.memory_capacity(run).constraint(one.k).code  # type: ignore[index]
    assert found["changes"][0]["proposed"] == one.limit_mib  # type: ignore[index]
    assert f"refused {one.n_refused} of {one.n} trials" in str(found["assumption"])


@pytest.mark.slow
def test_where_no_trial_can_be_told_apart_the_lines_limit_the_allocator() -> None:
    run = mixed_run(2, 3, keeps_memory=True, n_trials=60, gpus=(Gpu(mem_total_mib=20000),), oom=True).run
    assert gd.memory_capacity(run).reason
    (found,) = advised(run, "memory-constraint")
    code = str(found["changes"][0]["code"])  # type: ignore[index]
    assert "set_per_process_memory_fraction" in code and "estimate" not in code
    assert "what a trial takes is not known" in str(found["assumption"])
