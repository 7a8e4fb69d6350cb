"""Jobs of sacct: what is one, when it ran, on which nodes, with how many GPUs, and which GPUs jobstats saw it use."""

from __future__ import annotations

import base64
import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudiag.errors import InputError
from gpudiag.readers._jobs.jobstats import NO_RECORD
from gpudiag.readers._jobs.node_list import expanded
from gpudiag.readers._jobs.scheduler_jobs import NO_NODES, NO_TIME, WIDTH, SchedulerJobs, read_jobs

HEAD = "JobID|JobName|User|Account|State|Start|End|Elapsed|NodeList|AllocTRES|ReqTRES|AdminComment"
SUMMER = "2026-07-01T10:00:00|2026-07-01T11:00:00|01:00:00"
FOUR = "billing=32,cpu=32,gres/gpu:h100=4,gres/gpu=4,mem=1T,node=1"


def us(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1e6)


def jobs(folder: Path, *lines: str, head: str = HEAD, zone: str = "Europe/Berlin") -> SchedulerJobs:
    (folder / "sacct.txt").write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    return read_jobs(folder / "sacct.txt", zone)


def packed(record: object) -> str:
    return "JS1:" + base64.b64encode(gzip.compress(json.dumps(record).encode())).decode()


def test_a_job_has_its_owner_its_nodes_its_gpus_and_utc_times(tmp_path: Path) -> None:
    use = {"nodes": {"n1": {"gpu_utilization": {"0": 98.6, "3": "N/A"}}, "n2": {"total_time": 3.0}}, "gpus": 2}
    read = jobs(tmp_path, f"7|train|ada|ml|CANCELLED by 1000|{SUMMER}|n[1-2]|{FOUR}||{packed(use)}")
    (job,) = read.jobs
    assert (job.id, job.name, job.user, job.account, job.state) == ("7", "train", "ada", "ml", "CANCELLED")
    assert (job.start_us, job.end_us) == (us("2026-07-01T08:00"), us("2026-07-01T09:00"))
    assert (job.nodes, job.n_gpus, job.gpu_model) == (("n1", "n2"), 4, "h100")
    assert job.use is not None and job.use["n1"]["0"] == 98.6 and set(job.use["n1"]) == {"0", "3"}
    assert read.notes == ("Times in sacct.txt carry no zone; they were read as those of Europe/Berlin.",)
    assert not read.problems


def test_steps_and_jobs_that_never_began_are_none(tmp_path: Path) -> None:
    read = jobs(
        tmp_path,
        f"7|a|u|p|RUNNING|2026-07-01T10:00:00|Unknown|01:00:00|n1|{FOUR}||",
        f"7.batch|batch||p|RUNNING|2026-07-01T10:00:00|Unknown|01:00:00|n1|{FOUR}||",
        f"7.extern|extern||p|RUNNING|2026-07-01T10:00:00|Unknown|01:00:00|n1|{FOUR}||",
        "8_[5-9%2]|b|u|p|PENDING|Unknown|Unknown|00:00:00|None assigned||gres/gpu=1|",
        "9|c|u|p|CANCELLED by 7|None|2026-07-01T10:00:00|00:00:00|None assigned||gres/gpu=1|",
        f"8_4|b|u|p|COMPLETED|{SUMMER}|n1|gres/gpu=1||",
        f"10|cpu|u|p|COMPLETED|{SUMMER}|n1|cpu=4,mem=1G||",
    )
    assert [(job.id, job.end_us is None) for job in read.jobs] == [("7", True), ("8_4", False)]
    assert (read.n_unstarted, read.n_without_gpu) == (2, 1)


def test_each_time_that_a_requeued_job_ran_is_a_job_and_a_line_twice_is_none(tmp_path: Path) -> None:
    read = jobs(
        tmp_path,
        f"7|a|u|p|PREEMPTED|2026-07-01T10:00:00|2026-07-01T10:30:00|00:30:00|n1|{FOUR}||",
        f"7|a|u|p|RUNNING|2026-07-01T12:00:00|Unknown|00:30:00|n2|{FOUR}||",
        f"7|a|u|p|COMPLETED|2026-07-01T12:00:00|2026-07-01T13:00:00|01:00:00|n2|{FOUR}||",
        f"7|a|u|p|RUNNING|2026-07-01T12:00:00|Unknown|00:40:00|n2|{FOUR}||",
    )
    assert [(job.nodes, job.end_us) for job in read.jobs] == [
        (("n1",), us("2026-07-01T08:30")),
        (("n2",), us("2026-07-01T11:00")),
    ]


def test_in_the_hour_that_autumn_repeats_the_elapsed_time_decides(tmp_path: Path) -> None:
    first = jobs(tmp_path, f"1|a|u|p|COMPLETED|2026-10-25T01:30:00|2026-10-25T02:30:00|02:00:00|n1|{FOUR}||")
    assert first.jobs[0].end_us == us("2026-10-25T01:30") and len(first.notes) == 1
    second = jobs(tmp_path, f"1|a|u|p|COMPLETED|2026-10-25T01:30:00|2026-10-25T02:30:00||n1|{FOUR}||")
    assert second.jobs[0].end_us == us("2026-10-25T00:30") and "1 times lie" in second.notes[1]


def test_zones_and_epochs_that_are_written_hold(tmp_path: Path) -> None:
    read = jobs(
        tmp_path,
        f"1|a|u|p|COMPLETED|2026-07-01T10:00:00+0800|1782876600||n1|{FOUR}||",
    )
    assert read.jobs[0].start_us == us("2026-07-01T02:00") and read.jobs[0].end_us == 1_782_876_600_000_000
    assert read.notes == ()


def test_what_is_wrong_in_a_line_costs_that_line(tmp_path: Path) -> None:
    read = jobs(
        tmp_path,
        f"1|a|u|p|COMPLETED|2026-07-01T10:00:00|2026-07-01T09:00:00||n1|{FOUR}||",
        f"2|a|u|p|COMPLETED|{SUMMER}|n[1-x]|{FOUR}||",
        f"3|a|u|p|COMPLETED|{SUMMER}|n1|{FOUR}||JS1:nonsense",
        "4|a|b",
        f"5|a|u|p|COMPLETED|{SUMMER}|n1|{FOUR}||JS1:Short",
    )
    assert [job.id for job in read.jobs] == ["2", "3", "5"]
    assert read.jobs[0].nodes == () and read.jobs[1].use is None
    assert {one.kind for one in read.problems} == {NO_TIME, NO_NODES, NO_RECORD, WIDTH}


@pytest.mark.parametrize("end", ["", "|"])
def test_a_bar_in_a_text_of_a_user_shifts_no_column(tmp_path: Path, end: str) -> None:
    read = jobs(
        tmp_path,
        f"1|pi|pe|u|p|COMPLETED|{SUMMER}|n1|{FOUR}||{end}",
        f"2|a|u|p|COMPLETED|{SUMMER}|n1|{FOUR}||two|words|more{end}",
        f"3|a|u|p|CANCELLED by 7|{SUMMER}|n1|{FOUR}||{end}",
        f"4|a|b|u|p|COMPLETED|{SUMMER}|n1|{FOUR}||two|words{end}",
        f"5|a|u|p|COMPLETED|{SUMMER}|n1|{FOUR}|{SUMMER}|n2|||{end}",
        f"6|a|u|p|COMPLETED|{SUMMER}|n1|{FOUR}{end}",
        head=HEAD + end,
    )
    assert [(job.id, job.name, job.user, job.n_gpus) for job in read.jobs[:3]] == [
        ("1", "pi|pe", "u", 4),
        ("2", "a", "u", 4),
        ("3", "a", "u", 4),
    ]
    assert {job.id for job in read.jobs} == {"1", "2", "3", "5"} and read.jobs[3].nodes == ("n1",)
    (problem,) = read.problems
    assert (problem.kind, problem.count, problem.lost) == (WIDTH, 2, True)


def test_a_row_that_can_be_read_in_two_ways_is_dropped(tmp_path: Path) -> None:
    forged = f"7|x|eve|p|COMPLETED|{SUMMER}|n1|{FOUR}||".rstrip("|")
    row = f"{forged}|ada|ml|COMPLETED|{SUMMER}|n2|{FOUR}||"
    assert len(row.split("|")) > len(HEAD.split("|"))
    read = jobs(tmp_path, row)
    assert not read.jobs and [one.kind for one in read.problems] == [WIDTH]


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        ("gres/gpu:a100=2,gres/gpu:h100=1,gres/gpu=3|", 3),
        ("gres/gpu:a100=2,gres/gpu:h100=1|", 3),
        ("|gres/gpu=5", 5),
        ("cpu=1|gres/gpu=5", 0),
        ("gres/gpu=0|", 0),
        ("gres/gpumem=80G|", None),
        ("cpu=8,mem=64G,node=1|", None),
        ("|", None),
    ],
)
def test_gpus_are_those_allocated_else_those_asked_for(tmp_path: Path, cells: str, wanted: int | None) -> None:
    read = jobs(tmp_path, f"1|a|u|p|COMPLETED|{SUMMER}|n1|{cells}|")
    assert [job.n_gpus for job in read.jobs] == ([] if wanted == 0 else [wanted])


@pytest.mark.parametrize(
    ("tres", "wanted"),
    [
        ("cpu=4,mem=1G,node=1", 0),
        ("cpu=4,gres/nvme=1,node=1", 0),
        ("cpu=4,gres/shard=8,node=1", None),
        ("cpu=4,gres/mps:h100=50,node=1", None),
    ],
)
def test_beside_jobs_whose_gpus_are_counted_a_job_without_has_none_or_parts_of_some(
    tmp_path: Path, tres: str, wanted: int | None
) -> None:
    read = jobs(tmp_path, f"1|a|u|p|COMPLETED|{SUMMER}|n1|{FOUR}||", f"2|b|u|p|COMPLETED|{SUMMER}|n1|{tres}|{tres}|")
    assert [job.n_gpus for job in read.jobs] == [4, *[None] * (wanted is None)]
    assert read.n_without_gpu == (wanted == 0)


def test_another_table_is_refused_with_what_to_print(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="lacks NodeList"):
        jobs(tmp_path, head="JobID|State|Start|End")
    with pytest.raises(InputError, match="--parsable2"):
        jobs(tmp_path, head="time,gpu")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("node[01-03,7],gpu5", ("node01", "node02", "node03", "node7", "gpu5")),
        ("r[1-2]n[09-10]", ("r1n09", "r1n10", "r2n09", "r2n10")),
        ("a,a", ("a",)),
        ("None assigned", ()),
        ("", ()),
    ],
)
def test_lists_of_nodes(text: str, wanted: tuple[str, ...]) -> None:
    assert expanded(text) == wanted


@pytest.mark.parametrize("text", ["n[1-999999999]", "n[1-5000]m[1-5000]", "n[a]", "n[1", "n1]", "n[]"])
def test_what_is_no_list_of_nodes_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"nodes|numbers"):
        expanded(text)


@given(st.lists(st.tuples(st.integers(0, 900), st.integers(0, 40)), min_size=1, max_size=5))
def test_ranges_hold_every_number_in_them(ranges: list[tuple[int, int]]) -> None:
    text = "n[" + ",".join(f"{low:04d}-{low + more:04d}" for low, more in ranges) + "]"
    wanted = {f"n{number:04d}" for low, more in ranges for number in range(low, low + more + 1)}
    assert set(expanded(text)) == wanted and len(expanded(text)) == len(wanted)
