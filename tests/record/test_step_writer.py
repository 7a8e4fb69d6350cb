"""Steps as they are timed: all time is divided into waits, work and neither, by a clock that only the test moves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpudiag.errors import ConfigError
from gpudiag.load import load_run
from gpudiag.measures.steps import measure_steps
from gpudiag.readers._io.source import Source
from gpudiag.readers.artifacts import step_jsonl
from gpudiag.readers.base import ReadOptions
from gpudiag.record.step_writer import AT_FIRST, StepWriter
from gpudiag.timezones import parse_zone

NOON_S = 1_772_366_400.0  # 2026-03-01 12:00 UTC


class Loop:
    """A training of a script: ``wait``, ``work`` and ``rest`` let that much time pass."""

    def __init__(self, path: Path, **more: Any) -> None:
        self.now_s = 50.0
        self.path = path
        self.writer = StepWriter(path, clock=lambda: self.now_s, wall=lambda: NOON_S - 50 + self.now_s, **more)
        self.step = 0

    def wait(self, seconds: float) -> float | None:
        self.now_s += seconds
        return self.writer.batch_begins()

    def work(self, seconds: float, steps: int = 1, epoch: int | None = 0) -> None:
        self.now_s += seconds
        self.step += steps
        self.writer.batch_ended(self.step, epoch)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines()]

    def steps(self) -> list[dict[str, Any]]:
        return [line for line in self.lines() if line["phase"] == "training"]


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Loop]:
    made = Loop(tmp_path / "deep" / "a.steps.jsonl")
    yield made
    made.writer.close()


def test_waits_and_work_of_each_step(loop: Loop) -> None:
    loop.writer.begin()
    assert loop.wait(0.25) == 0.25
    loop.work(1.0)
    loop.wait(0.5)
    loop.work(0.75, epoch=1)
    first, second = loop.steps()
    assert first == {
        "timestamp": "2026-03-01T12:00:01.250000+00:00", "phase": "training", "step": 1, "epoch": 0,
        "step_time": 1.25, "data_time": 0.25,
    }  # fmt: skip
    assert (second["step"], second["epoch"], second["step_time"], second["data_time"]) == (2, 1, 1.25, 0.5)
    assert second["timestamp"] == "2026-03-01T12:00:02.500000+00:00"


def test_several_batches_make_a_step_and_several_steps_a_batch(loop: Loop) -> None:
    loop.writer.begin()
    loop.wait(0.5)
    loop.work(1.0, steps=0)
    loop.wait(0.25)
    loop.work(1.0)
    loop.wait(0.5)
    loop.work(1.5, steps=2)
    accumulated, two = loop.steps()
    assert (accumulated["step"], accumulated["step_time"], accumulated["data_time"]) == (1, 2.75, 0.75)
    assert (two["step"], two["step_time"], two["data_time"]) == (3, 1.0, 0.25)


def test_other_work_is_neither_wait_nor_step(loop: Loop) -> None:
    loop.writer.begin()
    loop.wait(0.5)
    loop.work(1.0)
    loop.now_s += 30
    loop.writer.other_work("evaluation")
    loop.now_s += 4
    loop.writer.leave_out()
    loop.wait(0.5)
    loop.work(1.0)
    _, first, evaluation, second = loop.lines()
    assert evaluation == {"timestamp": "2026-03-01T12:00:31.500000+00:00", "phase": "evaluation"}
    assert first["step_time"] == second["step_time"] == 1.5 and first["data_time"] == second["data_time"] == 0.5
    assert first["timestamp"] == "2026-03-01T12:00:01.500000+00:00", "its own moment, also where it is written later"


def test_a_wait_beside_a_checkpoint_without_an_end_is_unknown_and_never_zero(loop: Loop) -> None:
    loop.writer.begin()
    loop.wait(0.5)
    loop.work(1.0)
    loop.writer.other_work("checkpoint", goes_on=True)
    assert loop.wait(20.0) is None
    loop.work(1.0)
    loop.wait(0.5)
    loop.work(1.0)
    known, unknown, again = loop.steps()
    assert known["data_time"] == again["data_time"] == 0.5
    assert "data_time" not in unknown and unknown["step_time"] == 1.0


def test_known_waits_of_a_step_stand_for_the_unknown_one(loop: Loop) -> None:
    """Of its three batches the first is behind a checkpoint, the others took 0.5 and 1 s."""
    loop.writer.begin()
    loop.writer.other_work("checkpoint", goes_on=True)
    for seconds, steps in ((20.0, 0), (0.5, 0), (1.0, 1)):
        loop.wait(seconds)
        loop.work(2.0, steps=steps)
    (line,) = loop.steps()
    assert line["data_time"] == 3 * 0.75 and line["step_time"] == 3 * 0.75 + 3 * 2.0


def test_a_long_training_has_a_line_a_second_with_the_means_of_its_steps(loop: Loop) -> None:
    loop.writer.begin()
    for _ in range(AT_FIRST):
        loop.wait(0.0625)
        loop.work(0.0625)
    assert len(loop.steps()) == AT_FIRST
    for n in range(80):
        loop.wait(0.125 if n % 2 else 0.0)
        loop.work(0.0625)
    later = loop.steps()[AT_FIRST:]
    assert [line["step"] for line in later] == [AT_FIRST + 8 * n for n in range(1, 11)]
    assert {(line["step_time"], line["data_time"]) for line in later} == {(0.125, 0.0625)}
    loop.wait(0.0)
    loop.work(0.0625)
    loop.writer.close()
    loop.writer.close()
    assert loop.steps()[-1]["step"] == AT_FIRST + 81, "the last steps are written at the end"


def test_a_rank_and_a_resumption(tmp_path: Path) -> None:
    loop = Loop(tmp_path / "a.jsonl", rank=3)
    loop.step = 400
    loop.writer.begin(400)
    loop.work(1.0)
    loop.writer.close()
    first, step = loop.lines()
    assert first["phase"] == "resumed" and first["rank"] == step["rank"] == 3
    assert (step["step"], step["step_time"]) == (401, 1.0)


def test_the_reader_finds_what_was_written(loop: Loop) -> None:
    """Steps, their times and waits, the evaluation, and the checkpoint behind the last step with its time."""
    loop.writer.begin()
    for n in range(6):
        if n == 3:
            loop.now_s += 30
            loop.writer.other_work("evaluation")
        loop.wait(0.25)
        loop.work(0.75)
    loop.now_s += 8
    loop.writer.other_work("checkpoint")
    loop.writer.close()
    source = Source.open(loop.path)
    assert step_jsonl.recognises(source)
    told = step_jsonl.read(source, ReadOptions(parse_zone("UTC")))
    steps = told.steps
    assert list(steps["step"]) == [1, 2, 3, 4, 5, 6] and set(steps["meant"]) == {"window"}
    assert set(steps["step_s"]) == {1.0} and set(steps["loader_s"]) == {0.25} and set(steps["epoch"]) == {0}
    assert list(steps["since"].fillna("")) == ["", "", "", "evaluation", "", ""]
    assert (steps["then"].iloc[-1], steps["then_s"].iloc[-1]) == ("checkpoint", 8.0)
    assert [at.timestamp() for at in steps["time"]] == [NOON_S + s for s in (1, 2, 3, 34, 35, 36)]
    assert not told.problems


def test_short_evaluations_and_pauses_are_no_steps(tmp_path: Path) -> None:
    """80 steps of 45 ms; after every tenth an evaluation of 1.5 s, or once 3 s of which nothing tells."""
    loop = Loop(tmp_path / "a.steps.jsonl")
    loop.writer.begin()
    for step in range(1, 81):
        loop.wait(0.015)
        loop.work(0.030)
        if step % 10 == 0 and step < 80:
            loop.now_s += 1.5 if step != 40 else 3.0
            if step != 40:
                loop.writer.other_work("evaluation")
            else:
                loop.writer.leave_out()
    loop.writer.close()
    found = measure_steps(load_run(tmp_path))
    in_steps_s, away_s = 80 * 0.045, 6 * 1.5 + 3.0
    assert found.productive_pct == pytest.approx(100 * in_steps_s / (in_steps_s + away_s), abs=0.5)


@pytest.mark.parametrize(("goes_on", "word"), [(True, "start"), (False, "resumed")])
def test_a_second_training_is_no_restart_where_the_first_ended_well(tmp_path: Path, goes_on: bool, word: str) -> None:
    loop = Loop(tmp_path / "a.steps.jsonl")
    loop.writer.begin(40, goes_on=goes_on)
    loop.writer.close()
    assert [line["phase"] for line in loop.lines()] == [word]


def test_steps_are_never_appended_to_the_file_of_another(tmp_path: Path) -> None:
    path = tmp_path / "metrics.steps.jsonl"
    path.write_text('{"loss": 1.5}\n')
    with pytest.raises(ConfigError, match="holds something else than the steps of a training"):
        Loop(path)
    assert path.read_text() == '{"loss": 1.5}\n'
