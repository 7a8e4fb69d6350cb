"""Telemetry of a cluster without jobs: each session of a host is accounted for as a run of that telemetry alone is."""

from __future__ import annotations

import math
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from made import START, Host, steady, written

from gpudiag.errors import InputError
from gpudiag.fleets.cluster.cluster import Cluster, cluster
from gpudiag.fleets.cluster.gpu_record import SILENCE_US
from gpudiag.readers._datasets.partitions import telemetry_dataset
from gpudiag.readers._jobs.scheduler_jobs import SchedulerJob, SchedulerJobs
from gpudiag.report.fleet.document import CELLS, RunRow

PERCENT = st.one_of(st.sampled_from([0.0, 9.999, 10.0, 49.9, 50.0, 100.0]), st.floats(0, 100), st.just(math.nan))
STEPS = st.one_of(st.sampled_from([1.0, 30.0, 30.0, 60.0]), st.floats(0.001, 4000.0))


@st.composite
def gpu(draw: st.DrawFn) -> tuple[list[float], list[float]]:
    steps = draw(st.lists(STEPS, min_size=1, max_size=25))
    seconds = np.round(draw(st.floats(0, 90_000)) + np.cumsum(steps), 6)
    return seconds.tolist(), draw(st.lists(PERCENT, min_size=len(steps), max_size=len(steps)))


def seconds_of(rows: list[RunRow]) -> dict[str, float]:
    return {cell: math.fsum(getattr(row, f"{cell}_gpu_s") or 0.0 for row in rows) for cell in CELLS}


@pytest.mark.slow
@given(st.lists(gpu(), min_size=1, max_size=3))
@settings(max_examples=30)
def test_a_session_has_the_ledger_of_a_run_of_that_telemetry(gpus: list[tuple[list[float], list[float]]]) -> None:
    host = Host("n1", {str(at): one for at, one in enumerate(gpus)})
    held = host.telemetry.gpu
    assume("util_pct" in held)
    known = held.dropna()
    assume(known.groupby("gpu")["time"].nunique().max() > 1)
    times = np.sort(known["time"].unique().astype("int64"))
    assume(len(times) > 1 and np.diff(times).max() <= SILENCE_US)
    times = held.groupby("gpu")["time"]
    assume(times.min().max() < times.max().min())  # recorded one after the other, they are of two attempts of a run
    wanted = host.ledger
    with TemporaryDirectory() as folder:
        (row,) = cluster([written(Path(folder), host)]).rows
    got = seconds_of([row])
    for cell, seconds in wanted.totals.set_index("cell")["gpu_s"].items():
        assert got[str(cell)] == pytest.approx(seconds, abs=1e-6), cell
    assert row.gpu_s == pytest.approx(wanted.total_gpu_s, abs=1e-6)
    assert (row.util_pct or math.nan) == pytest.approx(wanted.mean_util_pct or math.nan, abs=1e-6, nan_ok=True)


def test_a_long_silence_of_a_whole_host_ends_a_session(tmp_path: Path) -> None:
    """GPU 1 goes on for 3 h after GPU 0 stopped; then nobody for 7 h: two sessions, each as a run of its own."""
    first, second = steady("n1", {"0": 80.0}, 2).gpus["0"], steady("n1", {"0": 20.0}, 1).gpus["0"]
    other = steady("n1", {"1": 5.0}, 5).gpus["1"]
    late = [one + 12 * 3600 for one in second[0]]
    host = Host("n1", {"0": (first[0] + late, first[1] + second[1]), "1": other})
    rows = list(cluster([written(tmp_path, host)]).rows)
    assert [row.run for row in rows] == ["n1::2026-03-03 23:59", "n1::2026-03-04 11:59"]
    early = Host("n1", {"0": first, "1": other}).ledger
    assert rows[0].gpu_s == pytest.approx(early.total_gpu_s, abs=1e-6)
    assert rows[0].unobserved_gpu_s == pytest.approx(3 * 3600, abs=1e-6)
    assert rows[1].busy_low_gpu_s == pytest.approx(3630, abs=1e-6)
    assert rows[1].unobserved_gpu_s == 0 and rows[1].n_gpus == 1  # GPU 1 was not seen again


def test_gpus_that_never_work_are_listed_and_the_map_has_what_was_observed(tmp_path: Path) -> None:
    lone = Host("n2", {"0": ([0.0, 30.0], [math.nan, math.nan]), "1": ([0.0, 30.0, 60.0], [9.9, 3.0, 0.0])})
    made = cluster([written(tmp_path, steady("n1", {"0": 80.0, "1": 0.0}, 3), lone)])
    assert [(gpu.host, gpu.gpu) for gpu in made.about.never_used] == [("n1", "1"), ("n2", "1")]
    assert (made.about.n_gpus, made.about.n_without_samples, made.about.n_hosts) == (4, 1, 2)
    heat = made.about.heat
    assert heat is not None and heat.gpus == ("n1/0", "n1/1", "n2/0", "n2/1") and heat.width_h == 1
    assert heat.mean_pct[0] == (80.0,) * 3 and heat.mean_pct[2] == (None,) * 3
    assert made.about.observed_gpu_s == pytest.approx(2 * (3 * 3600 + 30) + 90)


@pytest.mark.slow
def test_many_gpus_over_long_are_drawn_with_few_rows_and_columns(tmp_path: Path) -> None:
    times = [3 * 3600.0 * at for at in range(8 * 150)]
    long = Host("n999", {"0": (times, [40.0] * len(times))})
    hosts = [steady(f"n{at:03d}", {str(gpu): 20.0 * gpu for gpu in range(4)}, 0.1) for at in range(70)]
    heat = cluster([written(tmp_path, *hosts, long)]).about.heat
    assert heat is not None and heat.n_together == 2 * 4 and len(heat.gpus) == 36 and heat.width_h == 48
    assert heat.gpus[:2] == ("n000 to n001", "n002 to n003") and heat.gpus[-1] == "n999"
    assert heat.mean_pct[0][0] == heat.mean_pct[1][0] == (0 + 20 + 40 + 60) / 4 and heat.mean_pct[0][5] is None
    assert set(heat.mean_pct[-1]) == {40.0} and len(heat.start) <= 96


def test_a_session_of_single_samples_accounts_for_nothing(tmp_path: Path) -> None:
    lone = Host("n1", {"0": ([0.0], [50.0])})
    made = cluster([written(tmp_path, lone, steady("n2", {"0": 5.0}))])
    assert made.rows[0].gpu_s is None and "two samples" in made.rows[0].reason
    with pytest.raises(InputError, match="two samples"):
        cluster([written(tmp_path / "b", lone)])


def of_hosts(folder: Path, util: dict[str, list[float]]) -> Cluster:
    """Hosts of one GPU each, with a sample every 30 s."""
    for name, values in util.items():
        part = folder / "date=2026-03-04" / f"node={name}"
        part.mkdir(parents=True)
        times = [START + pd.Timedelta(seconds=30 * at) for at in range(len(values))]
        pl.DataFrame({"timestamp": times, "gpu": ["0"] * len(values), "gpu_utilization": values}).write_parquet(
            part / "a.parquet"
        )
    found = telemetry_dataset(folder)
    assert found is not None
    return cluster([found])


def test_a_host_in_shares_of_one_beside_others_is_left_out(tmp_path: Path) -> None:
    """n1 at 0.95 of 1 is no host that never worked."""
    made = of_hosts(tmp_path, {"n1": [0.95, 0.5, 0.25], "n2": [95.0, 50.0, 25.0]})
    assert [row.host for row in made.rows] == ["n2"] and made.about.never_used == made.about.hardly_used == ()
    assert (made.about.n_hosts, made.about.n_gpus, made.about.n_hosts_left_out) == (1, 1, 1)
    assert made.about.notes[0].startswith("n1: left out")


def test_an_idle_host_that_writes_fractions_is_idle_in_either_unit(tmp_path: Path) -> None:
    """n1 below a tenth throughout: 0.09 is under 10 %, whether of 1 or of 100. n3 at 0.11 may be either."""
    made = of_hosts(tmp_path, {"n1": [0.0, 0.09, 0.01], "n2": [95.0, 50.0, 25.0], "n3": [0.0, 0.11, 0.01]})
    assert {row.host: row.idle_no_trial_gpu_s for row in made.rows} == {"n1": pytest.approx(90), "n2": 0}
    assert [gpu.host for gpu in made.about.never_used] == ["n1"] and made.about.notes[0].startswith("n3: left out")


def test_a_gpu_and_the_one_that_replaced_it_are_one_slot_at_one_time(tmp_path: Path) -> None:
    """GPU 1 dies in the second hour and another board takes its number in the fourth; GPU 0 stays."""
    for hour, board, util in ((0, "a", 40.0), (1, "a", 40.0), (3, "b", 80.0), (4, "b", 80.0)):
        folder = tmp_path / f"day=2026-03-0{4 + hour // 3}" / "host=n1"
        folder.mkdir(parents=True, exist_ok=True)
        times = [START + pd.Timedelta(hours=hour, seconds=60 + 30 * at) for at in range(110)]
        frame = pl.DataFrame(
            {
                "timestamp": times * 2,
                "index": [0] * 110 + [1] * 110,
                "uuid": ["GPU-stays"] * 110 + [f"GPU-{board}"] * 110,
                "gpu_util_pct": [10.0] * 110 + [util] * 110,
            }
        )
        frame.write_parquet(folder / f"{hour}.parquet")
    found = telemetry_dataset(tmp_path)
    assert found is not None
    about = cluster([found]).about
    assert (about.n_gpus, about.n_without_samples) == (2, 0)
    assert about.heat is not None and about.heat.gpus == ("n1/0", "n1/1") and about.heat.n_together == 1
    assert about.heat.mean_pct[1] == (40.0, 40.0, None, 80.0, 80.0)


def test_one_sample_of_work_is_hardly_any(tmp_path: Path) -> None:
    """One of 2,000 samples at 90 %, and one of 500: 0.05 and 0.2 % of the time."""
    few = {gpu: ([30.0 * at for at in range(n)], [90.0, *[0.0] * (n - 1)]) for gpu, n in (("0", 2000), ("1", 500))}
    about = cluster([written(tmp_path, Host("n1", few))]).about
    (one,) = about.hardly_used
    assert about.never_used == () and (one.gpu, one.worked_s, one.observed_s) == ("0", 30.0, 60000.0)


def test_every_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    written(tmp_path, steady("n[1", {"0": 80.0}), steady("n2", {"0": 5.0}))
    for name in ("b", "c"):
        (tmp_path / "day=2026-03-04" / "host=n2" / f"{name}.parquet").write_bytes(b"PAR1")
    odd = tmp_path / "day=2026-03-04" / "host=n[3"
    odd.mkdir()
    for file in (tmp_path / "day=2026-03-04" / "host=n2").glob("part.parquet"):
        (odd / "part.parquet").write_bytes(file.read_bytes())
    found = telemetry_dataset(tmp_path)
    assert found is not None
    made = cluster([found])
    assert {row.host for row in made.rows} == {"n[1", "n2", "n[3"}
    assert [f"{name}.parquet" in note for name, note in zip("bc", made.about.notes, strict=True)] == [True, True]


def test_shares_of_one_are_refused(tmp_path: Path) -> None:
    idle = steady("n1", {"0": 0.9, "1": 0.0})
    assert cluster([written(tmp_path / "ours", idle)]).rows[0].util_pct == pytest.approx(0.45)
    folder = tmp_path / "theirs" / "date=2026-03-04" / "node=n1"
    folder.mkdir(parents=True)
    times = [START + pd.Timedelta(seconds=30 * at) for at in range(3)]
    frame = pl.DataFrame({"timestamp": times, "gpu": ["0"] * 3, "gpu_utilization": [0.25, 1.0, 0.5]})
    frame.write_parquet(folder / "a.parquet")
    found = telemetry_dataset(tmp_path / "theirs")
    assert found is not None
    with pytest.raises(InputError, match="expected percent"):
        cluster([found])


def test_a_wrong_clock_makes_no_map_and_costs_no_time(tmp_path: Path) -> None:
    host = steady("n1", {"0": 80.0})
    seconds, util = host.gpus["0"]
    odd = Host("n1", {"0": ([*seconds, 3.2e9, 3.2e9 + 30], [*util, 1.0, 1.0])})
    made = cluster([written(tmp_path, odd)])
    assert made.about.heat is None and [row.gpu_s for row in made.rows] == pytest.approx([7230, 60])


def test_samples_in_disorder_and_twice_count_once(tmp_path: Path) -> None:
    host = steady("n1", {"0": 80.0})
    seconds, util = host.gpus["0"]
    order = np.random.default_rng(1).permutation(len(seconds))
    mixed = Host("n1", {"0": ([seconds[at] for at in [*order, *order]], [util[at] for at in [*order, *order]])})
    found = written(tmp_path, mixed)
    folder = Path(found.hosts["n1"][0]).parent
    frame = pl.DataFrame({"timestamp": [START.to_pydatetime()], "gpu": ["0"], "gpu_util_pct": [80.0]})
    frame.write_parquet(folder / "z.parquet")
    again = telemetry_dataset(tmp_path)
    assert again is not None
    (row,) = cluster([again]).rows
    assert row.busy_gpu_s == pytest.approx(7230) and row.n_gpus == 1


def test_two_data_sets_of_one_host_are_one_host(tmp_path: Path) -> None:
    host = steady("n1", {"0": 80.0})
    made = cluster([written(tmp_path / "a", host), written(tmp_path / "b", host)])
    assert [row.gpu_s for row in made.rows] == pytest.approx([7230])
    assert pd.Timestamp(made.rows[0].start) == START


@pytest.mark.parametrize("jobs", [None, SchedulerJobs((), 0, 0, (), ())])
def test_a_record_that_begins_with_a_month_or_a_week_is_none_of_the_one_before(
    tmp_path: Path, jobs: SchedulerJobs | None
) -> None:
    """Half of a cell lies before the first sample, which is at midnight: 2026-06-01 is a Monday."""
    begin = pd.Timestamp("2026-06-01", tz="UTC")
    seconds = [(begin - START).total_seconds() + second for second in range(0, 7200, 30)]
    made = cluster([written(tmp_path, Host("n1", {"0": (seconds, [80.0] * len(seconds))}))], jobs)
    (row,) = made.rows
    assert (row.start, row.gpu_s) == (begin.isoformat(), pytest.approx(7200)) and "2026-05" not in row.run
    assert jobs is None or row.run == "n1: unallocated, 2026-W23"


def test_a_record_that_its_job_started_and_a_week_that_a_job_ended_before(tmp_path: Path) -> None:
    monday = pd.Timestamp("2026-06-01", tz="UTC")
    ago_s = (monday - START).total_seconds()
    seconds = [ago_s - 600 + second for second in range(0, 7800, 60)]
    slow = [ago_s + 1800 + second for second in range(0, 5400, 600)]  # another GPU, read less often
    host = Host("n1", {"0": (seconds, [80.0] * len(seconds)), "1": (slow, [5.0] * len(slow))})
    us = round(monday.timestamp() * 1e6)
    job = SchedulerJob("7", us - 610 * 10**6, us - 60 * 10**6, ("n1",), 2)
    made = cluster([written(tmp_path, host)], SchedulerJobs((job,), 0, 0, (), ()))
    rows = {row.run: row for row in made.rows}
    assert all(row.start is not None and row.end is not None and row.start <= row.end for row in made.rows)
    free = {name: row for name, row in rows.items() if "unallocated" in name}
    assert set(free) == {"n1: unallocated, 2026-W22", "n1: unallocated, 2026-W23"}
    assert free["n1: unallocated, 2026-W23"].start == monday.isoformat()
    assert sum(row.gpu_s or 0 for row in made.rows) == pytest.approx(2 * 7800)
