"""Event files of TensorBoard: what is read of one, and what becomes of a damaged or lying one."""

from __future__ import annotations

import math
import random
import struct
from pathlib import Path

import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.measures.steps import measure_steps
from gpudiag.readers._io.crc32c import crc32c
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.scalar_events import scalars
from gpudiag.readers._io.source import Source
from gpudiag.readers._io.tfrecord import MOST_BYTES, records
from gpudiag.readers.artifacts import tensorboard_events
from gpudiag.readers.base import ReadOptions, Trials
from gpudiag.readers.identify import identify
from gpudiag.timezones import parse_zone
from tests.writtenevents import BEGIN_S, checksum, head, number, part, record, scalar, written

OF_PYTORCH = bytes.fromhex(
    "1800000000000000a37f4b220934bbacf0bac2da411a0d627261696e2e4576656e743a32cd149099"
    "200000000000000029eda95009000080c2a467da41100a2a130a110a0a747261696e2f6c6f737315cdcccc3d61477cde"
)
"""What SummaryWriter.add_scalar("train/loss", 0.1, 10, walltime=1772000010.0) left."""


def read(path: Path) -> Trials:
    return tensorboard_events.read(Source.open(path), ReadOptions(parse_zone("Asia/Taipei")))


def test_what_others_wrote(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1.n"
    path.write_bytes(OF_PYTORCH)
    source = Source.open(path)
    assert identify(source) == ("artifacts", tensorboard_events.READER)
    with path.open("rb") as stream:
        ((time_s, step, tag, value),) = scalars(records(stream, ProblemLog()), ProblemLog())
    assert (time_s, step, tag, value) == (1772000010.0, 10, "train/loss", pytest.approx(0.1))


def test_checksums_are_those_of_rfc_3720() -> None:
    assert crc32c(bytes(32)) == 0x8A9136AA and crc32c(b"\xff" * 32) == 0x62A8AB43


@pytest.mark.parametrize("tensor", [False, True])
def test_steps_with_their_moments(tmp_path: Path, tensor: bool) -> None:
    events = [
        scalar(tag, value, step, BEGIN_S + 2 * step + late_s, tensor=tensor)
        for step in range(0, 50, 5)
        for tag, value, late_s in (("train/acc", 0.5, 0.0), ("train/loss", 0.25, 0.001), ("epoch", step // 20, 0.002))
    ]
    got = read(written(tmp_path, events))
    steps = got.steps
    assert got.clock == "utc" and not got.problems
    assert steps["step"].tolist() == list(range(0, 50, 5)) and steps["epoch"].tolist() == [
        k // 20 for k in steps["step"]
    ]
    begun = pd.Timestamp(BEGIN_S + 0.001, unit="s", tz="UTC")
    assert (steps["time"] - begun).dt.total_seconds().tolist() == pytest.approx(
        [2.0 * k for k in range(0, 50, 5)], abs=1e-6
    )


def test_a_loss_that_is_not_finite(tmp_path: Path) -> None:
    values = (1.0, math.nan, math.inf)
    got = read(written(tmp_path, [scalar("Loss/train", value, k, BEGIN_S + k) for k, value in enumerate(values)]))
    assert got.steps["not_finite"].tolist() == [0, 1, 1]


def test_what_is_no_scalar_is_passed_over(tmp_path: Path) -> None:
    histogram = record(b"\x09" + struct.pack("<d", BEGIN_S) + part(5, part(1, part(1, b"w") + part(5, b"\x09" * 9))))
    text = part(1, part(1, b"loss/text") + part(8, b"\x08\x07" + part(8, b"hi")) + part(9, part(1, part(1, b"text"))))
    texts = record(b"\x09" + struct.pack("<d", BEGIN_S) + part(5, text))
    graph = record(b"\x09" + struct.pack("<d", BEGIN_S) + part(4, b"\xff" * 99))
    got = read(written(tmp_path, [histogram, texts, graph]))
    assert got.steps.empty and not got.problems
    assert got.notes == ("events.out.tfevents.1772000000.node1.17.0: holds no scalar.",)


def test_without_a_loss_there_is_no_step_and_a_note(tmp_path: Path) -> None:
    got = read(written(tmp_path, [scalar("accuracy", 0.5, k, BEGIN_S + k) for k in range(9)]))
    assert got.steps.empty and "holds 9 scalars, but no loss and no learning rate of a training" in got.notes[0]


@pytest.mark.slow
def test_the_end_of_a_killed_run_is_cut_at_any_byte(tmp_path: Path) -> None:
    whole = head() + scalar("loss", 1.0, 1, BEGIN_S + 1) + scalar("loss", 1.0, 2, BEGIN_S + 2)
    last = len(scalar("loss", 1.0, 2, BEGIN_S + 2))
    for left in range(1, last):
        (tmp_path / "x").write_bytes(whole[:-left])
        got = read(tmp_path / "x")
        assert len(got.steps) == 1 and [problem.kind for problem in got.problems] == ["last record is cut"]
    (tmp_path / "x").write_bytes(whole + bytes(5000))
    assert len(read(tmp_path / "x").steps) == 2 and len(read(tmp_path / "x").problems) == 1


def test_a_damaged_record_is_left_out_and_counted(tmp_path: Path) -> None:
    events = [bytearray(scalar("loss", 1.0, k, BEGIN_S + k)) for k in range(9)]
    events[4][-8] ^= 1  # of the loss
    got = read(written(tmp_path, map(bytes, events)))
    assert got.steps["step"].tolist() == [0, 1, 2, 3, 5, 6, 7, 8]
    assert [(problem.kind, problem.count, problem.lost) for problem in got.problems] == [
        ("record with a wrong checksum", 1, True)
    ]
    events[6][0] ^= 1  # of the length: where the next begins is unknown
    got = read(written(tmp_path, map(bytes, events)))
    assert got.steps["step"].tolist() == [0, 1, 2, 3, 5]
    assert got.problems[-1].kind.startswith("incomplete:")
    # The head of the file is a record, and six before the length were whole or had another fault.
    assert [problem.example for problem in got.problems] == ["after 5 records", "after 7 records"]
    events[0][0] ^= 1
    got = read(written(tmp_path, map(bytes, events)))
    assert got.problems[0].example == "after 1 record"
    assert got.notes[0].endswith("holds no scalar in what could be read of it.")


def test_a_length_that_lies_takes_no_memory(tmp_path: Path) -> None:
    for size in (MOST_BYTES + 1, 2**63):
        length = struct.pack("<Q", size)
        lying = length + struct.pack("<I", checksum(length)) + b"data"
        got = read(written(tmp_path, [scalar("loss", 1.0, 1, BEGIN_S), lying]))
        assert len(got.steps) == 1 and [problem.kind for problem in got.problems] == ["last record is cut"]


def test_a_picture_is_passed_over_and_what_follows_is_read(tmp_path: Path) -> None:
    length = struct.pack("<Q", MOST_BYTES + 7)
    picture = length + struct.pack("<I", checksum(length)) + bytes(MOST_BYTES + 7 + 4)
    got = read(written(tmp_path, [scalar("loss", 1.0, 1, BEGIN_S), picture, scalar("loss", 1.0, 2, BEGIN_S + 1)]))
    assert len(got.steps) == 2 and not got.problems


def test_a_record_that_is_no_message_is_counted(tmp_path: Path) -> None:
    got = read(written(tmp_path, [scalar("loss", 1.0, 1, BEGIN_S), record(b"\x0f\xff"), record(part(5, b"\x0a\x7f"))]))
    assert len(got.steps) == 1 and [(one.kind, one.count) for one in got.problems] == [("record that is no message", 2)]


@pytest.mark.slow
def test_what_is_odd_behind_a_right_checksum(tmp_path: Path) -> None:
    rng, path = random.Random(7), tmp_path / "x"
    for _ in range(150):
        events = [bytearray(scalar("train/loss", 0.5, k, BEGIN_S + k, tensor=k % 2 == 0)[12:-4]) for k in range(6)]
        for event in rng.sample(events, 3):
            event[rng.randrange(len(event))] = rng.randrange(256)
        path.write_bytes(head() + b"".join(record(bytes(event)) for event in events))
        got = read(path)
        assert len(got.steps) <= 6 and sum(problem.count for problem in got.problems) <= 3


def test_the_folder_names_the_rank(tmp_path: Path) -> None:
    events = [scalar("loss", 0.5, k, BEGIN_S + k) for k in range(3)]
    assert read(written(tmp_path / "rank_3", events)).steps["rank"].tolist() == [3, 3, 3]


def test_epochs_of_ultralytics_and_of_keras(tmp_path: Path) -> None:
    ultralytics = [
        scalar(tag, 0.5, epoch, BEGIN_S + 340 * epoch + late_s)
        for epoch in range(1, 9)
        for tag, late_s in (
            ("train/box_loss", 0.0),
            ("lr/pg0", 0.01),
            ("metrics/mAP50(B)", 40.0),
            ("val/box_loss", 40.1),
        )
    ]
    steps = read(written(tmp_path / "a", ultralytics)).steps
    assert set(steps["unit"]) == {"epoch"} and steps["step"].tolist() == list(range(1, 9))
    assert steps["evaluation_s"].tolist()[1:] == pytest.approx([40.1] * 7, abs=0.01)
    keras = [
        scalar(tag, 0.5, epoch, BEGIN_S + 50 * epoch, tensor=True)
        for epoch in range(8)
        for tag in ("epoch_loss", "epoch_learning_rate")
    ]
    written(tmp_path / "b" / "validation", keras)
    steps = read(written(tmp_path / "b" / "train", keras)).steps
    assert set(steps["unit"]) == {"epoch"} and steps["step"].tolist() == list(range(1, 9))
    run = gd.load_run(tmp_path / "b")
    assert len(run.steps) == 8, "the file of the evaluations tells of no step"
    assert measure_steps(run).step_s == pytest.approx(50)


def test_losses_by_epoch_beside_losses_by_step(tmp_path: Path) -> None:
    """200 steps of 1 s an epoch, an evaluation of 30 s; the file holds three counts of steps."""
    events, at_s = [], BEGIN_S
    for epoch in range(6):
        for step in range(20, 201, 20):
            at_s += 20
            events.append(scalar("Loss/batch", 0.5, 200 * epoch + step, at_s))
        events.append(scalar("Loss/train", math.nan if epoch == 5 else 0.5, epoch, at_s + 0.01))
        at_s += 30
        events += [scalar("Loss/val", 0.5, epoch, at_s), scalar("Accuracy", 0.5, epoch, at_s + 0.01)]
    path = written(tmp_path, events)
    assert read(path).steps["step"].tolist() == list(range(20, 1201, 20))
    said = measure_steps(gd.load_run(tmp_path))
    assert (said.unit, said.n_trainings, said.step_s) == ("step", 1, pytest.approx(1))
    assert (said.n_pauses, said.pauses_s) == (6, pytest.approx(180)), "one of them behind the last step"
    told = read(path).steps["not_finite"].dropna()
    assert told.tolist() == [0, 0, 0, 0, 0, 1] and told.index.tolist() == list(range(9, 60, 10))


def test_folds_in_one_file_follow_each_other(tmp_path: Path) -> None:
    events = [
        scalar(f"fold{fold}/loss", 0.5, step, BEGIN_S + 1000 * fold + step)
        for fold in range(3)
        for step in range(10, 901, 10)
    ]
    assert len(read(written(tmp_path, events)).steps) == 270


@pytest.mark.parametrize("together", [False, True])
def test_an_evaluation_is_named_and_timed(tmp_path: Path, together: bool) -> None:
    """Its scalars come 60 s behind the step, or both are written once it is over."""
    events, at_s = [], BEGIN_S
    for step in range(10, 2001, 10):
        at_s += 10
        done_s = at_s
        at_s += 60 if step % 500 == 0 else 0
        events.append(scalar("train/loss", 0.5, step, at_s if together else done_s))
        if step % 500 == 0:
            events.append(scalar("val/loss", 0.5, step, at_s + 0.01))
    written(tmp_path, events)
    said = measure_steps(gd.load_run(tmp_path))
    assert (said.n_pauses, said.evaluations_s) == (4, pytest.approx(240, abs=0.1))
    assert said.unnamed_s == pytest.approx(0, abs=0.1)


def test_numbers_of_varying_length() -> None:
    assert [number(value) for value in (0, 127, 128, 300)] == [b"\0", b"\x7f", b"\x80\x01", b"\xac\x02"]


@pytest.mark.parametrize("tag", ["loss", "train/loss_\u00e4", "x" * 118, "x" * 119, "x" * 300, "\x15abcd\x15"])
@pytest.mark.parametrize("step", [0, 1, 127, 128, 2**35, 2**49 - 1, 2**49, 2**53 - 1, -1])
def test_the_short_way_of_one_scalar_is_that_of_its_fields(tag: str, step: int) -> None:
    """With a field that is not known behind it the same event takes the long way."""
    of_scalar = part(1, part(1, tag.encode()) + b"\x15" + struct.pack("<f", 0.3))
    event = b"\x09" + struct.pack("<d", BEGIN_S) + b"\x10" + number(step % 2**64) + part(5, of_scalar)
    found = [list(scalars([data], ProblemLog())) for data in (event, event + b"\x78\x01")]
    assert found[0] == found[1] and found[0][0].tag == tag and found[0][0].step == step
