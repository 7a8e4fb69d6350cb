"""The facts of the situations, recomputed from the committed files with the standard library alone."""

from __future__ import annotations

import csv
import gzip
import json
import re
import sqlite3
import statistics
import subprocess
import sys
from collections import Counter
from contextlib import closing
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sampleruns import diagnosed

from data.make_samples.__main__ import SAMPLES
from gpudiag.manifest import read_manifest
from gpudiag.simulation.cases import CASES, write_case

NAMES = (
    "hpo-aggressive-pruning",
    "starved-input-pipeline",
    "idle-second-gpu",
    "memory-exhaustion",
    "tiny-batch-laptop",
    "healthy",
    "slow-rank",
    "hung-collective",
)
RUNS = (
    "hpo-aggressive-pruning",
    "starved-input-pipeline/before",
    "starved-input-pipeline/after",
    "idle-second-gpu/baseline",
    "idle-second-gpu/experiment",
    "memory-exhaustion",
    "tiny-batch-laptop",
    "healthy",
)


def telemetry(folder: Path, gpu: str = "0") -> dict[str, list[Any]]:
    """Columns of one GPU: time (naive local), util, used, total, power, temp."""
    with (folder / "gpu.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file, skipinitialspace=True) if row["index"] == gpu]

    def numbers(name: str) -> list[float]:
        return [float(row[name].split()[0]) for row in rows]

    return {
        "time": [datetime.strptime(row["timestamp"], "%Y/%m/%d %H:%M:%S.%f") for row in rows],
        "util": numbers("utilization.gpu [%]"),
        "used": numbers("memory.used [MiB]"),
        "total": numbers("memory.total [MiB]"),
        "power": numbers("power.draw [W]"),
        "temp": numbers("temperature.gpu"),
    }


def query(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{folder / 'optuna.db'}?mode=ro", uri=True)) as connection:
        return connection.execute(sql).fetchall()


def trials(folder: Path) -> dict[int, tuple[str, datetime, datetime | None]]:
    found = query(folder, "SELECT number, state, datetime_start, datetime_complete FROM trials")
    return {n: (s, datetime.fromisoformat(a), datetime.fromisoformat(b) if b else None) for n, s, a, b in found}


def minutes(folder: Path, state: str) -> list[float]:
    return [(end - start).total_seconds() / 60 for s, start, end in trials(folder).values() if s == state and end]


def tasks(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "tasks.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    return [
        task | {"start": datetime.fromisoformat(task["start"]), "end": datetime.fromisoformat(task["end"])}
        for task in found
    ]


def span_s(found: list[dict[str, Any]]) -> float:
    return (max(task["end"] for task in found) - min(task["start"] for task in found)).total_seconds()


# --- all of them -----------------------------------------------------------------------------------------


def test_the_seven_situations_are_there_and_small(samples: Path) -> None:
    """Beside them lie the runs of real GPUs (tests/test_real_gpu.py and test_real_training.py)."""
    assert tuple(SAMPLES) == NAMES
    folders = sorted(path.name for path in samples.iterdir() if path.is_dir())
    assert folders == sorted([*NAMES, "real-h100", "real-h200"])
    assert sum(path.stat().st_size for path in samples.rglob("*") if path.is_file()) < 8_000_000
    for name in NAMES:
        origin = (samples / name / "ORIGIN.md").read_text(encoding="utf-8")
        assert (f"gpudiag demo --case {name}" if name in CASES else "make samples") in origin
        assert "seed" in origin


@pytest.mark.parametrize("run", RUNS)
def test_each_run_has_a_legal_manifest_and_its_files(samples: Path, run: str) -> None:
    manifest = read_manifest(samples / run / "run.toml")
    named = [*manifest.telemetry, *([manifest.trials] if manifest.trials else []), *manifest.artifacts]
    assert all((samples / run / name).is_file() for name in named)
    truth = json.loads((samples / run / "truth.json").read_text(encoding="utf-8"))
    by_gpu: Counter[str] = Counter()
    for row in truth["ledger"]:
        by_gpu[row["gpu"]] += row["gpu_s"]
    assert list(by_gpu.values()) == pytest.approx([truth["window_s"]] * len(by_gpu), abs=0.01)


def test_slow_rank(samples: Path) -> None:
    """Rank 2 spends least time in collectives, by its trace as in truth; the log tells of a crash and what follows."""
    truth = json.loads((samples / "slow-rank" / "truth.json").read_text(encoding="utf-8"))
    assert sum(truth["busy_s"]) + sum(truth["idle_s"].values()) == pytest.approx(4 * truth["span_s"], abs=0.1)
    talked_us = []
    for rank in range(4):
        path = samples / "slow-rank" / f"rank{rank}.pt.trace.json.gz"
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        talked_us.append(sum(one["dur"] for one in events if "nccl" in one.get("name", "").lower() and "dur" in one))
    assert talked_us.index(min(talked_us)) == truth["collectives_s"].index(min(truth["collectives_s"])) == 2
    log = (samples / "slow-rank" / "train.log").read_text(encoding="utf-8")
    done = [400 * (int(epoch) - 1) + int(step) for epoch, step in re.findall(r"\(train\) \[(\d+)\]\[ *(\d+)/", log)]
    assert len(done) > 30 and sum(after <= before for before, after in pairwise(done)) == 1, "it went back once"


def test_hung_collective(samples: Path) -> None:
    """All ranks but 2 have begun all-reduce 501 and not ended it; log and telemetry tell of the same ten minutes."""
    folder = samples / "hung-collective"
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    assert truth["hang"] == {"rank": 2, "collective": 501, "wait_s": 600.0}
    assert sum(truth["busy_s"]) + sum(truth["idle_s"].values()) == pytest.approx(4 * truth["span_s"], abs=0.1)
    last, began_s = {}, {}
    for rank in range(4):
        entries = json.loads((folder / f"nccl_trace_rank_{rank}.json").read_text(encoding="utf-8"))["entries"]
        assert [one["collective_seq_id"] for one in entries] == list(range(entries[-1]["record_id"] - 18, 502))[:20]
        last[rank] = (entries[-1]["collective_seq_id"], entries[-1]["state"])
        began_s[rank] = entries[-1]["time_created_ns"] / 1e9
    assert last == {0: (501, "started"), 1: (501, "started"), 2: (500, "completed"), 3: (501, "started")}
    log = (folder / "train.log").read_text(encoding="utf-8")
    gave_up = re.findall(r"\[rank(\d)\]:\[E203 ([\d:.]+) .*SeqNum=501, .* ran for (\d+) milliseconds", log)
    assert [rank for rank, _, _ in gave_up] == ["0", "1", "3"]
    for rank, clock, ran_ms in gave_up:
        ended = datetime.fromisoformat(f"2026-02-03T{clock[:15]}+01:00").timestamp()
        assert ended - began_s[int(rank)] == pytest.approx(int(ran_ms) / 1000, abs=0.002)
        assert int(ran_ms) >= 600_000


@pytest.mark.slow
def test_the_hung_rank_is_named() -> None:
    made = diagnosed("hung-collective")
    first = made.findings[0]
    assert (first.rule, first.severity.value, first.where["missing_ranks"]) == ("rank-missing", "critical", "2")
    assert first.where["collective"] == "all_reduce number 501" and first.evidence["wait_s"] == 600.0
    symptoms = {one.rule for one in made.findings if one.caused_by == "rank-missing"}
    assert symptoms == {"idle-after-work", "gpu-imbalance"}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_committed_bytes_are_made_by_the_command(samples: Path, name: str, tmp_path: Path) -> None:
    SAMPLES[name]().write(tmp_path)
    made = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    committed = sorted(path.relative_to(samples / name) for path in (samples / name).rglob("*") if path.is_file())
    assert made == committed
    other = [path for path in made if (tmp_path / path).read_bytes() != (samples / name / path).read_bytes()]
    assert other == []  # pytest would take minutes to show how two long files differ


def test_an_unknown_case_is_refused() -> None:
    with pytest.raises(ValueError, match="no case 'healthyy'; did you mean 'healthy'"):
        write_case("healthyy", "nowhere")


@pytest.mark.slow
def test_the_module_says_how_to_call_it() -> None:
    done = subprocess.run([sys.executable, "-m", "data.make_samples"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: python -m data.make_samples FOLDER")


# --- 1 hpo-aggressive-pruning ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pruning() -> Path:
    return Path(__file__).parents[2] / "data" / "samples" / "hpo-aggressive-pruning"


def test_pruning_counts_by_state(pruning: Path) -> None:
    counts = dict(query(pruning, "SELECT state, COUNT(*) FROM trials GROUP BY state"))
    assert counts == {"COMPLETE": 8, "PRUNED": 173, "FAIL": 15, "RUNNING": 4}


def test_pruning_excerpt(pruning: Path) -> None:
    known = {number: (state, f"{start:%H:%M:%S}", end and f"{end:%H:%M:%S}")
             for number, (state, start, end) in trials(pruning).items()}  # fmt: skip
    assert known[213] == ("COMPLETE", "19:56:09", "20:05:22")
    assert known[212] == known[210] == ("COMPLETE", "19:44:29", "19:53:40")
    assert known[211] == ("PRUNED", "19:53:40", "19:56:08")
    assert known[209] == ("PRUNED", "19:40:07", "20:13:51")
    assert known[208] == known[207] == ("RUNNING", "19:40:07", None)
    excerpt = [trials(pruning)[number] for number in range(207, 214)]
    span = (datetime(2025, 10, 24, 20, 13, 51) - datetime(2025, 10, 24, 19, 40, 7)).total_seconds()
    closed = sum((end - start).total_seconds() for _, start, end in excerpt if end)
    assert closed / span == pytest.approx(1.89, abs=0.005)
    assert (closed + 2 * span) / span == pytest.approx(3.89, abs=0.005)


def test_pruning_seems_to_run_five_trials_where_four_ran(pruning: Path) -> None:
    horizon = telemetry(pruning)["time"][-1]
    edges = [(start, 1) for _, start, _ in trials(pruning).values()]
    edges += [(end or horizon, -1) for _, _, end in trials(pruning).values()]
    level, peaks = 0, []
    for at, step in sorted(edges):
        level += step
        peaks.append((level, at))
    assert max(peaks)[0] == 5
    assert min(at for count, at in peaks if count == 5) == datetime(2025, 10, 24, 19, 44, 29)
    assert json.loads((pruning / "truth.json").read_text(encoding="utf-8"))["peak_parallelism"] == 4


def test_pruning_durations_and_steps(pruning: Path) -> None:
    assert all(9.0 <= length < 10.0 for length in minutes(pruning, "COMPLETE"))
    pruned = sorted(minutes(pruning, "PRUNED"))
    assert pruned[-1] == pytest.approx(33 + 44 / 60)
    assert all(int(length) <= 4 for length in pruned[:-1])
    steps = Counter(row[0] for row in query(
        pruning, "SELECT MAX(step) FROM trials JOIN trial_intermediate_values USING (trial_id) "
        "WHERE state = 'PRUNED' AND number <> 209 GROUP BY trial_id"))  # fmt: skip
    assert set(steps) == {2, 3, 4}
    # PatientPruner(patience=2) cannot prune before the fourth report.
    assert steps[2] + steps[3] > 50


def test_pruning_gpu_and_settings(pruning: Path) -> None:
    log = telemetry(pruning)
    assert 82 <= statistics.fmean(log["util"]) <= 84
    assert 11.5 <= statistics.median(log["used"]) / 1024 <= 12.5
    assert set(log["total"]) == {24564.0}
    manifest = read_manifest(pruning / "run.toml")
    assert (manifest.settings.parallel, manifest.settings.cpu_cores, manifest.settings.max_steps) == (4, 12, 100)
    assert (
        manifest.settings.pruner == "patient(hyperband(min_resource=1,max_resource=100,reduction_factor=3),patience=2)"
    )
    loader = manifest.dataloader
    assert (loader.num_workers, loader.persistent_workers, loader.prefetch_factor) == (2, False, 2)
    truth = json.loads((pruning / "truth.json").read_text(encoding="utf-8"))
    startups = [row["startup_s"] for row in truth["trials"] if row["state"] in ("COMPLETE", "PRUNED")]
    assert min(startups) >= 30 and max(startups) <= 60
    startup_only = sum(row["gpu_s"] for row in truth["ledger"] if row["cell"] == "startup_only")
    assert startup_only / truth["window_s"] <= 0.0125


# --- 2 starved-input-pipeline ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("side", "util", "vram_gib", "epoch_min", "loader"),
    [
        ("before", (10.5, 11.5), (7.5, 8.1), (11.5, 11.5), (4, 8, 5632, 2048)),
        ("after", (70, 85), (16, 18), (7, 8), (8, 16, 8192, 4096)),
    ],
)
def test_starved_figures(samples: Path, side: str, util: Any, vram_gib: Any, epoch_min: Any, loader: Any) -> None:
    folder = samples / "starved-input-pipeline" / side
    epochs = tasks(folder)
    log = telemetry(folder)
    during = [u for u, at in zip(log["util"], log["time"], strict=True)
              if epochs[0]["start"].replace(tzinfo=None) <= at <= epochs[-1]["end"].replace(tzinfo=None)]  # fmt: skip
    assert util[0] <= statistics.fmean(during) <= util[1]
    assert vram_gib[0] <= statistics.median(log["used"]) / 1024 <= vram_gib[1]
    mean = statistics.fmean((task["end"] - task["start"]).total_seconds() for task in epochs) / 60
    assert epoch_min[0] - 0.05 <= mean <= epoch_min[1] + 0.05
    stated = read_manifest(folder / "run.toml").dataloader
    assert (stated.num_workers, stated.prefetch_factor, stated.batch_size, stated.val_batch_size) == loader
    assert len(epochs) >= 6


def test_starved_logs(samples: Path) -> None:
    before = (samples / "starved-input-pipeline/before/train.log").read_text(encoding="utf-8")
    after = (samples / "starved-input-pipeline/after/train.log").read_text(encoding="utf-8")
    assert "[TRAIN PROFILE] DataLoader avg: 25.3ms, max: 78.1ms" in before
    assert "30.0 batch/s" in before and "50.0 batch/s" in after
    assert before.count("GPU: ") == 70 and before.count("WARNING") == 7
    assert "WARNING" not in after


# --- 3 idle-second-gpu -----------------------------------------------------------------------------------


def test_idle_counts_and_spans(samples: Path) -> None:
    baseline, experiment = (tasks(samples / "idle-second-gpu" / side) for side in ("baseline", "experiment"))
    assert Counter(task["state"] for task in baseline) == {"COMPLETE": 559, "FAIL": 17}
    assert Counter(task["state"] for task in experiment) == {"COMPLETE": 34, "FAIL": 2}
    assert len({task["symbol"] for task in baseline}) == 96
    assert span_s(baseline) == pytest.approx(400.3)
    assert span_s(experiment) == pytest.approx(29.8)
    symbols = {task["symbol"] for task in experiment}
    subset = [task for task in baseline if task["symbol"] in symbols]
    assert (len(symbols), len(subset)) == (6, 36)
    assert {task["name"] for task in subset} == {task["name"] for task in experiment}
    assert all(task["state"] == "COMPLETE" for task in subset)
    assert span_s(subset) == pytest.approx(260.0)
    first, last = min(task["start"] for task in subset), max(task["end"] for task in subset)
    assert sum(first < task["start"] and task["end"] < last for task in baseline) > 300
    assert pytest.approx(1.19, abs=0.005) == (29.8 / 36) / (400.3 / 576)


@pytest.mark.parametrize(("side", "overlaps"), [("baseline", 39), ("experiment", 4)])
def test_idle_overlapping_completions(samples: Path, side: str, overlaps: int) -> None:
    ends = sorted(task["end"] for task in tasks(samples / "idle-second-gpu" / side))
    assert sum(b - a < timedelta(milliseconds=50) for a, b in pairwise(ends)) == overlaps


@pytest.mark.parametrize(
    ("side", "gpu", "mean", "peak", "used", "temp"),
    [
        ("baseline", "0", 3, 6, 189, 49),
        ("baseline", "1", 20, 37, 711, 61),
        ("experiment", "0", 0, 0, 18, 43),
        ("experiment", "1", 28, 78, 519, 56),
    ],
)
def test_idle_readings(samples: Path, side: str, gpu: str, mean: int, peak: int, used: int, temp: int) -> None:
    log = telemetry(samples / "idle-second-gpu" / side, gpu)
    assert len(log["time"]) == 78
    assert (log["time"][-1] - log["time"][0]).total_seconds() == pytest.approx(394, abs=0.1)
    assert statistics.fmean(log["util"]) == pytest.approx(mean)
    assert max(log["util"]) == peak
    assert statistics.fmean(log["used"]) == pytest.approx(used)
    assert statistics.fmean(log["temp"]) == pytest.approx(temp)


def test_idle_parameters_stand_in_the_baseline_only(samples: Path) -> None:
    base = {json.dumps(task.get("params")) for task in tasks(samples / "idle-second-gpu/baseline")}
    expected = {"num_leaves": 127, "max_depth": 9, "n_estimators": 500, "gpu_use_dp": False}
    assert [json.loads(text) for text in base] == [expected]
    assert not any("params" in task for task in tasks(samples / "idle-second-gpu/experiment"))
    (note,) = read_manifest(samples / "idle-second-gpu/experiment/run.toml").notes
    assert "num_leaves 255" in note and "max_depth 15" in note and "n_estimators 1000" in note
    record = (samples / "idle-second-gpu/experiment/teacher_runs.json").read_text(encoding="utf-8").splitlines()
    assert Counter(json.loads(line)["status"] for line in record) == {"success": 34, "failed": 2}


# --- 4 memory-exhaustion ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def exhaustion() -> Path:
    return Path(__file__).parents[2] / "data" / "samples" / "memory-exhaustion"


def phase(start: datetime) -> int:
    hours = (start - datetime(2025, 12, 2, 18, 20)).total_seconds() / 3600
    return 4 if hours < 9 else 3 if hours < 24 else 2


def test_exhaustion_size_and_streak(exhaustion: Path) -> None:
    known = trials(exhaustion)
    assert len(known) == 452
    ends = sorted((end, state) for state, _, end in known.values() if end)
    days = (ends[-1][0] - min(start for _, start, _ in known.values())).total_seconds() / 86400
    assert days == pytest.approx(2.0, abs=0.05)
    assert 452 / days == pytest.approx(226, abs=5)
    longest = run = 0
    for _, state in ends:
        run = 0 if state == "FAIL" else run + 1
        longest = max(longest, run)
    assert 30 <= longest < 50


def errors(folder: Path) -> list[tuple[datetime, datetime, str]]:
    found = query(folder, "SELECT datetime_start, datetime_complete, value_json FROM trials "
                  "JOIN trial_user_attributes USING (trial_id) WHERE key = 'error'")  # fmt: skip
    return [(datetime.fromisoformat(a), datetime.fromisoformat(b), json.loads(text)) for a, b, text in found]


def test_exhaustion_overflows_stop_with_two_workers_and_asserts_do_not(exhaustion: Path) -> None:
    overflow, asserts = Counter[int](), Counter[int]()
    for start, _, text in errors(exhaustion):
        (overflow if "CUDA out of memory" in text else asserts)[phase(start)] += 1
    assert overflow[4] > overflow[3] > 0 == overflow[2]
    assert asserts[2] > 0
    assert (
        len(errors(exhaustion)) == dict(query(exhaustion, "SELECT state, COUNT(*) FROM trials GROUP BY state"))["FAIL"]
    )


@pytest.mark.slow
def test_exhaustion_memory(exhaustion: Path) -> None:
    log = telemetry(exhaustion)
    used = dict(zip(log["time"], log["used"], strict=True))
    by_phase: dict[int, list[float]] = {4: [], 3: [], 2: []}
    for at, mib in used.items():
        by_phase[phase(at)].append(mib / 1024)
    assert 16.5 <= statistics.median(by_phase[3]) <= 19
    assert 10 <= statistics.median(by_phase[2]) <= 16
    assert max(by_phase[2]) < 0.9 * 23.99
    before = [
        max(mib for at, mib in used.items() if timedelta(0) <= end - at <= timedelta(seconds=60)) / 24564
        for start, end, text in errors(exhaustion)
        if "out of memory" in text and phase(start) == 3
    ]
    assert statistics.median(before) == pytest.approx(0.97, abs=0.015)


def test_exhaustion_parameters_decide_the_memory(exhaustion: Path) -> None:
    truth = json.loads((exhaustion / "truth.json").read_text(encoding="utf-8"))
    peak_gib = {row["trial"]: row["mem_peak_mib"] / 1024 for row in truth["trials"] if row["state"] == "COMPLETE"}
    assert statistics.median(peak_gib.values()) == pytest.approx(6.0, abs=0.5)
    assert 0.02 < sum(value > 8 for value in peak_gib.values()) / len(peak_gib) < 0.2
    assert max(peak_gib.values()) < 12
    largest = {number for number, value in peak_gib.items() if value > 10}
    found = query(exhaustion, "SELECT number, param_name, param_value, distribution_json FROM trials "
                  "JOIN trial_params USING (trial_id) WHERE param_name <> 'lr'")  # fmt: skip
    kinds = {(name, json.loads(text)["attributes"]["choices"][int(value)])
             for number, name, value, text in found if number in largest}  # fmt: skip
    assert kinds == {("model", "large"), ("batch_size", 128)}


def test_exhaustion_log_says_each_failure(exhaustion: Path) -> None:
    log = (exhaustion / "train.log").read_text(encoding="utf-8")
    assert log.count(" failed: ") == len(errors(exhaustion))
    assert "torch.OutOfMemoryError: CUDA out of memory" in log
    assert "CUDA error: device-side assert triggered" in log


# --- 5 tiny-batch-laptop and 6 healthy -------------------------------------------------------------------


def test_tiny_batch_readings(samples: Path) -> None:
    log = telemetry(samples / "tiny-batch-laptop")
    assert len(log["util"]) == 90
    assert (log["time"][-1] - log["time"][0]).total_seconds() == pytest.approx(300, abs=0.1)
    assert (statistics.fmean(log["util"]), min(log["util"]), max(log["util"])) == (pytest.approx(11.4), 0, 20)
    assert (max(log["used"]), set(log["total"])) == (167, {6141.0})
    assert 100 * statistics.fmean(log["used"]) / 6141 == pytest.approx(2.2, abs=0.01)
    assert 100 * max(log["used"]) / 6141 == pytest.approx(2.7, abs=0.05)
    assert (min(log["power"]), max(log["power"])) == (1.7, 590.0)
    assert statistics.fmean(log["power"]) == pytest.approx(26.8, abs=0.001)
    assert statistics.fmean(sorted(log["power"])[:-1]) == pytest.approx(20.5, abs=0.05)
    assert sorted(log["power"])[-2] < 60


def test_tiny_batch_settings(samples: Path) -> None:
    manifest = read_manifest(samples / "tiny-batch-laptop/run.toml")
    assert manifest.trials is None and not manifest.artifacts
    assert manifest.dataloader.batch_size == 32
    assert "559,738 parameters" in manifest.notes[0]


def test_healthy_has_nothing_to_find(samples: Path) -> None:
    folder = samples / "healthy"
    log = telemetry(folder)
    assert 93 <= statistics.fmean(log["util"]) <= 99
    assert statistics.median(log["util"]) == 97
    assert 0.5 <= max(log["used"]) / 24564 <= 0.75
    known = trials(folder)
    assert {state for state, _, _ in known.values()} == {"COMPLETE"}
    lengths = minutes(folder, "COMPLETE")
    assert statistics.stdev(lengths) / statistics.fmean(lengths) < 0.05
    steps = [(b - a).total_seconds() for a, b in pairwise(log["time"])]
    assert max(steps) < 6
