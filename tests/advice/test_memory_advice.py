"""What is advised where memory runs out: the constraint that the memory capacity shows, and no other."""

from __future__ import annotations

import optuna
import pytest
from sampleruns import diagnosed, sample

import gpudiag as gd
from gpudiag.advice._engine.gains import GainBounds
from gpudiag.advice.memory import leave_out
from gpudiag.measures.failure_rates import FailureRatesProfile
from gpudiag.simulation import Gpu
from gpudiag.statement import Statement
from tests.advice.situations import gain_of, situation
from tests.forecast.memoryruns import mixed_run
from tests.rules.small_profiles import profile


def advised(diagnosis: gd.Diagnosis, name: str) -> list[dict[str, object]]:
    return [one for one in diagnosis.to_dict()["recommendations"] if one["id"] == name]


@pytest.mark.slow
def test_the_lines_are_those_of_the_capacity() -> None:
    run = sample("memory-exhaustion")
    one = gd.memory_capacity(run).needed_constraint()
    (found,) = advised(diagnosed("memory-exhaustion"), "memory-constraint")
    assert one is not None and one.n_refused
    assert found["changes"][0]["code"] == one.code == gd.memory_capacity(run).constraint(one.k).code  # type: ignore[index]
    assert found["changes"][0]["proposed"] == one.limit_mib  # type: ignore[index]
    assert f"refused {one.n_refused} of {one.n} trials" in str(found["assumption"])


@pytest.mark.slow
def test_where_no_trial_can_be_told_apart_the_lines_limit_the_allocator() -> None:
    run = mixed_run(2, 3, keeps_memory=True, n_trials=60, gpus=(Gpu(mem_total_mib=20000),), oom=True).run
    assert gd.memory_capacity(run).reason
    (found,) = advised(gd.diagnose(run), "memory-constraint")
    code = str(found["changes"][0]["code"])  # type: ignore[index]
    assert "set_per_process_memory_fraction" in code and "estimate" not in code
    assert "what a trial takes is not known" in str(found["assumption"])


def told(condition: Statement, with_it: int, n: int = 14, well: int = 0) -> FailureRatesProfile:
    counts = {"n_oom_with": with_it, "n_oom_compared": n, "n_well_with": well, "n_well_compared": 45}
    return profile(FailureRatesProfile, condition=condition, **counts)


@pytest.mark.parametrize(
    ("condition", "params", "others"),
    [
        (Statement("{name} ≥ {least}", name="bs", least=128.0), {"bs": 128}, {"bs": 64}),
        (Statement("{name} ≤ {most}", name="n", most=4.0), {"n": 4}, {"n": 5}),
        (Statement("{name} = {text}", name="model", text="large"), {"model": "large"}, {"model": "it's"}),
    ],
)
def test_what_runs_out_of_memory_is_left_out_of_the_search(
    condition: Statement, params: dict[str, object], others: dict[str, object]
) -> None:
    bounds = GainBounds(lost_gpu_h={"failures": 1.4, "abandoned": 0.0}, trial_gpu_h=10.0)
    now = situation(told(condition, 14), rules=("failures-share-parameter",), bounds=bounds)
    made = leave_out.propose(now)
    assert made is not None and gain_of(made) == (0.0, pytest.approx(1.4), "GPU-h", "failures")
    lines = [line[1:] for line in made.changes[0].code.splitlines() if line[0] in "+ "]
    space: dict[str, object] = {"optuna": optuna}
    exec("\n".join(lines), space)
    with pytest.raises(optuna.TrialPruned):
        space["objective"](_Trial(params))  # type: ignore[operator]
    space["objective"](_Trial(others))  # type: ignore[operator]


class _Trial:
    def __init__(self, params: dict[str, object]) -> None:
        self.params = params


@pytest.mark.parametrize(("with_it", "well"), [(7, 0), (14, 14), (5, 0)])
def test_a_value_that_most_of_them_lack_or_that_others_share_is_left_in(with_it: int, well: int) -> None:
    held = told(Statement("{name} ≥ {least}", name="bs", least=128.0), with_it, well=well)
    assert leave_out.propose(situation(held, rules=("failures-share-parameter",))) is None
    assert leave_out.propose(situation(told(held.condition, 14))) is None, "the rule did not find it"
