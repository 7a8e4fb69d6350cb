"""Logs without an index whose rows come in bursts: several GPUs in turn, or one GPU read several times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry

START = pd.Timestamp("2026-03-10 08:00")
Sample = tuple[pd.Timestamp, int, int]
"""Time, utilization in per cent and memory in use in MiB."""


def smi(samples: Sequence[Sample]) -> str:
    rows = [
        f"{at:%Y/%m/%d %H:%M:%S}.{at.microsecond // 1000:03}, A100, {util} %, {mem} MiB" for at, util, mem in samples
    ]
    return "\n".join(["timestamp, name, utilization.gpu [%], memory.used [MiB]", *rows]) + "\n"


def shell(samples: Sequence[Sample]) -> str:
    """As ``nvidia-smi ... | while read row; do echo "$(date +%FT%T.%3N),$row"; done`` in a loop writes them."""
    rows = [f"{at.isoformat(timespec='milliseconds')},{util}, {mem}" for at, util, mem in samples]
    return "\n".join(["timestamp,utilization.gpu,memory.used", *rows]) + "\n"


def sampled(gpus: int, gaps_s: Callable[[int], np.ndarray], period_s: float, ticks: int = 120) -> list[list[Sample]]:
    """Samples of each GPU, of which the memory in use differs by a little and utilization by chance."""
    random = np.random.default_rng(gpus)
    out: list[list[Sample]] = [[] for _ in range(gpus)]
    for tick in range(ticks):
        offsets = np.cumsum(gaps_s(gpus))
        for gpu in range(gpus):
            at = (START + pd.Timedelta(seconds=tick * period_s + offsets[gpu])).floor("ms")
            out[gpu].append((at, int(random.integers(90, 101)), 20_000 + 16 * gpu))
    return out


def read(text: str, folder: Path) -> Telemetry:
    (folder / "gpu.csv").write_text(text)
    return read_telemetry(folder / "gpu.csv", timezone="UTC")


def steady(gap_s: float) -> Callable[[int], np.ndarray]:
    return lambda gpus: np.full(gpus, gap_s)


def forked(gpus: int) -> np.ndarray:
    return 0.004 + np.random.default_rng(0).exponential(0.003, gpus)


@pytest.mark.parametrize("form", [smi, shell])
@pytest.mark.parametrize(
    ("gpus", "gaps_s", "period_s"),
    [
        (2, steady(0.02), 1.0),
        (8, steady(0.03), 1.0),
        (4, steady(0.05), 10.0),
        (8, forked, 1.0),
        (8, steady(0.9), 120.0),
    ],
)
def test_rows_far_closer_than_ticks_are_of_gpus_in_turn(
    form: Callable[[Sequence[Sample]], str],
    gpus: int,
    gaps_s: Callable[[int], np.ndarray],
    period_s: float,
    tmp_path: Path,
) -> None:
    samples = sampled(gpus, gaps_s, period_s)
    telemetry = read(form(sorted(sample for own in samples for sample in own)), tmp_path)
    for gpu, own in enumerate(samples):
        found = telemetry.gpu[telemetry.gpu["gpu"] == str(gpu)]
        assert (
            list(zip(found["time"].dt.tz_localize(None), found["util_pct"], found["mem_used_mib"], strict=True)) == own
        )
    assert f"Rows do not name their GPU: the {gpus} GPUs were told by the order of rows." in telemetry.notes


@pytest.mark.parametrize(
    ("gpus", "gap_s", "period_s"), [(2, 0.02, 5.0), (8, 0.015, 5.0), (4, 0.3, 10.0), (3, 0.02, 5.0)]
)
@pytest.mark.parametrize("odd", [0, 1])
@pytest.mark.parametrize("saws", [False, True])
def test_one_odd_gpu_tells_them_all(
    gpus: int, gap_s: float, period_s: float, odd: int, saws: bool, tmp_path: Path
) -> None:
    """As one rank that holds more than the others, whose memory stands still or goes up and down together."""
    random = np.random.default_rng(0)
    samples = [
        (START + pd.Timedelta(seconds=tick * period_s + gpu * gap_s), int(random.integers(85, 101)), level + extra)
        for tick in range(60)
        for level in [20_000 + 9_000 * int(saws and random.random() < 0.5)]
        for gpu, extra in enumerate(600 * (np.arange(gpus) == odd))
    ]
    telemetry = read(smi(samples), tmp_path)
    held = telemetry.gpu.groupby("gpu")["mem_used_mib"].min().tolist()
    assert held == [20_600 if gpu == odd else 20_000 for gpu in range(gpus)]


@pytest.mark.parametrize("memory", [True, False])
def test_one_gpu_whose_first_reading_after_a_rest_is_low_stays_one(memory: bool, tmp_path: Path) -> None:
    at = [(START + pd.Timedelta(seconds=10 * tick + 0.5 * place), place) for tick in range(100) for place in range(3)]
    text = smi([(when, (0, 95, 96)[place], 20_000) for when, place in at])
    telemetry = read(text if memory else text.replace(", memory.used [MiB]", "").replace(", 20000 MiB", ""), tmp_path)
    assert set(telemetry.gpu["gpu"]) == {"0"} and len(telemetry.gpu) == 300
    assert [note for note in telemetry.notes if "Neither memory nor temperature tells several GPUs" in note]


@pytest.mark.parametrize("form", [smi, shell])
@pytest.mark.parametrize("burst", [2, 5, 10])
@pytest.mark.parametrize("kind", ["noise", "steady", "rising", "still"])
def test_one_gpu_in_bursts_stays_one(
    form: Callable[[Sequence[Sample]], str], burst: int, kind: str, tmp_path: Path
) -> None:
    random = np.random.default_rng(burst)
    values = {
        "noise": lambda at: (int(random.integers(0, 101)), int(random.integers(20_000, 30_000))),
        "steady": lambda at: (int(60 + 30 * np.sin(at / 40)), 20_000),
        "rising": lambda at: (90, 10_000 + 7 * at),
        "still": lambda at: (0, 1),
    }[kind]
    at_s = [5.0 * tick + 0.1 * place for tick in range(100) for place in range(burst)]
    samples = [(START + pd.Timedelta(seconds=s), *values(at)) for at, s in enumerate(at_s)]
    telemetry = read(form(samples), tmp_path)
    assert set(telemetry.gpu["gpu"]) == {"0"} and len(telemetry.gpu) == len(samples)
    assert [note for note in telemetry.notes if f"come {burst} at a time" in note]


@pytest.mark.parametrize("seed", range(5))
def test_one_gpu_sampled_without_any_order_stays_one(seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    at_s = np.cumsum(np.maximum(random.lognormal(0, 1.5, 600), 0.001))
    samples = [(START + pd.Timedelta(seconds=s).floor("ms"), int(random.integers(0, 101)), 20_000) for s in at_s]
    telemetry = read(smi(samples), tmp_path)
    assert set(telemetry.gpu["gpu"]) == {"0"}
    assert not any("do not name their GPU" in note for note in telemetry.notes)


def test_rows_that_come_late_stay_with_their_gpu(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    samples = sampled(4, lambda gpus: 0.003 + 0.03 * (random.random(gpus) < 0.02), 1.0)
    telemetry = read(shell(sorted(sample for own in samples for sample in own)), tmp_path)
    assert telemetry.gpu.groupby("gpu")["mem_used_mib"].unique().map(list).tolist() == [
        [20_000 + 16 * gpu] for gpu in range(4)
    ]


def test_a_log_that_begins_in_the_middle_of_a_tick_numbers_its_gpus_alike(tmp_path: Path) -> None:
    samples = sampled(4, steady(0.004), 2.0)
    telemetry = read(smi(sorted(sample for own in samples for sample in own)[3:]), tmp_path)
    assert telemetry.gpu.groupby("gpu")["mem_used_mib"].agg(["min", "max", "size"]).to_numpy().tolist() == [
        [20_000 + 16 * gpu, 20_000 + 16 * gpu, 119 + (gpu == 3)] for gpu in range(4)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_gpus_that_took_long_to_ask_are_still_of_their_tick(seed: int, tmp_path: Path) -> None:
    """As where the GPUs are woken for each tick: a fifth of the steps within one takes up to half a second."""
    random = np.random.default_rng(seed)
    at_s, rows = 0.0, []
    for tick in range(120):
        for gpu in range(8):
            at_s += random.uniform(0.05, 0.5) if random.random() < 0.2 else random.choice([0.0, 0.0, 0.001])
            rows.append((START + pd.Timedelta(seconds=round(at_s, 3)), 90, 20_000 * (gpu == 0) + tick))
        at_s += 1.0
    telemetry = read(shell(rows), tmp_path)
    held = telemetry.gpu.groupby("gpu")["mem_used_mib"].agg(["min", "max", "size"]).to_numpy().tolist()
    assert held == [[20_000, 20_119, 120], *[[0, 119, 120]] * 7]


@pytest.mark.parametrize("seed", range(5))
def test_one_gpu_whose_sampling_jitters_stays_one(seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    step_s = random.choice([0.001, 0.5, 1.0]) + random.exponential(random.choice([0.001, 0.1]), 400)
    at_s = np.round(np.cumsum(step_s + 30.0 * (random.random(400) < 0.02)), 3)
    samples = [(START + pd.Timedelta(seconds=s), int(random.integers(0, 101)), 20_000) for s in at_s]
    assert set(read(shell(samples), tmp_path).gpu["gpu"]) == {"0"}
