"""A training recorded by a callback: which files, which rank, and that nothing of it reaches the training."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from replay import Replay, no_driver

from gpudiag import read_telemetry
from gpudiag.errors import ConfigError
from gpudiag.record import training
from gpudiag.record.training import TrainingRecord, harmless


def record(folder: Path, **options: Any) -> TrainingRecord:
    given = {"interval_s": 0.02, "host": False, "adapter": Replay()} | options
    return TrainingRecord(folder / "metrics.csv", given)


def train(of: TrainingRecord, steps: int = 3) -> None:
    for step in range(1, steps + 1):
        of.batch_begins()
        of.batch_ended(step, 0)


def written(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_gpus_and_steps_lie_beside_each_other(tmp_path: Path) -> None:
    of = record(tmp_path)
    of.begin()
    train(of)
    of.epoch_ended(0)
    of.end()
    of.end()
    assert [line.get("step") for line in written(tmp_path / "metrics.steps.jsonl")] == [None, 1, 2, 3]
    told = read_telemetry(tmp_path / "metrics.csv")
    assert len(told.gpu) and {"epoch", "record_end"} <= set(told.events["kind"])


@pytest.mark.parametrize(
    ("rank", "local_rank", "files"),
    [
        (0, 0, {"metrics.csv", "metrics.steps.jsonl"}),
        (1, 1, {"metrics.rank1.steps.jsonl"}),
        (8, 0, {"metrics.rank8.csv", "metrics.rank8.steps.jsonl"}),
    ],
)
def test_each_rank_writes_its_steps_and_one_on_each_machine_its_gpus(
    rank: int, local_rank: int, files: set[str], tmp_path: Path
) -> None:
    of = record(tmp_path)
    of.begin(rank=rank, local_rank=local_rank, world_size=16)
    train(of)
    of.end()
    assert {path.name for path in tmp_path.iterdir()} == files
    assert {line["rank"] for path in tmp_path.glob("*.jsonl") for line in written(path)} == {rank}


def test_without_a_driver_the_steps_are_recorded_and_one_sentence_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of = record(tmp_path, adapter=Replay(opens=[no_driver()]))
    of.begin()
    train(of)
    of.epoch_ended(0)
    of.end()
    assert len(written(tmp_path / "metrics.steps.jsonl")) == 4
    assert capsys.readouterr().err == (
        "gpudiag: no NVIDIA driver on this machine: Driver Not Loaded. Only the steps of the training are recorded.\n"
    )


def test_a_second_training_ends_the_first_and_goes_into_the_same_files(tmp_path: Path) -> None:
    """A training that failed where its framework tells callbacks nothing."""
    of = record(tmp_path, adapter=Replay({"0": []}))
    for _ in range(2):
        of.begin()
        train(of)
    of.end()
    assert [line["phase"] for line in written(tmp_path / "metrics.steps.jsonl")].count("start") == 2
    assert list(read_telemetry(tmp_path / "metrics.csv").events["kind"]).count("record_end") == 2


def test_an_exception_is_an_event(tmp_path: Path) -> None:
    of = record(tmp_path)
    of.begin()
    of.end("OutOfMemoryError")
    told = read_telemetry(tmp_path / "metrics.csv").events.set_index("kind")["detail"]
    assert told["exception"] == "OutOfMemoryError"


def test_a_misspelt_argument_fails_where_it_is_written(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="intervall_s"):
        TrainingRecord(tmp_path / "a.csv", {"intervall_s": 1})
    with pytest.raises(ConfigError, match="interval"):
        TrainingRecord(tmp_path / "a.csv", {"interval_s": 0})


@harmless
class Hooks:
    def __init__(self, of: TrainingRecord) -> None:
        self.record = of

    def on_start(self) -> None:
        self.record.begin()

    def on_batch(self, step: int) -> None:
        """What it says."""
        self.record.batch_begins()
        self.record.batch_ended(step)

    def on_trainer(self, trainer: Any) -> None:
        self.record.batch_ended(trainer.global_step)


def test_a_full_disk_is_one_sentence_and_the_training_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(io.FileIO):
        def write(self, data: Any) -> int:
            if b'"step": 3' in bytes(data):
                raise OSError(28, "No space left on device")
            return super().write(data)

    monkeypatch.setattr("gpudiag.record.step_writer.FileIO", Full)
    hooks = Hooks(record(tmp_path))
    hooks.on_start()
    for step in range(1, 9):
        hooks.on_batch(step)
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "has stopped: OSError" in said and "No space left" in said
    assert [line.get("step") for line in written(tmp_path / "metrics.steps.jsonl")] == [None, 1, 2]
    assert "record_end" in set(read_telemetry(tmp_path / "metrics.csv").events["kind"]), "the recorder has ended too"


def test_a_folder_that_cannot_be_written_and_a_trainer_that_has_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    hooks = Hooks(TrainingRecord(tmp_path / "file" / "a.csv", {}))
    hooks.on_start()
    hooks.on_batch(1)
    assert capsys.readouterr().err.count("gpudiag: recording the training has stopped: ") == 1
    Hooks(record(tmp_path)).on_trainer(object())
    assert "has no attribute 'global_step'" in capsys.readouterr().err


def test_an_interruption_is_nobodys_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = Hooks(record(tmp_path))

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(training.TrainingRecord, "batch_begins", interrupted)
    with pytest.raises(KeyboardInterrupt):
        hooks.on_batch(1)


def test_a_wrapped_hook_keeps_its_name_and_words() -> None:
    assert (Hooks.on_batch.__name__, Hooks.on_batch.__doc__) == ("on_batch", "What it says.")


def test_peak_memory_is_an_event_where_pytorch_uses_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "peak_reserved_mib", lambda: 20_480.0)
    of = record(tmp_path)
    of.begin()
    of.epoch_ended(0)
    of.end()
    told = read_telemetry(tmp_path / "metrics.csv").events.set_index("kind")["detail"]
    assert told["peak_memory"] == "PyTorch has reserved at most 20.0 GiB so far"
