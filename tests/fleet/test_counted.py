"""Each GPU-second counts once, however often it was recorded; expectations are added up by hand."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import optuna
import pandas as pd
import pytest
from test_fleet_table import cause, row

from gpudiag.export.partitioned import convert_partitioned
from gpudiag.fleets.counted import counted_once
from gpudiag.fleets.fleet import fleet, read_fleet
from gpudiag.fleets.recordings import GpuTime
from gpudiag.fleets.table import FleetTable
from gpudiag.report.fleet.document import FailedTrials, Recording, RunRow
from gpudiag.report.fleet.headline import headline

pytestmark = pytest.mark.usefixtures("warm")

UUID = "GPU-11111111-2222-3333-4444-555555555555"


def at(hour: float) -> str:
    return (pd.Timestamp("2026-03-02T00:00:00+00:00") + pd.Timedelta(hours=hour)).isoformat()


def recorded(name: str, low: float, high: float, gpus: tuple[str, ...] = (UUID,), **more: object) -> RunRow:
    """A run that was busy on these GPUs from one hour to another."""
    seconds = {"busy": 3600.0 * (high - low) * len(gpus)}
    held = tuple(Recording(gpu, at(low), at(high)) for gpu in gpus)
    return row(name, seconds=seconds, start=at(low), end=at(high), recordings=held, **more)


def test_the_copy_with_trials_counts_in_any_order() -> None:
    bare = recorded("a-copy", 0, 2, n_trials=None)
    whole = recorded("z-run", 0, 2, n_trials=7, failed_gpu_s=60.0)
    for held in itertools.permutations([bare, whole]):
        table = FleetTable.of(held)
        assert {one.run: one.gpu_s for one in table.rows} == {"z-run": 7200.0, "a-copy": None}
        assert table.total.gpu_s == 7200.0 and table.total.failed_gpu_s == 60.0


def test_of_three_copies_one_counts_and_ties_go_by_name() -> None:
    held = [recorded(name, 0, 2) for name in "bca"]
    assert [one.run for one in counted_once(held) if one.gpu_s] == ["b"]


def test_one_after_the_other_on_one_gpu_are_two_runs() -> None:
    """A sampler that ran on for half a minute is no copy."""
    assert FleetTable.of([recorded("a", 0, 2), recorded("b", 1.992, 4)]).total.gpu_s == pytest.approx(3600 * 4.008)
    two = FleetTable.of([recorded("a", 0, 2), recorded("b", 0, 2, ("GPU-other",))])
    assert two.total.gpu_s == 14400.0


def test_a_log_of_the_whole_day_holds_the_run_in_it() -> None:
    """24 h of the host and 2 h of a run: 24 h in all, and the run keeps what became of its trials."""
    day = recorded("day", 0, 24, recoverable_gpu_h=3.0, causes=(cause("idle", 3.0),), top_cause="idle")
    run = recorded("run", 10, 12, n_trials=4, n_failed=1, failed_gpu_s=900.0, recoverable_gpu_h=1.0)
    for held in itertools.permutations([day, run]):
        table = FleetTable.of(held)
        assert table.total.gpu_s == 24 * 3600.0 and table.total.failed_gpu_s == 900.0
        assert table.total.recoverable_gpu_h == 3.0 and table.total.n_trials == 4
        assert "its telemetry is that of day" in next(one.reason for one in table.rows if one.run == "run")


def test_what_is_left_out_of_a_recording_in_part_is_said() -> None:
    table = FleetTable.of([recorded("a", 0, 4), recorded("b", 3, 6)])
    assert table.total.gpu_s == 4 * 3600.0
    assert table.rows[1].reason == (
        "33 % of its telemetry is that of a, where this GPU time counts; the rest, about 2 GPU-h, is left out"
    )
    assert [one.left_out_gpu_h for one in table.rows] == [None, pytest.approx(2.0)]
    assert " held GPUs for at least 4 GPU-h" in headline(table.total, (), table.rows).sentences[0]


def test_what_is_counted_whole_or_next_to_whole_is_no_bound() -> None:
    """All of b is in a; and 1.8 minutes beside 4 h are below the hundredth that is worth saying."""
    for end in (4, 4.03):
        table = FleetTable.of([recorded("a", 0, 4), recorded("b", 3, end)])
        assert " held GPUs for 4 GPU-h" in headline(table.total, (), table.rows).sentences[0]


def test_telemetry_of_a_cluster_has_the_time_and_the_run_its_findings() -> None:
    run = recorded("run", 1, 2, cost=4.0, currency="USD", recoverable_gpu_h=0.5, energy_kwh=0.3)
    host = replace(row("host", seconds={"idle_no_trial": 7200.0}), status="accounted")
    held = counted_once([run, host], [Recording(UUID, at(0), at(2))])
    total = FleetTable(held).total
    assert total.gpu_s == 7200.0 and total.recoverable_gpu_h == 0.5 and total.cost == {"USD": 4.0}
    assert total.energy_kwh == 0.3 and total.n_runs == 2


def test_copies_are_not_among_the_poorly_used() -> None:
    held = [recorded(name, 0, 2, use="poorly", util_pct=20.0) for name in "abc"]
    held.append(recorded("d", 5, 7, use="well", util_pct=80.0))
    assert "partly used (50 % on average), and 1 of 2 runs used them poorly." in FleetTable.of(held).to_markdown()


def logged(path: Path, start: str, n: int, seed: int, step_s: float = 3.0, uuid: str = "") -> float:
    """A log of nvidia-smi, without uuids unless one is given; its span in seconds."""
    draw = np.random.default_rng(seed)
    times = pd.Timestamp(start) + pd.to_timedelta(np.arange(n) * step_s + draw.uniform(0, 0.5, n), unit="s")
    util = draw.integers(40, 100, n)
    of = f"0, {uuid}" if uuid else "0"
    rows = [f"{t:%Y/%m/%d %H:%M:%S}.{t.microsecond // 1000:03d}, {of}, {u} %" for t, u in zip(times, util, strict=True)]
    path.parent.mkdir(parents=True, exist_ok=True)
    head = f"timestamp, index{', uuid' if uuid else ''}, utilization.gpu [%]"
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return float((times[-1] - times[0]).total_seconds())


@pytest.mark.slow
@pytest.mark.parametrize("below", [True, False], ids=["as runs", "as a data set"])
def test_logs_beside_their_own_data_set_count_once(tmp_path: Path, below: bool) -> None:
    """40 minutes before midnight and 40 after it, as a log and by day; and a log of another host."""
    runs = tmp_path / "runs"
    span_s = logged(runs / "p" / "raw" / "gpu.csv", "2026-03-02 23:20:00", 1600, seed=1)
    other_s = logged(runs / "p" / "other" / "gpu.csv", "2026-03-02 23:20:00", 1600, seed=2)
    data = runs / "q" if below else tmp_path / "data"
    convert_partitioned([runs / "p" / "raw" / "gpu.csv"], data, host="n1", timezone="UTC")
    paths = [runs] if below else [runs, data]
    table = fleet(paths, tmp_path / "out", jobs=2, timezone="UTC")
    assert table.total.gpu_s == pytest.approx(span_s + other_s, rel=0.01)
    states = {one.run: (one.status, one.gpu_s is None) for one in table.rows}
    assert states["p/other"] == ("diagnosed", False) and table.total.n_runs == 2
    assert sum(status == "counted already" for status, _ in states.values()) == (2 if below else 1)
    assert "counted already" in table.to_markdown()
    assert read_fleet(tmp_path / "out").total == table.total


@pytest.mark.slow
def test_a_copy_with_the_study_wins_over_the_first_by_name(tmp_path: Path) -> None:
    logged(tmp_path / "runs" / "a" / "gpu.csv", "2026-03-02 10:00:00", 800, seed=3)
    (tmp_path / "runs" / "b").mkdir()
    shutil.copy(tmp_path / "runs" / "a" / "gpu.csv", tmp_path / "runs" / "b")
    study = optuna.create_study(storage=f"sqlite:///{tmp_path}/runs/b/optuna.db", study_name="s")
    start = pd.Timestamp("2026-03-02 10:05:00").to_pydatetime()
    trial = optuna.trial.create_trial(value=1.0)
    trial.datetime_start, trial.datetime_complete = start, start + pd.Timedelta(minutes=20).to_pytimedelta()
    study.add_trial(trial)
    table = fleet(tmp_path / "runs", tmp_path / "out", jobs=2, timezone="UTC")
    assert {one.run: (one.status, one.n_trials) for one in table.rows} == {
        "a": ("counted already", None),
        "b": ("diagnosed", 1),
    }


@pytest.mark.slow
def test_the_copy_that_counted_counts_on(tmp_path: Path) -> None:
    """A backup whose name comes first must not move a run to another project."""

    def counted(**options: bool) -> list[str]:
        table = fleet(tmp_path / "runs", tmp_path / "out", jobs=2, timezone="UTC", **options)
        assert {one.run: one.status for one in read_fleet(tmp_path / "out").rows} == {
            one.run: one.status for one in table.rows
        }
        return [one.run for one in table.rows if one.status == "diagnosed"]

    logged(tmp_path / "runs" / "vision" / "a" / "gpu.csv", "2026-03-02 10:00:00", 800, seed=3)
    assert counted() == ["vision/a"]
    for other in ("backup", "zoo"):
        shutil.copytree(tmp_path / "runs" / "vision", tmp_path / "runs" / other)
        for resume in (True, False, True):
            assert counted(resume=resume) == ["vision/a"]
    shutil.rmtree(tmp_path / "runs" / "vision")
    assert counted() == ["backup/a"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("uuid", "times"),
    [(UUID, 1), ("GPU-00000000-0000-0000-0000-000000000000", 2), ("N/A", 2)],
    ids=["one GPU", "all zeros", "not stated"],
)
def test_two_samplers_of_one_gpu_are_one_recording(tmp_path: Path, uuid: str, times: int) -> None:
    """Two trainings on one GPU at once, each with a log of its own: other instants, other readings, one GPU."""
    span_s = logged(tmp_path / "runs" / "a" / "gpu.csv", "2026-03-02 10:00:00", 800, seed=5, uuid=uuid)
    logged(tmp_path / "runs" / "b" / "gpu.csv", "2026-03-02 10:00:00", 1600, seed=6, step_s=1.5, uuid=uuid)
    table = fleet(tmp_path / "runs", tmp_path / "out", jobs=2, timezone="UTC")
    assert table.total.gpu_s == pytest.approx(times * span_s, rel=0.01)


def test_trials_that_several_workers_hold_count_once_and_their_gpu_time_stays() -> None:
    failed = (FailedTrials("oom", 6, 60.0), FailedTrials("nan", 1, None))
    held = {"n_trials": 30, "n_completed": 20, "n_pruned": 4, "n_failed": 6, "failures": failed}
    rows = [recorded(name, 0, 1, (name,), trials=("x", "y"), **held) for name in "abc"]
    table = FleetTable.of(rows)
    assert (table.total.n_runs, table.total.n_trials, table.total.n_failed) == (3, 30, 6)
    assert table.total.gpu_s == 3 * 3600.0
    assert {one.kind: (one.n_trials, one.gpu_s) for one in table.failures} == {"oom": (6, 180.0), "nan": (1, None)}
    assert [one.reason for one in table.rows] == ["", *["its trials are those of a, where they count"] * 2]


def went_on(*, low: float = 0.0) -> list[RunRow]:
    """Two hours on one GPU, and later three on another one by a copy that holds all trials since hour 0."""
    uuids = ("GPU-early", "GPU-late")
    early = recorded(
        "early", low, low + 2, uuids[:1], trials=("x", "y"), n_trials=40, n_failed=4, failed_gpu_s=400.0,
        failures=(FailedTrials("oom", 4, 400.0),), top_cause="failures-out-of-memory", recoverable_gpu_h=400 / 3600,
    )  # fmt: skip
    late = row(
        "late", seconds={"busy": 3 * 3600.0, "unobserved": 7 * 3600.0}, start=at(0), end=at(10),
        recordings=(Recording(uuids[1], at(7), at(10)),), trials=("x", "y", "z"), n_trials=60, n_failed=5,
        failed_gpu_s=500.0, failures=(FailedTrials("oom", 5, 500.0),), top_cause="failures-out-of-memory",
        recoverable_gpu_h=500 / 3600, price_per_gpu_h=2.0, cost=20.0, n_gpus=1,
    )  # fmt: skip
    return [early, late]


def test_a_study_that_went_on_later_counts_what_its_copy_holds_once() -> None:
    table = FleetTable.of(went_on())
    total, by_name = table.total, {one.run: one for one in table.rows}
    assert (total.n_runs, total.n_trials, total.n_failed) == (2, 60, 5)
    assert (total.failed_gpu_s, total.recoverable_gpu_h) == pytest.approx((500.0, 500 / 3600))
    assert [(one.kind, one.n_trials, one.gpu_s) for one in table.failures] == [("oom", 5, 500.0)]
    assert total.gpu_s == pytest.approx(10 * 3600.0) and total.cells["unobserved"] == pytest.approx(5 * 3600.0)
    assert by_name["late"].cost == pytest.approx(20.0 - 2 * 2.0)
    assert (
        by_name["late"].reason
        == "about 2 GPU-h of its unobserved time is that of early, where it was observed and counts"
    )
    assert repr(FleetTable.of(reversed(went_on())).total) == repr(total)  # NaN is no NaN


def test_workers_that_recorded_at_one_time_keep_their_part_of_the_trials() -> None:
    """The earlier run ended an hour after the later one had begun to record, on a GPU of its own."""
    total = FleetTable.of(went_on(low=6.0)).total
    assert (total.n_failed, total.failed_gpu_s, total.gpu_s) == (5, 900.0, 12 * 3600.0)


def test_an_earlier_copy_is_left_out_and_other_trials_count() -> None:
    whole = recorded("whole", 0, 1, ("w",), n_trials=40, trials=("1", "2", "3", "4", "5"))
    early = recorded("early", 0, 1, ("e",), n_trials=30, trials=("1", "2", "3", "4-early"))
    other = recorded("other", 0, 1, ("o",), n_trials=5, trials=("z",))
    bare = row("storage", n_trials=40, gpu_s=None, trials=("1", "2", "3", "4", "5"))
    by_name = {one.run: one for one in counted_once([early, bare, other, whole])}
    assert {name: one.n_trials for name, one in by_name.items() if one.status == "diagnosed"} == {
        "whole": 40,
        "early": None,
        "other": 5,
    }
    assert by_name["early"].reason.startswith("75 % of its trials are those of whole")
    assert by_name["storage"].status == "counted already"


@pytest.mark.parametrize(
    ("low", "high", "parts", "share"),
    [
        (1 / 8, 5 / 8, ("cut", "b", "c", "cut too"), 1.0),  # a slice of it: its ends are cut anywhere
        (0.0, 1.0, ("a", "b", "c", "d", "e", "f"), 1.0),
        (
            1 / 8,
            1.5,
            ("cut", "b", "c", "d", "e", "f", "x", "y", "z"),
            6 / 9,
        ),  # goes on beyond: the end is no edge of it
        (-0.5, 3 / 8, ("w", "x", "y", "a", "b", "cut"), 3 / 6),
        (1 / 8, 5 / 8, ("cut", "x", "c", "cut too"), 0.5),
    ],
)
def test_a_part_of_samples_that_is_cut_is_counted_with_its_neighbor(
    low: float, high: float, parts: tuple[str, ...], share: float
) -> None:
    counted = GpuTime()
    counted.add([Recording("", at(0), at(1), ("a", "b", "c", "d", "e", "f"))])
    assert counted.share([Recording("", at(low), at(high), parts)]) == pytest.approx(share)
