"""The wait for the loader is a mean: of all batches, whatever single reports say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from smallruns import at, gpu, run
from verdicts import verdict_of

import gpudiag as gd
from gpudiag.measures.bottleneck import measure_bottleneck
from gpudiag.measures.feed import measure_feed
from gpudiag.measures.loader import LoaderProfile, measure_loader
from gpudiag.measures.steps import measure_steps
from gpudiag.rules._engine.verdict import Status
from gpudiag.run import Run
from gpudiag.schema import EVENTS, HOST, conform


def told(*details: str) -> LoaderProfile:
    table = pd.DataFrame({"time": at(range(len(details))), "kind": "loader", "detail": details})
    return measure_loader(run(events=conform(table, EVENTS)))


def recorded(wait_ms: float, n: int, step_ms: float) -> str:
    return f"DataLoader avg {wait_ms} ms over {n} batches, {1000 / step_ms:.6f} batch/s"


def test_reports_of_a_recording_count_by_their_batches() -> None:
    """A first epoch from the disk, then four from memory: 400 of 2,000 batches waited for 150 ms."""
    found = told(recorded(150.0, 400, 250.0), *[recorded(0.0, n, 100.0) for n in (700, 800, 100)])
    assert found.avg_ms == pytest.approx(400 * 150 / 2000)
    assert found.step_ms == pytest.approx((400 * 250 + 1600 * 100) / 2000)
    assert found.of_step_pct == pytest.approx(100 * 30 / 130)
    assert (found.n_lines, found.worst_ms, found.least_ms, found.line_batches) == (4, 150, 0, 500)


@pytest.mark.parametrize("end", [", max: 800.0ms, ", " | "])
def test_lines_that_count_no_batches_count_alike(end: str) -> None:
    """Two of three windows wait for nothing: the median wait is none, the mean is not; with or without a maximum."""
    rows = [(0.0, 10.0), (0.0, 10.0), (400.0, 2.0)] * 20
    found = told(*[f"epoch 1 | DataLoader avg: {wait}ms{end}{rate:.2f} batch/s" for wait, rate in rows])
    assert found.avg_ms == pytest.approx(400 / 3) and found.step_ms == pytest.approx((100 + 100 + 500) / 3)
    assert found.of_step_pct == pytest.approx(100 * 400 / 700)


def test_rates_of_other_lines_make_a_mean_time_of_a_step() -> None:
    found = told(
        "DataLoader avg: 10ms, max: 20ms", "time: 1 min | 50.0 batch/s", "DataLoader avg: 110ms, max: 220ms",
        "time: 2 min | 5.0 batch/s", "time: 0 min | 0.0 batch/s",
    )  # fmt: skip
    assert found.avg_ms == 60 and found.step_ms == pytest.approx((20 + 200) / 2)


def written(folder: Path, lines: Sequence[str]) -> Run:
    (folder / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return gd.load_run(folder, timezone="UTC")


def steps_log(waits_s: Sequence[float], pauses: dict[int, tuple[float, str]], *, per_epoch: int) -> list[str]:
    """A line each 50 steps of 0.1 s and their wait; ``pauses``: before a line, its seconds and what the log tells."""
    now, out = datetime(2026, 3, 1, 10), []
    for k, wait_s in enumerate(waits_s):
        pause_s, word = pauses.get(k, (0.0, ""))
        if word:
            out.append(f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03d} INFO {word}")
        now += timedelta(seconds=pause_s + 50 * (0.1 + wait_s))
        stamp = f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03d}"
        rate = 1 / (0.1 + wait_s)
        line = f"epoch {k // per_epoch} step {50 * k + 50} loss 2.5 | DataLoader avg: {1000 * wait_s:.1f}ms"
        out.append(f"{stamp} INFO {line} | {rate:.4f} batch/s")
    return out


def test_long_waits_that_lines_on_steps_state_are_the_loader_s_and_no_pauses(tmp_path: Path) -> None:
    waits_s = [0.4 if k % 3 == 2 else 0.0 for k in range(60)]
    run = written(tmp_path, steps_log(waits_s, {}, per_epoch=60))
    found, steps = measure_loader(run), measure_steps(run)
    mean_s = sum(waits_s) / len(waits_s)
    assert found.avg_ms == pytest.approx(1000 * mean_s) and found.n_lines == 60 and found.line_batches == 50
    assert found.of_step_pct == pytest.approx(100 * mean_s / (0.1 + mean_s), rel=0.001)
    assert (steps.n_pauses, steps.unnamed_s) == (0, 0)


def test_pauses_without_a_name_are_told_apart_by_epochs(tmp_path: Path) -> None:
    """Twelve lines an epoch: 16 s pass where each begins, 30 s of a checkpoint once, and 40 s within an epoch."""
    pauses = {k: (16.0, "") for k in (12, 24, 36)} | {48: (30.0, "saving checkpoint a.pt"), 53: (40.0, "")}
    steps = measure_steps(written(tmp_path, steps_log([0.0] * 60, pauses, per_epoch=12)))
    assert steps.unnamed_s == pytest.approx(3 * 16 + 40, rel=0.01)
    assert steps.unnamed_between_epochs_s == pytest.approx(3 * 16, rel=0.01)
    assert steps.between_epochs_s == pytest.approx(3 * 16 + 30, rel=0.01), "nothing states how long the checkpoint took"


def test_a_stated_checkpoint_is_no_start_of_an_epoch(tmp_path: Path) -> None:
    lines = steps_log([0.0] * 60, {k: (25.0, "saving checkpoint a.pt") for k in (12, 24, 36, 48)}, per_epoch=12)
    done = [
        [line, line.replace("saving checkpoint a.pt", "checkpoint saved in 25.00 seconds")]
        if "saving" in line
        else [line]
        for line in lines
    ]
    steps = measure_steps(written(tmp_path, [line for pair in done for line in pair]))
    assert steps.checkpoints_low_s == pytest.approx(100, rel=0.05) and steps.between_epochs_s < 2


def test_without_a_word_on_epochs_nobody_knows_their_start(tmp_path: Path) -> None:
    lines = [line.replace("epoch 0 ", "") for line in steps_log([0.0] * 60, {}, per_epoch=60)]
    steps = measure_steps(written(tmp_path, lines))
    assert steps.between_epochs_s != steps.between_epochs_s


def test_io_wait_counts_beside_a_gpu_that_is_never_idle() -> None:
    seconds = np.arange(0, 1000, 5.0)
    wait = np.where(np.arange(len(seconds)) % 4, 60.0, 10.0)
    host = conform(pd.DataFrame({"time": at(seconds), "io_wait_pct": wait}), HOST)
    (row,) = measure_feed(run(gpu=gpu(seconds, util_pct=40.0), host=host)).per_gpu.to_dict("records")
    assert row["io_wait_pct"] == pytest.approx(75, abs=1) and row["io_starved_pct"] == 0


@pytest.mark.parametrize(
    ("cores", "share_pct", "most_pct"), [(None, np.nan, 100.0), (8, 0.0, 0.0), (10, 75.0, 75.0), (16, 75.0, 75.0)]
)
def test_io_wait_counts_by_the_cores_that_it_holds(cores: int | None, share_pct: float, most_pct: float) -> None:
    """I/O wait of 10 % for three quarters of the time, else of 2 %: on 10 cores or more it holds 90 % of one."""
    seconds = np.arange(0, 1000, 5.0)
    wait = np.where(np.arange(len(seconds)) % 4, 10.0, 2.0)
    host = conform(pd.DataFrame({"time": at(seconds), "host_cores": cores or np.nan, "io_wait_pct": wait}), HOST)
    made = run(gpu=gpu(seconds, util_pct=40.0), host=host, settings={"cpu_cores": 64})  # that the job may use
    (row,) = measure_feed(made).per_gpu.to_dict("records")
    assert row["io_soft_starved_pct"] == pytest.approx(share_pct, abs=1, nan_ok=True)
    assert row["most_io_soft_starved_pct"] == pytest.approx(most_pct, abs=1)
    status = verdict_of(made, "io-wait").status
    assert status is {None: Status.NOT_ASSESSED, 8: Status.OK}.get(cores, Status.FOUND)
    assert row["io_cores"] == pytest.approx(0.08 * (cores or np.nan), rel=0.02, nan_ok=True)


@pytest.mark.parametrize(
    ("columns", "least_pct", "most_pct"),
    [
        ({}, 1.5, np.nan),
        ({"host_cores": 64.0}, 1.5, 96.0),  # all that 64 cores do, one may do
        ({"host_cores": 8.0}, 1.5, 12.0),
        ({"host_cores": 64.0, "cpu_max_core_pct": 20.0}, 20.0, 20.0),
        ({"process_cpu_max_pct": 30.0}, 30.0, 30.0),
    ],
)
def test_the_mean_of_many_cores_bounds_the_busiest(
    columns: dict[str, float], least_pct: float, most_pct: float
) -> None:
    """1.5 % of all cores."""
    seconds = np.arange(0, 1000, 5.0)
    host = conform(pd.DataFrame({"time": at(seconds), "cpu_pct": 1.5, **columns}), HOST)
    made = run(gpu=gpu(seconds, util_pct=40.0, mem_used_mib=900.0, mem_total_mib=8000.0), host=host)
    (row,) = measure_feed(made).per_gpu.to_dict("records")
    assert row["p95_cpu_pct"] == pytest.approx(most_pct, nan_ok=True)
    assert row["least_p95_cpu_pct"] == least_pct
    small = most_pct < 70
    assert measure_bottleneck(made).label == ("small_work" if small else "")
    status = verdict_of(made, "batch-or-kernels-small").status
    assert status is (Status.FOUND if small else Status.NOT_ASSESSED)


@pytest.mark.parametrize(
    ("cores", "own", "most_pct"), [(64.0, 4.0, 100.0), (64.0, 5.0, 0.0), (64.0, 64.0, 0.0), (np.nan, 4.0, np.nan)]
)
def test_the_few_cores_of_a_job_may_be_full_where_the_host_is_not(cores: float, own: float, most_pct: float) -> None:
    """6 % of 64 cores are 3.8: more than 90 % of four, less of five."""
    seconds = np.arange(0, 1000, 5.0)
    columns = {"cpu_pct": 6.0, "cpu_max_core_pct": 99.0, "host_cores": cores, "cpu_cores": own}
    host = conform(pd.DataFrame({"time": at(seconds), **columns}), HOST)
    made = run(gpu=gpu(seconds, util_pct=60.0), host=host)
    (row,) = measure_feed(made).per_gpu.to_dict("records")
    assert row["most_full_starved_pct"] == pytest.approx(most_pct, nan_ok=True) and row["full_starved_pct"] == 0
    status = verdict_of(made, "cpu-bound-input").status
    assert status is (Status.NOT_ASSESSED if most_pct == 100 else Status.OK)


@pytest.mark.parametrize(("wait_pct", "util_pct"), [(0.0, 40.0), (0.01, 40.0), (10.0, 60.0)])
def test_no_io_wait_and_a_gpu_that_works_need_no_number_of_cores(wait_pct: float, util_pct: float) -> None:
    """0.01 % of the most cores that there can be is 0.8 of one."""
    seconds = np.arange(0, 1000, 5.0)
    host = conform(pd.DataFrame({"time": at(seconds), "io_wait_pct": wait_pct}), HOST)
    made = run(gpu=gpu(seconds, util_pct=util_pct), host=host)
    assert verdict_of(made, "io-wait").status is Status.OK


def test_full_cores_count_beside_a_gpu_below_its_limit() -> None:
    """The mean of all cores is at 95 % for three quarters of the time, half of it beside a GPU at 69 %."""
    seconds = np.arange(0, 1000, 5.0)
    place = np.arange(len(seconds))
    host = conform(pd.DataFrame({"time": at(seconds), "cpu_pct": np.where(place % 4, 95.0, 85.0)}), HOST)
    util = np.where(place < len(seconds) / 2, 69.0, 71.0)
    (row,) = measure_feed(run(gpu=gpu(seconds, util_pct=util), host=host)).per_gpu.to_dict("records")
    assert row["full_starved_pct"] == pytest.approx(37.5, abs=1)
