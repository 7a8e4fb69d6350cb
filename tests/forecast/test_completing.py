"""What ended beside how many is measured, and neither a bound nor a share of all stands before it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from memoryruns import mixed_run
from sampleruns import sample
from smallruns import gpu as gpu_of
from smallruns import run as run_of
from smallruns import trials as trials_of

import gpudiag as gd
from gpudiag.forecast.memory.net import seen_net
from gpudiag.forecast.parallelism.model import whole
from gpudiag.forecast.parallelism.observed import observe
from gpudiag.simulation import Gpu


@pytest.fixture(scope="module")
def phases() -> pd.DataFrame:
    """Two workers, 40 trials of 100 s, all COMPLETE; then six workers, 60 trials of about 80 s, every second FAIL."""
    rng = np.random.default_rng(4)
    rows: list[tuple[str, float, float]] = []
    begin = 0.0
    for workers, each, typical in ((2, 20, 100.0), (6, 10, 80.0)):
        length = typical * (1 + 0.05 * rng.standard_normal((workers, each)))
        ends = begin + np.cumsum(length, axis=1)
        states = [["COMPLETE" if workers == 2 or (i + j) % 2 else "FAIL" for j in range(each)] for i in range(workers)]
        rows += [
            (states[i][j], float(ends[i, j] - length[i, j]), float(ends[i, j]))
            for i in range(workers)
            for j in range(each)
        ]
        begin = float(ends.max())
    frame = pd.DataFrame(rows, columns=["state", "start", "end"])
    zero = pd.Timestamp("2026-03-01", tz="UTC")
    times = {name: zero + pd.to_timedelta(frame[name], unit="s") for name in ("start", "end")}
    return frame.assign(**times, trial=np.arange(len(frame)), seconds=frame["end"] - frame["start"])


def test_a_number_of_workers_that_was_there_is_measured(phases: pd.DataFrame) -> None:
    forecast = gd.what_if(gd.load_run(phases.drop(columns="seconds")), [1, 2, 6])
    for workers in (2, 6):
        mean_s = phases["seconds"][:40].mean() if workers == 2 else phases["seconds"][40:].mean()
        throughput = forecast.at(workers).throughput
        assert throughput.low <= 3600 * workers / mean_s <= throughput.high
        assert throughput.high / throughput.low < 1.2


def test_complete_trials_are_those_of_so_many_workers(phases: pd.DataFrame) -> None:
    forecast = gd.what_if(gd.load_run(phases.drop(columns="seconds")), [1, 2, 6])
    two, six, one = (forecast.at(workers) for workers in (2, 6, 1))
    assert two.complete.high > 0.97 * two.throughput.high, "none failed beside one other, but for the last ones"
    assert 0.85 * two.throughput.low < two.complete.low <= 0.92 * two.throughput.low, "40 of 40 is 91 to 100 %"
    assert six.complete.high < 0.7 * six.throughput.high
    assert one.complete.high > 0.97 * one.throughput.high and one.complete.low < 0.5 * one.throughput.low, "who knows"


@pytest.mark.slow
def test_complete_trials_an_hour_are_those_that_came_though_crashes_are_short(samples: Path) -> None:
    """A trial that runs out of memory takes a few minutes: at four at once half of all fail, and most are completed."""
    run = sample("memory-exhaustion")
    truth = pd.DataFrame(json.loads((samples / "memory-exhaustion/truth.json").read_text())["trials"])
    start, end = (pd.to_datetime(truth[name], utc=True, format="ISO8601") for name in ("start", "end"))
    left = [start.min(), *(end[truth["worker"] == worker].max() for worker in (3, 2)), end.max()]
    forecast = gd.what_if(run, [2, 3, 4])
    assert forecast.capacity is not None
    by_day = forecast.capacity.table.set_index("k")["net_day"]
    for k, since, until in zip((4, 3, 2), left, left[1:], strict=False):
        came = ((end > since) & (end <= until) & (truth["state"] == "COMPLETE")).sum()
        an_hour = came / ((until - since) / pd.Timedelta(hours=1))
        complete = forecast.at(k).complete
        assert complete.value == pytest.approx(an_hour, rel=0.02) and complete.low < an_hour < complete.high
        assert complete.value == pytest.approx(by_day[k] / 24, rel=1e-9), "none was pruned: the same in both tables"


def test_the_present_number_has_the_rate_that_was_measured() -> None:
    forecast = gd.what_if(sample("memory-exhaustion"), [2, 3])
    here, more = forecast.at(2), forecast.at(3)
    assert here.throughput.value == forecast.rate.value
    assert more.throughput.value == pytest.approx(forecast.rate.value * more.gain.value)
    assert here.throughput.low <= forecast.rate.low < forecast.rate.high <= here.throughput.high


@pytest.mark.slow
@pytest.mark.parametrize(("gpus", "workers"), [(2, 3), (1, 40)])  # uneven; beyond what memory is looked at for
def test_what_overflows_a_gpu_promises_no_complete_trials(gpus: int, workers: int) -> None:
    """Trials take 1.4 to 6 GiB, and each GPU holds one."""
    made = mixed_run(1, gpus, gpus=(Gpu(mem_total_mib=6500),) * gpus, n_trials=40)
    forecast = gd.what_if(made.run, [gpus, workers])
    now, more = forecast.at(gpus).complete, forecast.at(workers)
    assert now.low < now.value < now.high
    assert more.overflow.value > 5 and np.isnan(more.complete.value) and more.complete.low == 0


@pytest.mark.slow
def test_no_rate_reaches_below_zero_and_what_drifts_is_counted_in_its_last_third() -> None:
    """Trials of very different length that become shorter: one of two thirds of the time says nothing of the last."""
    rng = np.random.default_rng(3)
    length = np.linspace(300, 80, 90) * rng.lognormal(0, 0.8, 90)
    end = np.cumsum(length)
    seconds = np.arange(0.0, end[-1], 5.0)
    made = run_of(
        gpu=gpu_of(seconds, util_pct=85.0, mem_used_mib=9000.0, mem_total_mib=40000.0),
        trials=trials_of([("COMPLETE", e - n, e) for n, e in zip(length, end, strict=True)]),
    )
    forecast = gd.what_if(made, [1, 2])
    assert forecast.drift.found and forecast.backtest is not None and forecast.capacity is not None
    assert 0 < forecast.backtest.predicted.low < forecast.backtest.predicted.value
    since = end[-1] * 2 / 3
    counted = seen_net(made, 1, 1)
    assert counted is not None
    assert counted.value == pytest.approx((end > since).sum() / (end[-1] - since) * 3600, rel=0.001)
    assert counted.value == pytest.approx(forecast.rate.value, rel=0.1)
    lows = forecast.to_frame()[["throughput_trials_h_low", "gain_low"]].to_numpy()
    assert (lows > 0).all() and (forecast.capacity.table["rate_day_low"] > 0).all()


def test_where_all_trials_failed_none_is_expected_to_end_well() -> None:
    """40 trials of two workers, each a minute, of which each fails: of none that ended well there is no share."""
    start = [60.0 * (i // 2) + i % 2 for i in range(40)]
    table = trials_of([("FAIL", at, at + 58.0) for at in start])
    model = whole(observe(run_of(trials=table, gpu=gpu_of(np.arange(0.0, 1205.0, 5.0), util_pct=40.0))))
    for of_well in (False, True):
        share, low, high = model.complete_share(2, of_well=of_well)
        assert (share, low) == (0, 0) and high == pytest.approx(1.96**2 / (39 + 1.96**2), abs=1e-3), (
            "39 ended beside one"
        )
