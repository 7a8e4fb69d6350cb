"""Logs in a run folder of which no reader knows the lines: they are named, and nobody is asked to give them again."""

from __future__ import annotations

from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.errors import NotMeasurable
from gpudiag.measures.inputs import measure_inputs, unknown_logs
from gpudiag.measures.steps import measure_steps
from gpudiag.run import InputRecord, RunInfo

STRANGE = "".join(f"{{'loss': {3 - n / 100:.2f}, 'epoch': {n / 50:.2f}}}\n" for n in range(100))
UNTIMED = "".join(f"Step: {n} | Loss: 2.9 | Tokens/s: 21850\n" for n in range(10, 1000, 10))


def folder_with(folder: Path, **files: str) -> Path:
    head = "timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n"
    rows = [f"2026/03/10 09:{n // 30:02d}:{n % 30 * 2:02d}.000, 0, 90 %, 900 MiB, 81559 MiB\n" for n in range(600)]
    (folder / "gpu.csv").write_text(head + "".join(rows))
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


def in_memory(not_recognized: tuple[str, ...]) -> gd.Run:
    return gd.Run(info=RunInfo(inputs=(InputRecord("gpu.csv", "telemetry", rows=1),), not_recognized=not_recognized))


def test_a_log_that_no_reader_knows_is_named(tmp_path: Path) -> None:
    run = gd.load_run(folder_with(tmp_path, train_log=STRANGE, notes_md="# notes\n"))
    assert set(run.info.not_recognized) == {"train.log", "notes.md"} and unknown_logs(run) == ["train.log"]
    assert measure_inputs(run).unknown == "train.log"
    with pytest.raises(NotMeasurable, match=r"train\.log in the folder was not read") as why:
        measure_steps(run)
    assert "Put the training log into the run folder" not in str(why.value.remedy)


@pytest.mark.parametrize(
    ("name", "counts"),
    [("events.out.tfevents.1741600000.node1.17.0", False),
     ("metrics.csv", True), ("run_results.csv", True), ("history.json", True), ("loss.parquet", True),
     ("output.txt", True), ("a/stdout", True), ("train-log.txt", True), ("train.csv", False),
     ("requirements.txt", False), ("catalog.txt", False), ("config.json", False), ("model.pt", False)],
)  # fmt: skip
def test_files_that_may_tell_of_the_training_are_known_by_their_names(name: str, counts: bool) -> None:
    run = in_memory(not_recognized=(name,))
    inputs = measure_inputs(run)
    assert (inputs.n_unknown, inputs.unknown) == ((1, name) if counts else (0, ""))


def test_three_are_named_and_all_counted() -> None:
    inputs = measure_inputs(in_memory(not_recognized=("a.log", "b.md", "log.csv", "progress.csv", "z.err")))
    assert inputs.n_unknown == 4 and inputs.unknown == "a.log, z.err, log.csv"


def test_lines_without_a_time_are_said_to_have_none(tmp_path: Path) -> None:
    run = gd.load_run(folder_with(tmp_path, train_log=UNTIMED))
    assert len(run.steps) == 99 and unknown_logs(run) == []
    with pytest.raises(NotMeasurable, match="tell no time and no speed of a step"):
        measure_steps(run)


def test_where_nothing_is_passed_over_a_log_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(NotMeasurable, match="No training log with the times") as why:
        measure_steps(gd.load_run(folder_with(tmp_path)))
    assert "Put the training log into the run folder" in str(why.value.remedy)


@pytest.mark.slow
def test_the_first_screen_names_it(tmp_path: Path) -> None:
    said = gd.diagnose(folder_with(tmp_path, train_log=STRANGE)).to_markdown()
    assert "Not read: train.log. No reader knows what is in it. A log with a step and its time" in said
    known = folder_with(tmp_path, train_log="".join(f"step {n} 1.5 s/step loss 2\n" for n in range(10, 990, 10)))
    assert "Not read" not in gd.diagnose(known).to_markdown()
