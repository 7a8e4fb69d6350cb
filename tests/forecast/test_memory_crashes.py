"""Crashes by class, what counts prove, restarts and net throughput."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gpudiag.forecast.estimate import Estimate
from gpudiag.forecast.memory.crashes import find_crashes
from gpudiag.forecast.memory.net import Restart, crash_part, net_estimate, net_throughput, restart_cost
from gpudiag.forecast.memory.rates import (
    clean_chance,
    most_if_none,
    rate_without_streak,
    trials_to_show,
)
from gpudiag.run import Run
from gpudiag.schema import TRIALS, conform

T0 = pd.Timestamp("2026-03-01 09:00:00", tz="UTC")
OOM = "torch.OutOfMemoryError: CUDA out of memory."
ASSERT = "CUDA error: device-side assert triggered"


def run_of(rows: list[tuple[float, float, str, str | None]]) -> Run:
    """A run of trials (start_s, end_s, state, text)."""
    frame = pd.DataFrame(rows, columns=["start", "end", "state", "detail"])
    for name in ("start", "end"):
        frame[name] = T0 + pd.to_timedelta(frame[name], unit="s")
    return Run(trials=conform(frame.assign(study="s", trial=np.arange(len(frame))), TRIALS))


def test_what_so_many_trials_prove() -> None:
    assert most_if_none(50) == pytest.approx(0.0582, abs=1e-4)
    assert trials_to_show(1e-3) == 2995
    assert rate_without_streak(184, 50, 0.05) == pytest.approx(0.019, abs=5e-4)
    assert rate_without_streak(184, 50, 0.5) == pytest.approx(0.051, abs=5e-4)
    assert np.isnan(rate_without_streak(40, 50, 0.05)) and np.isnan(most_if_none(0))
    assert clean_chance(0.0582, 50) == pytest.approx(0.05, abs=5e-4)


def test_classes_are_kept_apart_and_a_poisoned_process_is_one_event() -> None:
    """One worker. An assert takes the two trials after it along; an overflow restarts the worker after 300 s."""
    from scipy import stats

    rows = [(100.0 * i, 100.0 * i + 99, "COMPLETE", None) for i in range(10)]
    rows += [(1000, 1050, "FAIL", ASSERT), (1051, 1053, "FAIL", ASSERT), (1054, 1056, "FAIL", ASSERT)]
    rows += [(1116, 1150, "FAIL", OOM), (1450, 1550, "COMPLETE", None)]
    found = find_crashes(run_of(rows))
    by = found.by_class.set_index("kind")
    assert by.loc["device_assert", ["n_trials", "n_events"]].tolist() == [3, 1]
    assert by.loc["oom", ["n_trials", "n_events"]].tolist() == [1, 1]
    assert found.n == 13 and found.n_finished == 15
    low, high = (float(stats.beta.ppf(q, *ab)) for q, ab in ((0.025, (1, 13)), (0.975, (2, 12))))
    assert by.loc["oom", ["low_pct", "high_pct"]].tolist() == pytest.approx([100 * low, 100 * high])
    assert found.success_streak == 10
    assert found.oom_restart_s.tolist() == [300]
    assert sorted(found.restart_s) == [60, 300]
    assert not found.takes_all


def test_crashes_by_number_at_once() -> None:
    """At two at once half run out of memory, alone none does."""
    from scipy import stats

    rows = [(1000.0 * i, 1000.0 * i + 500, "COMPLETE", None) for i in range(20)]
    for i in range(20):
        at = 30000.0 + 1000 * i
        rows += [
            (at, at + 900, "COMPLETE", None),
            (at + 5, at + 400, "FAIL" if i % 2 else "PRUNED", OOM if i % 2 else None),
        ]
    by = find_crashes(run_of(rows)).by_level.set_index("k")
    assert by.loc[1, ["n", "oom_events"]].tolist() == [40, 0]
    assert by.loc[2, ["n", "oom_events"]].tolist() == [20, 10]
    assert by.loc[2, "p_fisher"] == pytest.approx(stats.fisher_exact([[10, 10], [0, 40]], "greater").pvalue)
    assert np.isnan(by.loc[1, "p_fisher"])


def test_net_throughput_of_the_method_book() -> None:
    """9.3, 13.2 and 15 trials/h at 2, 3 and 4 at once; crash rates of 0.2, 4 and 12 %; 0.2 h lost each time."""
    rates, chances = (9.33, 13.2, 15.0), (0.002, 0.04, 0.12)
    for restart_h, expected in ((2 / 60, (9.3, 11.3, 9.3)), (1.0, (9.1, 7.8, 4.2))):
        found = [net_throughput(x, p, restart_h, 0.2) for x, p in zip(rates, chances, strict=True)]
        assert found == pytest.approx(expected, abs=0.1)


def test_an_interval_of_net_throughput_holds_its_worst_and_best() -> None:
    rate, chance = Estimate(12.0, 10.0, 14.0, "trials/h"), Estimate(5.0, 2.0, 9.0, "%")
    restart = Restart(Estimate(0.5, 0.4, 0.7, "h"), "seen")
    found = net_estimate(rate, chance, restart, 3)
    assert found.low == pytest.approx(10 * 0.91 / (1 + 10 * 0.09 * 0.7 / 3))
    assert found.high == pytest.approx(14 * 0.98 / (1 + 14 * 0.02 * 0.4 / 3))
    assert found.low < found.value < found.high
    together = net_estimate(rate, chance, replace(restart, whole=True), 3)
    assert together.value == pytest.approx(12 * 0.95 / (1 + 12 * 0.05 * (0.5 + 2 / 24)))
    nobody = net_estimate(rate, chance, restart_cost(np.empty(0), np.empty(0), None, False), 3)
    assert np.isnan(nobody.value) and "restart_min" in nobody.reason and nobody.low < nobody.high


def test_the_restart_is_given_seen_or_unknown() -> None:
    seen = np.array([60.0, 120, 240, 300, 3000])
    assert restart_cost(seen, seen[:2], None, False).hours.value == pytest.approx(240 / 3600)
    assert restart_cost(seen, seen, 10, False).hours == Estimate(1 / 6, 1 / 6, 1 / 6, "h")
    assert restart_cost(seen[:3], seen[:0], None, False).how == "unknown"


def test_no_memory_and_no_failure_is_fine() -> None:
    found = find_crashes(run_of([(0, 10, "COMPLETE", None), (20, 30, "PRUNED", None)]))
    assert found.by_class.empty and found.events() == 0 and found.success_streak == 2


def test_a_crash_costs_what_it_took_until_then() -> None:
    """A tenth of the time: of ten hours of one worker with half of its trials crashing, most is left for the others."""
    whole, tenth = (net_throughput(1.0, 0.5, 0.0, 0.0, part) for part in (1.0, 0.1))
    assert whole == pytest.approx(0.5) and tenth == pytest.approx(1 / 1.1)
    found = crash_part(np.array([60.0, 120.0] * 10), np.full(30, 900.0))
    assert found.value == pytest.approx(0.1) and found.low < 0.1 < found.high < 0.12
    few = crash_part(np.array([60.0]), np.full(30, 900.0))
    assert not few.known and (few.low, few.high) == (0.0, 1.0)
    rate, chance = Estimate(10.0, 9.0, 11.0, "1/h"), Estimate(50.0, 40.0, 60.0, "%")
    free = Restart(Estimate(0.0, 0.0, 0.0, "h"), "given")
    early, late = (net_estimate(rate, chance, free, 2, part) for part in (found, few))
    assert early.low > late.low and late.low == pytest.approx(9.0 * 0.4) and late.value == pytest.approx(5.0)
