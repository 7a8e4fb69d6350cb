"""Attempts of a run: time in which no job held a GPU is not its time, and a hole in the telemetry of a job is."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from smallruns import T0, gpu, run, steps_of, trials

from gpudiag.fleets.gpu_slots import n_slots
from gpudiag.load import load_run
from gpudiag.measures._time.attempts import Attempts
from gpudiag.measures._time.own_time import attempts
from gpudiag.measures.costs import measure_costs
from gpudiag.measures.ledger import measure_ledger
from gpudiag.measures.sampling import measure_sampling
from gpudiag.measures.steps import measure_steps
from gpudiag.measures.utilization import measure_utilization
from gpudiag.rules import Evidence
from gpudiag.rules.sampling import sampling_gaps
from gpudiag.run import Run
from gpudiag.schema import EVENTS, conform

HOUR = 3600.0
BEGAN = datetime(2026, 3, 2, 1)
STEP_CANCELED = "slurmstepd: error: *** STEP 123.0 ON n1 CANCELLED AT 2026-03-02T02:00:00 ***"
CANCELED = "slurmstepd: error: *** JOB 123 ON n1 CANCELLED AT {at:%Y-%m-%dT%H:%M:%S} DUE TO {reason} ***"


def smi(path: Path, host: str, start_s: float, end_s: float, *, gpus: int = 2) -> None:
    """A log of nvidia-smi, a sample each 10 s."""
    uuids = [f"GPU-{host:0>8}-0000-0000-0000-{index:012}" for index in range(gpus)]
    rows = [
        f"{BEGAN + timedelta(seconds=at):%Y/%m/%d %H:%M:%S}.007, {index}, {uuid}, 95 %"
        for at in np.arange(start_s, end_s, 10.0).tolist()
        for index, uuid in enumerate(uuids)
    ]
    path.write_text("\n".join(["timestamp, index, uuid, utilization.gpu [%]", *rows]) + "\n", encoding="utf-8")


def log_lines(start_s: float, end_s: float, first_step: int) -> list[str]:
    """A line each 60 s."""
    return [
        f"{BEGAN + timedelta(seconds=at):%Y-%m-%d %H:%M:%S} INFO step {first_step + int(at - start_s)}/8000 loss 2.5"
        for at in np.arange(start_s, end_s, 60.0).tolist()
    ]


def written(folder: Path, *lines: str, name: str = "slurm-123.out") -> None:
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def gpu_h(one: Run) -> float:
    return measure_ledger(one).total_gpu_s / 3600


@pytest.mark.parametrize("has_log", [True, False])
def test_a_job_requeued_on_another_node_held_each_node_for_its_own_time(tmp_path: Path, *, has_log: bool) -> None:
    """2 GPUs for an hour on each of two nodes."""
    smi(tmp_path / "gpu.n1.csv", "a1", 0, HOUR)
    smi(tmp_path / "gpu.n3.csv", "c3", HOUR + 300, 2 * HOUR + 300)
    if has_log:
        ended = CANCELED.format(at=BEGAN + timedelta(hours=1), reason="NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS")
        written(tmp_path, *log_lines(30, HOUR, 0), ended, *log_lines(HOUR + 330, 2 * HOUR + 300, 3000))
    one = load_run(tmp_path, timezone="UTC")
    ledger, seen = measure_ledger(one), measure_sampling(one)
    assert ledger.total_gpu_s / 3600 == pytest.approx(4, rel=2e-3)
    assert min(ledger.coverage_pct, seen.coverage_pct, measure_utilization(one).coverage_pct) > 99.7
    assert seen.expected_s == pytest.approx(HOUR, rel=4e-3)
    assert ledger.per_gpu["outside_s"].sum() == 0 and n_slots(one) == 2


@pytest.mark.slow
@pytest.mark.parametrize("stderr", [False, True])
@pytest.mark.parametrize("reason", ["TIME LIMIT", ""])
def test_the_wait_between_two_jobs_on_the_same_gpus_is_no_gpu_time(
    tmp_path: Path, reason: str, *, stderr: bool
) -> None:
    """Whether Slurm's line is in the log of the training or beside it."""
    wait = 2 * HOUR
    smi(tmp_path / "gpu.123.csv", "a1", 0, HOUR)
    smi(tmp_path / "gpu.124.csv", "a1", HOUR + wait, 2 * HOUR + wait)
    ended = CANCELED.format(at=BEGAN + timedelta(hours=1), reason=reason).replace(" DUE TO  ***", " ***")
    first = log_lines(30, HOUR, 0)
    written(tmp_path, *(first if stderr else [*first, ended]))
    if stderr:
        written(tmp_path, ended, name="slurm-123.err")
    written(tmp_path, *log_lines(HOUR + wait + 30, 2 * HOUR + wait, 3000), name="slurm-124.out")
    one = load_run(tmp_path, timezone="UTC")
    assert gpu_h(one) == pytest.approx(4, rel=4e-3)
    assert measure_sampling(one).coverage_pct > 99.7
    assert len(measure_ledger(one).windows) == 2 and n_slots(one) == 2


@pytest.mark.parametrize("line", ["", STEP_CANCELED])
def test_without_a_job_that_ended_the_hole_is_held_and_not_observed(tmp_path: Path, line: str) -> None:
    """A recorder failed, or a single step of the job was canceled, and another recorder began."""
    smi(tmp_path / "gpu.1.csv", "a1", 0, HOUR)
    smi(tmp_path / "gpu.2.csv", "a1", 1.5 * HOUR, 2 * HOUR)
    written(tmp_path, *log_lines(30, HOUR, 0), *[line] * bool(line), *log_lines(1.5 * HOUR + 30, 2 * HOUR, 3000))
    one = load_run(tmp_path, timezone="UTC")
    assert attempts(one).pauses == () and gpu_h(one) == pytest.approx(4, rel=2e-3)
    assert measure_sampling(one).coverage_pct == pytest.approx(75, abs=0.5)


NCCL = "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, remote process exited"


@pytest.mark.parametrize(
    ("died", "resumed", "step", "hours"),
    [
        (NCCL, "resumed from ckpt/step_3000.pt", 3000, 3),
        ("ValueError: bad shape", "", 3000, 3),
        ("torch.OutOfMemoryError: CUDA out of memory.", "Resuming from checkpoint step_3570", 3600, 3),
        ("Killed", "resumed from ckpt/step_3000.pt", 3000, 3),
        (NCCL, "", 3600, 4),
        ("", "resumed from ckpt/step_3000.pt", 3000, 4),
    ],
    ids=["resumed", "earlier step", "next step", "killed", "caught", "no error"],
)
def test_the_wait_between_a_crash_and_its_resumption_is_no_gpu_time(
    tmp_path: Path, died: str, resumed: str, step: int, hours: int
) -> None:
    """2 GPUs for an hour, nothing sampled for half an hour, and half an hour more."""
    smi(tmp_path / "gpu.1.csv", "a1", 0, HOUR)
    smi(tmp_path / "gpu.2.csv", "a1", 1.5 * HOUR, 2 * HOUR)
    told = [line for line in (died, resumed) if line]
    written(tmp_path, *log_lines(30, HOUR, 0), *told, *log_lines(1.5 * HOUR + 30, 2 * HOUR, step))
    one = load_run(tmp_path, timezone="UTC")
    assert len(attempts(one).pauses) == 4 - hours and gpu_h(one) == pytest.approx(hours, rel=2e-2)


@pytest.mark.parametrize(("lost_s", "n_gaps"), [(0.0, 0), (20.0, 0), (600.0, 1)])
def test_gaps_coverage_and_ledger_are_of_the_attempts_alone(lost_s: float, n_gaps: int) -> None:
    """Two jobs of an hour on one GPU, two hours apart; the recorder of the first failed that long before its end."""
    times = [*np.arange(0, HOUR - lost_s, 10.0), *np.arange(3 * HOUR, 4 * HOUR, 10.0)]
    jobs = trials([("FAIL", 0.0, HOUR), ("COMPLETE", 3 * HOUR, 4 * HOUR)], **{"user_attrs.job": ["1", "2"]})
    one = run(gpu=gpu(times, util_pct=90.0), trials=jobs)
    seen, ledger = measure_sampling(one), measure_ledger(one)
    own, missing_s = seen.per_gpu.loc["0"], max(lost_s - 5 - 15 + 10, 0.0)  # a last cell reaches 15 s on, not 5
    assert (own["n_gaps"], len(seen.gaps), seen.n_gaps) == (n_gaps, n_gaps, n_gaps)
    assert seen.longest_gap_s == pytest.approx(lost_s + 10 if n_gaps else 0)
    assert own["span_s"] == pytest.approx(ledger.total_gpu_s, abs=20) == pytest.approx(2 * HOUR, abs=20)
    assert own["unobserved_s"] == pytest.approx(missing_s, abs=10)
    share_pct = float(seen.gaps["share_pct"].sum())
    unseen_pct = float(ledger.totals.set_index("cell")["share_pct"].get("unobserved", 0.0))
    assert share_pct == pytest.approx(unseen_pct if n_gaps else 0.0, abs=0.2)
    assert 100 - seen.coverage_pct == pytest.approx(unseen_pct, abs=0.2)
    assert isinstance(sampling_gaps.judge(seen, max_gap_pct=5.0), Evidence) is (n_gaps > 0)


def test_a_record_that_went_on_between_two_jobs_is_judged_within_them() -> None:
    """A gap of half an hour while no job had the GPU is nobody's; one within a job is."""
    own_jobs = {"user_attrs.job": ["1", "2"], "host": "n1"}
    jobs = trials([("COMPLETE", 0.0, HOUR), ("COMPLETE", 3 * HOUR, 4 * HOUR)], **own_jobs)
    for hole_s, n_gaps in ((1.5 * HOUR, 0), (3.25 * HOUR, 1)):
        times = np.arange(0, 4 * HOUR, 10.0)
        kept = times[(times < hole_s) | (times >= hole_s + 1800)]
        seen = measure_sampling(run(gpu=gpu(kept, util_pct=90.0), trials=jobs))
        own = seen.per_gpu.loc["0"]
        assert (seen.n_gaps, own["span_s"]) == (n_gaps, pytest.approx(2 * HOUR, abs=20))
        assert own["unobserved_s"] == pytest.approx(n_gaps * 1780, abs=20)


@pytest.mark.slow
@pytest.mark.parametrize("between", ["epoch", "rank"])
def test_an_error_that_was_caught_before_an_epoch_or_another_rank_is_no_end_of_a_job(
    tmp_path: Path, between: str
) -> None:
    """Half an hour without samples, after which the steps go on: the next line has a lower number all the same."""
    smi(tmp_path / "gpu.1.csv", "a1", 0, HOUR)
    smi(tmp_path / "gpu.2.csv", "a1", 1.5 * HOUR, 2 * HOUR)
    last = 60 if between == "epoch" else 59  # lines before the error
    if between == "epoch":
        places = [f"epoch {1 + at // 60}/2, step {at % 60 + 1}/60" for at in range(120)]
    else:
        places = [f"[rank{at % 2}]: step {10 + at - 2 * (at % 2)}/200" for at in range(120)]
    seconds = [30 + 60 * at + HOUR / 2 * (at >= last) for at in range(120)]
    lines = [
        f"{BEGAN + timedelta(seconds=at):%Y-%m-%d %H:%M:%S} INFO {place} loss 2.5"
        for at, place in zip(seconds, places, strict=True)
    ]
    written(tmp_path, *lines[:last], "ValueError: bad shape", *lines[last:])
    one = load_run(tmp_path, timezone="UTC")
    assert len(one.events) and measure_steps(one).n_resumed == 0
    assert attempts(one).pauses == ()


@pytest.mark.parametrize(("last", "pauses"), [(600, [(600, 1200)]), (590, [])])
def test_between_two_trainings_that_did_all_their_steps_nobody_held_the_gpu(
    last: int, pauses: list[tuple[int, int]]
) -> None:
    """One that stops short may have gone on while its recorder failed."""
    samples = gpu([*np.arange(0, 600, 5.0), *np.arange(1200, 1800, 5.0)], util_pct=90.0)
    logs = [
        steps_of([(float(at), at) for at in range(10, last + 1, 10)], total=600, path="run0.log"),
        steps_of([(1200.0 + at, at) for at in range(10, 601, 10)], total=600, path="run1.log"),
    ]
    one = run(gpu=samples, steps=pd.concat(logs, ignore_index=True))
    found = [((low - T0.value // 1000) / 1e6, (high - T0.value // 1000) / 1e6) for low, high in attempts(one).pauses]
    assert found == [pytest.approx(pause, abs=11) for pause in pauses]
    assert measure_sampling(one).coverage_pct == pytest.approx(100 if pauses else 100 * 1200 / 1800, abs=1)


@pytest.mark.slow
def test_a_process_that_died_may_be_resumed_in_the_log_of_another_job(tmp_path: Path) -> None:
    smi(tmp_path / "gpu.1.csv", "a1", 0, HOUR)
    smi(tmp_path / "gpu.2.csv", "a1", 3 * HOUR, 4 * HOUR)
    written(tmp_path, *log_lines(30, HOUR, 0), NCCL)
    resumed = f"{BEGAN + timedelta(seconds=3 * HOUR + 10)} resumed from ckpt/step_3000.pt"
    written(tmp_path, resumed, *log_lines(3 * HOUR + 30, 4 * HOUR, 3000), name="slurm-124.out")
    assert gpu_h(load_run(tmp_path, timezone="UTC")) == pytest.approx(4, rel=2e-2)


def test_a_gap_long_after_a_process_was_started_again_is_no_pause(tmp_path: Path) -> None:
    """Its job went on: the GPUs were sampled while it died and was resumed."""
    smi(tmp_path / "gpu.1.csv", "a1", 0, 1.5 * HOUR)
    smi(tmp_path / "gpu.2.csv", "a1", 2 * HOUR, 3 * HOUR)
    later = log_lines(HOUR + 90, 1.5 * HOUR, 3000) + log_lines(2 * HOUR + 30, 3 * HOUR, 5000)
    written(tmp_path, *log_lines(30, HOUR, 0), NCCL, "resumed from ckpt/step_3000.pt", *later)
    assert attempts(load_run(tmp_path, timezone="UTC")).pauses == ()


def test_time_before_the_end_of_a_job_is_held_though_its_recorder_had_failed(tmp_path: Path) -> None:
    """Recorded for 40 min of the hour; steps of the log show that the training went on until the job ended."""
    smi(tmp_path / "gpu.1.csv", "a1", 0, 2400)
    smi(tmp_path / "gpu.2.csv", "a1", 2 * HOUR, 3 * HOUR)
    ended = CANCELED.format(at=BEGAN + timedelta(hours=1), reason="TIME LIMIT")
    written(tmp_path, *log_lines(30, HOUR, 0), ended, *log_lines(2 * HOUR + 30, 3 * HOUR, 3000))
    one = load_run(tmp_path, timezone="UTC")
    assert gpu_h(one) == pytest.approx(4, rel=4e-3)
    assert measure_sampling(one).coverage_pct == pytest.approx(100 * 100 / 120, abs=0.3)


def test_a_gap_while_the_training_logs_steps_is_no_pause() -> None:
    """The job ended after the gap: it held its GPUs in it."""
    samples = gpu([*np.arange(0, 600, 5.0), *np.arange(1200, 1800, 5.0)], util_pct=90.0)
    steps = steps_of([(float(at), at) for at in range(10, 1800, 20)])
    ended = {"time": [T0 + pd.Timedelta("30min")], "kind": "time_limit", "path": "train.log", "line": [99]}
    events = conform(pd.DataFrame(ended | {"detail": "*** JOB 1 ON n CANCELLED AT X DUE TO TIME LIMIT ***"}), EVENTS)
    assert attempts(run(gpu=samples, steps=steps, events=events)).pauses == ()


def searched(*, jobs: bool, rows: list[tuple[str, float, float]]) -> Run:
    """Two GPUs for an hour, a silence of two hours, and an hour more."""
    times = [*np.arange(0, HOUR, 5.0), *np.arange(3 * HOUR, 4 * HOUR, 5.0)]
    samples = pd.concat([gpu(times, name, util_pct=90.0) for name in "01"], ignore_index=True)
    own = {"user_attrs.job": [str(at) for at in range(len(rows))]} if jobs else {}
    return run(gpu=samples, trials=trials(rows, **own))


@pytest.mark.slow
def test_between_jobs_that_a_scheduler_lists_nobody_held_gpus_that_nobody_recorded() -> None:
    two = [("FAIL", 0.0, HOUR), ("COMPLETE", 3 * HOUR, 4 * HOUR)]
    listed = searched(jobs=True, rows=two)
    assert gpu_h(listed) == pytest.approx(4, rel=2e-3)
    assert measure_costs(listed).total_gpu_h == pytest.approx(gpu_h(listed))
    assert gpu_h(searched(jobs=False, rows=two)) == pytest.approx(4, rel=2e-3)  # two sessions of a search
    beside = searched(jobs=True, rows=[*two, ("COMPLETE", 100.0, 3.9 * HOUR)])
    assert gpu_h(beside) == pytest.approx(8, rel=1e-3)


def test_a_search_requeued_on_another_node_holds_each_node_for_its_own_time() -> None:
    """Trials on one of them, and a trial that ran on the first beyond its telemetry."""
    samples = pd.concat(
        [gpu(np.arange(0, 600, 5.0), "n1/0", util_pct=90.0), gpu(np.arange(900, 1500, 5.0), "n3/0", util_pct=90.0)],
        ignore_index=True,
    )
    rows = [("COMPLETE", 0.0, 660.0), ("COMPLETE", 900.0, 1500.0)]
    ledger = measure_ledger(run(gpu=samples, trials=trials(rows, gpu=["n1/0", "n3/0"])))
    held = dict(zip(ledger.per_gpu.index, ledger.per_gpu["window_s"], strict=True))
    assert held == {"n1/0": pytest.approx(660, abs=3), "n3/0": pytest.approx(602, abs=3)}
    assert ledger.bins["gpu_s"].sum() == pytest.approx(ledger.total_gpu_s)


@pytest.mark.slow
def test_a_node_that_both_attempts_had_is_held_in_both_and_the_others_in_one(tmp_path: Path) -> None:
    for host, spans in (("a1", [(0, HOUR), (2 * HOUR, 3 * HOUR)]), ("b2", [(0, HOUR)]), ("c3", [(2 * HOUR, 3 * HOUR)])):
        for start, end in spans:
            smi(tmp_path / f"gpu.{host}.{int(start)}.csv", host, start, end, gpus=1)
    ended = CANCELED.format(at=BEGAN + timedelta(hours=1), reason="NODE FAILURE")
    written(tmp_path, *log_lines(30, HOUR, 0), ended, *log_lines(2 * HOUR + 30, 3 * HOUR, 3000))
    one = load_run(tmp_path, timezone="UTC")
    assert gpu_h(one) == pytest.approx(4, rel=4e-3) and n_slots(one) == 2


def test_a_node_whose_recorder_began_late_is_held_for_the_whole_attempt() -> None:
    samples = [gpu(np.arange(0, 600, 5.0), "0", util_pct=90.0), gpu(np.arange(60, 600, 5.0), "1", util_pct=90.0)]
    ledger = measure_ledger(run(gpu=pd.concat(samples, ignore_index=True)))
    assert ledger.per_gpu["window_s"].tolist() == pytest.approx([600, 600])


class Counted(int):
    """A moment that counts how often it is compared."""

    n = 0

    def __lt__(self, other: int) -> bool:
        Counted.n += 1
        return int(self) < int(other)

    def __gt__(self, other: int) -> bool:
        Counted.n += 1
        return int(self) > int(other)


def test_each_window_meets_the_attempts_beside_it_alone() -> None:
    """A thousand attempts of 8 s, 2 s apart, in a thousand windows of 10 s that begin in the middle of one each."""
    pauses = tuple((Counted(10 * at + 8), Counted(10 * at + 10)) for at in range(999))
    windows = [(Counted(10 * at + 4), Counted(10 * at + 14)) for at in range(999)]
    held = Attempts(pauses, {"0": [True] * 1000, "1": [True] + [False] * 999}).held
    Counted.n = 0
    assert held("0", windows) == [
        part for at in range(999) for part in ((10 * at + 4, 10 * at + 8), (10 * at + 10, 10 * at + 14))
    ]
    assert Counted.n < 40 * len(windows)  # two searches among a thousand, of ten comparisons each, and the edges
    assert held("1", windows) == [(4, 8)]


def _sessions(second_s: float, *more: tuple[str, float, float], seen: tuple[float, float] = (0.0, 0.0)) -> Run:
    """Ten trials of 100 s from 0 s on and ten from ``second_s`` on, while a recorder ran; and some ``more``. ``seen``:
    where the first recording ends before the trials do, and the second begins before them.
    """
    lives = [("COMPLETE", first + 100 * at, first + 100 * (at + 1)) for first in (0.0, second_s) for at in range(10)]
    times = np.concatenate([np.arange(0, 1000 - seen[0]), np.arange(second_s - seen[1], second_s + 1000)])
    return run(gpu=gpu(times, util_pct=80.0), trials=trials([*lives, *more]))


@pytest.mark.slow
def test_time_between_two_recorded_sessions_of_a_search_is_none_of_the_run() -> None:
    one = _sessions(4 * HOUR)
    assert gpu_h(one) == pytest.approx(2000 / HOUR, abs=0.001)
    sampling = measure_sampling(one)
    assert sampling.coverage_pct == pytest.approx(100, abs=0.1) and sampling.n_gaps == 0
    assert measure_costs(one).total_gpu_h == pytest.approx(2000 / HOUR, abs=0.001)
    early = _sessions(4 * HOUR, seen=(200.0, 300.0))  # what was recorded beside the trials, or was not, stays
    assert measure_sampling(early).coverage_pct == pytest.approx(100 * (2300 - 200) / 2300, abs=0.3)
    assert gpu_h(early) == pytest.approx(2300 / HOUR, abs=0.001)


@pytest.mark.parametrize(
    ("second_s", "more"),
    [
        (1000 + 0.9 * HOUR, ()),  # a short break
        (4 * HOUR, (("COMPLETE", 1000.0, 4 * HOUR - 1000),)),  # a trial ran on, and nobody recorded it
    ],
)
def test_a_hole_in_the_record_of_a_search_that_goes_on_is_time_of_it(
    second_s: float, more: tuple[tuple[str, float, float], ...]
) -> None:
    one = _sessions(second_s, *more)
    assert gpu_h(one) == pytest.approx((second_s + 1000) / HOUR, abs=0.001)
    assert measure_sampling(one).coverage_pct == pytest.approx(100 * 2000 / (second_s + 1000), abs=0.2)


@pytest.mark.slow
def test_a_trial_that_died_with_its_session_does_not_fill_the_time_until_the_next() -> None:
    one = _sessions(6 * HOUR, ("RUNNING", 950.0, float("nan")))
    assert gpu_h(one) < 2600 / HOUR and measure_sampling(one).coverage_pct > 75


def recorded_twice(
    folder: Path, *, one_file: bool, held: tuple[bool, bool] = (False, False), apart_s: float = HOUR
) -> Run:
    """Two recordings of nvidia-smi of half an hour, with 20 min of a training each; memory ``held`` where they end and
    begin in between.
    """
    texts = []
    for number in range(2):
        begin_s = number * (1800 + apart_s)
        lines = ["timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]"]
        for at_s in np.arange(0.0, 1800, 10.0).tolist():
            works, early = 300 <= at_s < 1500, at_s < 300
            holds = works or (early and number == 1 and held[1]) or (at_s >= 1500 and number == 0 and held[0])
            used = 30_000 if holds else 4
            time = BEGAN + timedelta(seconds=begin_s + at_s)
            lines.append(f"{time:%Y/%m/%d %H:%M:%S}.007, 0, {95 * works} %, {used} MiB, 81559 MiB")
        texts.append("\n".join(lines) + "\n")
    if one_file:
        (folder / "gpu.csv").write_text("".join(texts), encoding="utf-8")
    else:
        for number, text in enumerate(texts):
            (folder / f"gpu{number}.csv").write_text(text, encoding="utf-8")
    return load_run(folder, timezone="UTC")


@pytest.mark.parametrize("one_file", [True, False])
def test_time_between_two_recordings_without_a_process_is_none_of_the_run(tmp_path: Path, *, one_file: bool) -> None:
    one = recorded_twice(tmp_path, one_file=one_file)
    assert gpu_h(one) == pytest.approx(1, abs=0.01)
    sampling = measure_sampling(one)
    assert (sampling.coverage_pct, sampling.n_gaps) == (pytest.approx(100, abs=0.5), 0)
    assert measure_utilization(one).mean_pct == pytest.approx(95 * 2 / 3, abs=1)


@pytest.mark.parametrize("one_file", [True, False])
@pytest.mark.parametrize("held", [(True, False), (False, True), (True, True)])
def test_a_hole_beside_a_process_is_not_observed(tmp_path: Path, *, one_file: bool, held: tuple[bool, bool]) -> None:
    one = recorded_twice(tmp_path, one_file=one_file, held=held)
    assert gpu_h(one) == pytest.approx(2, abs=0.01)
    assert measure_sampling(one).n_gaps == 1


def test_a_log_that_goes_on_between_two_recordings_holds_the_gpu(tmp_path: Path) -> None:
    written(tmp_path, *log_lines(300, 5100, 1), name="train.log")
    one = recorded_twice(tmp_path, one_file=True, apart_s=1800)
    assert gpu_h(one) == pytest.approx(1.5, abs=0.01)
    assert measure_sampling(one).n_gaps == 1
