"""What the GPUs waited for: causes add up to the time without a kernel, and are right where the truth is known."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from drawn import few_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from smallruns import SECOND, T0, gpu, run, steps_of, trials

import gpudiag as gd
from gpudiag.measures._waits.by_trace import CAUSES as TRACED
from gpudiag.measures.causes import CAUSES, CausesProfile, measure_causes
from gpudiag.schema import PROFILED, STEPS, conform

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
import accuracy_causes


def profiled(step_s: float, **shares: float) -> pd.DataFrame:
    """One trace of ten such steps; what is not named is computing."""
    states = {name: 0.0 for name in PROFILED.names if name.endswith("_pct")} | shares
    idle = sum(value for name, value in shares.items() if name != "copy_pct")
    states |= {"idle_pct": idle, "compute_pct": 100 - sum(shares.values())}
    row = {"path": "t.json", "gpu": "0", "time": T0 + 100 * SECOND, "n_steps": 10, "window_s": 10 * step_s}
    return conform(pd.DataFrame([row | {"step_s": step_s} | states]), PROFILED)


def shares(profile: CausesProfile) -> dict[str, float]:
    return profile.by_cause["share_pct"].round(6).to_dict()


def training(util: float = 40.0, seconds: int = 600) -> pd.DataFrame:
    """A GPU at such utilization for ten minutes, idle for a minute before and after."""
    busy = [0.0] * 60 + [util] * seconds + [0.0] * 60
    return gpu(range(-60, seconds + 60), util_pct=busy)


LINES = [(10.0 * k, 10 * k) for k in range(1, 61)]
"""A step a second."""


def test_without_a_log_work_is_unknown_and_the_rest_lies_outside() -> None:
    found = shares(measure_causes(run(gpu=training())))
    assert found == {"outside": pytest.approx(100 * 120 / 720), "unknown": pytest.approx(60 * 600 / 720)}


def test_trials_tell_their_start_up_and_their_end() -> None:
    table = trials([("COMPLETE", -60, 660)])
    found = measure_causes(run(gpu=training(), trials=table)).by_cause
    assert found.at["startup", "gpu_s"] == pytest.approx(60, abs=2)
    assert found.at["tail", "gpu_s"] == pytest.approx(60, abs=2)
    assert "outside" not in found.index or found.at["outside", "gpu_s"] < 1


def test_a_wait_for_data_lies_between_what_fits_nowhere_else_and_all_of_it() -> None:
    """Of each second 0.7 wait for data, and a kernel runs for 0.4: at least 0.3 of the wait are idle."""
    found = measure_causes(run(gpu=training(), steps=steps_of(LINES, step_s=1.0, loader_s=0.7))).by_cause
    row = found.loc["loader"]
    logged = 600.0  # the first line states the time of the steps before it
    assert row["source"] == "log"
    assert (row["low_gpu_s"], row["high_gpu_s"]) == pytest.approx((0.3 * logged, 0.6 * logged), rel=0.01)
    assert row["gpu_s"] == pytest.approx(0.6 * logged, rel=0.01), "no more than is idle"
    assert found.at["unknown", "gpu_s"] == pytest.approx(0, abs=5)


@pytest.mark.slow
def test_a_pause_has_the_idle_time_that_its_steps_do_not_have() -> None:
    """A step a second, and after 300 steps a checkpoint of 40 seconds."""
    util = np.full(700, 40.0)
    util[300:340] = 0.0
    lines = [(at if step <= 300 else at + 40, step) for at, step in LINES]
    for stated_s in (math.nan, 40.0):
        log = steps_of(lines, since={310: "checkpoint"})
        log = conform(log.assign(checkpoint_s=np.where(log["step"] == 310, stated_s, np.nan)), STEPS)
        row = measure_causes(run(gpu=gpu(range(700), util_pct=util), steps=log)).by_cause.loc["checkpoint"]
        assert row["gpu_s"] == pytest.approx(40, abs=1.5)
        assert row["low_gpu_s"] - 1.5 <= 40 <= row["high_gpu_s"] + 1.5
        assert row["low_gpu_s"] == (0 if math.isnan(stated_s) else pytest.approx(40, abs=5)), (
            "what else it held is open"
        )


def test_the_rest_of_a_pause_is_idle_as_far_as_the_checkpoint_was_not() -> None:
    """The GPU is idle for 40 of 60 seconds of a pause, of which a checkpoint took 30."""
    util = np.full(700, 40.0)
    util[300:340] = 0.0
    lines = [(at if step <= 300 else at + 60, step) for at, step in LINES]
    log = steps_of(lines, since={310: "checkpoint"})
    log = conform(log.assign(checkpoint_s=np.where(log["step"] == 310, 30.0, np.nan)), STEPS)
    util[340:360] = 100.0
    found = measure_causes(run(gpu=gpu(range(700), util_pct=util), steps=log)).by_cause
    for cause, low_s, high_s in (("checkpoint", 10, 30), ("pause", 10, 30)):
        assert found.at[cause, "low_gpu_s"] == pytest.approx(low_s, abs=1.5)
        assert found.at[cause, "high_gpu_s"] == pytest.approx(high_s, abs=1.5)
    assert found.loc[["checkpoint", "pause"], "gpu_s"].tolist() == pytest.approx([30, 10], abs=1.5)


@pytest.mark.parametrize(
    ("since", "cause"),
    [
        ("evaluation", "evaluation"),
        ("evaluation, checkpoint", "evaluation_checkpoint"),
        (None, "pause"),
        ("resumption, checkpoint", "restart"),
    ],
)
def test_what_the_log_tells_of_names_a_pause(since: str | None, cause: str) -> None:
    util = np.full(700, 40.0)
    util[300:340] = 0.0
    lines = [(at if step <= 300 else at + 40, step) for at, step in LINES]
    told = {310: since} if since else {}
    found = measure_causes(run(gpu=gpu(range(700), util_pct=util), steps=steps_of(lines, since=told))).by_cause
    assert found.at[cause, "gpu_s"] == pytest.approx(40, abs=1.5)


def test_a_log_of_one_of_two_gpus_is_no_proof_for_either() -> None:
    both = pd.concat([gpu(range(600), g, util_pct=40.0) for g in ("0", "1")], ignore_index=True)
    found = measure_causes(run(gpu=both, steps=steps_of(LINES, step_s=1.0, loader_s=0.7))).by_cause
    assert found.at["loader", "low_gpu_s"] == 0 and found.at["loader", "high_gpu_s"] > 600


def test_trainings_that_share_a_gpu_say_nothing_of_it() -> None:
    table = trials([("COMPLETE", 0, 600), ("COMPLETE", 0, 600)])
    found = measure_causes(
        run(gpu=gpu(range(600), util_pct=40.0), trials=table, steps=steps_of(LINES, step_s=1.0, loader_s=0.7))
    )
    assert "loader" not in found.by_cause.index and not found.has_log


def test_logs_of_trials_count_where_their_trial_ran() -> None:
    both = pd.concat([gpu(range(600), g, util_pct=40.0) for g in ("0", "1")], ignore_index=True)
    table = trials([("COMPLETE", 0, 600), ("COMPLETE", 0, 600)], gpu=["0", "1"])
    log = pd.concat(
        [steps_of(LINES, step_s=1.0, loader_s=0.5, trial=0), steps_of(LINES, step_s=1.0, trial=1, path="b")]
    )
    found = measure_causes(run(gpu=both, trials=table, steps=conform(log, STEPS))).causes
    told = found[found["cause"] == "loader"]
    assert told["gpu"].tolist() == ["0"] and told["gpu_s"].iloc[0] == pytest.approx(300, rel=0.03)


def test_profiled_steps_stand_for_all_where_they_are_alike() -> None:
    """Half of each second idle: 0.3 for launching and 0.2 for other code, in the trace as in the run."""
    what = run(gpu=training(50.0), steps=steps_of(LINES, step_s=1.0))
    like = replace(what, profiled=profiled(1.0, operator_pct=20.0, optimizer_pct=10.0, other_pct=20.0))
    found = measure_causes(like)
    assert found.trace_fit == ""
    assert found.by_cause.at["launch", "gpu_s"] == pytest.approx(180, rel=0.01)
    assert found.by_cause.at["host", "gpu_s"] == pytest.approx(120, rel=0.01)
    assert found.by_cause.loc[["launch", "host"], "source"].tolist() == ["trace", "trace"]


def test_gaps_between_queued_kernels_are_of_no_cause_of_the_host() -> None:
    """Half of each second idle: 0.3 for launching and 0.2 between queued kernels, which no source explains."""
    what = run(gpu=training(50.0), steps=steps_of(LINES, step_s=1.0))
    found = measure_causes(replace(what, profiled=profiled(1.0, operator_pct=30.0, queued_pct=20.0)))
    assert found.trace_fit == ""
    launch = found.by_cause.loc["launch"]
    assert (launch["gpu_s"], launch["low_gpu_s"], launch["high_gpu_s"]) == pytest.approx((180, 180, 180), rel=0.01)
    assert "sync" not in found.by_cause.index and found.by_cause.at["unknown", "gpu_s"] == pytest.approx(120, rel=0.02)


def test_a_profiler_that_slows_the_host_leaves_bounds() -> None:
    """The profiled step takes 1.1 s with the same 0.5 s of kernels: a tenth of a second of it is the profiler's."""
    what = run(gpu=training(50.0), steps=steps_of(LINES, step_s=1.0))
    shown = profiled(1.1, operator_pct=100 * 0.4 / 1.1, other_pct=100 * 0.2 / 1.1)
    row = measure_causes(replace(what, profiled=shown)).by_cause.loc["launch"]
    assert row["gpu_s"] == pytest.approx(600 * 0.4 * 0.5 / 0.6, rel=0.02)
    assert (row["low_gpu_s"], row["high_gpu_s"]) == pytest.approx((600 * 0.3, 600 * 0.4), rel=0.02)


@pytest.mark.parametrize(
    ("trace", "steps", "fit"),
    [
        (profiled(1.4, operator_pct=50.0), steps_of(LINES, step_s=1.0), "other_steps"),
        (profiled(1.0, operator_pct=10.0), steps_of(LINES, step_s=1.0), "other_work"),
        (profiled(1.0, operator_pct=50.0), None, "no_step_times"),
        (profiled(1.0, operator_pct=50.0).assign(n_steps=2), steps_of(LINES, step_s=1.0), "few_steps"),
        (profiled(1.0, operator_pct=50.0).assign(time=T0 + 90_000 * SECOND), steps_of(LINES, step_s=1.0), "other_time"),
        (None, steps_of(LINES, step_s=1.0), "none"),
    ],
)
def test_profiled_steps_that_are_not_alike_say_nothing(
    trace: pd.DataFrame | None, steps: pd.DataFrame | None, fit: str
) -> None:
    what = run(gpu=training(50.0), **({} if steps is None else {"steps": steps}))
    found = measure_causes(what if trace is None else replace(what, profiled=trace))
    assert found.trace_fit == fit
    assert not set(found.by_cause.index) & (set(TRACED) - {"loader"})


@pytest.mark.slow
@given(
    util=st.lists(st.floats(0, 100), min_size=30, max_size=120),
    spacing=st.integers(1, 20),
    wait=st.floats(0, 3),
    traced=st.floats(0, 90),
    data=st.data(),
)
@settings(max_examples=few_of(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_causes_add_up_and_lie_within_their_bounds(
    util: list[float], spacing: int, wait: float, traced: float, data: st.DataObject
) -> None:
    times = np.cumsum(data.draw(st.lists(st.sampled_from([1, 1, 1, 5, 60]), min_size=len(util), max_size=len(util))))
    lines = [(float(times[0] + k * spacing), k + 1) for k in range(int(times[-1] - times[0]) // spacing)]
    told = {step: data.draw(st.sampled_from(["evaluation", "checkpoint", "resumption"])) for _, step in lines[5:9]}
    table = trials([("COMPLETE", float(times[0]), float(times[-1]))]) if data.draw(st.booleans()) else None
    what = run(gpu=gpu(times, util_pct=util), **({} if table is None else {"trials": table}))
    log = steps_of(lines, step_s=float(spacing), loader_s=wait, since=told) if lines else what.steps
    what = replace(what, steps=log, profiled=profiled(float(spacing), operator_pct=traced))
    try:
        found = measure_causes(what)
    except gd.NotMeasurable:
        return
    rows = found.by_cause
    assert rows["gpu_s"].sum() == pytest.approx(found.unused_gpu_s, abs=1e-6)
    assert found.causes["gpu_s"].sum() == pytest.approx(found.unused_gpu_s, abs=1e-6)
    assert (rows["gpu_s"] >= 0).all() and list(rows.index) == [cause for cause in CAUSES if cause in rows.index]
    named = rows.drop(index="unknown")
    assert (named["low_gpu_s"] <= named["gpu_s"] + 1e-9).all() and (named["gpu_s"] <= named["high_gpu_s"] + 1e-9).all()
    assert rows.at["unknown", "high_gpu_s"] + named["low_gpu_s"].sum() == pytest.approx(found.unused_gpu_s, abs=1e-6)


@pytest.mark.slow
@pytest.mark.many
@pytest.mark.parametrize("seed", [731, 732, 733])
def test_causes_of_simulated_trainings(seed: int) -> None:
    """A few of the runs of benchmarks/accuracy_causes.py, on seeds of their own."""
    told = pd.DataFrame(accuracy_causes.rows(seed))
    told = told[told["reading"].isin(["log with waits", "log and trace"]) & ~told["cause"].str.startswith("sign")]
    beyond = np.maximum(np.maximum(told["low"] - told["true"], told["true"] - told["high"]), 0)
    assert beyond.max() < 8 and np.quantile(beyond, 0.9) < 3
    named = told[told["cause"].isin(["loader", "pauses", "outside", "restart", "first_steps"])]
    assert (named["found"] - named["true"]).abs().median() < 2
