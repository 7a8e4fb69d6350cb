"""How trainings ended: an error is the end of a training only where nothing of it comes behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from verdicts import verdict_of

import gpudiag as gd
from gpudiag.load import load_run
from gpudiag.measures._ends.logged import log_ends
from gpudiag.measures.divergence import measure_divergence
from gpudiag.measures.endings import EndingsProfile, measure_endings
from gpudiag.run import Run

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 1.1 GiB free."
TRACEBACK = 'Traceback (most recent call last):\n  File "/home/jo/train.py", line 8, in <module>\n    main()\n'


def lines(first: int, last: int, total: int = 1000, minute: int = 0) -> str:
    return "".join(
        f"2026-03-01 10:{minute + step // 60:02}:{step % 60:02} step {step}/{total} loss 0.5\n"
        for step in range(first, last + 1, 10)
    )


def ending(tmp_path: Path, **files: str) -> EndingsProfile:
    return measure_endings(run_of(tmp_path, **files))


def run_of(tmp_path: Path, **files: str) -> Run:
    for name, text in files.items():
        (tmp_path / f"{name}.log").write_text(text, encoding="utf-8")
    return load_run(tmp_path, timezone="UTC")


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (OOM, "oom", "torch.OutOfMemoryError: CUDA out of memory"),
        ("RuntimeError: CUDA error: device-side assert triggered", "device_assert", None),
        (
            "slurmstepd: error: Detected 1 oom_kill event in StepId=77.batch. Some tasks have been OOM Killed.",
            "host_killed",
            None,
        ),
        ("slurmstepd: error: Detected 1 oom-kill event(s) in step 7.batch cgroup.", "host_killed", None),
        (
            "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-01T11:00:00 DUE TO TIME LIMIT ***",
            "time_limit",
            None,
        ),
        ("[rank3]: ValueError: shapes (3,4) and (5,) differ", "other", "ValueError: shapes (3,4) and (5,) differ"),
        ("FileNotFoundError: [Errno 2] No such file: '/home/jo/data/x.bin'", "other", None),
        ("my.package.BadThing.ShapeError", "other", None),
        (
            "Loss is nan, stopping training\n{'loss_box': tensor(nan)}",  # what torchvision's recipe prints behind it
            "nan",
            "Loss is nan, stopping training",
        ),
    ],
)
def test_an_error_behind_the_last_step_ends_the_training(
    tmp_path: Path, error: str, kind: str, text: str | None
) -> None:
    found = ending(tmp_path, train=lines(10, 400) + TRACEBACK + error + "\n")
    assert (found.n_logs, found.n_failed, found.n_short, found.last_step, found.total_steps) == (1, 1, 0, 400, 1000)
    row = found.failed.iloc[0]
    assert row["kind"] == kind and row["outcome"] == "failed"
    assert text is None or row["text"] == text
    assert "/home/jo" not in row["text"]


def test_the_first_error_is_the_one_that_others_follow(tmp_path: Path) -> None:
    log = lines(10, 400) + TRACEBACK + f"{OOM}\n\nDuring handling of the above exception\n\n" + TRACEBACK
    found = ending(tmp_path, train=log + "RuntimeError: NCCL error: unhandled system error\n")
    assert found.failed["kind"].tolist() == ["oom"]


@pytest.mark.parametrize(
    "log",
    [
        lines(10, 400) + OOM + "\n" + lines(410, 1000),
        lines(10, 400) + OOM + "\nResuming from checkpoint at step 300\n" + lines(310, 1000, minute=20),
        lines(10, 1000),
        "ValueError: tried twice\n" + lines(10, 1000),
    ],
    ids=["caught", "resumed", "no error", "before the first step"],
)
def test_a_training_that_goes_on_did_not_fail(tmp_path: Path, log: str) -> None:
    found = ending(tmp_path, train=log)
    assert (found.n_logs, found.n_failed, found.n_short) == (1, 0, 0)


def test_a_log_that_goes_on_in_another_file_did_not_end(tmp_path: Path) -> None:
    found = ending(
        tmp_path,
        slurm_1=lines(10, 400) + OOM + "\n",
        slurm_2="2026-03-01 10:20:00 resuming from checkpoint at step 400\n" + lines(410, 1000, minute=20),
    )
    assert (found.n_logs, found.n_failed) == (1, 0)


def test_what_comes_behind_the_last_of_all_steps_is_graver_for_what_no_way_down_prints(tmp_path: Path) -> None:
    down, dead = (ending(tmp_path, train=lines(10, 1000) + f"{error}\n") for error in ("OSError: closed", OOM))
    assert (down.n_failed, down.n_open, down.failed["outcome"].tolist()) == (0, 1, ["open"])
    assert (dead.n_failed, dead.n_open, dead.failed["outcome"].tolist()) == (1, 0, ["failed"])


def test_stopped_by_hand_is_no_failure(tmp_path: Path) -> None:
    found = ending(tmp_path, train=lines(10, 400) + TRACEBACK + "KeyboardInterrupt\n")
    assert (found.n_failed, found.n_stopped, found.n_short) == (0, 1, 0)


CANCELED = "slurmstepd: error: *** {} ON n1 CANCELLED AT 2026-03-01T12:00:00{} ***\n"


@pytest.mark.parametrize(
    ("reason", "outcome", "kind", "remedy"),
    [
        ("", "outside", "canceled", "Resume from the last checkpoint if it is still needed: somebody,"),
        (" DUE TO PREEMPTION", "outside", "preempted", "The scheduler made room for another job"),
        (" DUE TO JOB REQUEUE", "outside", "requeued", "The scheduler starts the job again"),
        (" DUE TO NODE FAILURE", "failed", "node_failure", "A node failed, and not the training"),
        (" DUE TO TIME LIMIT", "failed", "time_limit", "Ask the scheduler for more time"),
    ],
)
def test_what_slurm_canceled_says_so(tmp_path: Path, reason: str, outcome: str, kind: str, remedy: str) -> None:
    told = CANCELED.format("JOB 77", reason) + CANCELED.format("STEP 77.0", reason)
    run = run_of(tmp_path, train=lines(10, 400) + told)
    found = measure_endings(run)
    assert (found.n_failed, found.n_outside, found.n_short) == (outcome == "failed", outcome == "outside", 0)
    assert found.failed[["outcome", "kind", "text"]].to_numpy().tolist() == [
        [outcome, kind, f"CANCELLED AT 2026-03-01T12:00:00{reason}"]
    ]
    verdict = verdict_of(run, "training-failed")
    assert verdict.severity.value == ("critical" if outcome == "failed" else "note")
    assert verdict.remedy.startswith(remedy) and ("more time" in verdict.remedy) == (kind == "time_limit")
    if not reason:
        assert verdict.summary == (
            "The log ends after step 400 of 1,000: CANCELLED AT 2026-03-01T12:00:00. The scheduler or a user ended it."
        )


LSF = "TERM_{}: job killed {}.\nExited with exit code {}.\n"
SRUN = "srun: error: node1: task 3: {}\nsrun: Terminating StepId=123.0\n"


@pytest.mark.parametrize(
    ("said", "outcome", "kind", "text"),
    [
        (SRUN.format("Exited with exit code 1"), "failed", "other", "task 3: Exited with exit code 1"),
        (SRUN.format("Killed"), "failed", "host_killed", "task 3: Killed"),
        (SRUN.format("Out Of Memory"), "failed", "host_killed", "task 3: Out Of Memory"),
        (SRUN.format("Terminated"), "outside", "canceled", "task 3: Terminated"),
        ("srun: error: Node failure on node2\n", "failed", "node_failure", "Node failure"),
        (
            "slurmstepd: error: *** JOB 1 STEPD TERMINATED ON n1 AT 2026-03-01T11:00:00 DUE TO JOB NOT ENDING WITH "
            "SIGNALS ***\n", "failed", "stuck", "DUE TO JOB NOT ENDING WITH SIGNALS",
        ),
        (
            "=>> PBS: job killed: walltime 3605 exceeded limit 3600\n", "failed", "time_limit",
            "job killed: walltime 3605 exceeded limit 3600",
        ),
        (
            "=>> PBS: job killed: mem 70254592kb exceeded limit 67108864kb\n", "failed", "host_killed",
            "job killed: mem 70254592kb exceeded limit 67108864kb",
        ),
        ("=>> PBS: job killed: node down\n", "failed", "node_failure", "job killed: node down"),
        (
            LSF.format("RUNLIMIT", "after reaching LSF run time limit", 140), "failed", "time_limit",
            "TERM_RUNLIMIT: job killed after reaching LSF run time limit",
        ),
        (
            LSF.format("MEMLIMIT", "after reaching LSF memory usage limit", 137), "failed", "host_killed",
            "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit",
        ),
        (
            LSF.format("OWNER", "by owner", 130), "outside", "canceled", "TERM_OWNER: job killed by owner",
        ),
        ("Exited with exit code 2.\n", "failed", "other", "Exited with exit code 2"),
        ("Job was evicted.\n", "outside", "preempted", "Job was evicted"),
        (
            "(raylet) node_manager.cc:3007: 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers "
            "crashed due to other reasons at node (ID: abc, IP: 10.0.0.1)\n", "failed", "host_killed",
            "1 Workers (tasks / actors) killed due to memory pressure (OOM)",
        ),
        ("ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n", "failed",
         "host_killed", "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory"),
        ("mpirun noticed that process rank 2 exited on signal 9 (Killed).\n", "failed", "host_killed",
         "exited on signal 9 (Killed)"),
    ],
)  # fmt: skip
def test_what_schedulers_and_launchers_write_as_a_job_ends(
    tmp_path: Path, said: str, outcome: str, kind: str, text: str
) -> None:
    found = ending(tmp_path, train=lines(10, 400) + said)
    assert found.failed[["outcome", "kind", "text"]].to_numpy().tolist() == [[outcome, kind, text]]
    assert (found.n_failed, found.n_outside) == (outcome == "failed", outcome == "outside")


@pytest.mark.parametrize("said", [SRUN.format("Exited with exit code 0"), "command terminated with exit code 0\n"])
def test_a_process_that_ended_well_is_no_error(tmp_path: Path, said: str) -> None:
    found = ending(tmp_path, train=lines(10, 1000) + said)
    assert (found.n_failed, found.n_open) == (0, 0)


@pytest.mark.slow
def test_how_a_process_exited_is_told_only_where_nothing_says_why(tmp_path: Path) -> None:
    exited, limit = SRUN.format("Exited with exit code 1"), CANCELED.format("STEP 7.0", " DUE TO TIME LIMIT")
    nccl = "[rank1]: torch.distributed.DistBackendError: NCCL error: remote process exited\n"
    killed = SRUN.format("Killed")
    for number, (said, kind) in enumerate(
        [
            (exited + OOM + "\n", "oom"),
            (nccl + killed, "nccl"),
            (limit + killed, "time_limit"),
            (exited + CANCELED.format("STEP 7.0", ""), "other"),  # srun cancels the others once one has failed
            (nccl + limit, "nccl"),  # they waited for the one that was gone
        ]
    ):
        (tmp_path / str(number)).mkdir()
        assert ending(tmp_path / str(number), train=lines(10, 400) + said).failed["kind"].tolist() == [kind]


@pytest.mark.parametrize("reason", ["", " DUE TO TIME LIMIT", " DUE TO PREEMPTION"])
def test_a_job_that_was_ended_when_all_was_done_held_its_gpus(tmp_path: Path, reason: str) -> None:
    run = run_of(tmp_path, train=lines(10, 1000) + "Training done.\n" + CANCELED.format("JOB 77", reason))
    found = measure_endings(run)
    assert (found.n_failed, found.n_outside, found.n_held, found.n_open) == (0, 0, 1, 0)
    verdict = verdict_of(run, "training-failed")
    assert verdict.severity.value == "note" and verdict.remedy.startswith("Let the job end with the training")
    assert verdict.summary == (
        f"All 1,000 steps were done, but the job went on until it was ended: CANCELLED AT 2026-03-01T12:00:00{reason}. "
        "Its GPUs were held until then."
    )


def test_an_error_before_a_cancellation_is_what_ended_the_training(tmp_path: Path) -> None:
    found = ending(tmp_path, train=lines(10, 400) + TRACEBACK + OOM + "\n" + CANCELED.format("JOB 77", ""))
    assert (found.n_failed, found.n_outside, found.failed["kind"].tolist()) == (1, 0, ["oom"])


def test_a_log_that_only_stops_may_still_run(tmp_path: Path) -> None:
    found = ending(tmp_path, train=lines(10, 400))
    assert (found.n_failed, found.n_short, found.last_step, found.total_steps) == (0, 1, 400, 1000)
    verdict = verdict_of(run_of(tmp_path, train=lines(10, 400)), "training-failed")
    assert verdict.status.value == "not_assessed" and "step 400 of 1,000" in str(verdict)


@pytest.mark.parametrize("last", [400, 1000])
@pytest.mark.slow
def test_a_healthy_gpu_is_not_all_that_a_headline_says_of_a_log_that_only_stops(tmp_path: Path, last: int) -> None:
    telemetry = "".join(f"2026-03-01T10:{at // 60:02}:{at % 60:02}Z,0,95,20000,80000\n" for at in range(0, 1200, 5))
    (tmp_path / "gpu.csv").write_text("timestamp,gpu,util_pct,mem_used_mib,mem_total_mib\n" + telemetry)
    headline = gd.diagnose(run_of(tmp_path, train=lines(10, last))).headline
    stops = (
        "But the log stops at step 400 of 1,000 and tells of no error: the training may still run, or it was killed."
    )
    assert "No fault was found" in headline and (stops in headline) == (last == 400)
    assert ("Nothing needs to be changed" in headline) == (last == 1000)


@pytest.mark.parametrize(
    ("said", "n_short"),
    [
        ("Early stopping: val_loss did not improve for 5 evaluations. Best step 200.", 0),
        ("EarlyStopping: Training stopped early as no improvement observed in last 50 epochs.", 0),
        ("Monitored metric val_loss did not improve in the last 3 records. Signaling Trainer to stop.", 0),
        ("Epoch 12: early stopping", 0),
        ("EarlyStopping counter: 3 out of 10", 1),
        ("early_stopping: patience 5", 1),
    ],
)
def test_a_training_that_stopped_early_by_itself_came_to_its_end(tmp_path: Path, said: str, n_short: int) -> None:
    found = ending(tmp_path, train=lines(10, 400) + said + "\n")
    assert (found.n_failed, found.n_open, found.n_short) == (0, 0, n_short)


@pytest.mark.parametrize(
    ("names", "last", "minute", "outcome"),
    [
        (("run1", "run2"), 1000, 20, "went_on"),
        (("run1", "run2"), 1000, 5, "failed"),
        (("run1", "run2"), 900, 20, "failed"),
        (("seed1", "seed2"), 1000, 20, "failed"),
    ],
    ids=["rerun", "side by side", "not done", "another seed"],
)
def test_a_later_log_of_all_the_steps_is_a_second_try(
    tmp_path: Path, names: tuple[str, str], last: int, minute: int, outcome: str
) -> None:
    files = zip(names, (lines(10, 400) + OOM + "\n", lines(10, last, minute=minute)), strict=True)
    row = ending(tmp_path, **dict(files)).failed.iloc[0]
    assert (row["outcome"], Path(row["rerun"]).name) == (outcome, "run2.log" if outcome == "went_on" else "")


def test_a_program_that_died_before_its_first_step_failed(tmp_path: Path) -> None:
    found = ending(tmp_path, train="loading data\n" + TRACEBACK + OOM + "\n")
    assert found.n_failed == 1 and found.failed["last_step"].isna().all()


def test_one_of_several(tmp_path: Path) -> None:
    found = ending(tmp_path, alpha=lines(10, 1000), beta=lines(10, 500, total=900, minute=40) + OOM + "\n")
    assert (found.n_logs, found.n_failed) == (2, 1)
    assert found.failed["training"].str.endswith("beta.log").all()


@pytest.mark.parametrize(("last", "n_failed"), [(400, 1), (1000, 0)])
def test_the_error_may_stand_in_the_file_of_the_other_stream(tmp_path: Path, last: int, n_failed: int) -> None:
    (tmp_path / "job_7.err").write_text(TRACEBACK + "ValueError: bad shape\n", encoding="utf-8")
    (tmp_path / "job_7.out").write_text(lines(10, last), encoding="utf-8")
    (tmp_path / "kernel.log").write_text("Mar 1 10:09:00 n1 kernel: Killed process 812 (chrome)\n", encoding="utf-8")
    found = measure_endings(load_run(tmp_path, timezone="UTC"))
    assert (found.n_logs, found.n_failed, found.failed["kind"].tolist()) == (1, n_failed, ["other"] * n_failed)


def test_of_two_that_tell_the_same_steps_one_may_hold_the_error(tmp_path: Path) -> None:
    found = ending(tmp_path, logger=lines(10, 400), tee=lines(10, 400) + TRACEBACK + OOM + "\n")
    assert (found.n_logs, found.n_failed) == (1, 1)


STAMP = "2026-03-01 10:30:00 "


@pytest.mark.parametrize(
    ("behind", "is_open"),
    [
        (f"{STAMP}INFO upload succeeded on retry\n{STAMP}INFO Training completed successfully.\n", True),
        (f"{STAMP}ERROR rank 0 failed (exitcode: 1)\nsrun: error: task 0: Exited with exit code 1\n", False),
        ("echo of a script that goes on\n", False),  # the log's own lines are dated
        ("wandb: Synced 5 files\n    a line that goes on\n", False),
    ],
    ids=["caught", "launchers", "a script", "wandb"],
)
def test_an_error_behind_which_the_log_goes_on_may_have_been_caught(tmp_path: Path, behind: str, is_open: bool) -> None:
    found = ending(tmp_path, train=lines(10, 400) + TRACEBACK + "requests.HTTPError: 500\n" + behind)
    assert (found.n_failed, found.n_open) == (1 - is_open, int(is_open))


def test_an_exception_that_python_ignores_ends_nothing(tmp_path: Path) -> None:
    ignored = f"Exception ignored in: <function Loader.__del__ at 0x7f>\n{TRACEBACK}AssertionError: no child\n"
    found = ending(tmp_path, train=lines(10, 1000) + ignored)
    assert (found.n_failed, found.n_open) == (0, 0)


def test_ranks_that_wait_for_one_that_died_are_no_cause(tmp_path: Path) -> None:
    waits = "2026-03-01 10:20:00 ERROR [rank{n}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12)\n"
    ranks = {f"rank{n}": lines(10, 400) + (waits.format(n=n) if n != 2 else TRACEBACK + OOM + "\n") for n in range(4)}
    found = ending(tmp_path, **ranks)
    assert found.failed["kind"].iloc[0] == "oom" and found.failed["training"].iloc[0].endswith("rank2.log")


def test_the_only_other_file_with_an_error_may_have_any_name_but_not_the_kernels(tmp_path: Path) -> None:
    (tmp_path / "job.err").write_text(TRACEBACK + OOM + "\n", encoding="utf-8")
    assert ending(tmp_path, train=lines(10, 400)).n_failed == 1
    (tmp_path / "job.err").write_text("Mar 1 10:09:00 n1 kernel: Killed process 812 (chrome)\n", encoding="utf-8")
    assert ending(tmp_path, train=lines(10, 400)).n_failed == 0


def test_an_error_without_steps_beside_a_log_of_unknown_lines_is_open(tmp_path: Path) -> None:
    ended = "step 590/1200 loss 2.5\nslurmstepd: error: *** JOB 1 ON n CANCELLED AT T DUE TO TIME LIMIT ***\n"
    run = run_of(tmp_path, slurm_1=ended, slurm_2="step 600/1200 loss 2.5\nstep 1200/1200 loss 2.0\ndone\n")
    verdict = verdict_of(run, "training-failed")
    assert measure_endings(run).has_unknown_logs and verdict.status.value == "not_assessed"


def test_the_log_of_a_job_tells_of_its_end_beside_the_schedulers_record(tmp_path: Path) -> None:
    sacct = "JobID|JobName|State|ExitCode|Start|End\n7|train|TIMEOUT|0:0|2026-03-01T10:00:00|2026-03-01T10:06:41\n"
    (tmp_path / "sacct.txt").write_text(sacct, encoding="utf-8")
    end = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-01T10:06:41 DUE TO TIME LIMIT ***\n"
    told = lines(10, 400).replace("loss 0.5", "loss nan").replace("loss nan", "loss 0.5", 3)
    run = run_of(tmp_path, train=told + end)
    found = measure_endings(run)
    assert (len(run.trials), found.n_logs, found.n_failed) == (1, 1, 1)
    assert found.failed["kind"].tolist() == ["time_limit"]
    assert not found.has_trials and measure_divergence(run).trainings["since_step"].tolist() == [40]


@pytest.mark.parametrize("states", [True, False])
def test_the_time_of_a_whole_training_is_its_end(tmp_path: Path, states: bool) -> None:
    """The last bar in the log is an evaluation's, which was cleared before its last batch was drawn."""
    bars = [f"\r {2 * n}%|x| {n}/50 [00:{n:02}<00:{50 - n:02},  1.00s/it]" for n in range(1, 51)]
    bars += ["\n{'loss': 1.0, 'learning_rate': 1e-05, 'epoch': 1.0}\n"]
    bars += [f"\r {n}%|x| {n}/100 [00:{n // 5:02}<00:{20 - n // 5:02},  5.00it/s]" for n in range(2, 99, 6)]
    bars += ["\n{'eval_loss': 0.9, 'eval_runtime': 20.0, 'eval_steps_per_second': 5.0, 'epoch': 1.0}\n"]
    whole = "{'train_runtime': 71.0, 'train_steps_per_second': 0.7, 'train_loss': 1.0, 'epoch': 1.0}\n"
    (end,) = log_ends(run_of(tmp_path, train="".join(bars) + states * whole))
    assert (end.all_done, end.is_short) == (states, not states)
