"""Peaks of single trials against the truth, from every source, and refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gpudiag.forecast.memory.peaks import ELSEWHERE, FLAT, SHARED, Peaks, trial_peaks
from gpudiag.forecast.memory.signal import Growth, Memory, drops, measured_growth, segments
from gpudiag.schema import PROCESSES, TRIALS, conform
from gpudiag.simulation import Gpu, Simulated
from tests.forecast.memoryruns import mixed_run


def peaks_of(made: Simulated, seed: int = 0) -> Peaks:
    return trial_peaks(made.run, np.random.default_rng(seed))


def with_truth(peaks: Peaks, made: Simulated) -> pd.DataFrame:
    truth = made.truth.trials[["trial", "mem_peak_mib"]]
    rows = peaks.trials.merge(truth, on="trial")
    return rows.assign(error=rows["peak_mib"] / rows["mem_peak_mib"] - 1)


@pytest.mark.parametrize(("workers", "limit"), [(1, 0.01), (2, 0.02), (3, 0.03), (4, 0.04)])
def test_peaks_come_close_to_the_truth(workers: int, limit: float) -> None:
    errors, inside = [], []
    for seed in range(2):
        made = mixed_run(seed, workers, period_s=5.0)
        rows = with_truth(peaks_of(made), made)
        errors.append(rows["error"].abs().mean())
        inside += list((rows["low_mib"] <= rows["mem_peak_mib"]) & (rows["mem_peak_mib"] <= rows["high_mib"]))
        assert set(rows["method"]) <= {"end", "sum", "parameters"}
    assert np.mean(errors) <= limit
    assert np.mean(inside) >= 0.85


def test_the_parameters_that_matter_are_found_and_no_others() -> None:
    assert peaks_of(mixed_run(4, 3)).parameters == ("model", "batch_size")


def test_trials_that_ran_out_of_memory_are_judged_by_their_parameters() -> None:
    made = mixed_run(1, 4, gpus=(Gpu(mem_total_mib=13500),), oom=True)
    peaks = peaks_of(made)
    failed = peaks.trials[peaks.trials["kind"] == "oom"]
    assert len(failed) > 3
    assert not failed["reached"].any() and set(failed["method"]) == {"parameters"}
    seen = failed["held_mib"].dropna()
    assert (failed.loc[seen.index, "peak_mib"] >= seen - 1).all()
    assert (failed["weight_s"] >= failed["duration_s"]).all()


def test_trials_of_one_process_are_refused() -> None:
    peaks = peaks_of(mixed_run(2, 3, keeps_memory=True))
    assert peaks.reason == SHARED
    assert not peaks.known.any()


def test_memory_by_process_is_taken_as_it_is() -> None:
    made = mixed_run(3, 3, n_trials=30)
    trials = made.run.trials.assign(pid=1000 + made.run.trials["trial"])
    truth = made.truth.trials.set_index("trial")["mem_peak_mib"]
    rows = [
        (row.start + pd.Timedelta(seconds=at), "0", row.pid, share * truth[row.trial])
        for row in trials.itertuples()
        for at, share in ((10, 0.3), (60, 1.0), (90, 0.9))
    ]
    seen = pd.DataFrame(rows, columns=["time", "gpu", "pid", "mem_used_mib"])
    run = replace(made.run, trials=conform(trials, TRIALS), processes=conform(seen, PROCESSES))
    peaks = trial_peaks(run, np.random.default_rng(0))
    assert set(peaks.trials["method"]) == {"process"}
    np.testing.assert_allclose(peaks.trials["peak_mib"], truth[peaks.trials["trial"]])


@pytest.mark.parametrize(
    ("name", "factor"), [("max_memory_reserved", 2**20), ("peak_gpu_memory_gib", 1 / 1024), ("gpudiag:peak_mem_mib", 1)]
)
def test_what_a_trial_stored_itself_counts_with_a_context(name: str, factor: float) -> None:
    made = mixed_run(3, 3, n_trials=30)
    stored = 3000.0 + 10.0 * made.run.trials["trial"]
    run = replace(made.run, trials=made.run.trials.assign(**{f"user_attrs.{name}": stored * factor}))
    peaks = trial_peaks(run, np.random.default_rng(0))
    assert set(peaks.trials["method"]) == {"attribute"}
    np.testing.assert_allclose(peaks.trials["peak_mib"], stored + 450)
    np.testing.assert_allclose(peaks.trials["high_mib"] - peaks.trials["low_mib"], 300)


def test_without_memory_on_the_clock_there_is_a_reason_and_no_peak() -> None:
    made = mixed_run(3, 2, n_trials=20)
    run = replace(made.run, gpu=made.run.gpu.drop(columns="mem_used_mib"))
    peaks = trial_peaks(run, np.random.default_rng(0))
    assert "No memory in use of a GPU was recorded" in peaks.reason and not peaks.known.any()


def test_readings_on_another_clock_belong_to_no_trial() -> None:
    made = mixed_run(3, 2, n_trials=20).run
    apart = replace(made, info=replace(made.info, clock=replace(made.info.clock, joined=False)))
    peaks = trial_peaks(apart, np.random.default_rng(0))
    assert "could not be brought to the trials' own" in peaks.reason and not peaks.known.any()


@pytest.mark.parametrize("shift_h", [0.5, 1.0, 1.7])
def test_memory_of_another_job_is_not_given_to_the_trials(shift_h: float) -> None:
    """The readings of the same run, but of hours before: they rise and fall, though not with these trials."""
    made = mixed_run(1, 3)
    used = made.run.gpu["mem_used_mib"].to_numpy()
    steps = round(shift_h * 3600 / made.spec.telemetry.period_s) % len(used)
    assert 0 < steps < len(used)
    run = replace(made.run, gpu=made.run.gpu.assign(mem_used_mib=np.roll(used, steps)))
    peaks = trial_peaks(run, np.random.default_rng(0))
    assert peaks.reason == ELSEWHERE and not peaks.known.any()
    assert not peaks_of(made).reason


def test_memory_that_does_not_rise_is_no_trials_memory() -> None:
    """Without a reading that falls: nothing is divided by the nothing that trials take."""
    made = mixed_run(1, 2, n_trials=20)
    ends = made.run.trials["end"].sort_values()
    kept = made.run.gpu["time"].to_numpy()
    near = np.array([(abs((ends - timestamp).dt.total_seconds()) < 30).any() for timestamp in made.run.gpu["time"]])
    flat = made.run.gpu.assign(mem_used_mib=500.0)[~near | (kept < ends.iloc[0])]
    peaks = trial_peaks(replace(made.run, gpu=flat), np.random.default_rng(0))
    assert peaks.reason in (FLAT, SHARED)
    assert not peaks.known.any()


def test_few_peaks_do_not_speak_for_many() -> None:
    """Three readings on which nobody grew, of trials that mostly ended before they could be told apart."""
    made = mixed_run(2, 1, n_trials=60, period_s=5.0)
    trials = made.run.trials
    inside = [
        ((made.run.gpu["time"] > row.start) & (made.run.gpu["time"] < row.end)).to_numpy()
        for row in trials.iloc[5:].itertuples()
    ]
    peaks = trial_peaks(replace(made.run, gpu=made.run.gpu[~np.any(inside, axis=0)]), np.random.default_rng(0))
    assert "of 60 trials could be told apart" in peaks.reason and not peaks.known.any()


def test_two_trials_by_hand() -> None:
    """One from 0 to 200 s with 1000 MiB, one from 60 to 300 s with 3000 MiB, both from 20 s after their start on."""
    time = np.arange(-50.0, 350.0, 5.0)
    start, end = np.array([0.0, 60.0]), np.array([200.0, 300.0])
    held = np.array([1000.0, 3000.0])
    used = 300 + sum(h * ((time >= s + 20) & (time < e)) for s, e, h in zip(start, end, held, strict=True))
    memory = Memory(time, used, start, end, np.zeros(2, bool))
    growth = Growth(7.0, 30.0)
    np.testing.assert_allclose(drops(memory, growth), held)
    parts = segments(memory, growth)
    np.testing.assert_allclose(parts.used_mib, [1300, 4300, 3300])
    np.testing.assert_allclose(parts.rows.toarray(), [[1, 0], [1, 1], [0, 1]])
    assert measured_growth(memory) == Growth()  # two trials are too few to tell


def test_growth_is_read_off_the_log() -> None:
    made = mixed_run(5, 2, ramp_s=60.0)
    peaks = peaks_of(made)
    assert 70 <= peaks.growth["0"].settled_s <= 180
