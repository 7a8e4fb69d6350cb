"""The same jobs in all forms in which Slurm prints them: sacct's table, JSON of sacct and squeue, scontrol's text."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from slurmforms import BEGAN, JOBS, Job, controller_json, sacct, sacct_json, scontrol

from gpudiag.errors import InputError
from gpudiag.readers._io.source import Source
from gpudiag.readers._jobs.node_list import expanded
from gpudiag.readers._jobs.scheduler_jobs import SchedulerJobs, read_jobs
from gpudiag.readers.base import ReadOptions, Trials
from gpudiag.readers.identify import identify
from gpudiag.timezones import parse_zone

Form = Callable[[Sequence[Job]], str]
FORMS: dict[str, tuple[str, Form]] = {
    "sacct --json, old": ("slurm-json", lambda jobs: sacct_json(jobs, plain=True)),
    "sacct --json": ("slurm-json", sacct_json),
    "squeue --json": ("slurm-json", controller_json),
    "scontrol show job": ("slurm-scontrol", lambda jobs: scontrol(jobs, details=False)),
    "scontrol show job -d": ("slurm-scontrol", scontrol),
    "scontrol show job -d -o": ("slurm-scontrol", lambda jobs: scontrol(jobs, oneliner=True)),
}
OF_THE_CONTROLLER = [name for name in FORMS if not name.startswith("sacct")]


def read(folder: Path, text: str, reader: str = "") -> Trials:
    path = folder / "jobs.txt"
    path.write_text(text, encoding="utf-8")
    source = Source.open(path)
    found = identify(source)
    assert found is not None and (not reader or found[1].name == reader)
    trials = found[1].read(source, ReadOptions(parse_zone("UTC")))
    assert isinstance(trials, Trials)
    return trials


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_those_of_saccts_table(form: str, tmp_path: Path) -> None:
    jobs = JOBS if form.startswith("sacct") else [replace(job, by=None) for job in JOBS]  # which names nobody
    wanted, found = read(tmp_path, sacct(jobs), "slurm-sacct"), read(tmp_path, FORMS[form][1](jobs), FORMS[form][0])
    left_out = ["user_attrs.gpu_numbers", "user_attrs.Account", "user_attrs.NCPUS"]
    tables = [trials.trials.drop(columns=left_out, errors="ignore") for trials in (wanted, found)]
    pd.testing.assert_frame_equal(*tables, check_like=True)
    assert found.events.drop(columns="line").equals(wanted.events.drop(columns="line"))
    assert found.problems == () and found.notes[:2] == wanted.notes[:2]
    open_ended = found.trials["state"].eq("RUNNING")
    assert found.trials["duration_s"][open_ended].tolist() == [900.0] and found.trials["duration_s"].count() == 1
    assert found.trials["end"][open_ended].isna().all()
    assert not any("secret" in str(cell) or "/home" in str(cell) for cell in found.trials.to_numpy().ravel())


@pytest.mark.parametrize("form", FORMS)
def test_what_is_expected_has_not_happened(form: str, tmp_path: Path) -> None:
    """Slurm's controller gives a job that waits a start and an end, and one that runs the end of its time limit."""
    rows = read(tmp_path, FORMS[form][1](JOBS)).trials.set_index("user_attrs.job")
    assert rows.loc["80_[3-9]", ["start", "end"]].isna().all() and rows.loc["80_[3-9]", "state"] == "WAITING"
    assert pd.isna(rows.loc["10", "start"]) and rows.loc["10", "state"] == "FAIL"
    assert rows.loc["11", "start"] == pd.Timestamp(BEGAN) + pd.Timedelta(minutes=45) and pd.isna(rows.loc["11", "end"])


@pytest.mark.parametrize("form", ["sacct --json, old", "sacct --json"])
def test_each_run_of_a_requeued_job_is_a_trial(form: str, tmp_path: Path) -> None:
    runs = [Job(7, "PREEMPTED", 1, 5, "node1", restarts=1), Job(7, "COMPLETED", 9, 20, "node2", restarts=1)]
    wanted, found = read(tmp_path, sacct(runs)), read(tmp_path, FORMS[form][1](runs))
    assert found.trials["state"].tolist() == wanted.trials["state"].tolist() == ["FAIL", "COMPLETE"]
    assert found.trials["start"].tolist() == wanted.trials["start"].tolist()
    assert not any("requeue" in note for note in (*found.notes, *wanted.notes))


@pytest.mark.parametrize("form", [*FORMS, "sacct"])
def test_earlier_runs_that_are_not_listed_are_told(form: str, tmp_path: Path) -> None:
    write = sacct if form == "sacct" else FORMS[form][1]
    found = read(tmp_path, write([Job(7, "COMPLETED", 9, 20, "node2", restarts=1), Job(8, "COMPLETED", 1, 2, "node1")]))
    said = "1 job began anew after a requeue, and not all earlier runs are listed; sacct --duplicates lists them."
    assert said in found.notes


def test_flags_of_a_state_stand_for_it_as_in_slurms_texts(tmp_path: Path) -> None:
    states = (
        ["PENDING", "REQUEUED"],
        ["RUNNING", "CONFIGURING"],
        ["COMPLETED", "COMPLETING"],
        ["RUNNING", "SIGNALING"],
    )
    document = json.loads(sacct_json([Job(at, "x", at, at + 1, "node1") for at in range(4)]))
    for job, words in zip(document["jobs"], states, strict=True):
        job["state"]["current"] = words
    found = read(tmp_path, json.dumps(document)).trials
    assert found["state"].tolist() == ["FAIL", "WAITING", "COMPLETE", "RUNNING"]


def test_out_of_memory_of_a_step_is_of_its_job(tmp_path: Path) -> None:
    document = json.loads(sacct_json([Job(1, "FAILED", 1, 2, "node1", step="OUT_OF_MEMORY")]))
    peak = {"requested": {"max": [{"type": "mem", "name": "", "count": 3 * 2**20}]}}
    document["jobs"][0]["steps"][0]["tres"] = peak
    found = read(tmp_path, json.dumps(document))
    assert found.trials["detail"].tolist() == ["OUT_OF_MEMORY"] and found.events["kind"].tolist() == ["killed"]
    assert found.trials["user_attrs.MaxRSS"].tolist() == ["3072K"]


def test_het_jobs_are_named_as_in_saccts_table(tmp_path: Path) -> None:
    document = json.loads(sacct_json([Job(13, "COMPLETED", 1, 2, "node1")]))
    document["jobs"][0]["het"] = {"job_id": 12, "job_offset": {"set": True, "infinite": False, "number": 1}}
    assert read(tmp_path, json.dumps(document)).trials["user_attrs.job"].tolist() == ["12+1"]
    text = scontrol([Job(13, "COMPLETED", 1, 2, "node1")]).replace("JobId=13", "JobId=13 HetJobId=12 HetJobOffset=1")
    assert read(tmp_path, text).trials["user_attrs.job"].tolist() == ["12+1"]


@pytest.mark.parametrize("number", [[], {"set": True, "number": -3}, True, "x", 2**70, {"number": None}, 1.5])
def test_what_is_no_number_is_unknown(number: object, tmp_path: Path) -> None:
    document = json.loads(sacct_json([Job(1, "COMPLETED", 1, 2, "node1")]))
    document["jobs"][0]["time"] |= {"end": number, "elapsed": number, "limit": number}
    row = read(tmp_path, json.dumps(document)).trials.iloc[0]
    assert pd.isna(row["end"]) and row["start"] == pd.Timestamp(BEGAN) + pd.Timedelta(minutes=1)


def test_times_beyond_the_calendar_are_no_dates(tmp_path: Path) -> None:
    document = json.loads(sacct_json([Job(1, "COMPLETED", 1, 2, "node1")]))
    document["jobs"][0]["time"]["end"] = 1_772_413_320_000
    found = read(tmp_path, json.dumps(document))
    assert found.trials["end"].isna().all()
    assert [one.kind for one in found.problems] == ["timestamp that is no date"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (sacct_json(JOBS)[:4000], "is no whole JSON document"),
        ('{"jobs": [' + '{"job_id": 1, "nodes": ' + "[" * 100_000, "is no whole JSON document"),
        ('{"jobs": [], "meta": {"slurm": {"release": "24.05.4"}}}', "holds no job"),
        ('{"jobs": [{"job_id": [], "nodes": {}}, 3, null]}', "holds no job"),
        ("JobId=7 JobName=a\n   JobState=", "holds no job"),
    ],
)
def test_what_holds_no_job_is_one_sentence(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        read(tmp_path, text)


def test_a_cluster_that_does_not_count_gpus_says_them_in_the_details(tmp_path: Path) -> None:
    uncounted = scontrol([JOBS[0], JOBS[8]]).replace("gres/gpu:a100=2,gres/gpu=2,", "")
    assert read(tmp_path, uncounted).trials["user_attrs.gpus"].tolist() == [2]
    silent = scontrol([JOBS[0], JOBS[8]], details=False).replace("gres/gpu:a100=2,gres/gpu=2,", "")
    assert "user_attrs.gpus" not in read(tmp_path, silent).trials and len(read(tmp_path, silent).trials) == 2


@pytest.mark.parametrize(
    ("gres", "wanted"),
    [
        ("gpu:a100:2(IDX:0-1)", "node1:0,1"),
        ("gpu:2(IDX:3,5)", "node1:3,5"),
        ("gpu(IDX:0,2-3,5)", "node1:0,2,3,5"),
        ("gpu:rtx2080:1(IDX:1),gg:g0(CNT:1)", "node1:1"),
        ("gpu:a100:1(IDX:0),gpu:v100:1(IDX:2)", "node1:0,2"),
        ("gpu:1g.5gb:2(IDX:3-4)", None),  # slices, counted by themselves
        ("gpu:2(IDX:0-3)", None),
        ("gpu:2(CNT:2)", None),
        ("shard:a100:2(0/4,2/4)", None),
        ("gpu:1(IDX:99999)", None),
    ],
)
def test_numbers_of_gpus_are_those_of_the_node(gres: str, wanted: str | None, tmp_path: Path) -> None:
    text = scontrol(JOBS[:1]).replace("gpu:a100:2(IDX:0-1)", gres)
    document = json.loads(controller_json(JOBS[:1]))
    document["jobs"][0]["gres_detail"] = [gres]
    for written in (text, json.dumps(document)):
        found = read(tmp_path, written).trials
        assert found.get("user_attrs.gpu_numbers", pd.Series([None])).tolist() == [wanted]


def test_nodes_with_unlike_gpus_are_apart_and_one_of_unknown_makes_all_unknown(tmp_path: Path) -> None:
    job = Job(1, "RUNNING", 1, None, "node[1-3]", gpus=6, idx="0-1")
    line = "  Nodes=node[1-3] CPU_IDs=0-7 Mem=65536 GRES=gpu:a100:6(IDX:0-1)"
    each = (
        "  Nodes=node[1,3] CPU_IDs=0-7 Mem=1 GRES=gpu:2(IDX:0-1)\n     Nodes=node2 CPU_IDs=1 Mem=1 GRES=gpu:2(IDX:2-3)"
    )
    text = scontrol([job]).replace(line, each)
    numbers = read(tmp_path, text).trials["user_attrs.gpu_numbers"].tolist()
    assert numbers == ["node1:0,1;node3:0,1;node2:2,3"]
    unknown = read(tmp_path, text.replace("gpu:2(IDX:2-3)", "gpu:2(CNT:2)")).trials
    assert "user_attrs.gpu_numbers" not in unknown


@pytest.mark.parametrize("form", FORMS)
def test_jobs_of_a_cluster_are_those_of_saccts_table(form: str, tmp_path: Path) -> None:
    def listed(text: str) -> SchedulerJobs:
        (tmp_path / "jobs.txt").write_text(text, encoding="utf-8")
        return read_jobs(tmp_path / "jobs.txt", "UTC")

    wanted, found = listed(sacct(JOBS)), listed(FORMS[form][1](JOBS))
    assert [replace(job, user="", account="") for job in found.jobs] == list(wanted.jobs)
    assert {(job.user, job.account) for job in found.jobs} == {("ada", "ml")}
    assert (found.n_unstarted, found.n_without_gpu, found.problems) == (2, 1, ())
    assert bool(found.notes) == ("json" not in form)


def test_a_table_with_columns_of_ours_is_read_as_any_other(tmp_path: Path) -> None:
    text = "JobID|State|Start|End|NodeList|GpuCount|GpuNumbers\n7|COMPLETED|2026-03-02T01:00:00|Unknown|n1|x|y\n"
    assert "user_attrs.gpus" not in read(tmp_path, text).trials


@pytest.mark.slow
def test_long_lists_take_no_long_time() -> None:
    assert len(expanded("node1," * 200_000)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Job ID: 7\nCluster: hpc\nUser/Group: ada/ml\nState: COMPLETED (exit code 0)\nNodes: 1\nCores per node: 8\n"
        "CPU Utilized: 00:10:00\nCPU Efficiency: 12.50% of 01:20:00 core-walltime\nJob Wall-clock time: 00:10:00\n",
        "     JobID    State       Elapsed  TimeEff   CPUEff   MemEff\n  7  COMPLETED  00:10:00  8.3%  12.5%  4.1%\n",
    ],
)
def test_seff_is_known_to_say_what_holds_more(text: str, tmp_path: Path) -> None:
    found = read(tmp_path, text, "slurm-seff")
    assert found.trials.empty and "sacct --json" in found.notes[0]
