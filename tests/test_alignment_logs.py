"""The clock of a training's log beside telemetry: taken as written, moved, stated, or not joined."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import gpudiag as gd
from gpudiag.alignment.logged_steps import logged_stretches
from gpudiag.analysis import Analysis
from gpudiag.measures.causes import measure_causes
from gpudiag.measures.clock import measure_clock
from gpudiag.measures.steps import measure_steps
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.rule import check_thresholds
from gpudiag.rules.clock import clocks_apart, clocks_differ

BEGIN = datetime(2026, 3, 10, 9, tzinfo=UTC)
STEP_S, LINE_STEPS = 1.5, 20
LENGTHS = (320, 260, 400, 220, 340, 280, 380, 300, 240, 360)
"""Steps between evaluations: not alike, so that one offset alone fits."""
PAUSES_S = (90.0, 140.0, 60.0, 120.0, 100.0, 150.0, 70.0, 110.0, 80.0, 130.0)


def written(folder: Path, ahead_h: float, zone: str = "", lengths: tuple[int, ...] = LENGTHS, **cut: float) -> gd.Run:
    """A training with evaluations whose log's clock is so far ahead; telemetry every 2 s, or a part of it."""
    at, step, lines, busy = 300.0, 0, [], []

    def line(text: str) -> None:
        lines.append(f"{BEGIN + timedelta(hours=ahead_h, seconds=at):%Y-%m-%d %H:%M:%S}{zone} {text}")

    for n, pause_s in zip(lengths, PAUSES_S, strict=False):
        busy.append((at, at + n * STEP_S))
        for _ in range(0, n, LINE_STEPS):
            at, step = at + LINE_STEPS * STEP_S, step + LINE_STEPS
            line(f"step {step} loss 2.1")
        at += pause_s
        line("evaluation finished eval_loss 2.0")
    times = np.arange(cut.get("from_s", 0.0), cut.get("to_s", at + 600.0), 2.0)
    works = np.any([(times >= low) & (times < high) for low, high in busy], axis=0)
    rows = [
        f"{BEGIN + timedelta(seconds=float(time)):%Y/%m/%d %H:%M:%S.000}, 0, {95 * int(work)} %, 60000 MiB, 81559 MiB"
        for time, work in zip(times, works, strict=True)
    ]
    head = "timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]"
    folder.mkdir(exist_ok=True)
    (folder / "gpu.csv").write_text("\n".join([head, *rows]) + "\n")
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    return gd.load_run(folder, timezone="UTC")


def evaluation_s(run: gd.Run) -> float:
    found = measure_causes(run).by_cause
    return float(found["gpu_s"].get("evaluation", 0.0))


@pytest.mark.slow
@pytest.mark.parametrize("ahead_h", [0.0, 1.0, -1.0, 8.0, -5.5])
def test_a_log_is_moved_by_the_hours_that_its_pauses_show(tmp_path: Path, ahead_h: float) -> None:
    run = written(tmp_path, ahead_h)
    clock = run.info.logs_clock
    assert clock.joined and clock.applied_s == -3600 * ahead_h
    assert evaluation_s(run) == pytest.approx(sum(PAUSES_S), rel=0.05)
    profile = measure_clock(run)
    assert profile.of_log and profile.applied_s == -3600 * ahead_h
    (verdict,) = judge_all([clocks_differ], Analysis(run), check_thresholds([clocks_differ], {}))
    assert (verdict.summary.startswith("The log's timestamps were moved to the clock of the telemetry.")) is bool(
        ahead_h
    )


@pytest.mark.slow
@pytest.mark.parametrize("ahead_h", [1.3, 7.6])
def test_a_clock_that_no_zone_explains_is_not_joined(tmp_path: Path, ahead_h: float) -> None:
    run = written(tmp_path, ahead_h)
    assert not run.info.logs_clock.joined and run.info.logs_clock.applied_s == 0
    assert evaluation_s(run) == 0.0
    assert measure_steps(run).evaluations_s == pytest.approx(sum(PAUSES_S), rel=0.05)  # needs no telemetry
    (found,) = judge_all([clocks_apart], Analysis(run), check_thresholds([clocks_apart], {}))
    assert found.status.value == "found" and "of logged steps lie where no GPU was seen at work" in found.summary
    assert "clock_offset_s" in found.remedy and "log + offset = telemetry" in found.remedy


@pytest.mark.slow
def test_without_pauses_nothing_shows_the_offset(tmp_path: Path) -> None:
    assert written(tmp_path, 0.0, lengths=(2400,)).info.logs_clock.joined
    assert not written(tmp_path, 8.0, lengths=(2400,)).info.logs_clock.joined


@pytest.mark.slow
def test_an_offset_that_is_stated_moves_the_log(tmp_path: Path) -> None:
    written(tmp_path, 1.3)
    (tmp_path / "run.toml").write_text("clock_offset_s = -4680\n")
    run = gd.load_run(tmp_path, timezone="UTC")
    assert run.info.logs_clock.method == "given" and run.info.logs_clock.joined
    assert run.steps["time"].iloc[0] == BEGIN + timedelta(seconds=300.0 + LINE_STEPS * STEP_S)
    assert evaluation_s(run) == pytest.approx(sum(PAUSES_S), rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("cut", [{"from_s": 2000.0}, {"to_s": 2500.0}, {"from_s": 1500.0, "to_s": 3500.0}])
def test_telemetry_of_a_part_of_the_training_is_no_other_clock(tmp_path: Path, cut: dict[str, float]) -> None:
    clock = written(tmp_path, 0.0, **cut).info.logs_clock
    assert clock.joined and clock.applied_s == 0


@pytest.mark.slow
def test_zones_on_both_sides_are_taken_at_their_word(tmp_path: Path) -> None:
    run = written(tmp_path, 0.0, zone="+01:00")  # so it is an hour behind by its own word
    assert [one.clock for one in run.info.inputs if one.path.endswith("train.log")] == ["utc"]
    assert run.info.logs_clock.applied_s == 3600  # that of the telemetry has none


@pytest.mark.parametrize("copies", [1, 2])
def test_steps_that_several_lines_tell_of_count_once(tmp_path: Path, copies: int) -> None:
    """Four epochs of 100 steps of 1.5 s, each line named by its epoch, with a line on the epoch behind each."""
    at, lines = 0.0, []
    for epoch in range(1, 5):
        for step in range(10, 101, 10):
            at += 15
            lines.append(f"{BEGIN + timedelta(seconds=at):%Y-%m-%d %H:%M:%S} epoch {epoch} step {step}/100 loss 2.1")
        lines.append(f"{BEGIN + timedelta(seconds=at):%Y-%m-%d %H:%M:%S} epoch {epoch} took 150 s")
        at += 45
    for copy in range(copies):
        (tmp_path / f"train{copy}.log").write_text("\n".join(lines) + "\n")
    steps = gd.load_run(tmp_path, timezone="UTC").steps
    stretches, _ = logged_stretches(steps)
    assert set(steps["unit"]) == {"step", "epoch"}
    assert (stretches["end"] - stretches["start"]).sum().total_seconds() == pytest.approx(4 * 150)
    only, _ = logged_stretches(steps[steps["unit"] == "epoch"])
    assert len(only) == 1, "a line on an epoch counts where no other tells of steps"
