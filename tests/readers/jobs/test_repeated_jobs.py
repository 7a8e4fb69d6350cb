"""Lists of Slurm that hold the same jobs: each run of a job is one trial, with what any of them knows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
from slurmforms import JOBS, Job, controller_json, moment, sacct, sacct_json, scontrol

from gpudiag.load import load_run
from gpudiag.run import Run


def loaded(folder: Path, **texts: str) -> Run:
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    (folder / "run.toml").write_text('timezone = "UTC"\n', encoding="utf-8")
    return load_run(folder)


def by_job(run: Run) -> pd.DataFrame:
    assert run.trials["user_attrs.job"].is_unique
    return run.trials.set_index("user_attrs.job")


def test_what_ran_in_one_list_and_ended_in_another_is_one_job_with_its_gpus(tmp_path: Path) -> None:
    before = [replace(JOBS[0], state="RUNNING", end=None), replace(JOBS[2], state="PENDING", start=None, end=None)]
    run = loaded(tmp_path, all=sacct_json(JOBS), earlier=scontrol(before))
    jobs = by_job(run)
    assert jobs.loc["1", ["state", "user_attrs.gpu_numbers"]].tolist() == ["COMPLETE", "node1:0,1"]
    assert jobs.loc["3", "state"] == "FAIL" and jobs["user_attrs.gpu_numbers"].count() == 1
    assert jobs["user_attrs.gpus"].astype(float).eq(2).all() and len(jobs) == len(JOBS) - 1
    assert run.studies["study"].tolist() == ["all"]
    assert "2 jobs in several lists of Slurm count once." in run.info.notes
    assert run.events["trial"].tolist() == [2] and run.events["kind"].tolist() == ["killed"]


def test_the_events_of_a_row_that_is_left_out_go_with_it(tmp_path: Path) -> None:
    run = loaded(tmp_path, all=sacct(JOBS), one=scontrol(JOBS[2:3]), other=controller_json(JOBS[2:4]))
    assert len(by_job(run)) == len(JOBS) - 1 and len(run.events) == 1
    assert by_job(run)["user_attrs.gpu_numbers"].dropna().to_dict() == {"3": "node1:0,1", "4": "node1:0,1"}


def test_a_later_list_of_what_runs_has_the_longer_time(tmp_path: Path) -> None:
    early = sacct([JOBS[-1]]).replace("00:15:00", "00:05:00")
    run = loaded(tmp_path, early=early, late=scontrol([*JOBS[:1], JOBS[-1]]))
    assert by_job(run).loc["11", "duration_s"] == 900


def test_runs_of_a_requeued_job_and_jobs_of_one_list_stay_apart(tmp_path: Path) -> None:
    runs = [Job(7, "PREEMPTED", 1, 5, "node1"), Job(7, "COMPLETED", 9, 20, "node2")]
    run = loaded(tmp_path, all=sacct([*runs, Job(8, "PENDING", None, None)]), last=scontrol(runs[1:]))
    assert run.trials["user_attrs.job"].tolist() == ["7", "7", "8"]
    assert run.trials["state"].tolist() == ["FAIL", "COMPLETE", "WAITING"]


def test_a_list_without_a_zone_that_lies_whole_quarter_hours_off_tells_of_the_same_runs(tmp_path: Path) -> None:
    away = [replace(job, start=job.start + 60, end=job.end + 60) for job in JOBS[:3] if job.start and job.end]
    run = loaded(tmp_path, table=sacct(away), json=sacct_json(JOBS[:3]))
    assert by_job(run)["start"].tolist() == [pd.Timestamp(moment(job.start or 0)) for job in JOBS[:3]]
    (note,) = (note for note in run.info.notes if "--timezone" in note)
    assert "3 jobs of Slurm listed without a time zone lie +1 h from the same" in note


def test_runs_of_another_length_or_no_whole_quarter_apart_are_others(tmp_path: Path) -> None:
    away = [replace(JOBS[0], start=61, end=72), replace(JOBS[1], start=64, end=74)]
    run = loaded(tmp_path, table=sacct(away), json=sacct_json(JOBS[:2]))
    assert len(run.trials) == 4 and not any("--timezone" in note for note in run.info.notes)
