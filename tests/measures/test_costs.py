"""What trials cost: every sum exact, and every number of one trial only where it can be told."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from poolrun import Pool, make
from smallruns import at, gpu, gpus, run, study, trials

from gpudiag.errors import NotMeasurable
from gpudiag.measures.costs import CostsProfile, measure_costs
from gpudiag.measures.ledger import measure_ledger
from gpudiag.run import Run
from gpudiag.schema import PROCESSES, conform
from gpudiag.simulation import simulate

NAN = float("nan")


def of(profile: CostsProfile, outcome: str, table: str = "outcomes") -> pd.Series:
    return getattr(profile, table).set_index("outcome").loc[outcome]


def test_a_small_bill_by_hand() -> None:
    """Two trials share a GPU for 20 s of 100; steady 60 % and 180 W, a sample a second."""
    log = gpu(range(-5, 116), util_pct=60.0, power_w=180.0, mem_used_mib=1000.0)
    table = trials([("COMPLETE", 0, 60), ("PRUNED", 40, 100)], value=[0.5, 0.1])
    p = measure_costs(run(gpu=log, trials=table, studies=study("MINIMIZE"), settings={"price_per_gpu_h": 3.6}))
    complete, pruned = of(p, "COMPLETE"), of(p, "PRUNED")
    assert complete["gpu_s"] == pruned["gpu_s"] == 50 and complete["share_pct"] == 50
    assert complete["busy_gpu_s"] == pytest.approx(30) and complete["cost"] == pytest.approx(0.05)
    assert complete["energy_kwh"] == pytest.approx(50 * 180 / 3.6e6)
    assert of(p, "no trial")["gpu_s"] == 0 and p.total_gpu_h == pytest.approx(100 / 3600)
    assert p.cost == pytest.approx(0.1) and p.currency == "USD"
    one = p.trials.iloc[0]
    assert (one["gpu_s"], one["alone_pct"], one["share_error_pct"]) == (50, pytest.approx(100 * 40 / 60), 19)
    # A shared device tells nothing of one trial.
    assert np.isnan(one["mean_util_pct"]) and np.isnan(one["peak_mem_mib"])
    assert p.parallel == pytest.approx(1.2) and p.n_shared == 2
    assert of(p, "COMPLETE", "worker_time")["worker_s"] == 60 and of(p, "gap", "worker_time")["worker_s"] == 0
    # Of the pruned one 20 s were over then, of which it had the half.
    assert p.progress[["trial", "gpu_h", "best"]].to_numpy().tolist() == [[0, pytest.approx((50 + 10) / 3600), 0.5]]


def test_what_a_trial_had_alone_is_its_own() -> None:
    log = gpu(range(0, 100), util_pct=np.repeat([20.0, 80.0], 50), mem_used_mib=np.repeat([900.0, 4000.0], 50))
    p = measure_costs(run(gpu=log, trials=trials([("COMPLETE", 10, 50), ("FAIL", 50, 90)])))
    assert p.trials["mean_util_pct"].to_numpy() == pytest.approx([20, 80], abs=1)
    assert p.trials["peak_mem_mib"].tolist() == [900, 4000] and p.trials["share_error_pct"].tolist() == [0, 0]
    assert p.trials["energy_kwh"].isna().all() and np.isnan(p.energy_kwh) and np.isnan(p.cost) and p.currency == ""


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 999), gpus_=st.integers(1, 3), workers=st.integers(1, 5))
def test_outcomes_add_up_to_the_ledger(seed: int, gpus_: int, workers: int) -> None:
    what, _ = make(seed, Pool(hours=0.4, gpus=gpus_, workers=workers))
    p, ledger = measure_costs(what), measure_ledger(what)
    assert p.outcomes["gpu_s"].sum() == pytest.approx(ledger.total_gpu_s, abs=1e-6)
    assert p.outcomes["busy_gpu_s"].sum() == pytest.approx(ledger.compute["compute_gpu_s"].sum(), abs=1e-6)
    assert p.trials["gpu_s"].sum() == pytest.approx(p.outcomes["gpu_s"].sum() - of(p, "no trial")["gpu_s"], abs=1e-6)
    idle = ledger.totals.set_index("cell")["gpu_s"][["foreign", "idle_no_trial"]].sum()
    assert of(p, "no trial")["gpu_s"] >= idle - 1e-6
    lived = (what.trials["end"] - what.trials["start"]).dt.total_seconds().sum()
    assert p.trials["duration_s"].sum() == pytest.approx(lived)
    assert p.worker_time["worker_s"].sum() == pytest.approx(lived + of(p, "gap", "worker_time")["worker_s"])
    assert p.phases["worker_s"].sum() == pytest.approx(lived) or np.isnan(p.startup_median_s)


@pytest.mark.slow
def test_without_telemetry_workers_remain() -> None:
    p = measure_costs(run(trials=trials([("COMPLETE", 0, 60), ("PRUNED", 70, 100), ("RUNNING", 100, NAN)])))
    assert p.worker_time.set_index("outcome")["worker_s"].to_dict() == {
        "COMPLETE": 60, "PRUNED": 30, "FAIL": 0, "STOPPED": 0, "RUNNING": 0, "ABANDONED": 0, "gap": 10,
    }  # fmt: skip
    assert p.outcomes["gpu_s"].isna().all() and np.isnan(p.total_gpu_h) and np.isnan(p.startup_share_pct)
    assert p.phases["worker_s"].isna().all()


def test_a_declared_gpu_without_telemetry_is_still_paid_for() -> None:
    p = measure_costs(run(trials=trials([("COMPLETE", 0, 3600)], gpu="0"), settings={"price_per_gpu_h": 2.0}))
    assert of(p, "COMPLETE")["gpu_s"] == 3600 and p.cost == 2.0 and np.isnan(of(p, "COMPLETE")["busy_gpu_s"])


def test_apart_clocks_charge_nothing() -> None:
    p = measure_costs(run(joined=False, gpu=gpu(range(50), util_pct=60.0), trials=trials([("COMPLETE", 0, 40)])))
    assert p.outcomes["gpu_s"].isna().all() and p.total_worker_h == pytest.approx(40 / 3600)


def test_a_dead_trial_is_an_abandoned() -> None:
    table = trials([("COMPLETE", 0, 10), ("RUNNING", 10, NAN), ("COMPLETE", 1000, 1010)])
    p = measure_costs(run(gpu=gpu(range(0, 1100), util_pct=60.0), trials=table))
    # The GPU is active with nothing else on it: it lived as long as Optuna's rule allows, to the last sample before.
    dead = of(p, "ABANDONED", "worker_time")
    assert (dead["n_trials"], dead["worker_s"], of(p, "ABANDONED")["gpu_s"]) == (1, 49, 49)


def test_a_trial_of_unknown_gpu_gets_no_number_of_its_own() -> None:
    log = pd.concat([gpu(range(100), name, util_pct=60.0) for name in "01"])
    p = measure_costs(run(gpu=log, gpus=gpus(gpu=["0", "1"]), trials=trials([("COMPLETE", 0, 90)])))
    assert p.trials[["gpu_s", "busy_gpu_s", "energy_kwh"]].isna().all(axis=None) and p.attributed_pct == 0
    assert np.isnan(of(p, "COMPLETE")["gpu_s"]) and np.isnan(p.trial_gpu_h)  # one GPU, or both
    assert p.total_gpu_h == pytest.approx(180 / 3600)


def test_a_trial_on_two_gpus_pays_for_both() -> None:
    log = pd.concat([gpu(range(100), name, util_pct=60.0, power_w=100.0) for name in "01"])
    p = measure_costs(run(gpu=log, trials=trials([("COMPLETE", 10, 90)], gpu="0,1")))
    assert p.trials["gpu_s"].tolist() == [160] and p.trials["energy_kwh"].tolist() == [pytest.approx(160 * 100 / 3.6e6)]


def test_its_own_process_tells_its_memory_and_its_sm_time() -> None:
    seen = pd.DataFrame(
        {
            "time": at([20, 30, 40, 95, 40]), "gpu": "0", "pid": [7, 7, 7, 7, 9],
            "mem_used_mib": [900.0, 2000.0, 1000.0, 5000.0, 1.0], "sm_pct": [50.0, NAN, 20.0, 90.0, 99.0],
        }
    )  # fmt: skip
    log = gpu(range(100), util_pct=60.0, mem_used_mib=9000.0)
    two = trials([("COMPLETE", 10, 90), ("COMPLETE", 10, 90)], pid=[7, 8])
    p = measure_costs(run(gpu=log, trials=two, processes=conform(seen, PROCESSES)))
    assert p.trials["process_mem_mib"].fillna(-1).tolist() == [2000, -1] and p.trials["peak_mem_mib"].isna().all()
    # Ticks every 10 s, then one at 95 s: the first stands for 10 s, the third for 5 s and half of the cap of 30 s.
    assert p.trials["process_busy_gpu_s"].fillna(-1).tolist() == [0.5 * 10 + 0.2 * 20, -1]


def test_the_counter_goes_before_power_and_survives_a_reload() -> None:
    log = gpu(range(0, 100), util_pct=60.0, power_w=100.0, energy_j=np.arange(100) * 50.0 % 3000)
    p = measure_costs(run(gpu=log, trials=trials([("COMPLETE", 0, 50)])))
    assert p.energy_kwh == pytest.approx(50 * 50 / 3.6e6)


def test_time_before_the_first_reading_of_the_counter_costs_what_power_says() -> None:
    """100 W all the time, and a counter that rises by 120 J a second and is read from 60 to 80 s only."""
    time = np.arange(0, 100)
    read = np.where((time >= 60) & (time <= 80), 7000 + 120.0 * time, NAN)
    log = gpu(time, util_pct=60.0, power_w=100.0, energy_j=read)
    p = measure_costs(run(gpu=log, trials=trials([("COMPLETE", 10, 50), ("FAIL", 50, 70), ("COMPLETE", 70, 90)])))
    assert p.trials["energy_kwh"].to_numpy() * 3.6e6 == pytest.approx([4000, 1000 + 1200, 1200 + 1000])
    assert p.energy_kwh == pytest.approx(8400 / 3.6e6)
    assert p.energy_kwh == pytest.approx(p.outcomes["energy_kwh"].sum())


@pytest.mark.slow
def test_of_how_much_gpu_time_the_energy_is_known() -> None:
    """Power from second 60 of 100 on, a sample a second, on one GPU of two; then a counter read at 20 and at 40 s."""
    time = np.arange(0, 101)
    one = gpu(time, util_pct=60.0, power_w=np.where(time >= 60, 100.0, NAN))
    other = gpu(time, "1", util_pct=60.0)
    table = trials([("COMPLETE", 0, 100), ("COMPLETE", 0, 100)], gpu=["0", "1"])
    p = measure_costs(run(gpu=pd.concat([one, other]), trials=table))
    assert p.energy_coverage_pct == pytest.approx(100 * (100 - 59.5) / 200)  # half a step before the first reading
    read = one.assign(energy_j=np.where((time == 20) | (time == 40), 100.0 * time, NAN))
    p = measure_costs(run(gpu=pd.concat([read, other]), trials=table))
    # The counter tells of 20 to 40 s and of half a step of 20 s, at most, beside it.
    assert p.energy_coverage_pct == pytest.approx(100 * (100 - 59.5 + 20 + 2 * 10) / 200)
    assert p.energy_kwh == pytest.approx((20 * 100 + 40 * 100) / 3.6e6)
    dark = measure_costs(run(gpu=other, trials=trials([("COMPLETE", 0, 100)])))
    assert np.isnan(dark.energy_coverage_pct) and np.isnan(dark.energy_kwh)


def test_a_counter_that_was_read_once_hides_no_power() -> None:
    once = np.where(np.arange(100) == 40, 5000.0, NAN)
    log = gpu(range(0, 100), util_pct=60.0, power_w=100.0, energy_j=once)
    p = measure_costs(run(gpu=log, trials=trials([("COMPLETE", 0, 50)])))
    assert p.energy_kwh == pytest.approx(50 * 100 / 3.6e6)


def test_energy_stops_at_gaps_and_ignores_impossible_power() -> None:
    timestamps = np.concatenate([np.arange(0, 30), np.arange(60, 90)])
    power = np.full(60, 100.0)
    power[10] = 9000
    log = gpu(timestamps, util_pct=60.0, power_w=power, power_limit_w=300.0)
    p = measure_costs(run(gpu=log, trials=trials([("COMPLETE", 0, 89)])))
    assert p.energy_kwh == pytest.approx(58 * 100 / 3.6e6)


@pytest.mark.slow
def test_progress_counts_the_best_of_complete_trials_in_order_of_their_end() -> None:
    states = ["COMPLETE", "PRUNED", "COMPLETE", "COMPLETE", "FAIL"]
    table = trials([(s, 10 * i, 10 * i + 10) for i, s in enumerate(states)], value=[0.2, 9.9, 0.1, 0.7, NAN])
    p = measure_costs(run(gpu=gpu(range(60), util_pct=60.0), trials=table, studies=study("MAXIMIZE")))
    assert p.progress[["trial", "best"]].to_numpy().tolist() == [[0, 0.2], [3, 0.7]]
    assert (p.progress["gpu_h"] * 3600).tolist() == pytest.approx([10, 40])
    assert p.progress["at"].tolist() == list(at([10, 40]))
    assert (3600 * p.to_best_gpu_h, 3600 * p.after_best_gpu_h) == pytest.approx((40, 10))
    lowest = measure_costs(run(gpu=gpu(range(60), util_pct=60.0), trials=table.assign(value=[0.1, 9.9, 0.2, 0.7, NAN]),
                               studies=study("MINIMIZE")))  # fmt: skip
    assert (3600 * lowest.to_best_gpu_h, 3600 * lowest.after_best_gpu_h) == pytest.approx((10, 40))
    same = table.assign(value=[0.1, 9.9, 0.1, 0.1, NAN])
    same = measure_costs(run(gpu=gpu(range(60), util_pct=60.0), trials=same, studies=study("MINIMIZE")))
    assert np.isnan(same.to_best_gpu_h) and np.isnan(same.after_best_gpu_h)
    front = measure_costs(run(trials=table, studies=study("MINIMIZE,MINIMIZE")))
    assert front.progress.empty and np.isnan(front.to_best_gpu_h)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("n", [1, 2, 8])
def test_until_the_best_value_every_gpu_counts_that_had_a_trial(n: int, named: bool) -> None:
    """Of three trials on each GPU the first one of the first GPU is the best; it ends at 100 s, ahead of all others."""
    lives = [(0.0, 100.0 + 10 * at, 250.0, 400.0) for at in range(n)]
    rows = [("COMPLETE", low, high) for own in lives for low, high in pairwise(own)]
    names = [str(at) for at in range(n) for _ in range(3)] if named else None
    table = trials(rows, value=[0.1, *np.linspace(0.2, 0.9, len(rows) - 1)], gpu=names)
    log = pd.concat([gpu(range(400), str(at), util_pct=60.0) for at in range(n)])
    p = measure_costs(run(gpu=log, trials=table, studies=study("MINIMIZE")))
    if named or n == 1:
        assert (3600 * p.to_best_gpu_h, 3600 * p.after_best_gpu_h) == pytest.approx((100 * n, 300 * n))
    else:  # no mark tells where each ran
        assert np.isnan(p.to_best_gpu_h) and np.isnan(p.after_best_gpu_h)


def test_of_studies_that_share_a_gpu_each_counts_its_own_trials_until_its_best_value() -> None:
    parts = [trials([("COMPLETE", low, low + 90) for low in (first, first + 100)], study=name, value=[0.5, 0.1])
             for name, first in (("a", 0), ("b", 40))]  # fmt: skip
    ways = pd.concat([study("MINIMIZE", "a"), study("MINIMIZE", "b")], ignore_index=True)
    table = pd.concat(parts, ignore_index=True)
    p = measure_costs(run(gpu=gpu(range(240), util_pct=60.0), trials=table, studies=ways))

    def spent_s(name: str, until: int) -> float:
        seconds = np.arange(0.5, until)
        at_once = {key: sum((seconds >= low) & (seconds < low + 90) for low in (first, first + 100))
                   for key, first in (("a", 0), ("b", 40))}  # fmt: skip
        return float((at_once[name] / np.maximum(at_once["a"] + at_once["b"], 1)).sum())

    expected = {"a": (90, 190), "b": (130, 230)}
    for name, rows in p.progress.groupby("study"):
        assert (3600 * rows["gpu_h"]).tolist() == pytest.approx(
            [spent_s(str(name), end) for end in expected[str(name)]]
        )


@pytest.mark.parametrize("n", [7, 15, 40])
def test_nothing_is_spent_after_a_best_trial_that_ended_last(n: int) -> None:
    took = [10.1 + 0.7123 * (7 * i % 11) for i in range(n)]
    ends = np.cumsum(took)
    table = trials([("COMPLETE", end - each, end) for end, each in zip(ends, took, strict=True)], value=1 / ends)
    p = measure_costs(run(gpu=gpu(range(int(ends[-1]) + 5), util_pct=60.0), trials=table, studies=study("MINIMIZE")))
    assert p.after_best_gpu_h == 0 and 3600 * p.to_best_gpu_h == pytest.approx(ends[-1], rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "method"), [(1, "solo"), (2, "activity"), (4, "activity")])
def test_start_up_is_measured_alone_or_by_phases(workers: int, method: str) -> None:
    made = simulate(seed=3, workers=workers, n_trials=60, epochs=4, startup_s=(35.0, 45.0))
    p = measure_costs(made.run)
    truth = made.truth.trials
    lived = (truth["end"] - truth["start"]).dt.total_seconds().sum()
    assert p.startup_median_s == pytest.approx(truth["startup_s"].median(), abs=3)
    assert p.startup_share_pct == pytest.approx(100 * truth["startup_s"].sum() / lived, abs=1.5)
    assert p.n_startups >= 5 and set(p.trials["startup_method"]) <= {"", method, "memory"}
    assert p.startup_law_pct == pytest.approx(100 * (p.startup_share_pct / 100) ** p.parallel)


@pytest.mark.slow
@pytest.mark.parametrize("fast_share", [0.3, 0.9])
@pytest.mark.parametrize("slow_s", [30, 60])
def test_start_ups_in_a_record_whose_rate_changes(fast_share: float, slow_s: int) -> None:
    """100 trials of 105 s that work after 15 s; a sample a second, then one every half or whole minute."""
    starts = 107.0 * np.arange(100)
    change = fast_share * starts[-1]
    when = np.concatenate([np.arange(0, change), np.arange(change, starts[-1] + 110, slow_s)])
    within = when - starts[np.searchsorted(starts, when, "right") - 1]
    log = gpu(when, "0", util_pct=np.where((within >= 15) & (within < 104), 80.0, 0.0))
    costs = measure_costs(run(gpu=log, trials=trials([("COMPLETE", s, s + 105) for s in starts])))
    seen = costs.trials["startup_s"].dropna()
    assert len(seen) >= 100 * fast_share - 2 and seen.to_numpy() == pytest.approx(15, abs=1)
    for value, true in ((costs.startup_median_s, 15), (costs.startup_share_pct, 100 * 15 / 105)):
        assert np.isnan(value) if fast_share < 0.6 else value == pytest.approx(true, rel=0.05)


@pytest.mark.slow
def test_a_process_that_keeps_its_memory_hides_no_start_up() -> None:
    made = simulate(seed=3, workers=2, n_trials=60, startup_s=(25.0, 45.0), keeps_memory=True)
    p = measure_costs(made.run)
    assert p.startup_median_s == pytest.approx(made.truth.trials["startup_s"].median(), rel=0.1)


def test_what_is_missing_is_said() -> None:
    with pytest.raises(NotMeasurable, match="There is no trials table"):
        measure_costs(Run())
    with pytest.raises(NotMeasurable, match="No trial has a start and an end"):
        measure_costs(run(trials=trials([("WAITING", NAN, NAN)])))


def test_an_end_frees_what_the_trial_held() -> None:
    """Trials of 3000 and 5000 MiB end 40 s apart; then two end within 4 s of each other, so that neither is told."""
    seconds = np.arange(0, 200)
    held = [
        ("COMPLETE", 0, 100, 3000.0),
        ("FAIL", 0, 60, 5000.0),
        ("COMPLETE", 110, 150, 900.0),
        ("FAIL", 110, 154, 800),
    ]
    used = 400.0 + sum(mib * ((seconds >= start) & (seconds < end)) for _, start, end, mib in held)
    table = trials([(state, start, end) for state, start, end, _ in held], **{"params.lr": [0.1, 0.2, 0.3, 0.4]})
    p = measure_costs(run(gpu=gpu(seconds, util_pct=50.0, mem_used_mib=used), trials=table))
    assert p.trials["freed_mib"].to_numpy() == pytest.approx([3000, 5000, NAN, NAN], nan_ok=True)
    assert p.parameters[["trial", "params.lr"]].to_numpy().tolist() == [[0, 0.1], [1, 0.2], [2, 0.3], [3, 0.4]]
    slow = measure_costs(run(gpu=gpu(seconds[::15], util_pct=50.0, mem_used_mib=used[::15]), trials=table))
    assert slow.trials["freed_mib"].isna().all()


@pytest.mark.slow
def test_what_an_end_frees_is_near_the_truth() -> None:
    made = simulate(seed=3, workers=3, n_trials=40)
    told = measure_costs(made.run).trials
    truth = told.merge(made.truth.trials[["trial", "mem_peak_mib"]], on="trial")
    known = truth[truth["freed_mib"].notna()]
    error = (known["freed_mib"] / known["mem_peak_mib"] - 1).abs()
    assert len(known) >= 8 and (error < 0.05).mean() >= 0.8 and error.max() < 0.3
