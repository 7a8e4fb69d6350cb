"""What is said of the jobs of a scheduler: each is a piece of work with GPUs of its own, and no trial of a search."""

from __future__ import annotations

from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.analysis import Analysis
from gpudiag.measures._ends.logged import log_ends
from gpudiag.measures.trials import measure_trials
from gpudiag.report._sections.key_numbers import key_numbers
from gpudiag.rules import RULES
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.rule import check_thresholds
from gpudiag.rules._engine.verdict import Severity, Status, Verdict
from gpudiag.run import Run

HEAD = "JobID|JobName|State|ExitCode|Start|End|AllocTRES|NodeList"
ENDED = {
    "COMPLETED": "0:0", "TIMEOUT": "0:0", "OUT_OF_MEMORY": "0:125", "FAILED": "1:0", "CANCELLED by 7": "0:0",
}  # fmt: skip


def listed(folder: Path, *jobs: tuple[str, int, int], log: str = "") -> Run:
    """State, hours and GPUs of each job; they begin at one time."""
    rows = [
        f"{100 + n}|train|{state}|{ENDED[state]}|2026-03-01T10:00:00|2026-03-01T{10 + hours}:00:00|gres/gpu={gpus}|n{n}"
        for n, (state, hours, gpus) in enumerate(jobs)
    ]
    (folder / "sacct.txt").write_text("\n".join([HEAD, *rows]) + "\n", encoding="utf-8")
    if log:
        (folder / "slurm-100.out").write_text(log, encoding="utf-8")
    return gd.load_run(folder, timezone="UTC")


def rate(run: Run) -> Verdict:
    asked = [rule for rule in RULES if rule.id == "failure-rate-high"]
    (verdict,) = judge_all(asked, Analysis(run), check_thresholds(asked, {}))
    return verdict


def test_most_of_the_failed_time_at_the_limit_is_told_as_that(tmp_path: Path) -> None:
    jobs = [("COMPLETED", 2, 4), ("FAILED", 1, 4), ("TIMEOUT", 4, 4), ("OUT_OF_MEMORY", 1, 4), ("CANCELLED by 7", 3, 4)]
    run = listed(tmp_path, *jobs)
    trials = measure_trials(run)
    assert (trials.are_jobs, trials.jobs_logged, trials.n_timed_out) == (True, False, 1)
    assert trials.job_gpu_h == pytest.approx(4 * 11) and trials.failed_job_gpu_h == pytest.approx(4 * 6)
    assert trials.timed_out_gpu_h == pytest.approx(16) and trials.timed_out_h == pytest.approx(4)
    found = rate(run)
    assert (found.status, found.severity) == (Status.FOUND, Severity.CRITICAL)
    assert found.title == "Jobs reached their time limit" and "Ask the scheduler for more time" in found.remedy
    assert found.summary == (
        "3 of 4 finished jobs failed, 1 of these at the time limit. That took 24 GPU-h of 44 GPU-h, 16 GPU-h of it up "
        "to the time limit."
    )


def test_a_limit_that_took_little_is_not_the_cause(tmp_path: Path) -> None:
    found = rate(listed(tmp_path, ("TIMEOUT", 1, 1), ("FAILED", 3, 1)))
    assert found.severity is Severity.NOTE and "ExitCode" in found.remedy and "time limit" in found.summary


def test_beside_a_log_it_is_a_note(tmp_path: Path) -> None:
    log = "".join(f"2026-03-01 10:{n:02}:00 INFO step {n}0/900 loss 2.1\n" for n in range(1, 60))
    found = rate(listed(tmp_path, ("TIMEOUT", 1, 2), log=log))
    assert (found.severity, found.title) == (Severity.NOTE, "Jobs reached their time limit")
    assert found.summary.startswith("1 of 1 finished job reached the time limit. That took 2 GPU-h. The logs tell")


def test_a_list_of_jobs_is_no_log_that_ends_with_an_error(tmp_path: Path) -> None:
    assert log_ends(listed(tmp_path, ("OUT_OF_MEMORY", 1, 4))) == []


@pytest.mark.slow
def test_the_key_numbers_call_jobs_jobs_and_give_their_gpu_hours(tmp_path: Path) -> None:
    made = gd.diagnose(listed(tmp_path, ("COMPLETED", 2, 4), ("TIMEOUT", 4, 4)))
    assert key_numbers(made.document) == (
        ("of GPU time, 67 % of it in failed jobs", "24 GPU-h"), ("jobs completed; 1 failed", "1 of 2"),
    )  # fmt: skip
    assert made.document.headline.sentences[0].startswith("1 of 2 jobs completed, in 33 % of the job time")
