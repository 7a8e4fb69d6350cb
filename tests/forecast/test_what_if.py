"""Forecasts of runs whose truth is one more simulation, of the cases, and of data that do not suffice."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from documents import fits
from sampleruns import sample
from smallruns import gpu as gpu_of
from smallruns import run as run_of
from smallruns import trials as trials_of

import gpudiag as gd
from gpudiag.errors import ConfigError, NotMeasurable
from gpudiag.forecast.memory.net import rates_without_crashes
from gpudiag.forecast.parallelism import what_if
from gpudiag.forecast.parallelism.backtest import backtest
from gpudiag.forecast.parallelism.observed import observe
from gpudiag.forecast.parallelism.what_if import Forecast
from gpudiag.report._sections.forecast import SECTIONS, ForecastShow
from gpudiag.report.kinds.parallelism import startup
from gpudiag.schema import STEPS, conform
from gpudiag.simulation.spec import Gpu, Spec, override
from gpudiag.simulation.world import World

SPEC = override(
    Spec(),
    {"n_trials": 200, "workers": 4, "startup_s": (30.0, 50.0), "epochs": 8, "epoch_s": (6.0, 20.0),
     "gpu_share_pct": (45.0, 45.0), "gpus": (Gpu(sharing="overlapping"),)},
)  # fmt: skip


def true_rate(spec: Spec, workers: int, seed: int, trials: int = 400) -> float:
    """Trials per hour from start to start on each worker."""
    starts: dict[int, list[float]] = {}
    for life in World(override(spec, {"workers": workers, "n_trials": trials}), seed).run().lives:
        starts.setdefault(life.worker, []).append(life.start_s)
    cycles = [after - before for times in starts.values() for before, after in pairwise(sorted(times))]
    return 3600 * workers / float(np.mean(cycles))


def rates(run: gd.Run, parallel: list[int]) -> Forecast:
    """The forecast without that of memory, which takes as long again and changes no rate."""

    def not_asked(*given: object, **options: object) -> None:
        raise NotMeasurable("nobody asked")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(what_if, "memory_capacity", not_asked)
        return gd.what_if(run, parallel)


@pytest.fixture(scope="module")
def forecast() -> Forecast:
    return gd.what_if(gd.simulate(SPEC, seed=3).run, [1, 2, 3, 6, 8])


@pytest.fixture(scope="module")
def case_1(root: Path) -> Forecast:
    return gd.what_if(sample("hpo-aggressive-pruning"), [2, 4, 6])


@pytest.fixture(scope="module")
def case_4(root: Path) -> Forecast:
    return gd.what_if(sample("memory-exhaustion"), [2, 3, 4, 6])


@pytest.fixture(scope="module")
def root() -> Path:
    return Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(("k", "within_pct"), [(1, 10), (2, 6), (3, 5), (4, 5), (6, 10), (8, 15)])
def test_throughput_is_near_the_truth(forecast: Forecast, k: int, within_pct: float) -> None:
    truth = true_rate(SPEC, k, 77)
    rate = forecast.at(k).throughput
    assert rate.value == pytest.approx(truth, rel=within_pct / 100)
    assert rate.low <= truth <= rate.high


@pytest.mark.slow
def test_more_at_once_is_sub_linear_and_marked_as_extrapolation(forecast: Forecast) -> None:
    six = forecast.at(6)
    assert six.beyond and not forecast.at(4).beyond
    assert 1.0 < six.gain.value < 1.3
    assert six.throughput.value < 0.9 * forecast.rate.value * 6 / 4


@pytest.mark.slow
def test_every_value_lies_in_its_interval_and_bounds(forecast: Forecast) -> None:
    for scenario in forecast.parallel:
        for estimate in (scenario.throughput, scenario.complete, scenario.gain, scenario.util):
            assert estimate.low <= estimate.value <= estimate.high
        assert scenario.least <= scenario.throughput.low and scenario.throughput.high <= scenario.most


@pytest.mark.slow
def test_backtest_is_printed_and_passes_without_drift(forecast: Forecast) -> None:
    test = forecast.backtest
    assert test is not None and test.tested and test.passed and abs(test.error_pct) < 15
    assert "Back-test" in repr(forecast) and f"{test.error_pct:+.1f} %" in repr(forecast)


def test_the_present_number_is_always_there_and_gains_nothing(forecast: Forecast) -> None:
    assert forecast.now == 4
    assert forecast.at(4).gain.value == forecast.at(4).gain.low == forecast.at(4).gain.high == 1.0


@pytest.mark.slow
def test_the_same_run_gives_the_same_forecast() -> None:
    run = gd.simulate(SPEC, seed=8, n_trials=60).run
    assert gd.what_if(run, [2, 6]).to_json() == gd.what_if(run, [6, 2, 2]).to_json()


@pytest.mark.slow
def test_document_keeps_its_schema(forecast: Forecast, case_1: Forecast, case_4: Forecast) -> None:
    for made in (forecast, case_1, case_4):
        fits(json.loads(made.to_json()), "forecast-2")


def test_it_shows_itself_everywhere(forecast: Forecast) -> None:
    assert max(map(len, repr(forecast).splitlines())) <= 120
    assert "| At once |" in forecast._repr_markdown_() and "<table" in forecast._repr_html_()
    frame = forecast.to_frame()
    assert frame["k"].tolist() == [1, 2, 3, 4, 6, 8]
    assert (frame["throughput_trials_h_low"] <= frame["throughput_trials_h"]).all()
    assert "nan" not in (repr(forecast) + forecast.to_markdown()).lower().split()


@pytest.mark.slow
def test_time_left_counts_the_restart_and_when_it_pays() -> None:
    simulated = gd.simulate(SPEC, seed=4, n_trials=80)
    info = replace(simulated.run.info, settings=replace_settings(simulated.run.info.settings, n_trials=280))
    made = gd.what_if(replace(simulated.run, info=info), [6], restart_min=30)
    now, more = made.at(4), made.at(6)
    assert made.remaining_trials == 200
    assert now.left.value == pytest.approx(200 / now.throughput.value)
    assert more.left.value == pytest.approx(0.5 + 200 / more.throughput.value)
    pays = more.break_even_trials
    assert pays / now.throughput.value == pytest.approx(0.5 + pays / more.throughput.value)


def replace_settings(settings: Any, **changes: Any) -> Any:
    return settings.model_copy(update=changes)


@pytest.mark.slow
def test_startup_at_full_overlap_costs_little(case_1: Forecast) -> None:
    """Of four at once too few start-ups are seen to tell their share, but the GPU idles for a sixth of its time."""
    gain = case_1.startup
    assert np.isnan(gain.share_pct) and np.isnan(gain.alone_pct)
    assert 1 < gain.removed.high <= gain.most <= 1.21 and gain.removed.bounds_only
    assert "at most 1.2" in startup(case_1)


@pytest.mark.slow
def test_case_1_leaves_at_most_a_fifth_and_says_why_there_is_no_value(case_1: Forecast) -> None:
    six = case_1.at(6)
    assert six.bounds_only and six.gain.low == pytest.approx(0.92**2) and 1.18 < six.gain.high <= 1.21
    assert "half" in six.throughput.reason and "bounds only" in repr(case_1)
    test = case_1.backtest
    assert test is not None and not test.passed
    assert case_1.at(4).throughput.low <= test.measured <= case_1.at(4).throughput.high


@pytest.mark.slow
def test_case_4_is_sub_linear_and_tells_the_present_number(case_4: Forecast) -> None:
    two, three, four = (case_4.at(k).throughput for k in (2, 3, 4))
    assert case_4.now == 2 and not case_4.at(4).beyond and case_4.at(6).beyond
    assert 1 - two.value / three.value < 0.3, "less than the third that was assumed"
    assert 0.5 < two.value / four.value < 0.9
    per_day = {k: 24 * case_4.at(k).throughput.value for k in (2, 3, 4)}
    assert per_day[2] < per_day[3] < per_day[4] < 330


@pytest.mark.slow
def test_without_utilization_there_are_bounds() -> None:
    run = gd.simulate(SPEC, seed=5, n_trials=60).run
    blind = replace(run, gpu=run.gpu.drop(columns="util_pct"))
    made = gd.what_if(blind, [2, 8])
    assert all(s.bounds_only and "No GPU reports utilization" in s.throughput.reason for s in made.parallel)
    assert (made.at(8).gain.low, made.at(8).gain.high) == pytest.approx((0.92**4, 2.0))
    assert (made.at(2).gain.low, made.at(2).gain.high) == pytest.approx((0.5, 1 / 0.92**2))
    assert made.at(2).throughput.low <= true_rate(SPEC, 2, 78) <= made.at(2).throughput.high
    fits(json.loads(made.to_json()), "forecast-2")
    assert "No GPU reports utilization" in " ".join(repr(made).split())


@pytest.mark.slow
def test_memory_and_parallelism_say_the_same_of_a_study_that_drifts() -> None:
    """The second half does twice the work: the whole log fails its back-test, the last third, which the forecast is
    made of, passes.
    """
    first = gd.simulate(SPEC, seed=6, n_trials=80)
    longer = override(SPEC, {"n_trials": 60, "epoch_s": (20.0, 60.0), "start": "2025-10-25T03:00:00"})
    run = _joined(first.run, gd.simulate(longer, seed=7).run)
    made = gd.what_if(run, [2, 4, 6])
    assert made.drift.found and made.backtest is not None and made.backtest.passed
    assert not backtest(observe(run), 0.0).passed
    rates = rates_without_crashes(run, [2, 4, 6], lambda: None)
    assert (run.trials["state"] != "FAIL").all()
    for k, rate in rates.items():
        found = made.at(k).throughput
        assert not found.bounds_only and not rate.bounds_only
        assert (rate.value, rate.low) == (pytest.approx(found.value), pytest.approx(found.low))


@pytest.mark.slow
def test_a_rate_without_crashes_is_uncertain_once() -> None:
    """One trial in four fails: the interval holds what the search does without, and is that of one rate, not of a rate
    times a gain (2.6 times from the lower end to the upper one).
    """
    run = gd.simulate(SPEC, seed=8, fail_rate=0.25).run
    for k, rate in rates_without_crashes(run, [3, 4], lambda: None).items():
        assert rate.low <= true_rate(SPEC, k, 80) <= rate.high
        assert rate.high / rate.low < 1.5


@pytest.mark.slow
def test_memory_and_parallelism_have_bounds_in_the_same_rows(case_1: Forecast, case_4: Forecast) -> None:
    for made in (case_1, case_4):
        assert made.capacity is not None
        table = made.capacity.table.set_index("k")
        for scenario in made.parallel:
            assert math.isnan(table.at[scenario.k, "rate_day"]) == scenario.bounds_only
            if scenario.bounds_only:
                ends = (scenario.throughput.low, scenario.throughput.high)
                assert tuple(table.loc[scenario.k, ["rate_day_low", "rate_day_high"]] / 24) == pytest.approx(ends)


def _joined(before: gd.Run, after: gd.Run) -> gd.Run:
    end, start = before.trials["end"].max(), after.trials["start"].min()
    shift = end - start + pd.Timedelta(seconds=5)
    gpu = after.gpu.assign(time=after.gpu["time"] + shift)
    trials = after.trials.assign(
        start=after.trials["start"] + shift, end=after.trials["end"] + shift, trial=after.trials["trial"] + 1000
    )
    earlier = before.gpu[before.gpu["time"] <= end]
    return replace(
        before,
        gpu=pd.concat([earlier, gpu[gpu["time"] > end]], ignore_index=True),
        trials=pd.concat([before.trials, trials], ignore_index=True),
    )


@pytest.mark.slow
def test_two_gpus_are_forecast_together_and_by_assignment() -> None:
    spec = override(SPEC, {"gpus": (Gpu(), Gpu()), "n_trials": 160})
    made = rates(gd.simulate(spec, seed=9).run, [2, 4])
    assert {policy for _, policy, _ in made.policies} == {"round robin", "least loaded", "by memory"}
    assert made.at(2).throughput.value == pytest.approx(true_rate(spec, 2, 79), rel=0.08)


@pytest.mark.parametrize("parallel", [[0], [65], [2.5], [True], []])
def test_numbers_out_of_range_are_refused(parallel: list[Any]) -> None:
    with pytest.raises(ConfigError, match="whole number"):
        gd.what_if(gd.simulate(seed=1, n_trials=10).run, parallel)


def test_other_arguments_out_of_range_are_refused_before_any_work() -> None:
    run = gd.Run()
    with pytest.raises(ConfigError, match="restart_min"):
        gd.what_if(run, [2], restart_min=-1)
    with pytest.raises(ConfigError, match="no_such_pruner"):
        gd.what_if(run, [2], pruner="no_such_pruner()")


@pytest.mark.slow
def test_too_few_trials_are_not_measurable() -> None:
    with pytest.raises(NotMeasurable, match="finished"):
        gd.what_if(gd.simulate(seed=1, n_trials=3).run, [2])
    with pytest.raises(NotMeasurable, match="no trials table"):
        gd.what_if(gd.Run(), [2])


def test_of_one_training_the_gains_of_its_changes_are_elsewhere() -> None:
    lines = pd.DataFrame({"path": "train.log", "line": [1, 2], "series": "steps", "step": [1, 2], "unit": "step"})
    with pytest.raises(NotMeasurable, match="one training, without trials") as refused:
        gd.what_if(gd.Run(steps=conform(lines.assign(meant=""), STEPS)), [2])
    assert "gpudiag diagnose RUN --all" in str(refused.value)


@pytest.mark.slow
def test_progress_is_told_and_may_cancel() -> None:
    run, steps = gd.simulate(seed=2, n_trials=40).run, []

    def stop(what: str) -> None:
        steps.append(what)
        if "re-simulation with 6" in what:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gd.what_if(run, [2, 6], progress=stop)
    assert any("back-test" in step for step in steps) and any("with 2 at once" in step for step in steps)


@pytest.mark.slow
def test_order_of_rows_changes_nothing() -> None:
    run = gd.simulate(SPEC, seed=10, n_trials=60).run
    mixed = replace(run, trials=run.trials.sample(frac=1, random_state=1).reset_index(drop=True))
    assert rates(mixed, [6]).at(6).throughput.value == pytest.approx(rates(run, [6]).at(6).throughput.value, rel=0.02)


def test_sections_show_themselves_and_unknown_ones_are_named(forecast: Forecast, case_1: Forecast) -> None:
    for made in (forecast, case_1):
        show = ForecastShow(made.run, made)
        assert set(dir(show)) == set(SECTIONS)
        for name in SECTIONS:
            assert len(getattr(show, name)._repr_markdown_()) > 10
    with pytest.raises(AttributeError, match="no section 'nothing'"):
        _ = show.nothing


@pytest.mark.slow
def test_intervals_cover_and_errors_stay_small() -> None:
    inside, down, up = [], [], []
    for seed in range(8):
        law = ("saturating", "overlapping")[seed % 2]
        spec = override(SPEC, {"gpus": (Gpu(sharing=law, overhead_pct=3.0 * (seed % 3 == 0)),), "n_trials": 150})
        made = rates(gd.simulate(spec, seed=100 + seed).run, [2, 6])
        for k, errors in ((2, down), (6, up)):
            scenario = made.at(k)
            inside.append(scenario.throughput.low <= true_rate(spec, k, 900 + seed, 150) <= scenario.throughput.high)
            if not scenario.bounds_only:
                errors.append(scenario.throughput.value / true_rate(spec, k, 500 + seed, 300) - 1)
    assert np.mean(inside) >= 0.85
    assert abs(np.mean(down)) < 0.05 and np.median(np.abs(down)) < 0.05
    assert abs(np.mean(up)) < 0.1 and np.max(np.abs(up)) < 0.2
    assert not math.isnan(np.mean(down))


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "overhead_pct"), [(1, 3.0), (2, 6.0), (3, 6.0)])
def test_the_gain_holds_what_further_processes_cost(workers: int, overhead_pct: float) -> None:
    """The loop closed: the same GPU with one more worker, which may be slower than before."""
    gpu = Gpu(sharing="saturating", overhead_pct=overhead_pct)
    spec = override(SPEC, {"gpus": (gpu,), "workers": workers, "startup_s": (1.0, 3.0)})
    gain = rates(gd.simulate(spec, seed=21, n_trials=120).run, [workers, workers + 1]).at(workers + 1).gain
    truth = true_rate(spec, workers + 1, 90, 400) / true_rate(spec, workers, 90, 400)
    assert gain.known and gain.low <= truth <= gain.high
    assert (truth < 1.0) == (workers == 3), "a full GPU loses what a further process costs"
    assert gain.high / gain.low < 1.5


@pytest.mark.slow
@pytest.mark.parametrize(("startup_s", "work_s", "gap_s"), [(39.0, 20.0, 5.0), (6.0, 40.0, 14.0)])
def test_utilization_of_the_present_number_is_what_was_measured(startup_s: float, work_s: float, gap_s: float) -> None:
    """One trial after another: 97 % while it works, nothing in its start-up, a second of its end, and in the gaps."""
    cycle_s, n = startup_s + work_s + 1 + gap_s, 40
    times = np.arange(0, n * cycle_s, 2.0)
    working = (times % cycle_s >= startup_s) & (times % cycle_s < startup_s + work_s)
    rows = [("COMPLETE", at * cycle_s, (at + 1) * cycle_s - gap_s) for at in range(n)]
    forecast = rates(run_of(gpu=gpu_of(times, util_pct=np.where(working, 97.0, 0.0)), trials=trials_of(rows)), [1])
    measured = 97 * work_s * n / ((n - 1) * cycle_s + cycle_s - gap_s)
    util = forecast.at(1).util
    assert util.value == pytest.approx(measured, rel=0.01) and util.low <= measured <= 1.01 * util.high


def test_a_study_without_a_trial_is_given_and_has_not_begun(tmp_path: Path) -> None:
    optuna.create_study(storage=f"sqlite:///{tmp_path / 'o.db'}", study_name="empty")
    with pytest.raises(NotMeasurable, match="No trial has begun yet in empty"):
        gd.what_if(tmp_path)


@pytest.mark.slow
def test_a_rate_of_more_workers_than_the_log_has_trials_is_one_of_many_trials() -> None:
    """40 trials, some of which end at once: 64 workers on the one GPU have no more of it than 16 have."""
    spec = override(SPEC, {"n_trials": 40, "epochs": 4, "epoch_s": (0.5, 60.0), "startup_s": (5.0, 90.0)})
    made = rates(gd.simulate(spec, seed=5).run, [16, 64])
    few, many = (made.at(workers) for workers in (16, 64))
    assert few.throughput.known and few.util.value > 95
    assert many.throughput.value == pytest.approx(few.throughput.value, rel=0.1) and many.util.value > 95
