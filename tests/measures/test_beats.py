"""What drops of utilization that repeat are: waits that long, or a beat of the samples with the steps of a training.

Each GPU is simulated as intervals of work, and sampled as the share of the last second (or sixth of one) that lies in
them. What is expected follows from the lengths that were simulated.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from smallruns import gpu, run, steps_of, trials

from gpudiag.analysis import Analysis
from gpudiag.load import load_run
from gpudiag.measures._waits.beats import too_sharp
from gpudiag.measures.stalls import measure_stalls
from gpudiag.rules import RULES
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.verdict import Verdict
from gpudiag.run import Run


def training(
    step_s: float, wait_s: float, n: int, *, every: int = 0, pause_s: float = 0.0, jitter_s: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Start and end of the work of each step, which waits first; and after every so many steps a pause."""
    rng = np.random.default_rng(5)
    took = step_s + jitter_s * rng.standard_normal(n)
    paused = np.where(np.arange(1, n + 1) % every == 0, pause_s, 0.0) if every else np.zeros(n)
    end = np.cumsum(took + paused) - paused
    return end - took + wait_s, end


def sampled(work: tuple[np.ndarray, np.ndarray], every_s: float, shown_s: float = 1.0) -> pd.DataFrame:
    start, end = work
    length = end - start
    edges, worked = np.column_stack([start, end]).ravel(), np.column_stack([length.cumsum() - length, length.cumsum()])
    at = np.arange(5.0, end[-1], every_s)
    share = np.interp(at, edges, worked.ravel()) - np.interp(at - shown_s, edges, worked.ravel())
    return gpu(at, util_pct=100 * share / shown_s)


def logged(work: tuple[np.ndarray, np.ndarray], each: int) -> pd.DataFrame:
    """A line every so many steps, by a clock of whole seconds."""
    done = np.arange(each, len(work[1]) + 1, each)
    return steps_of([(float(int(work[1][step - 1])), int(step)) for step in done])


def found(one: Run) -> dict[str, Verdict]:
    rules = tuple(rule for rule in RULES if rule.id in ("stalls-periodic", "stalls-aperiodic"))
    thresholds = {rule.id: dict(rule.thresholds) for rule in rules}
    return {verdict.rule: verdict for verdict in judge_all(rules, Analysis(one), thresholds)}


BEATS = [  # step, wait, sampling period, jitter; samples of the last two hold whole steps, and none shows full work
    (5.1, 1.5, 5.0, 0.0),
    (10.2, 3.0, 10.0, 0.0),
    (5.1, 1.5, 5.0, 0.05),
    (3.1, 0.8, 3.0, 0.02),
    (0.55, 0.25, 1.0, 0.0),
    (0.701, 0.3, 2.0, 0.0),
]


@pytest.mark.slow
@pytest.mark.parametrize(("step_s", "wait_s", "every_s", "jitter_s"), BEATS)
def test_waits_in_steps_that_beat_with_the_samples_are_told_as_such(
    step_s: float, wait_s: float, every_s: float, jitter_s: float
) -> None:
    work = training(step_s, wait_s, int(4600 / step_s), jitter_s=jitter_s)
    beats = run(gpu=sampled(work, every_s), steps=logged(work, 10))
    row = measure_stalls(beats).per_gpu.loc["0"]
    assert row["reading"] == "beat" and row["beat_s"] == pytest.approx(step_s, rel=0.01)
    turns = every_s / step_s
    assert row["period_s"] == pytest.approx(every_s / abs(turns - round(turns)), rel=0.1)
    assert row["lost_pct"] == pytest.approx(100 * wait_s / step_s, abs=1.5), "what each step waits, not the drops"
    told = found(beats)["stalls-periodic"].summary
    assert "waits in each step" in told and "drops by" not in told


def test_without_a_log_a_beat_and_a_pause_of_its_shape_are_both_said() -> None:
    said = found(run(gpu=sampled(training(5.1, 1.5, 900), 5.0)))["stalls-periodic"]
    assert "drops by" in said.summary and "Or it waits in each step, and 29 % is lost" in said.summary
    assert said.lost_gpu_h is not None and said.lost_gpu_h < 0.9 * 900 * 1.5 / 3600
    assert not said.held_gpu_h or said.held_gpu_h <= said.lost_gpu_h, "what is only possible hides no other finding"


@pytest.mark.slow
@pytest.mark.parametrize("shown_s", [1.0, 1 / 6])
def test_sharp_edges_show_pauses_without_a_log(shown_s: float) -> None:
    """60 s every 600 s, sampled every 2 s: an edge of a beat would last 600 s / 2 s times the time that is shown."""
    pauses = run(gpu=sampled(training(0.5, 0.02, 10_000, every=1080, pause_s=60.0), 2.0, shown_s))
    assert measure_stalls(pauses).per_gpu.at["0", "reading"] == "waits"
    assert "Or it waits" not in found(pauses)["stalls-periodic"].summary


@pytest.mark.slow
@pytest.mark.parametrize("every_s", [1.0, 5.0, 10.0])
def test_pauses_whose_period_is_that_of_a_beat_remain_pauses_by_the_log(every_s: float) -> None:
    """Steps that would beat with the samples every 40 of them, and a true pause as often."""
    step_s = every_s * (1 + 1 / 40)
    work = training(step_s, 0.0, 40 * 20, every=36, pause_s=40 * every_s - 36 * step_s)
    row = measure_stalls(run(gpu=sampled(work, every_s), steps=logged(work, 4))).per_gpu.loc["0"]
    assert row["reading"] == "waits" and row["period_s"] == pytest.approx(40 * every_s, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(("step_s", "wait_s"), [(12.0, 5.0), (4.0, 1.6)])
def test_a_wait_in_each_step_is_regular_and_its_time_is_told(step_s: float, wait_s: float) -> None:
    work = training(step_s, wait_s, 200)
    waits = run(gpu=sampled(work, 1.0), steps=logged(work, 10))
    verdicts, row = found(waits), measure_stalls(waits).per_gpu.loc["0"]
    assert row["period_s"] == pytest.approx(step_s, rel=0.01) and row["reading"] == "step"
    assert row["most_lost_pct"] == pytest.approx(100 * wait_s / step_s, abs=1)
    assert verdicts["stalls-periodic"].summary.startswith(f"GPU 0 waits in each step of {step_s:.0f} s: no kernel ran")
    assert verdicts["stalls-periodic"].remedy.startswith("Waits in each step are mostly for data.")
    assert verdicts["stalls-aperiodic"].status.value == "ok"


def test_the_step_that_a_bar_tells_is_the_period_too(tmp_path: Path) -> None:
    """A bar without timestamps, by a clock of whole seconds; each step of 3.7 s waits 2.5 s."""
    work = training(3.7, 2.5, 300, jitter_s=0.1)
    clock = [f"{int(end) // 60:02d}:{int(end) % 60:02d}" for end in work[1]]
    lines = [f"{n / 3:3.0f}%|###| {n}/300 [{clock[n - 1]}<10:00,  3.70s/it]" for n in range(1, 301)]
    (tmp_path / "train.log").write_text("\n".join(lines), encoding="utf-8")
    given = run(gpu=sampled(work, 1.0), steps=load_run(tmp_path, timezone="UTC").steps)
    said = found(given)["stalls-periodic"].summary
    assert said.startswith("GPU 0 waits in each step of 3.7 s") and "would look the same" not in said


def test_a_period_is_told_more_finely_than_it_is_sampled() -> None:
    """4.4 s sampled every second: the first peak is at 4 s."""
    row = measure_stalls(run(gpu=sampled(training(4.4, 1.6, 300), 1.0))).per_gpu.loc["0"]
    assert row["period_s"] == pytest.approx(4.4, rel=0.02)


def test_what_lies_off_the_period_costs_nothing_of_it() -> None:
    """Pauses of 15 s every 500 s, and once 180 s of a crash: the pauses cost 3 % of the time, not 3 % and 180 s."""
    at = np.arange(0.0, 5000, 1)
    low = (at % 500 >= 485) | ((at >= 2200) & (at < 2380))
    low[-20:] = False
    row = measure_stalls(run(gpu=gpu(at, util_pct=np.where(low, 0.0, 95.0)))).per_gpu.loc["0"]
    assert row["n_dips"] == 9 and row["width_s"] == pytest.approx(15, abs=1)
    assert row["lost_pct"] == pytest.approx(100 * 9 * 15 / 5000, abs=0.1)


def test_long_pauses_among_many_short_ones_are_those_of_the_period() -> None:
    """140 s every 600 s, among 20 single samples: a median over dips would be a single sample."""
    at = np.arange(0.0, 7200, 10)
    util = np.where(at % 600 >= 460, 0.0, 95.0)
    util[np.random.default_rng(3).choice(np.flatnonzero(at % 600 < 440), 20, replace=False)] = 0.0
    util[-20:] = 95.0
    row = measure_stalls(run(gpu=gpu(at, util_pct=util), trials=trials([("COMPLETE", -60, 7260)]))).per_gpu.loc["0"]
    assert row["n_dips"] == 11 and row["width_s"] == 140


def test_edges_by_hand() -> None:
    """40 edges, 100 s sampled every 5 s: where samples show 1/6 s, a beat has 20 / 30 / 2 in the middle of each."""
    assert pytest.approx(13.3, abs=0.1) == 40 * 20 / 30 / 2
    assert too_sharp(4, 40, 100.0, 5.0) and not too_sharp(5, 40, 100.0, 5.0)
    assert not too_sharp(0, 26, 100.0, 5.0), "fewer than nine expected are too few to miss"


@pytest.mark.slow
@pytest.mark.parametrize(("jitter_s", "shown_s"), [(0.25, 1 / 6), (0.5, 1.0)])
def test_waits_in_uneven_steps_are_no_irregular_waits_of_a_minute(jitter_s: float, shown_s: float) -> None:
    """Each step waits 1.5 s; samples 5 s apart join some of them. Without a log nobody can tell."""
    work = training(5.1, 1.5, 900, jitter_s=jitter_s)
    telemetry = sampled(work, 5.0, shown_s)
    told = found(run(gpu=telemetry, steps=logged(work, 10)))["stalls-aperiodic"]
    assert told.status.value == "not_assessed" and "go on through" in told.reason
    assert found(run(gpu=telemetry))["stalls-aperiodic"].status.value == "found"


@pytest.mark.parametrize(("every_s", "status"), [(30.0, "not_assessed"), (0.9, "found")])
def test_a_log_beside_two_gpus_may_be_of_either_where_samples_join_waits(every_s: float, status: str) -> None:
    """Each step of 2 s waits 1.3 s. GPU 1 is of the same training, or, sampled twice a step, surely waits by itself."""
    work = training(2.0, 1.3, 2400, jitter_s=0.1)
    seen = sampled(work, every_s)
    other = seen if status == "not_assessed" else sampled(training(60.0, 24.0, 80, jitter_s=9.0), every_s)
    telemetry = pd.concat([seen, other.assign(gpu="1")])
    assert found(run(gpu=telemetry, steps=logged(work, 10)))["stalls-aperiodic"].status.value == status
    assert found(run(gpu=telemetry))["stalls-aperiodic"].status.value == "found"


@pytest.mark.slow
def test_irregular_waits_that_the_log_shows_remain() -> None:
    rng = np.random.default_rng(8)
    took = 2.0 + np.where(rng.random(900) < 0.03, rng.uniform(10, 60, 900), 0.0)
    end = np.cumsum(took)
    work = end - 1.96, end
    told = found(run(gpu=sampled(work, 2.0), steps=logged(work, 10)))["stalls-aperiodic"]
    assert told.status.value == "found"


@pytest.mark.parametrize(
    ("period_s", "wait_s", "every_s"), [(125.0, 20.0, 60.07), (100.0, 17.0, 30.3), (3.0, 0.4, 1.01)]
)
def test_waits_in_single_samples_have_no_number_and_no_length(period_s: float, wait_s: float, every_s: float) -> None:
    seen = sampled(training(period_s, wait_s, 2000), every_s, shown_s=every_s / 100)
    said = found(run(gpu=seen.assign(util_pct=seen["util_pct"].clip(0, 100))))["stalls-aperiodic"]
    assert said.status.value == "found" and "do not show how many waits" in said.summary
    assert said.evidence["stalled_pct"] == pytest.approx(100 * wait_s / period_s, abs=1)


def test_waits_of_several_samples_are_counted() -> None:
    rng = np.random.default_rng(2)
    busy, idle = rng.uniform(20, 200, 60), rng.uniform(10, 40, 60)
    end = np.cumsum(busy + idle)
    said = found(run(gpu=sampled((end - busy, end), 2.0)))["stalls-aperiodic"]
    assert "waits of up to" in said.summary and abs(float(said.evidence["n_stalls"]) - 60) <= 2  # type: ignore[arg-type]
