"""sacct: jobs and their steps, states, times and GPUs."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

import pandas as pd
import pytest

from gpudiag.errors import InputError
from gpudiag.readers._io.source import Source
from gpudiag.readers.artifacts import slurm_sacct
from gpudiag.readers.base import ReadOptions, Trials
from gpudiag.readers.identify import identify
from gpudiag.timezones import parse_zone

HEADER = "JobID|JobName|State|ExitCode|Start|End|Elapsed|AllocTRES|MaxRSS|NodeList"


def read(folder: Path, *rows: str, header: str = HEADER) -> Trials:
    path = folder / "jobs.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    found = identify(Source.open(path))
    assert found is not None and found[1].name == "slurm-sacct"
    return slurm_sacct.read(Source.open(path), ReadOptions(parse_zone("Asia/Taipei")))


def job(state: str, *, number: str = "7", end: str = "2026-01-15T20:00:00", elapsed: str = "01:00:00") -> str:
    return f"{number}|train|{state}|0:0|2026-01-15T19:00:00|{end}|{elapsed}|billing=4,gres/gpu:a100=2,gres/gpu=2|| gpu3"


def test_steps_are_folded_into_their_job(tmp_path: Path) -> None:
    steps = ["7.batch|batch|COMPLETED|0:0||||cpu=1|2M|gpu3", "7.0|python|COMPLETED|0:0||||cpu=1|1.5G|gpu3"]
    out = read(tmp_path, job("COMPLETED"), *steps)
    (row,) = out.trials.to_dict("records")
    assert (row["state"], row["name"]) == ("COMPLETE", "train")
    assert (row["user_attrs.gpus"], row["user_attrs.MaxRSS"]) == (2, "1.5G")
    assert row["start"] == pd.Timestamp("2026-01-15T11:00Z") and row["end"] == pd.Timestamp("2026-01-15T12:00Z")
    assert "duration_s" not in out.trials and out.events.empty


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("COMPLETED", "COMPLETE"), ("FAILED", "FAIL"), ("CANCELLED by 1009", "FAIL"), ("TIMEOUT", "FAIL"),
        ("NODE_FAIL", "FAIL"), ("REQUEUED", "FAIL"), ("RUNNING", "RUNNING"), ("PENDING", "WAITING"),
        ("CANCELLED+", "FAIL"),
    ],
)  # fmt: skip
def test_states(tmp_path: Path, word: str, state: str) -> None:
    row = read(tmp_path, job(word)).trials.iloc[0]
    assert row["state"] == state
    assert (row["detail"] == word) if state == "FAIL" else True


def test_out_of_memory_of_a_step_is_an_event(tmp_path: Path) -> None:
    out = read(tmp_path, job("FAILED"), "7.0|python|OUT_OF_MEMORY|0:125||||||gpu3", job("OUT_OF_MEMORY", number="8_1"))
    assert out.events["kind"].tolist() == ["killed", "killed"]
    assert out.events["line"].tolist() == [2, 4] and out.events["trial"].tolist() == [0, 1]
    assert out.events["time"].tolist() == [pd.Timestamp("2026-01-15T12:00Z")] * 2
    assert any("host memory" in note for note in out.notes)


def test_each_time_that_a_requeued_job_ran_is_a_trial_and_a_row_twice_is_none(tmp_path: Path) -> None:
    """As ``sacct --duplicates`` prints it, steps behind the time of which they are."""
    again = "7|train|COMPLETED|0:0|2026-01-15T21:00:00|2026-01-15T23:00:00|02:00:00|gres/gpu=2||gpu4"
    out = read(
        tmp_path, job("PREEMPTED"), "7.batch|batch|CANCELLED|0:15||||cpu=1|2G|gpu3",
        again.replace("COMPLETED", "RUNNING"), again, "7.batch|batch|COMPLETED|0:0||||cpu=1|3G|gpu4",
    )  # fmt: skip
    assert out.trials["state"].tolist() == ["FAIL", "COMPLETE"]
    hours = (out.trials["end"] - out.trials["start"]).dt.total_seconds() / 3600
    assert hours.tolist() == [1.0, 2.0]
    assert out.trials["user_attrs.job"].tolist() == ["7", "7"] and out.trials["host"].tolist() == [" gpu3", "gpu4"]
    assert out.trials["user_attrs.MaxRSS"].tolist() == ["2G", "3G"]


def test_jobs_without_a_gpu_are_left_out_where_the_scheduler_counts_gpus(tmp_path: Path) -> None:
    cpu = [job("FAILED", number=str(at)).replace("gres/gpu:a100=2,gres/gpu=2", "cpu=4") for at in (8, 9)]
    shard = job("COMPLETED", number="10").replace("gres/gpu:a100=2,gres/gpu=2", "gres/shard=2")
    out = read(tmp_path, cpu[0], job("OUT_OF_MEMORY"), cpu[1], shard)
    assert out.trials["user_attrs.job"].tolist() == ["7", "10"]
    assert out.trials["user_attrs.gpus"].fillna(-1).tolist() == [2, -1]
    assert "2 jobs had no GPU and are left out." in out.notes
    assert (out.events["trial"].tolist(), out.events["line"].tolist()) == ([0], [3])
    uncounted = read(tmp_path, *cpu)
    assert len(uncounted.trials) == 2 and "user_attrs.gpus" not in uncounted.trials


def test_open_jobs_have_no_end_but_how_long_they_ran(tmp_path: Path) -> None:
    out = read(tmp_path, job("RUNNING", end="Unknown", elapsed="1-02:03:04"))
    assert pd.isna(out.trials["end"][0])
    assert out.trials["duration_s"].tolist() == [((24 + 2) * 60 + 3) * 60 + 4]


def test_torn_rows_trailing_bars_and_no_jobs(tmp_path: Path) -> None:
    out = read(tmp_path, job("COMPLETED") + "|", "9|tor", header=HEADER + "|")
    assert len(out.trials) == 1
    assert [(problem.kind, problem.line) for problem in out.problems] == [("row of another width", 3)]
    with pytest.raises(InputError, match="holds no job"):
        read(tmp_path)


@pytest.mark.corpus
def test_a_real_file_of_109_columns(corpus: Path) -> None:
    (path,) = (corpus / "artifacts" / "slurm_sacct").iterdir()
    out = slurm_sacct.read(Source.open(path), ReadOptions(parse_zone("Europe/Paris")))
    (row,) = out.trials.to_dict("records")
    assert (row["end"] - row["start"]).total_seconds() == 778
    assert row["user_attrs.MaxRSS"] == "1043168K" and out.problems == ()


def test_a_table_whose_cells_are_cut_says_how_to_print_it(tmp_path: Path) -> None:
    header = "JobID           JobName      State ExitCode"
    rows = ["------------ ---------- ---------- --------", "7            long_name+  COMPLETED      0:0"]
    with pytest.raises(InputError, match="--parsable2"):
        read(tmp_path, *rows, header=header)


def recorded(*pcts: object) -> str:
    node = {
        "gpu_utilization": {str(at): pct for at, pct in enumerate(pcts)},
        "gpu_used_memory": {"0": 2**30, "1": 3 * 2**30}, "gpu_total_memory": {"0": 2**36, "1": 2**37},
    }  # fmt: skip
    return "JS1:" + base64.b64encode(gzip.compress(json.dumps({"nodes": {"gpu3": node}, "gpus": 2}).encode())).decode()


def test_what_jobstats_recorded_belongs_to_the_job(tmp_path: Path) -> None:
    comments = [recorded(90.0, 10.0), "JS1:Short", "JS1:nonsense", recorded(400, 30)]
    rows = [f"{job('COMPLETED', number=str(at))}|{comment}" for at, comment in enumerate(comments)]
    out = read(
        tmp_path, rows[0], "0.batch|batch|COMPLETED|0:0||||cpu=1||gpu3|", *rows[1:], header=f"{HEADER}|AdminComment"
    )
    assert out.trials["user_attrs.gpu_util_pct"].fillna(-1).tolist() == [50.0, -1, -1, 30.0]
    assert out.trials["user_attrs.gpu_util_lowest_pct"].fillna(-1).tolist() == [10.0, -1, -1, 30.0]
    assert out.trials["user_attrs.gpu_mem_used_mib"].fillna(-1).tolist() == [3072.0, -1, -1, 3072.0]
    assert out.trials["user_attrs.gpu_mem_total_mib"].fillna(-1).tolist() == [2.0**17, -1, -1, 2.0**17]
    assert out.trials["user_attrs.gpus_recorded"].fillna(-1).tolist() == [2, -1, -1, 1]
    assert out.trials["user_attrs.gpus_unused"].fillna(-1).tolist() == [0, -1, -1, 0]
    assert not any("JS1" in str(cell) for cell in out.trials.to_numpy().ravel())
    assert [(one.kind, one.count, one.line, one.lost) for one in out.problems] == [
        ("record of jobstats", 1, 5, False),
        ("value of jobstats that is none", 1, 6, False),
    ]
    assert out.notes[0] == "jobstats recorded the GPU utilization of 2 of 4 jobs."
