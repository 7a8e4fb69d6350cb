"""The event loop: trials, workers and faults."""

from __future__ import annotations

import itertools
import math
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpudiag as gd
from gpudiag.errors import ConfigError
from gpudiag.simulation import Foreign, Gpu, ModelSpec, Simulated
from gpudiag.simulation.step_function import StepFunction

SMALL: dict[str, Any] = {"n_trials": 12, "epochs": 3, "epoch_s": (5.0, 9.0), "startup_s": (4.0, 8.0)}


def area(trace: list[tuple[float, float]]) -> float:
    """Integral of a step function that ends at 0, added up step by step."""
    return sum(value * (after - at) for (at, value), (after, _) in itertools.pairwise(trace))


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 1000),
    workers=st.integers(1, 5),
    sharing=st.sampled_from(["saturating", "overlapping"]),
    fail_rate=st.sampled_from([0.0, 0.4]),
)
def test_work_done_is_the_time_the_gpu_was_busy(seed: int, workers: int, sharing: Any, fail_rate: float) -> None:
    gpus = (Gpu(sharing=sharing),) * 2
    done = gd.simulate(seed=seed, workers=workers, gpus=gpus, fail_rate=fail_rate, abandoned_rate=0.1, **SMALL)
    for index in (0, 1):
        work = sum(life.work_s for life in done.history.lives if life.gpu == index)
        assert work == pytest.approx(area(done.history.busy[index]), abs=1e-6)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), workers=st.integers(1, 5), keeps=st.booleans())
def test_memory_returns_to_the_base_and_workers_never_overlap(seed: int, workers: int, keeps: bool) -> None:
    done = gd.simulate(
        seed=seed, workers=workers, keeps_memory=keeps, fail_rate=0.2, assert_rate=0.2, poisoned=1, **SMALL
    )
    assert done.history.used[0][-1][1] == pytest.approx(done.spec.gpus[0].base_mib, abs=1e-6)
    assert done.truth.peak <= workers
    for worker in range(workers):
        own = sorted((life.start_s, life.end_s) for life in done.history.lives if life.worker == worker)
        assert all(end < start for (_, end), (start, _) in itertools.pairwise(own))


def test_a_lone_trial_lasts_as_long_as_its_parts() -> None:
    lone: dict[str, Any] = {"n_trials": 1, "workers": 1, "models": (ModelSpec(),), "epochs": 4, "segments": 2}
    done = gd.simulate(startup_s=(10, 10), epoch_s=(20, 20), dip_s=(3, 3), tail_s=(5, 5), **lone)
    life = done.history.lives[0]
    assert life.end_s - life.start_s == pytest.approx(10 + 4 * 20 + 8 * 3 + 5)
    assert life.startup_end_s == pytest.approx(10.0)
    assert life.tail_start_s == pytest.approx(10 + 80 + 7 * 3)
    assert life.work_s == pytest.approx(80 * 0.45)
    assert [step for step, _, _ in life.reports] == [1, 2, 3, 4]


def test_the_same_trials_run_whatever_the_number_of_workers() -> None:
    few, many = (gd.simulate(seed=5, workers=workers, **SMALL) for workers in (1, 4))
    assert [life.params for life in few.history.lives] == [life.params for life in many.history.lives]
    assert few.truth.trials["work_gpu_s"].to_list() == pytest.approx(many.truth.trials["work_gpu_s"].to_list())
    assert many.truth.window_s < few.truth.window_s


def test_growth_beyond_the_memory_fails_the_trial_that_grows() -> None:
    gpu = Gpu(mem_total_mib=6000, base_mib=0)
    done = gd.simulate(seed=1, gpus=(gpu,), n_trials=30, models=(ModelSpec(fixed_mib=1500.0, per_sample_mib=8.0),))
    failed = done.run.trials[done.run.trials["state"] == "FAIL"]
    assert 0 < len(failed) < 30
    assert failed["detail"].str.contains("CUDA out of memory").all()
    assert max(level for _, level in done.history.used[0]) <= 6000
    assert done.run.gpu["mem_used_mib"].max() <= 6000
    roomy = gd.simulate(seed=1, gpus=(gpu,), n_trials=30, oom=False)
    assert not (roomy.run.trials["state"] == "FAIL").any()


def test_an_assert_poisons_the_next_trials_of_its_worker() -> None:
    done = gd.simulate(
        seed=2, n_trials=60, assert_rate=0.1, poisoned=2, **{k: v for k, v in SMALL.items() if k != "n_trials"}
    )
    first = [life for life in done.history.lives if life.detail.endswith("triggered")]
    assert first
    for life in first:
        after = sorted(
            (other for other in done.history.lives if other.worker == life.worker and other.start_s > life.start_s),
            key=lambda other: other.start_s,
        )[:2]
        assert all(other.state == "FAIL" and "poisoned" in other.detail for other in after)
        assert all(other.end_s - other.start_s == pytest.approx(2.5) for other in after)


def test_an_orphan_stays_running_though_its_worker_died() -> None:
    done = gd.simulate(seed=3, n_trials=40, abandoned_rate=0.2, **{k: v for k, v in SMALL.items() if k != "n_trials"})
    running = done.run.trials[done.run.trials["state"] == "RUNNING"]
    assert 0 < len(running) < 40
    assert running["end"].isna().all()
    truth = done.truth.trials.set_index("trial").loc[running["trial"]]
    assert truth["end"].notna().all()
    assert done.truth.peak <= 4


def test_waiting_trials_never_start() -> None:
    done = gd.simulate(waiting=3, **SMALL)
    waiting = done.run.trials[done.run.trials["state"] == "WAITING"]
    assert waiting["trial"].to_list() == [12, 13, 14]
    assert waiting["start"].isna().all()


def test_fewer_workers_from_a_given_time_on() -> None:
    done = gd.simulate(seed=1, n_trials=60, workers=((0.0, 4), (600.0, 2)), epochs=5)
    longest = max(life.end_s - life.start_s for life in done.history.lives)
    starts = [life.start_s for life in done.history.lives if life.start_s > 600.0 + longest]
    assert starts
    for at in starts:
        assert sum(life.start_s <= at < life.end_s for life in done.history.lives) <= 2
    assert done.truth.peak == 4
    assert done.run.info.settings.parallel is None


def test_a_foreign_load_slows_the_trials_and_fills_memory() -> None:
    alone = gd.simulate(seed=4, **SMALL)
    load = Foreign(gpu=0, start_s=-50.0, end_s=5000.0, share_pct=80.0, mem_mib=3000.0)
    crowded = gd.simulate(seed=4, foreign=(load,), **SMALL)
    assert crowded.truth.window_s > 1.2 * alone.truth.window_s
    assert crowded.run.gpu["mem_used_mib"].min() >= 3000
    assert crowded.run.gpu["util_pct"].min() > 60


@pytest.mark.parametrize(
    ("assign", "used"), [("by_worker", {0, 1}), ("by_trial", {0, 1}), ("random", {0, 1}), (1, {1})]
)
def test_assignment_of_trials_to_gpus(assign: Any, used: set[int]) -> None:
    done = gd.simulate(seed=1, gpus=(Gpu(), Gpu()), assign=assign, **SMALL)
    assert {life.gpu for life in done.history.lives} == used
    if assign == "by_trial":
        assert all(life.gpu == life.number % 2 for life in done.history.lives)
    if assign == "by_worker":
        assert all(life.gpu == life.worker % 2 for life in done.history.lives)
    if assign == 1:
        assert done.run.gpu.loc[done.run.gpu["gpu"] == "0", "util_pct"].max() == 0


def test_a_caching_process_keeps_its_memory_between_trials() -> None:
    options: dict[str, Any] = SMALL | {"workers": 1, "models": (ModelSpec(),), "batch_sizes": (64,)}
    kept, freed = (gd.simulate(keeps_memory=keeps, **options) for keeps in (True, False))
    drops = [level for _, level in kept.history.used[0]]
    assert drops[:-1] == sorted(drops[:-1])
    assert sum(level == 350 for _, level in freed.history.used[0]) == 12


def test_curves_cross_only_where_asked() -> None:
    def rank_correlation(crossing: float) -> float:
        done = gd.simulate(seed=1, n_trials=60, epochs=30, crossing=crossing, noise=0.002, oom=False)
        values = np.array([[value for _, value, _ in life.reports] for life in done.history.lives])
        ranks = np.argsort(np.argsort(values[:, [0, -1]], axis=0), axis=0)
        return float(np.corrcoef(ranks.T)[0, 1])

    assert rank_correlation(0.0) > 0.95
    assert rank_correlation(1.0) < 0.0


def test_maximised_values_are_mirrored() -> None:
    down, up = (gd.simulate(seed=1, direction=d, **SMALL) for d in ("minimize", "maximize"))
    assert up.run.trials["value"].to_list() == pytest.approx((1 - down.run.trials["value"]).to_list())
    assert up.run.studies["directions"].to_list() == ["MAXIMIZE"]


def test_a_misspelt_field_is_named_with_its_neighbour() -> None:
    with pytest.raises(ConfigError, match="has no 'n_trails'; did you mean 'n_trials'"):
        gd.simulate(n_trails=3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_trials": 0}, "n_trials must be at least 1"),
        ({"workers": 0}, "workers must be at least 1"),
        ({"epochs": 0}, "epochs and segments"),
        ({"gpus": ()}, "at least one GPU"),
        ({"gpu_share_pct": (0, 20)}, "gpu_share_pct must be above 0"),
        ({"period_s": 0}, "period_s and window_s"),
        ({"assign": 3}, "must name one of the 1 GPUs"),
        ({"foreign": (Foreign(gpu=1),)}, "must name one of the 1 GPUs"),
    ],
)
def test_what_cannot_be_simulated_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        gd.simulate(**change)


@pytest.mark.slow
def test_a_long_study_is_simulated_in_seconds() -> None:
    begin = time.process_time()
    done = gd.simulate(n_trials=200, workers=4, epochs=11)
    assert done.truth.window_s > 6 * 3600
    assert time.process_time() - begin < 3


def test_steps_integrate_like_a_sum_of_rectangles() -> None:
    steps = StepFunction.of([(1.0, 2.0), (3.0, 0.5), (3.0, 1.0), (7.0, 0.0)], before=0.0)
    assert steps.mean(np.array([0.0]), np.array([8.0]))[0] == pytest.approx((2 * 2 + 1 * 4) / 8)
    assert steps.at(np.array([0.5, 1.0, 3.0, 9.0])).tolist() == [0.0, 2.0, 1.0, 0.0]
    assert math.isclose(float(steps.integral(np.array(5.0))), 6.0)


def test_the_default_run_is_a_simulated_study() -> None:
    done = gd.simulate()
    assert isinstance(done, Simulated)
    assert len(done.run.trials) == 40
    assert done.run.info.settings.parallel == 4


def test_the_pace_goes_from_trial_to_trial_as_asked() -> None:
    one = (ModelSpec(),)
    times: dict[str, Any] = {"startup_s": (1, 1), "tail_s": (1, 1), "dip_s": (0, 0), "epoch_s": (5, 5), "epochs": 2}
    run = gd.simulation.simulate(
        seed=4, n_trials=400, workers=1, models=one, period_s=60.0, pace_sd=0.2, pace_correlation=0.8, **times
    ).run
    seconds = (run.trials["end"] - run.trials["start"]).dt.total_seconds().to_numpy() - 2
    logs = np.log(seconds / 10)
    assert logs.std() == pytest.approx(0.2, rel=0.25)
    assert np.corrcoef(logs[1:], logs[:-1])[0, 1] == pytest.approx(0.8, abs=0.08)


def test_epochs_are_drawn_for_each_trial() -> None:
    made = gd.simulate(seed=2, n_trials=60, epochs=(3, 7))
    steps = made.run.reports.groupby("trial")["step"].max()
    assert set(steps) == {3, 4, 5, 6, 7}
    assert made.run.info.settings.max_steps == 7
    same = gd.simulate(seed=2, n_trials=60, epochs=5)
    assert (made.run.trials["params.model"] == same.run.trials["params.model"]).all(), "the other draws stay"


def test_memory_may_come_early_and_in_advance() -> None:
    """Of one trial with a start-up of 100 s: nothing until 20 s, then all that is reserved, which never changes."""
    made = gd.simulate(
        seed=2, n_trials=1, workers=1, startup_s=(100, 100), memory_at=0.2, context_at=0.2, reserved_mib=8000.0,
        gpus=(Gpu(base_mib=0),), period_s=1.0, window_s=1.0, oom=False,
    )  # fmt: skip
    start, end = made.run.trials.loc[0, ["start", "end"]]
    age = (made.run.gpu["time"] - start).dt.total_seconds()
    used = made.run.gpu["mem_used_mib"]
    assert (used[age < 19.5] == 0).all()
    assert (used[(age > 20.5) & (made.run.gpu["time"] < end)] == 8000).all()
    assert made.truth.trials.loc[0, "mem_peak_mib"] == 8000


def test_memory_may_grow_before_training_begins() -> None:
    early, late = (
        gd.simulate(seed=4, n_trials=1, workers=1, startup_s=(100, 100), memory_at=at, period_s=1.0).run
        for at in (0.3, 1.0)
    )
    age = (early.gpu["time"] - early.trials.loc[0, "start"]).dt.total_seconds()
    before = (age > 45) & (age < 99)
    assert (early.gpu["mem_used_mib"][before].to_numpy() > 1.5 * late.gpu["mem_used_mib"][before].to_numpy()).all()
    assert (early.gpu["util_pct"][before] == late.gpu["util_pct"][before]).all()


def test_a_night_without_workers() -> None:
    made = gd.simulate(seed=1, n_trials=60, workers=((0.0, 3), (600.0, 0), (8000.0, 3)), epochs=3)
    begun = (made.run.trials["start"] - made.run.trials["start"].min()).dt.total_seconds()
    assert not begun.between(601, 7999).any() and (begun >= 8000).any() and len(begun) == 60
