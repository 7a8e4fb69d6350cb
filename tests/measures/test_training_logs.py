"""Trainings whose log lies in several files, and files that tell of one training twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpudiag as gd
from gpudiag._run.allocated_gpus import JOB
from gpudiag.measures._steps.logs import training_logs
from gpudiag.measures._waits.watchdog import given_up
from gpudiag.measures.steps import StepsProfile, measure_steps
from gpudiag.rules._engine.verdict import Status
from gpudiag.run import Run, RunInfo
from gpudiag.schema import STEPS, conform
from tests.readers.steps.written_logs import BEGIN

PACE_S = 2.0
LAST = 1500
DAY_S = 86_400.0


def stamp(at_s: float) -> str:
    return f"{BEGIN + timedelta(seconds=at_s):%Y-%m-%d %H:%M:%S}"


def steps(
    at_s: float, begin: int, end: int, *, every: int = 10, pace_s: float = PACE_S, total: int = LAST
) -> list[str]:
    """Lines of the steps from ``begin`` to ``end``, the first of which begins at ``at_s``."""
    return [
        f"{stamp(at_s + (step - begin) * pace_s)} step {step}/{total} loss 2.1"
        for step in range(begin + every, end + 1, every)
    ]


def says(at_s: float, text: str) -> list[str]:
    return [f"{stamp(at_s)} {text}"]


def bars(begin: int, end: int, total: int = 1000) -> list[str]:
    """A bar of one process that begins at a step, each 2 s."""
    took_s = [int(2 * (step - begin)) for step in range(begin + 1, end + 1)]
    return [f"{begin + n}/{total} [{s // 60:02d}:{s % 60:02d}<10:00,  2.00s/it]" for n, s in enumerate(took_s, start=1)]


def read(folder: Path, files: Mapping[str, Sequence[str]]) -> Run:
    for name, lines in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return gd.load_run(folder, timezone="UTC")


def measured(folder: Path, files: Mapping[str, Sequence[str]]) -> StepsProfile:
    return measure_steps(read(folder, files))


def alike(one: StepsProfile, other: StepsProfile) -> bool:
    """Whether two profiles say the same but for which files it is from."""
    facts = ("n_trainings", "n_steps", "logged_s", "pauses_s", "evaluations_s", "n_resumed", "down_s", "n_repeated",
             "resumption_s", "productive_pct", "late_ratio", "step_s")  # fmt: skip
    return all(getattr(one, name) == pytest.approx(getattr(other, name), nan_ok=True) for name in facts)


FIRST = [*steps(60, 0, 700), "Traceback (most recent call last):"]
AGAIN = [*says(1580, "Resuming from checkpoint ckpt/step_500.pt"), *steps(1620, 500, LAST)]


def folder_of(tmp_path: Path, name: str) -> Path:
    path = tmp_path / name
    path.mkdir()
    return path


@pytest.mark.slow
@pytest.mark.parametrize("names", [("slurm-1.out", "slurm-2.out"), ("z.log", "a.log"), ("1/train.log", "2/train.log")])
def test_a_training_that_is_resumed_in_another_file_is_one(tmp_path: Path, names: tuple[str, str]) -> None:
    """200 steps of 2 s are done again, and it was down from 60 + 1400 s to 1620 s."""
    said = measured(folder_of(tmp_path, "two"), dict(zip(names, (FIRST, AGAIN), strict=True)))
    assert (said.n_trainings, said.n_resumed, said.n_repeated) == (1, 1, 200)
    assert said.down_s == pytest.approx(160) and said.resumption_s == pytest.approx(200 * PACE_S + 160)
    assert (said.n_joined, said.n_twice, said.n_unclear) == (1, 0, 0)
    assert said.trainings["training"].iloc[0].endswith(names[0])
    assert alike(said, measured(folder_of(tmp_path, "one"), {"train.log": [*FIRST, *AGAIN]}))


def test_jobs_in_a_row_with_days_between_them(tmp_path: Path) -> None:
    """No line tells of a resumption: that nothing was written for days does."""
    jobs = [steps(0, 0, 500), steps(3 * DAY_S, 500, 1000), steps(5 * DAY_S, 1000, LAST)]
    said = measured(tmp_path, {f"job{3 - n}.log": lines for n, lines in enumerate(jobs)})
    assert (said.n_trainings, said.n_joined, said.n_resumed, said.n_repeated) == (1, 2, 2, 0)
    assert said.down_s == pytest.approx(5 * DAY_S - 2 * 500 * PACE_S)


@pytest.mark.slow
def test_a_rotated_log_is_one_and_its_pause_for_an_evaluation_no_resumption(tmp_path: Path) -> None:
    parts = [
        steps(0, 0, 500),
        [*says(1060, "evaluation eval_loss 2.0"), *steps(1060, 500, 1000)],
        steps(2060, 1000, LAST, pace_s=3.0),
    ]
    said = measured(
        folder_of(tmp_path, "cut"), {f"train.log{end}": part for end, part in zip((".2", ".1", ""), parts, strict=True)}
    )
    assert (said.n_trainings, said.n_joined, said.n_resumed, said.pauses_s) == (1, 2, 0, 60)
    assert said.evaluations_s == 60 and said.late_ratio == pytest.approx(1.5)
    assert alike(said, measured(folder_of(tmp_path, "one"), {"train.log": [line for part in parts for line in part]}))


@pytest.mark.slow
def test_bars_without_timestamps_go_on_where_the_log_says_so(tmp_path: Path) -> None:
    """650 steps, from 500 to 900, and from 800 on: 150 and 100 are done again, each but for a first without a time."""
    resumed = "  Continuing training from global step {}"
    files = {
        "9.err": [*bars(0, 650), "slurmstepd: error: *** JOB 1 CANCELLED AT 2026-03-10T09:22:10 DUE TO TIME LIMIT ***"],
        "8.err": [resumed.format(500), *bars(500, 900)],
        "7.err": [resumed.format(800), *bars(800, 1000)],
    }
    said = measured(folder_of(tmp_path, "said"), files)
    assert (said.n_trainings, said.n_joined, said.n_resumed, said.n_repeated) == (1, 2, 2, 250)
    assert said.resumption_s == pytest.approx((250 - 2) * 2)
    silent = measured(folder_of(tmp_path, "silent"), {"9.err": bars(0, 650), "8.err": bars(500, 1000)})
    assert (silent.n_trainings, silent.n_joined, silent.n_unclear) == (2, 0, 1)


def test_bars_of_epochs_go_on_in_the_epoch_that_was_saved(tmp_path: Path) -> None:
    """Epochs 0 to 4, of the last 60 of 100 steps, and again from epoch 1: 360 steps are done twice."""

    def epochs(begin: int, end: int) -> list[str]:
        at = [(epoch, n) for epoch in range(begin, end) for n in range(10, 101, 10)]
        return [f"Epoch {epoch}: {n}%|##  | {n}/100 [00:{n // 2:02d}<00:10,  2.00it/s, loss=0.3]" for epoch, n in at]

    said = measured(
        tmp_path, {"z.log": epochs(0, 5)[:-4], "b.log": ["Restoring states from the checkpoint", *epochs(1, 9)]}
    )
    assert (said.n_trainings, said.n_joined, said.n_resumed, said.n_repeated) == (1, 1, 1, 360)


def test_timestamps_without_a_year_are_a_clock_of_each_file(tmp_path: Path) -> None:
    """Of detectron2 nobody knows how long it was down between two files, however their clocks compare."""

    def printed(at_s: float, begin: int, end: int) -> list[str]:
        moments = [
            (step, BEGIN + timedelta(seconds=at_s + 2 * (step - begin))) for step in range(begin + 20, end + 1, 20)
        ]
        return [
            f"[{at:%m/%d %H:%M:%S} d2.utils.events]:  eta: 0:10:00  iter: {n - 1}  total_loss: 1.2" for n, at in moments
        ]

    again = [f"[{BEGIN:%m/%d %H:%M:%S} d2]: Resuming from checkpoint iteration 500", *printed(9000, 500, 1500)]
    said = measured(tmp_path, {"log1.txt": printed(0, 0, 700), "log2.txt": again})
    assert (said.n_trainings, said.n_joined, said.n_resumed, said.n_repeated) == (1, 1, 1, 200)
    assert said.down_s == 0 and said.step_s == pytest.approx(2)


@pytest.mark.slow
def test_ranks_and_parallel_trainings_go_on_each_with_its_own(tmp_path: Path) -> None:
    again = says(1790, "Resuming from step 500")
    ranks = {f"job{job}_rank_{rank}.log": lines for rank in (0, 1) for job, lines in ((1, FIRST), (2, AGAIN))}
    said = measured(folder_of(tmp_path, "ranks"), ranks)
    assert said.trainings["rank"].tolist() == [0, 1] and said.n_joined == 2 and said.n_repeated == 200
    pairs = {
        "a-1.log": steps(0, 0, 700), "b-1.log": steps(10, 0, 720, pace_s=2.1),
        "a-2.log": [*again, *steps(1800, 500, LAST)], "b-2.log": [*again, *steps(1805, 600, LAST, pace_s=2.1)],
    }  # fmt: skip
    said = measured(folder_of(tmp_path, "pairs"), pairs)
    assert (said.n_trainings, said.n_joined, said.n_unclear, said.n_repeated) == (2, 2, 0, 200 + 120)
    folders = {f"job{path[2]}/{path[0]}.log": lines for path, lines in pairs.items()}
    assert alike(said, measured(folder_of(tmp_path, "folders"), folders))


JOBS = [f"slurm-{n}.out" for n in range(1, 5)]
UNCLEAR = {
    "either may go on with either": dict(
        zip(JOBS, [steps(0, 0, 700), steps(10, 0, 720), says(1790, "Resuming from step 500") + steps(1800, 500, LAST),
                   says(1790, "Resuming from step 600") + steps(1805, 600, LAST)], strict=True)
    ),
    "two branches from one checkpoint": {
        "a.log": FIRST, "b.log": AGAIN, "c.log": [*AGAIN[:1], *steps(1620, 500, LAST, pace_s=2.3)],
    },
    "from the first step behind a failure": {"a.log": FIRST, "b.log": steps(1620, 0, LAST)},
    "a part is missing": {"a.log": steps(0, 0, 500), "b.log": steps(4000, 1000, LAST)},
    "more steps than before": {
        "a.log": steps(0, 0, LAST),
        "b.log": [*says(3100, "Resuming from step 1500"), *steps(3200, LAST, 2000, total=2000)],
    },
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", UNCLEAR)
def test_where_it_is_not_clear_no_check_is_ok(tmp_path: Path, case: str) -> None:
    run = read(tmp_path, UNCLEAR[case])
    said = measure_steps(run)
    assert said.n_unclear > 0 and said.n_joined == 0 and said.n_trainings == len(UNCLEAR[case])
    diagnosis = gd.diagnose(run)
    verdicts = {verdict.rule: verdict for verdict in diagnosis.verdicts}
    for rule in ("steps-lost", "steps-slower"):
        assert verdicts[rule].status is Status.NOT_ASSESSED
        assert "may go on with the training of" in " ".join(str(verdicts[rule]).split())
    page = diagnosis.to_markdown()
    assert "may go on with the training of another, but each is judged alone" in page and "At most " in page


OTHERS = {
    "trials of a search": {f"trial_{n}.log": steps(4000.0 * n, 0, (LAST, 300, LAST)[n]) for n in range(3)},
    "the next from the first step": {"a.log": steps(0, 0, 700), "b.log": steps(1700, 0, LAST)},
    "a config that names the word": {
        "a.log": ["resume: null, resuming=False", *steps(0, 0, 700)],
        "b.log": ["resume: null, resuming=False", *steps(1700, 0, LAST)],
    },
    "side by side": {"a.log": steps(0, 0, LAST), "b.log": [*says(5, "Resuming from step 500"), *steps(9, 500, LAST)]},
    "a branch of one that was over": {
        "a.log": steps(0, 0, LAST),
        "b.log": [*says(3050, "Resuming from 500"), *steps(3100, 500, LAST)],
    },
    "seeds that begin together": {"seed_1.log": steps(0, 0, LAST), "seed_2.log": steps(0, 0, LAST)},
    "the same pace side by side": {"x.log": steps(0, 0, LAST), "y.log": steps(1, 0, LAST)},
    "another fold": {"fold1.log": FIRST, "fold2.log": AGAIN},
}


@pytest.mark.slow
@pytest.mark.parametrize("case", OTHERS)
def test_other_trainings_stay_others(tmp_path: Path, case: str) -> None:
    said = measured(tmp_path, OTHERS[case])
    assert said.n_trainings == len(OTHERS[case])
    assert (said.n_joined, said.n_twice, said.n_unclear) == (0, 0, 0)


def test_logs_of_a_search_are_joined_only_within_a_trial() -> None:
    """Lines name no trial: the second file is of the trial that ran while both were written, or of another."""

    def joined(ends_s: Sequence[float], **columns: object) -> int:
        begin = pd.Timestamp(BEGIN, tz="UTC")
        at_s = np.append(60 + np.arange(1, 71) * 20.0, 1620 + np.arange(1, 101) * 20.0)
        frame = pd.DataFrame({
            "time": begin + pd.to_timedelta(at_s, unit="s"),
            "step": np.append(np.arange(1, 71), np.arange(51, 151)) * 10, "line": np.arange(170) + 1,
            "path": np.where(np.arange(170) < 70, "a.log", "b.log"),
            "since": np.where(np.arange(170) == 70, "resumption", None),
        })  # fmt: skip
        lines = conform(frame.assign(unit="step", series="steps", meant=""), STEPS)
        start = begin + pd.to_timedelta([0.0, ends_s[0]], unit="s")
        trials = pd.DataFrame({"start": start, "end": begin + pd.to_timedelta(ends_s, unit="s"), "trial": [0, 1]})
        run = Run(info=RunInfo(name="search"), steps=lines, trials=trials.assign(**columns))
        return training_logs(run).n_joined

    assert joined([4000.0, 5000.0]) == 1
    assert joined([1500.0, 4000.0]) == 0
    assert joined([1500.0, 4000.0], **{JOB: ["4711", "4712"]}) == 1  # jobs in a row are no search


@pytest.mark.slow
def test_a_training_that_is_logged_twice_counts_once(tmp_path: Path) -> None:
    """A logger's file that tells of an evaluation, and stdout in another form, stamped a second later."""
    logger = [*steps(60, 0, 700), *says(1520, "evaluation eval_loss 2.2"), *steps(1520, 700, LAST)]
    stdout = [line.replace("/1500", "") for line in [*steps(61, 0, 700), *steps(1521, 700, LAST)]]
    said = measured(folder_of(tmp_path, "two"), {"train.log": logger, "stdout.txt": stdout})
    assert (said.n_trainings, said.n_twice) == (1, 1) and said.evaluations_s == 60
    assert alike(said, measured(folder_of(tmp_path, "one"), {"train.log": logger}))
    copied = measured(folder_of(tmp_path, "copy"), {"train.log": logger, "copy.log": logger})
    assert (copied.n_trainings, copied.n_twice) == (1, 1)


@pytest.mark.slow
def test_what_only_the_file_left_out_tells_of_stays_where_it_was(tmp_path: Path) -> None:
    """The fuller file has a line each 10 steps; the other one each 50, and tells of the evaluation behind step 700."""
    fuller = [*steps(60, 0, 700), *steps(1520, 700, LAST)]
    other = [*steps(60, 0, 700, every=50), *says(1515, "evaluation eval_loss 2.2"), *steps(1520, 700, LAST, every=50)]
    said = measured(tmp_path, {"a.log": fuller, "b.log": [line.replace("/1500", "") for line in other]})
    assert (said.n_trainings, said.n_twice) == (1, 1)
    assert said.pauses["after_step"].tolist() == [710] and said.evaluations_s == pytest.approx(60)


@pytest.mark.slow
def test_stdout_and_stderr_of_two_jobs_are_one_training(tmp_path: Path) -> None:
    """Lines with timestamps on stdout, a bar on stderr: the bar is left out, and the jobs are joined."""
    first, again = steps(0, 0, 650, total=1000), steps(1600, 500, 1000, total=1000)
    said = measured(tmp_path, {
        "slurm-1.out": first, "slurm-1.err": [*bars(0, 650), "JOB 1 CANCELLED DUE TO TIME LIMIT"],
        "slurm-2.out": again, "slurm-2.err": bars(500, 1000),
    })  # fmt: skip
    assert (said.n_trainings, said.n_twice, said.n_joined, said.n_repeated) == (1, 2, 1, 150)
    assert said.down_s == pytest.approx(300)


def test_a_whole_log_beside_its_parts_is_the_one_that_counts(tmp_path: Path) -> None:
    whole = [line.replace("step", "iter no. 1, step").replace("/1500", "") for line in [*FIRST, *AGAIN]]
    said = measured(tmp_path, {"slurm-1.out": FIRST, "slurm-2.out": AGAIN, "all.log": whole})
    assert (said.n_trainings, said.n_twice, said.n_resumed, said.n_repeated) == (1, 2, 1, 200)
    assert said.trainings["training"].iloc[0].endswith("all.log")


def test_a_file_of_a_logger_that_prints_the_same_lines(tmp_path: Path) -> None:
    """What jobs print is in the one file that both write to; only what they print tells of the failure."""
    logger = [*FIRST[:-1], *AGAIN[1:]]
    printed = {"slurm-1.out": ["loading data", *FIRST], "slurm-2.out": AGAIN}
    run = read(tmp_path, {**printed, "train.log": logger})
    said = measure_steps(run)
    assert (said.n_trainings, said.n_twice, said.n_resumed, said.n_repeated) == (1, 2, 1, 200)
    lines = training_logs(run).lines
    assert lines.loc[lines["since"].notna(), ["step", "since"]].to_numpy().tolist() == [[510, "resumption, failure"]]


@pytest.mark.slow
@pytest.mark.parametrize("recorded", [True, False])
def test_gpu_time_of_a_resumption_is_that_of_which_telemetry_was_recorded(tmp_path: Path, recorded: bool) -> None:
    """Two jobs with three hours between them, with and without telemetry of these."""
    run = read(tmp_path, {"slurm-1.out": steps(0, 0, 500), "slurm-2.out": steps(11_800, 500, LAST)})
    at_s = np.array([at for at in range(0, 13_800, 5) if recorded or at <= 1000 or at >= 11_800])
    gpu = pd.DataFrame({"time": pd.Timestamp(BEGIN, tz="UTC") + pd.to_timedelta(at_s, unit="s"), "gpu": "0"})
    gpu["util_pct"] = np.where((at_s > 1000) & (at_s < 11_800), 0.0, 95.0)
    said = measure_steps(gd.load_run(telemetry=gpu, artifacts=sorted(tmp_path.iterdir()), timezone="UTC"))
    assert measure_steps(run).down_s == said.down_s == pytest.approx(10_800)
    assert said.resumption_gpu_h == pytest.approx(3.0 if recorded else 0.0, abs=0.01)


def test_a_collective_that_was_given_up_is_none_where_the_training_went_on_in_another_file(tmp_path: Path) -> None:
    gave_up = (
        "[rank1]:[E] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, "
        "NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 milliseconds before timing out."
    )
    first = [*steps(60, 0, 700), gave_up]
    assert given_up(read(folder_of(tmp_path, "alone"), {"slurm-1.out": first})) is not None
    assert given_up(read(folder_of(tmp_path, "both"), {"slurm-1.out": first, "slurm-2.out": AGAIN})) is None


STATED_S = [round(float(took), 4) for took in np.random.default_rng(7).uniform(0.30, 0.42, 60)]


def stating(took_s: Sequence[float], form: str) -> list[str]:
    """Lines each of which states the time of its ten steps, or of its epoch."""
    return [form.format(n=10 * k, k=k, s=s, at=stamp(40 * k)) for k, s in enumerate(took_s, start=1)]


@pytest.mark.parametrize(
    ("log", "table"),
    [
        ("step {n} loss 0.5 {s:.3f} s/it", ("step,loss,step_time", "{n},0.5,{s:.4f}")),
        ("Epoch {k} loss 0.5 time: {s:.3f}s", ("epoch,loss,epoch_time", "{k},0.5,{s:.4f}")),
        ("{at} Epoch {k} loss 0.5 time: {s:.3f}s", ("epoch,loss,epoch_time", "{k},0.5,{s:.4f}")),
    ],
)
def test_a_log_and_a_table_that_state_the_same_times_are_one_training(
    tmp_path: Path, log: str, table: tuple[str, str]
) -> None:
    lines, (head, row) = stating(STATED_S, log), table
    said = measured(tmp_path, {"train.log": lines, "history.csv": [head, *stating(STATED_S, row)]})
    assert (said.n_trainings, said.n_twice) == (1, 1)
    alone = measured(folder_of(tmp_path, "one"), {"train.log": lines})
    assert (said.n_steps, said.n_pauses) == (alone.n_steps, alone.n_pauses)
    assert said.step_s == pytest.approx(alone.step_s, abs=0.001)
    assert said.logged_s == pytest.approx(alone.logged_s, rel=0.001)


@pytest.mark.parametrize(
    "other",
    [
        [*STATED_S[1:], STATED_S[0]],  # another training of the same speed
        [0.36 + 0.001 * (k % 2) for k in range(60)],  # hardly any that differ
    ],
)
def test_stated_times_that_differ_are_of_two_trainings(tmp_path: Path, other: list[float]) -> None:
    form = "step {n} loss 0.5 {s:.3f} s/it"
    first = other if len({*other}) < len(other) else STATED_S
    said = measured(tmp_path, {"one.log": stating(first, form), "other.log": stating(other, form)})
    assert (said.n_trainings, said.n_twice) == (2, 0)


def test_times_that_neither_file_rounds_are_compared_too(tmp_path: Path) -> None:
    took_s = np.random.default_rng(8).uniform(0.30, 0.42, 60).tolist()
    lines = stating(took_s, "step {n} loss 0.5 {s:.12f} s/it")
    rows = ["step,loss,step_time", *stating(took_s, "{n},0.5,{s:.12f}")]
    said = measured(tmp_path, {"train.log": lines, "history.csv": rows})
    assert (said.n_trainings, said.n_twice) == (1, 1)


def table(took_s: float, *, every: int = 1, last: int = LAST) -> list[str]:
    """What a program writes beside its log: the time of single steps, and no timestamps."""
    return ["step,loss,step_time", *(f"{step},2.1,{took_s}" for step in range(every, last + 1, every))]


@pytest.mark.parametrize(
    ("files", "trainings"),
    [
        ({"metrics.csv": table(PACE_S)}, 1),
        ({"metrics.csv": table(0.9 * PACE_S, every=10)}, 1),  # the rest waited for data
        ({"metrics.csv": table(0.3 * PACE_S)}, 2),  # a faster one
        ({"metrics.csv": table(1.2 * PACE_S)}, 2),
        ({"metrics.csv": table(PACE_S, last=LAST - 100)}, 2),
        ({"metrics.csv": table(PACE_S), "other.csv": table(PACE_S)}, 3),  # which of them is the log's?
        ({"seed1/metrics.csv": table(PACE_S)}, 2),
    ],
)
def test_a_table_without_timestamps_of_as_many_steps_beside_a_log_is_of_its_training(
    tmp_path: Path, files: dict[str, list[str]], trainings: int
) -> None:
    said = measured(tmp_path, {"train.log": steps(0, 0, LAST), **files})
    assert (said.n_trainings, said.n_twice) == (trainings, 1 + len(files) - trainings)
    if trainings == 1:
        assert said.n_steps == LAST - 10 and said.step_s == pytest.approx(PACE_S)
