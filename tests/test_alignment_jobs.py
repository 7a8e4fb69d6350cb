"""Jobs of Slurm beside telemetry and their logs: what shows how their clocks lie, for few jobs too."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import gpudiag as gd
from gpudiag.alignment.job_ends import pinned_ends
from gpudiag.alignment.job_logs import bounds_by_logs
from gpudiag.alignment.signals import SampleTimes
from gpudiag.analysis import Analysis
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.rule import check_thresholds
from gpudiag.rules.clock import clocks_apart, clocks_differ
from gpudiag.run import Run

BEGIN = datetime(2026, 3, 4, 8)
EVENLY = ((300, 3000), (3300, 5100), (5700, 8400), (8460, 10_800))
PERIOD_S = 5
CLOCK_RULES = (clocks_apart, clocks_differ)


@dataclass(frozen=True)
class Jobs:
    """Jobs from s to s of the telemetry's clock; the scheduler's is ``ahead_s`` ahead. Each waits without a process,
    starts for 40 s, takes its steps, and is over 4 s after the last of them.
    """

    spans: tuple[tuple[int, int], ...] = EVENLY
    ahead_s: int = 0
    waits_s: tuple[int, ...] = (0, 0, 0, 0)
    log_name: str = ""
    log_ahead_s: int = 0
    memory: bool = True
    foreign: tuple[int, int] = (0, 0)


def at(second: float, form: str = "%Y-%m-%dT%H:%M:%S") -> str:
    return (BEGIN + timedelta(seconds=second)).strftime(form)


def loaded(folder: Path, jobs: Jobs) -> Run:
    folder.mkdir(parents=True, exist_ok=True)
    rows = ["JobID|JobName|State|Start|End|NodeList|AllocTRES"]
    working, holding = list[tuple[int, int]](), list[tuple[int, int]]()
    for k, (start, end) in enumerate(jobs.spans):
        began = start + jobs.waits_s[k] + 40
        working.append((began, end - 4))
        holding.append((began - 35, end - 2))
        times = f"{at(start + jobs.ahead_s)}|{at(end + jobs.ahead_s)}"
        rows.append(f"{4471 + 3 * k}|train{k}|COMPLETED|{times}|n01|gres/gpu=1,node=1")
        if jobs.log_name:
            lines = [(start + 1, "loading data")]
            lines += [(s, f"step {(s - began) * 2}/100000 loss 0.5") for s in range(began + 25, end - 4, 25)]
            text = "".join(f"{at(s + jobs.log_ahead_s, '%Y-%m-%d %H:%M:%S')} INFO {said}\n" for s, said in lines)
            (folder / jobs.log_name.format(id=4471 + 3 * k, k=k)).write_text(text, encoding="utf-8")
    (folder / "sacct.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    samples = ["timestamp, index, utilization.gpu [%]" + ", memory.used [MiB]" * jobs.memory]
    for second in range(0, jobs.spans[-1][1] + 400, PERIOD_S):
        busy = any(low <= second < high for low, high in (*working, jobs.foreign))
        held = any(low <= second < high for low, high in (*holding, jobs.foreign))
        memory = f", {30_000 if held else 4} MiB" if jobs.memory else ""
        samples.append(f"{at(second, '%Y/%m/%d %H:%M:%S')}.000, 0, {93 if busy else 0} %{memory}")
    (folder / "gpu.csv").write_text("\n".join(samples) + "\n", encoding="utf-8")
    return gd.load_run(folder, timezone="UTC")


NAMED = Jobs(log_name="slurm-{id}.out")
WAITING = (900, 300, 600, 1200)


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("waits_s", [(0, 0, 0, 0), WAITING])
@pytest.mark.parametrize("log_name", ["", "slurm-{id}.out", "train_{k}.log"])
def test_equal_clocks_are_taken_as_they_are(tmp_path: Path, n: int, waits_s: tuple[int, ...], log_name: str) -> None:
    run = loaded(tmp_path, Jobs(EVENLY[:n], waits_s=waits_s, log_name=log_name))
    clock = run.info.clock
    assert (clock.applied_s, clock.exact, clock.doubt_s) == (0, True, 0)
    verdicts = judge_all(CLOCK_RULES, Analysis(run), check_thresholds(CLOCK_RULES, {}))
    assert [verdict.status for verdict in verdicts] == ["ok", "ok"]


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("ahead_s", [-90, -40, 40, 90])
def test_seconds_are_told_by_logs_of_any_number_of_jobs(tmp_path: Path, n: int, ahead_s: int) -> None:
    run = loaded(tmp_path, replace(NAMED, spans=EVENLY[:n], ahead_s=ahead_s))
    bounds = bounds_by_logs(run, PERIOD_S)
    assert bounds is not None and not bounds.as_shown and bounds.n == n
    assert bounds.low_s <= -ahead_s <= bounds.high_s == 1 - ahead_s
    clock = run.info.clock
    assert (clock.confidence, clock.applied_s, clock.exact, clock.method) == ("weak", 0, False, "logs")
    assert bounds.low_s <= clock.offset_s <= bounds.high_s and abs(ahead_s) <= clock.doubt_s + 29
    assert "outside the jobs that the files name" in str(clock.evidence)


@pytest.mark.parametrize("waits_s", [(0, 0, 0, 0), WAITING])
@pytest.mark.parametrize("ahead_s", [-90, -40, 40, 90])
def test_seconds_are_told_by_memory_at_the_ends(tmp_path: Path, ahead_s: int, waits_s: tuple[int, ...]) -> None:
    clock = loaded(tmp_path, Jobs(ahead_s=ahead_s, waits_s=waits_s)).info.clock
    assert (clock.confidence, clock.applied_s, clock.exact, clock.method) == ("weak", 0, False, "ends")
    assert abs(clock.offset_s + ahead_s) <= 2 + PERIOD_S


@pytest.mark.parametrize("log_name", ["", "slurm-{id}.out"])
@pytest.mark.parametrize("ahead_s", [-3600, 3600, 5 * 3600 + 1800])
@pytest.mark.parametrize("waits_s", [(0, 0, 0, 0), WAITING])
def test_another_zone_is_found_and_put_right(
    tmp_path: Path, ahead_s: int, waits_s: tuple[int, ...], log_name: str
) -> None:
    run = loaded(tmp_path, Jobs(ahead_s=ahead_s, waits_s=waits_s, log_name=log_name))
    clock = run.info.clock
    assert (clock.confidence, clock.applied_s, clock.exact) == ("strong", -ahead_s, True)
    assert run.trials["start"].iloc[0].strftime("%H:%M:%S") == at(EVENLY[0][0], "%H:%M:%S")


@pytest.mark.parametrize(("log_name", "method"), [("", "ends"), ("slurm-{id}.out", "logs")])
@pytest.mark.parametrize("ahead_s", [-3640, -3560, 3640])
def test_of_another_zone_and_seconds_the_zone_is_put_right(
    tmp_path: Path, ahead_s: int, log_name: str, method: str
) -> None:
    clock = loaded(tmp_path, Jobs(ahead_s=ahead_s, waits_s=WAITING, log_name=log_name)).info.clock
    assert (clock.confidence, clock.method, clock.exact) == ("strong", method, False)
    assert abs(clock.applied_s + ahead_s) == 40 and 40 <= clock.doubt_s + 7 <= 40 + 7 + 29
    assert f"state clock_offset_s = {'-' if ahead_s > 0 else ''}3" in str(clock.evidence)


@pytest.mark.parametrize("n", [1, 2])
def test_logs_show_another_zone_of_a_single_job(tmp_path: Path, n: int) -> None:
    clock = loaded(tmp_path, replace(NAMED, spans=EVENLY[:n], ahead_s=3600)).info.clock
    assert (clock.confidence, clock.applied_s, clock.method) == ("strong", -3600, "logs")


def test_work_outside_all_jobs_is_told_where_nothing_else_is_known(tmp_path: Path) -> None:
    """A load of 20 min behind the last job; jobs end 5 min after memory falls, each by another time."""
    spans = tuple((low, high + more) for (low, high), more in zip(EVENLY, (10, 200, 55, 0), strict=True))
    run = loaded(tmp_path, Jobs(spans[:3], waits_s=WAITING, memory=False, foreign=(7000, 7600)))
    assert run.info.clock.exact
    run = loaded(tmp_path, Jobs(spans[:3], waits_s=WAITING, memory=False, foreign=(0, 250)))
    clock = run.info.clock
    # 50 samples of 5 s, of which the last two lie within 3 s of no job; one for an end of each job is left out.
    assert (clock.confidence, clock.exact) == ("undetermined", False)
    assert str(clock.evidence).startswith("GPUs worked or held memory for 3 min 55 s outside all jobs.")


@pytest.mark.slow
def test_a_log_with_another_clock_than_the_gpus_is_no_evidence(tmp_path: Path) -> None:
    run = loaded(tmp_path, replace(NAMED, log_ahead_s=3600))
    assert bounds_by_logs(run, PERIOD_S) is None
    assert (run.info.clock.applied_s, run.info.clock.exact) == (0, True)


@pytest.mark.parametrize("name", ["run_20264471_{k}.log", "2026-03-0{k}.log", "x{id}1.log"])
def test_a_number_within_another_names_no_job(tmp_path: Path, name: str) -> None:
    assert bounds_by_logs(loaded(tmp_path, replace(NAMED, log_name=name)), PERIOD_S) is None


def test_a_log_in_the_folder_of_its_job_is_its_own(tmp_path: Path) -> None:
    for k in range(4):
        (tmp_path / f"{4471 + 3 * k}").mkdir()
    bounds = bounds_by_logs(loaded(tmp_path, replace(NAMED, log_name="{id}/train.log")), PERIOD_S)
    assert bounds is not None and bounds.n == 4 and bounds.as_shown


@pytest.mark.slow
def test_falls_that_know_nothing_of_the_jobs_show_no_offset() -> None:
    """Loads of any length beside jobs of any: at most one in a hundred may go together."""
    rng, found = np.random.default_rng(5), 0
    for _ in range(40):
        falls = np.sort(rng.uniform(0, 12_000, 6))
        jobs = np.sort(rng.uniform(0, 12_000, 8)).reshape(4, 2)
        found += pinned_ends(*_unrelated(falls, jobs)) is not None
    assert found == 0


def _unrelated(falls: np.ndarray, jobs: np.ndarray) -> tuple[Run, SampleTimes]:
    import pandas as pd

    def time(second: np.ndarray) -> pd.DatetimeIndex:
        return pd.to_datetime(np.round(second * 1e6).astype("int64"), unit="us", utc=True)

    second = np.arange(0.0, 12_400, PERIOD_S)
    held = np.searchsorted(falls, second) % 2 == 0
    gpu = pd.DataFrame({"time": time(second), "gpu": "0", "mem_used_mib": np.where(held, 9000.0, 4.0)})
    trials = pd.DataFrame({"study": "sacct", "trial": range(4), "start": time(jobs[:, 0]), "end": time(jobs[:, 1])})
    run = Run(trials=trials.assign(state="COMPLETE"), gpu=gpu)
    return run, SampleTimes.of(run)
