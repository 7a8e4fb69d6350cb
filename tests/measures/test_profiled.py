"""Profiled steps as facts: means over GPUs, the rank that others wait for, and what they cost the run."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from smallruns import gpu, run, steps_of
from test_causes import LINES, profiled, training

import gpudiag as gd
from gpudiag.advice._engine.gains import without_causes
from gpudiag.errors import NotGiven
from gpudiag.measures.causes import measure_causes
from gpudiag.measures.profiled import measure_profiled
from gpudiag.run import Run
from gpudiag.schema import PROFILED, conform
from gpudiag.simulation.trainings.spec import Between, LoaderSpec, ProfilerSpec, StepSpec, TrainingSpec
from gpudiag.simulation.trainings.training import simulate_training


def traces(*shares: dict[str, float], **about: list[object]) -> pd.DataFrame:
    made = [profiled(1.0, **one).assign(path=f"{rank}.json", rank=rank) for rank, one in enumerate(shares)]
    return conform(pd.concat(made, ignore_index=True).assign(**about), PROFILED)


def test_a_run_without_a_trace_is_not_asked() -> None:
    with pytest.raises(NotGiven):
        measure_profiled(run(gpu=gpu(range(60), util_pct=50.0)))


def test_shares_are_means_over_the_gpus_that_were_profiled() -> None:
    p = measure_profiled(
        Run(profiled=traces({"data_pct": 10.0, "setup_pct": 4.0}, {"data_pct": 30.0, "copy_pct": 6.0}))
    )
    assert (p.n_traces, p.n_gpus, p.n_profiled_steps) == (2, 2, 10)
    assert p.data_pct == pytest.approx(20) and p.copy_pct == pytest.approx(3) and p.memory_pct == pytest.approx(2)
    assert p.profiled_idle_pct == pytest.approx((14 + 30) / 2)
    assert not p.stands_for_run and math.isnan(p.data_gpu_h)


def test_the_rank_with_least_communication_is_late() -> None:
    table = traces({"communication_pct": 30.0}, {"communication_pct": 4.0}, {"communication_pct": 28.0})
    table["communication_total_pct"] = [40.0, 9.0, 36.0]
    p = measure_profiled(Run(profiled=table))
    assert (p.late_rank, p.communication_low_pct, p.communication_high_pct) == (1, 9.0, 40.0)
    assert p.behind_pct == pytest.approx(25.0) and math.isnan(p.behind_gpu_h), "no log says how long its steps took"


@pytest.mark.slow
@pytest.mark.parametrize(("pace", "seed"), [((1.0, 1.0, 1.3, 1.0), 91), ((1.0, 1.5), 92), ((1.0, 1.0, 1.0), 93)])
def test_what_waiting_for_a_rank_costs_is_what_it_truly_costs(
    pace: tuple[float, ...], seed: int, tmp_path: Path
) -> None:
    """The truth: how long each rank was in collectives beyond the one that comes last to them."""
    spec = TrainingSpec(
        epochs=2, steps_per_epoch=500, pace=pace, profiler=ProfilerSpec(), loader=LoaderSpec(batch_s=0.1),
        step=StepSpec(communication_s=0.01), between=Between(evaluate_s=20.0),
    )  # fmt: skip
    made = simulate_training(spec, seed=seed)
    talked_s = made.talked_s()
    waited_h = sum(seconds - min(talked_s) for seconds in talked_s) / 3600
    p = measure_profiled(gd.load_run(made.write(tmp_path)))
    assert p.stands_for_run and p.behind_gpu_h == pytest.approx(waited_h, rel=0.06, abs=0.003)
    # What n - 1 of them waited, the late one did as well, at work: at their pace it is done as much sooner.
    assert p.late_gpu_h == pytest.approx(waited_h * len(pace) / (len(pace) - 1), rel=0.06, abs=0.004)
    assert len(set(pace)) == 1 or p.late_rank == pace.index(max(pace))


@pytest.mark.parametrize("ranks", [[0, 0, 0], [pd.NA, pd.NA, pd.NA]])
def test_without_ranks_nobody_is_late(ranks: list[object]) -> None:
    table = traces({"communication_pct": 30.0}, {"communication_pct": 4.0}, {"communication_pct": 28.0})
    p = measure_profiled(Run(profiled=conform(table.assign(rank=pd.array(ranks, dtype="Int64")), PROFILED)))
    assert math.isnan(p.late_rank) and str(p.n_ranks) == ("1.0" if ranks[0] is not pd.NA else "nan")


@pytest.mark.parametrize(("step_s", "idle_pct", "unlike"), [(1.0, 50.0, False), (2.0, 75.0, True), (1.0, 10.0, True)])
def test_steps_of_another_length_or_other_kernels_are_not_like_the_run(
    step_s: float, idle_pct: float, unlike: bool
) -> None:
    what = run(gpu=training(50.0), steps=steps_of(LINES, step_s=1.0))
    p = measure_profiled(replace(what, profiled=profiled(step_s, data_pct=idle_pct)))
    assert (p.unlike_run, p.stands_for_run) == (unlike, not unlike)
    assert not measure_profiled(Run(profiled=profiled(step_s, data_pct=idle_pct))).unlike_run, "nothing to compare with"


def test_what_it_cost_the_run_is_that_of_the_causes() -> None:
    what = run(gpu=training(50.0), steps=steps_of(LINES, step_s=1.0))
    like = replace(what, profiled=profiled(1.0, operator_pct=30.0, other_pct=20.0))
    p, causes = measure_profiled(like), measure_causes(like)
    assert p.stands_for_run
    assert p.launch_gpu_h == pytest.approx(causes.by_cause.at["launch", "low_gpu_s"] / 3600)
    assert p.launch_gpu_h == pytest.approx(600 * 0.3 / 3600, rel=0.02) and p.sync_gpu_h == 0


def test_a_gain_is_bounded_by_the_most_that_was_waited() -> None:
    """Of 720 s observed, 600 are steps, a third of them at most waited for launches: without, 520 s are left."""
    what = run(gpu=training(50.0), steps=steps_of(LINES, step_s=1.0))
    causes = measure_causes(replace(what, profiled=profiled(1.0, operator_pct=100 / 3, other_pct=100 / 6)))
    found = {"causes": causes}
    assert without_causes(found, "launch") == pytest.approx(720 / 520, rel=0.02)
    assert without_causes(found, "launch", "host") == pytest.approx(720 / 420, rel=0.02)
    assert without_causes(found, "loader") == 1.0, "steps like the profiled ones do not wait for data"
    assert without_causes(found, "evaluation") == math.inf and without_causes({}, "launch") == math.inf
