"""Telemetry of a cluster cut by jobs: what is determined is a job's, what is not is nobody's, and nothing is lost."""

from __future__ import annotations

import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made import START, Host, steady, written

from gpudiag.fleets.cluster.cluster import Cluster, cluster
from gpudiag.fleets.table import FleetTable
from gpudiag.measures.ledger import measure_ledger
from gpudiag.readers._datasets.partitions import TelemetryDataset, telemetry_dataset
from gpudiag.readers._io.problems import Problem
from gpudiag.readers._jobs.host_names import host_of_nodes
from gpudiag.readers._jobs.scheduler_jobs import SchedulerJob, SchedulerJobs
from gpudiag.report.fleet.document import CELLS, RunRow
from gpudiag.run import Run, RunInfo

ZERO_US = round(START.timestamp() * 1e6)
KNOWN = ("busy", "busy_low", "idle_no_trial", "unobserved")


def job(name: str, start_s: float, end_s: float | None, *nodes: str, n: int | None = 1, **more: Any) -> SchedulerJob:
    end = None if end_s is None else ZERO_US + round(end_s * 1e6)
    start = ZERO_US + round(start_s * 1e6)
    return SchedulerJob(name, start, end, nodes, n, **more)


def cut(folder: Path, hosts: list[Host], *jobs: SchedulerJob) -> Cluster:
    return cluster([written(folder, *hosts)], SchedulerJobs(jobs, 0, 0, (), ()))


def by_name(made: Cluster) -> dict[str, RunRow]:
    return {row.run: row for row in made.rows}


def test_a_job_with_all_gpus_of_its_nodes_has_their_time_exactly(tmp_path: Path) -> None:
    """Job times between samples: a cell that a border cuts counts on both sides of it."""
    hosts = [steady(name, {"0": 80.0, "1": 5.0}) for name in ("n1", "n2")]
    one = job("7", 1007, 2011.5, "n1", "n2", n=4, user="ada", account="ml", state="COMPLETED")
    rows = by_name(cut(tmp_path, hosts, one))
    mine, more = rows.pop("job 7 on n1"), rows.pop("job 7 on n2")
    assert set(rows) == {"n1: unallocated, 2026-W10", "n2: unallocated, 2026-W10"}
    assert (mine.user, mine.project, mine.host, mine.state, mine.n_gpus) == ("ada", "ml", "n1", "COMPLETED", 2)
    assert (more.user, more.host, more.gpu_s) == ("ada", "n2", mine.gpu_s)
    assert (mine.status, more.status) == ("accounted", "continued")
    assert mine.busy_gpu_s == mine.idle_no_trial_gpu_s == pytest.approx(1004.5, abs=1e-6)
    assert mine.util_pct == pytest.approx(42.5) and mine.unobserved_gpu_s == 0 and mine.reason == ""
    free = rows["n1: unallocated, 2026-W10"]
    assert free.status == "unallocated" and free.busy_gpu_s == pytest.approx(7230 - 1004.5, abs=1e-6)


@pytest.mark.parametrize(("start_s", "end_s"), [(1007, 2011.5), (1010, 2020), (995, 2986), (1029.9, 1090.1)])
def test_a_job_is_its_span_of_the_run_but_for_a_period_at_each_end(
    tmp_path: Path, start_s: float, end_s: float
) -> None:
    seconds = [30.0 * at for at in range(120)]
    host = Host("n1", {"0": (seconds, [float(at * 37 % 101) for at in range(120)])})
    row = by_name(cut(tmp_path, [host], job("1", start_s, end_s, "n1")))["job 1"]
    held = host.telemetry
    whole = Run(gpu=held.gpu, gpus=held.gpus, info=RunInfo(name="n1"))
    span = whole.between(*((START + pd.Timedelta(seconds=one)).isoformat() for one in (start_s, end_s)))
    wanted = measure_ledger(span).totals.set_index("cell")["gpu_s"]
    for cell in KNOWN:
        assert getattr(row, f"{cell}_gpu_s") == pytest.approx(float(wanted[cell]), abs=30 + 30), cell
    assert row.gpu_s == pytest.approx(end_s - start_s, abs=1e-6)


def test_gpus_of_a_shared_node_are_not_guessed(tmp_path: Path) -> None:
    host = steady("n1", {str(gpu): 20.0 * gpu for gpu in range(4)})
    rows = by_name(
        cut(
            tmp_path,
            [host],
            job("1", 0, 3000, "n1", n=2, user="ada"),
            job("2", 1000, 4000, "n1", n=2, user="ada"),
            job("3", 5000, 6000, "n1", n=3),
        )
    )
    assert rows["job 1"].gpu_s is None and "nothing says which GPUs" in rows["job 1"].reason
    both = rows["n1: shared by jobs 1 and 2"]
    assert (both.status, both.user, both.gpu_s) == ("shared", "ada", pytest.approx(4 * 2000))
    alone = rows["n1: job 1 and no job"]
    assert (alone.user, alone.gpu_s) == ("", pytest.approx(4000)) and "some were free" in alone.reason
    assert rows["n1: job 3 and no job"].gpu_s == pytest.approx(4000)
    assert rows["n1: unallocated, 2026-W10"].gpu_s == pytest.approx(4 * (7230 - 5000))


def test_of_jobs_whose_number_of_gpus_is_unknown_nobody_says_that_some_were_free(tmp_path: Path) -> None:
    """One with no number at all, and one with 4 GPUs on two nodes of which one was not recorded."""
    host = steady("n1", {str(gpu): 20.0 * gpu for gpu in range(4)})
    several = [job("3", 6000, 7000, "n1", n=1), job("4", 6000, 7000, "n1", "n2", n=4)]
    rows = by_name(
        cut(tmp_path, [host], job("1", 0, 2000, "n1", n=None), job("2", 3000, 5000, "n1", "n2", n=4), *several)
    )
    for name in ("n1: job 1 and perhaps no job", "n1: job 2 and perhaps no job"):
        assert rows[name].gpu_s == pytest.approx(8000) and rows[name].reason.endswith("or whether some were free")
    assert rows["n1: shared by jobs 3 and 4"].reason.endswith("or whether some were free")


def test_jobs_that_overlap_for_a_moment_leave_no_gpu_free(tmp_path: Path) -> None:
    """Slurm may end a job a second after the next one began."""
    host = steady("n1", {str(gpu): 20.0 * gpu for gpu in range(4)})
    jobs = [job("1", 0, 3001, "n1", n=4), job("2", 3000, 6000, "n1", n=4)]
    rows = by_name(cut(tmp_path, [host], *jobs))
    both = rows["n1: shared by jobs 1 and 2"]
    assert both.gpu_s == pytest.approx(4) and both.reason == "nothing says which of these GPUs each job had"
    for name, seconds in (("job 1", 3000), ("job 2", 2999)):
        assert rows[name].gpu_s == pytest.approx(4 * seconds)
        assert rows[name].reason.startswith("for 1 s of it nothing says which GPUs of a shared node it had")


def test_where_jobstats_names_the_gpus_each_job_has_its_own(tmp_path: Path) -> None:
    host = steady("n1.cluster.local:9400", {"0": 80.0, "1": 5.0, "2": 30.0})
    first = job("1", 0, 7000, "n1", n=1, use={"n1": {"1": 5.2}})
    second = job("2", 1000, 7000, "n1", n=2, use={"n1": {"0": 79.0, "2": 31.0}})
    rows = by_name(cut(tmp_path, [host], first, second))
    assert rows["job 1"].gpu_s == pytest.approx(7000) and rows["job 1"].util_pct == pytest.approx(5)
    assert rows["job 2"].gpu_s == pytest.approx(12000) and rows["job 2"].util_pct == pytest.approx(55)
    assert rows["n1.cluster.local:9400: unallocated, 2026-W10"].gpu_s == pytest.approx(3 * 7230 - 19000)


def test_a_record_of_jobstats_that_the_telemetry_contradicts_names_no_gpu(tmp_path: Path) -> None:
    host = steady("n1", {"0": 80.0, "1": 5.0})
    rows = by_name(cut(tmp_path, [host], job("1", 0, 7000, "n1", use={"n1": {"1": 79.0}})))
    assert rows["job 1"].gpu_s is None and "jobstats has 79 % for GPU 1 of n1, the telemetry 5" in rows["job 1"].reason
    assert rows["job 1"].util_pct is None and rows["n1: job 1 and no job"].gpu_s == pytest.approx(14000)


def test_a_job_without_telemetry_has_what_jobstats_recorded(tmp_path: Path) -> None:
    use = {"n8": {"0": 90.0, "1": 30.0}, "n9": {"0": math.nan}}
    row = by_name(cut(tmp_path, [steady("n1", {"0": 80.0})], job("1", 0, 7000, "n8", "n9", n=3, use=use)))["job 1"]
    assert row.gpu_s is None and row.util_pct == pytest.approx(60) and "no telemetry of n8 and n9" in row.reason


def test_two_jobs_that_name_one_gpu_share_it(tmp_path: Path) -> None:
    use = {"n1": {"0": 80.0}}
    rows = by_name(
        cut(tmp_path, [steady("n1", {"0": 80.0})], job("1", 0, 7000, "n1", use=use), job("2", 0, 7000, "n1", use=use))
    )
    assert rows["n1: shared by jobs 1 and 2"].gpu_s == pytest.approx(7000)


def test_time_outside_the_telemetry_is_said_and_not_counted(tmp_path: Path) -> None:
    host = steady("n1", {"0": 80.0})
    rows = by_name(
        cut(
            tmp_path,
            [host],
            job("1", -3600, 600, "n1"),
            job("2", 6000, None, "n1", state="RUNNING"),
            job("3", 90_000, 93_600, "n1"),
            job("4", 1000, 1000, "n1"),
            job("5", 1000, 2000, "n9"),
            job("6", 1000, 2000),
        )
    )
    assert rows["job 1"].gpu_s == pytest.approx(615) and "59 min 45 s of it lie outside" in rows["job 1"].reason
    assert rows["job 2"].gpu_s == pytest.approx(1215) and rows["job 2"].end is not None
    assert rows["job 3"].gpu_s is None and "1 h of it lie" in rows["job 3"].reason
    assert rows["job 4"].gpu_s is None and rows["job 4"].reason == "it ended when it began"
    assert rows["job 5"].reason == "no telemetry of n9" and rows["job 6"].reason == "it names no node"
    assert rows["n1: unallocated, 2026-W10"].gpu_s == pytest.approx(7230 - 615 - 1215)


@pytest.mark.parametrize("end_s", [1000, 20_000, 38_000])
def test_the_total_of_a_telemetry_is_the_same_whatever_the_jobs(tmp_path: Path, end_s: float) -> None:
    """10 hours of silence between two sessions are nobody's, and not those of a job that goes on through them."""
    seconds, util = steady("n1", {"0": 80.0}, 1).gpus["0"]
    host = Host("n1", {"0": ([*seconds, *(one + 36_000 for one in seconds)], [*util, *util])})
    rows = by_name(cut(tmp_path, [host], job("1", 0, end_s, "n1")))
    assert math.fsum(row.gpu_s or 0.0 for row in rows.values()) == pytest.approx(2 * 3630)
    second = max(end_s - (36_000 - 15), 0)
    assert rows["job 1"].gpu_s == pytest.approx(min(end_s, 3615) + second) and rows["job 1"].unobserved_gpu_s == 0
    assert ("lie outside" in rows["job 1"].reason) == (end_s > 3615)


def test_time_of_nobody_is_told_week_by_week(tmp_path: Path) -> None:
    seconds = [1800.0 * at for at in range(48 * 14)]
    host = Host("n1", {"0": (seconds, [5.0] * len(seconds))})
    rows = cut(tmp_path, [host]).rows
    assert {row.run.partition(", ")[2]: round((row.gpu_s or 0) / 86400, 2) for row in rows} == {
        "2026-W10": 5.01,
        "2026-W11": 7.0,
        "2026-W12": 1.99,
    }


def test_a_job_of_nodes_of_different_sizes_is_only_sure_where_it_has_all(tmp_path: Path) -> None:
    hosts = [steady("a", {"0": 80.0}), steady("b", {"0": 80.0, "1": 80.0, "2": 80.0})]
    rows = by_name(cut(tmp_path, hosts, job("1", 0, 1000, "a", "b", n=2), job("2", 2000, 3000, "a", "b", n=4)))
    assert rows["job 1"].gpu_s is None and rows["job 1"].host == "a"
    assert [rows[f"job 2 on {host}"].gpu_s for host in "ab"] == pytest.approx([1000, 3000])


def test_names_of_jobs_that_ran_twice_differ(tmp_path: Path) -> None:
    jobs = job("1", 0, 100, "n1"), job("1", 200, 300, "n1")
    assert {"job 1", "job 1 (2)"} <= set(by_name(cut(tmp_path, [steady("n1", {"0": 80.0})], *jobs)))


def test_nodes_are_hosts_by_name_where_only_one_can_be_meant() -> None:
    hosts = ["n1.a.org:9400", "n2.a.org", "n2.b.org", "10.0.0.1:9400", "10.0.0.2:9400", "N3"]
    assert host_of_nodes(["n1", "n2", "n2.a.org", "n3", "10.0.0.1", "n4"], hosts) == {
        "n1": "n1.a.org:9400",
        "n2.a.org": "n2.a.org",
        "n3": "N3",
        "10.0.0.1": "10.0.0.1:9400",
    }


def foreign(folder: Path, name: str, *boards: tuple[float, float, dict[str, tuple[str, float]]]) -> TelemetryDataset:
    """A data set of another tool with a host whose boards (number and percent by uuid) are seen once a minute."""
    rows = [
        (START + pd.Timedelta(seconds=at), int(number), uuid, pct)
        for low, high, there in boards
        for at in range(round(low), round(high), 60)
        for uuid, (number, pct) in there.items()
    ]
    path = folder / "day=2026-03-04" / f"host={name}" / "a.parquet"
    path.parent.mkdir(parents=True)
    pd.DataFrame(rows, columns=["timestamp", "index", "uuid", "gpu_util_pct"]).to_parquet(path)
    found = telemetry_dataset(folder)
    assert found is not None
    return found


def cut_foreign(found: TelemetryDataset, *jobs: SchedulerJob) -> dict[str, RunRow]:
    return by_name(cluster([found], SchedulerJobs(jobs, 0, 0, (), ())))


def test_a_board_in_place_of_another_is_one_gpu_of_its_host(tmp_path: Path) -> None:
    """Two GPUs of two hours; at the end of the first hour the second one is replaced."""
    first = {"GPU-a": ("0", 80.0), "GPU-b": ("1", 20.0)}
    found = foreign(tmp_path, "n1", (0, 3600, first), (3600, 7200, {"GPU-a": ("0", 80.0), "GPU-c": ("1", 60.0)}))
    jobs = job("1", 600, 1800, "n1", n=2), job("2", 3000, 4200, "n1", n=2), job("3", 5000, 6000, "n1", n=2)
    rows = cut_foreign(found, *jobs)
    assert [rows[f"job {at}"].gpu_s for at in (1, 2, 3)] == pytest.approx([2400, 2400, 2000])
    assert [rows[f"job {at}"].n_gpus for at in (1, 2, 3)] == [2, 2, 2]
    border = (3540 + 3600) / 2
    mixed = (border - 3000) * 20 + (4200 - border) * 60 + 1200 * 80
    assert [rows[f"job {at}"].util_pct for at in (1, 2, 3)] == pytest.approx([50, mixed / 2400, 70])
    assert math.fsum(row.gpu_s or 0.0 for row in rows.values()) == pytest.approx(2 * 7200)
    assert math.fsum(row.unobserved_gpu_s or 0.0 for row in rows.values()) == 0
    (alone,) = cluster([found]).rows
    assert (alone.gpu_s, alone.n_gpus, alone.unobserved_gpu_s) == (pytest.approx(2 * 7200), 2, 0)


def test_a_gpu_is_matched_by_the_number_that_it_had_at_the_time(tmp_path: Path) -> None:
    first, second = {"GPU-a": ("0", 90.0), "GPU-b": ("1", 5.0)}, {"GPU-a": ("1", 90.0), "GPU-b": ("0", 5.0)}
    found = foreign(tmp_path, "n1", (0, 3600, first), (3600, 7200, second))
    use = {"n1": {"0": math.nan}}
    rows = cut_foreign(found, job("1", 600, 3000, "n1", use=use), job("2", 4000, 7000, "n1", use=use))
    assert [rows[f"job {at}"].gpu_s for at in (1, 2)] == pytest.approx([2400, 3000])
    assert [rows[f"job {at}"].util_pct for at in (1, 2)] == pytest.approx([90, 5])
    assert math.fsum(row.gpu_s or 0.0 for row in rows.values()) == pytest.approx(2 * 7200)


def test_a_gpu_that_falls_silent_is_unobserved_as_long_as_its_host_is_watched(tmp_path: Path) -> None:
    both, one = {"GPU-a": ("0", 80.0), "GPU-b": ("1", 20.0)}, {"GPU-a": ("0", 80.0)}
    row = cut_foreign(foreign(tmp_path, "n1", (0, 3600, both), (3600, 7200, one)), job("1", 0, 7000, "n1", n=2))[
        "job 1"
    ]
    assert row.gpu_s == pytest.approx(14_000) and row.unobserved_gpu_s == pytest.approx(7000 - 3570)


def test_a_record_of_jobstats_with_fewer_gpus_than_the_job_had_is_left_out(tmp_path: Path) -> None:
    host = steady("n1", {"0": 80.0, "1": 80.0, "2": 5.0, "3": 5.0})
    some = job("1", 0, 7000, "n1", n=4, use={"n1": {"0": 80.0, "1": 80.0}})
    row = by_name(cut(tmp_path, [host], some))["job 1"]
    assert row.gpu_s == pytest.approx(28_000) and row.util_pct == pytest.approx(42.5)
    assert "jobstats lists 2 GPUs of it and the scheduler 4" in row.reason


def test_more_gpus_than_the_telemetry_has_are_said(tmp_path: Path) -> None:
    row = by_name(cut(tmp_path, [steady("n1", {"0": 80.0, "1": 5.0})], job("1", 0, 7000, "n1", n=8)))["job 1"]
    assert row.gpu_s == pytest.approx(14_000) and "gave it 8 GPUs, the telemetry has 2" in row.reason


@pytest.mark.slow
def test_less_than_a_sampling_period_outside_the_telemetry_is_not_worth_a_word(tmp_path: Path) -> None:
    jobs = job("1", 6000, 7244.9, "n1"), job("2", 6000, 7245.1, "n1")  # it ends at 7215 and has a sample every 30 s
    rows = by_name(cut(tmp_path, [steady("n1", {"0": 80.0})], *jobs[:1]))
    assert rows["job 1"].reason == "" and rows["job 1"].gpu_s == pytest.approx(1215)
    late = by_name(cut(tmp_path / "b", [steady("n1", {"0": 80.0})], *jobs[1:]))["job 2"]
    assert "30 s of it lie outside" in late.reason


def test_where_lines_of_the_list_are_lost_nobody_is_sure_that_no_job_had_a_gpu(tmp_path: Path) -> None:
    lost = Problem("a kind", 3, lost=True), Problem("another", 5)
    made = cluster([written(tmp_path, steady("n1", {"0": 80.0}))], SchedulerJobs((), 0, 0, lost, ()))
    (row,) = made.rows
    assert "no listed job had the GPUs; 3 lines of the list could not be read" in row.reason


def test_rows_that_name_no_gpu_are_counted_and_are_no_gpu(tmp_path: Path) -> None:
    """Every second row without a GPU: these would be a second one, or take the place of the first."""
    path = tmp_path / "day=2026-03-04" / "host=n1" / "a.parquet"
    path.parent.mkdir(parents=True)
    times = [START + pd.Timedelta(seconds=60 * at) for at in range(120)]
    numbers = pd.array([at % 2 or None for at in range(120)], dtype="Int64")
    pd.DataFrame({"timestamp": times, "index": numbers, "gpu_util_pct": 20.0}).to_parquet(path)
    found = telemetry_dataset(tmp_path)
    assert found is not None
    made = cluster([found])
    (row,) = made.rows
    assert (row.gpu_s, row.n_gpus) == (pytest.approx(60 * 120), 1) and made.about.n_gpus == 1
    assert any("60 x row that names no GPU" in note for note in made.about.notes)


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(
            st.integers(-1000, 50_000),
            st.integers(0, 50_000),
            st.sampled_from([None, 1, 2, 3]),
            st.sampled_from([None, {"n1": {"0": math.nan}}, {"n1": {"1": math.nan, "0": math.nan}}]),
        ),
        max_size=6,
    )
)
@settings(max_examples=20)
def test_the_total_is_that_of_the_telemetry_where_gpus_come_and_go(jobs: list[tuple[Any, ...]]) -> None:
    """Two GPUs that swap their numbers, of which one is replaced; then a silence of hours, and a third GPU."""
    boards: list[tuple[float, float, dict[str, tuple[str, float]]]] = [
        (0, 1800, {"GPU-a": ("0", 90.0), "GPU-b": ("1", 5.0)}),
        (1860, 3600, {"GPU-a": ("1", 90.0), "GPU-b": ("0", 5.0)}),
        (3900, 5400, {"GPU-c": ("1", 30.0), "GPU-b": ("0", 5.0)}),
        (40_000, 43_600, {"GPU-c": ("1", 30.0), "GPU-b": ("0", 5.0), "GPU-d": ("2", 70.0)}),
    ]
    listed = [job(str(at), low, low + more, "n1", n=n, use=use) for at, (low, more, n, use) in enumerate(jobs)]
    with TemporaryDirectory() as folder:
        found = foreign(Path(folder), "n1", *boards)
        alone, rows = cluster([found]), cut_foreign(found, *listed)
    for cell in KNOWN:
        wanted = math.fsum(getattr(row, f"{cell}_gpu_s") or 0.0 for row in alone.rows)
        assert math.fsum(getattr(row, f"{cell}_gpu_s") or 0.0 for row in rows.values()) == pytest.approx(
            wanted, abs=1e-6
        )
    observed = math.fsum((row.gpu_s or 0.0) - (row.unobserved_gpu_s or 0.0) for row in alone.rows)
    assert observed == pytest.approx(alone.about.observed_gpu_s)
    last = len(range(40_000, 43_600, 60)) * 60
    assert [row.gpu_s for row in alone.rows] == pytest.approx([2 * (5340 + 60), 3 * last])
    for row in rows.values():
        assert row.gpu_s is None or all(getattr(row, f"{cell}_gpu_s") >= 0 for cell in CELLS)


def test_groups_by_host_are_those_of_the_telemetry_and_count_each_job_once(tmp_path: Path) -> None:
    hosts = [steady("a.x.org:9400", {"0": 80.0, "1": 5.0}), steady("b.x.org", {"0": 20.0})]
    made = cut(tmp_path, hosts, job("1", 100, 1100, "a", "b", n=3), job("2", 2000, 3000, "b"))
    held = {one.name: one for one in FleetTable(made.rows).by("host")}
    assert {name: (one.n_runs, round(one.gpu_s)) for name, one in held.items()} == {
        "a.x.org:9400": (1, 2 * 7230),
        "b.x.org": (1, 7230),
    }


SPANS = st.tuples(st.integers(-1000, 8000), st.one_of(st.none(), st.integers(0, 5000)))


@st.composite
def some_job(draw: st.DrawFn) -> tuple[Any, ...]:
    start, length = draw(SPANS)
    nodes = draw(st.sampled_from([("a",), ("b",), ("a", "b"), ("c",), ()]))
    use = draw(
        st.sampled_from([None, None, {"a": {"0": math.nan}}, {"b": {"1": math.nan, "2": math.nan}}, {"a": {"9": 1.0}}])
    )
    end = None if length is None else start + length
    return start, end, nodes, draw(st.sampled_from([None, 1, 2, 3, 5, 8])), use


@pytest.mark.slow
@given(st.lists(some_job(), max_size=8), st.lists(st.floats(0, 100), min_size=15, max_size=15))
@settings(max_examples=25)
def test_whatever_the_jobs_all_rows_add_up_to_all_gpu_time(jobs: list[tuple[Any, ...]], util: list[float]) -> None:
    """The sum over jobs, shared and unallocated time is that of the ledgers of the hosts, in each category."""
    seconds = [500.0 * at + (at % 3) * 7 for at in range(15)]
    hosts = [
        Host("a", {"0": (seconds, util), "1": (seconds[:9], util[:9])}),
        Host("b", {str(gpu): (seconds[gpu:], util[gpu:]) for gpu in range(3)}),
    ]
    listed = [job(str(at), start, end, *nodes, n=n, use=use) for at, (start, end, nodes, n, use) in enumerate(jobs)]
    with TemporaryDirectory() as folder:
        made = cut(Path(folder), hosts, *listed)
    wanted = [host.ledger.totals.set_index("cell")["gpu_s"] for host in hosts]
    for cell in KNOWN:
        got = math.fsum(getattr(row, f"{cell}_gpu_s") or 0.0 for row in made.rows)
        assert got == pytest.approx(sum(float(one[cell]) for one in wanted), abs=1e-6), cell
    for row in made.rows:
        if row.gpu_s is not None:
            assert row.gpu_s == pytest.approx(math.fsum(getattr(row, f"{cell}_gpu_s") for cell in CELLS), abs=1e-9)
            assert all(getattr(row, f"{cell}_gpu_s") >= 0 for cell in CELLS)
    assert len({row.run for row in made.rows}) == len(made.rows)
    assert sum(row.status == "accounted" for row in made.rows) == len(listed)
