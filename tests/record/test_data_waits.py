"""Waits for data as the recorder writes them, and what is read from that: by a clock that only the test moves."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from replay import Replay

import gpudiag as gd
from gpudiag.manifest import DataLoader
from gpudiag.measures.loader import measure_loader
from gpudiag.readers._io.record_format import SETTINGS
from gpudiag.record.data_waits import EVERY_S, DataWaits


class Loop:
    """Batches that each take ``wait_s`` to come and ``work_s`` of work."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.waits = DataWaits(lambda: self.now_s)

    def run(self, n: int, wait_s: float, work_s: float) -> Loop:
        self.waits.begin()
        for _ in range(n):
            self.now_s += wait_s
            self.waits.add(wait_s)
            self.now_s += work_s
        self.waits.end()
        return self


NONE = ", 0.0 s for the first batches of 0 loops begun again"


def test_mean_wait_and_rate() -> None:
    assert Loop().run(5, 0.3, 0.1).waits.take() == f"DataLoader avg 300.0 ms over 5 batches, 2.5 batch/s{NONE}"
    assert Loop().run(1, 0.3, 0.1).waits.take() == f"DataLoader avg 300.0 ms over 1 batches, 2.5 batch/s{NONE}"
    assert Loop().waits.take() == ""


def test_what_passes_between_two_loops_is_no_step() -> None:
    loop = Loop().run(5, 0.3, 0.1)
    loop.now_s += 1000
    assert "over 10 batches, 2.5 batch/s," in loop.run(5, 0.3, 0.1).waits.take()


def test_first_batches_are_told_of_loops_behind_the_first() -> None:
    loop = Loop()
    for first_s in (9.0, 2.0, 4.0):
        loop.waits.begin()
        for wait_s in (first_s, 0.1, 0.1):
            loop.now_s += wait_s
            loop.waits.add(wait_s)
            loop.now_s += 0.2
        loop.waits.end()
    assert loop.waits.take().endswith(", 6.0 s for the first batches of 2 loops begun again")
    assert loop.run(4, 0.5, 0.0).waits.take().endswith(", 0.5 s for the first batches of 1 loops begun again")


def test_waits_that_the_training_measures_itself() -> None:
    """Without a loop to go around, a step is what passes from one batch to the next."""
    loop = Loop()
    for wait_s in (0.3, 0.5):
        loop.now_s += wait_s
        loop.waits.add(wait_s)
        loop.now_s += 0.2
    assert loop.waits.take() == "DataLoader avg 400.0 ms over 2 batches, 2.0 batch/s"


def test_an_event_is_due_each_minute() -> None:
    loop = Loop().run(10, 0.0, EVERY_S / 10 - 0.1)
    assert not loop.waits.is_due
    loop.now_s += 1
    assert loop.waits.is_due and loop.waits.take() and not loop.waits.is_due


def test_settings_are_those_of_run_toml() -> None:
    assert set(SETTINGS) == set(DataLoader.model_fields)


def recorded(folder: Path, settings: dict[str, object]) -> gd.Run:
    with gd.Recorder(folder / "gpu.csv", interval_s=0.02, adapter=Replay(), settings=settings) as rec:
        for _ in rec.timed(iter(range(4))):
            time.sleep(0.01)
    return gd.load_run(folder)


@pytest.mark.slow
def test_a_recording_tells_waits_and_settings(tmp_path: Path) -> None:
    run = recorded(tmp_path, {"num_workers": 3, "batch_size": 32, "lr": 0.1, "pin_memory": "perhaps"})
    assert run.info.dataloader == DataLoader(num_workers=3, batch_size=32)
    loader = measure_loader(run)
    assert loader.n_lines == 1 and loader.workers_per_trial == 3 and loader.avg_ms < 20
    assert 0 < loader.step_ms < 1000
    (tmp_path / "run.toml").write_text("[dataloader]\nnum_workers = 8\n")
    assert gd.load_run(tmp_path).info.dataloader == DataLoader(num_workers=8, batch_size=32)


@pytest.mark.slow
def test_the_last_session_counts_and_nonsense_does_not(tmp_path: Path) -> None:
    recorded(tmp_path, {"num_workers": 3, "prefetch_factor": 2})
    assert recorded(tmp_path, {"num_workers": 5}).info.dataloader == DataLoader(num_workers=5, prefetch_factor=2)
    text = (tmp_path / "gpu.csv").read_text()
    written = json.dumps({"num_workers": 5}).replace('"', '""')
    assert written in text
    for other in ("{", "[1]", '{""num_workers"": -1}'):
        (tmp_path / "gpu.csv").write_text(text.replace(written, other))
        assert gd.load_run(tmp_path).info.dataloader == DataLoader(num_workers=3, prefetch_factor=2)
