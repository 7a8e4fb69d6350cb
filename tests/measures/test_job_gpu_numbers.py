"""Which GPUs of its node a job had, as ``scontrol show job -d`` and ``squeue --json`` say it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from slurmforms import BEGAN, JOBS, Job, controller_json, sacct, sacct_json, scontrol

from gpudiag.diagnosis import diagnose
from gpudiag.load import load_run
from gpudiag.measures._gpu.tenants import tenants
from gpudiag.measures._time.job_spans import job_spans
from gpudiag.measures.attribution import measure_attribution
from gpudiag.measures.costs import measure_costs
from gpudiag.measures.ledger import measure_ledger
from gpudiag.measures.trials import measure_trials
from gpudiag.run import Run

Worked = Mapping[int, tuple[float, float]]
"""By number of the GPU: from when to when it worked, in minutes."""
FORMS: tuple[Callable[[Sequence[Job]], str], ...] = (scontrol, controller_json)


def written(folder: Path, jobs: str, **logs: Worked) -> Run:
    """A log for each node, an hour with a sample each 20 s."""
    for number, (node, worked) in enumerate(logs.items()):
        rows = [
            f"{node}, {BEGAN + timedelta(seconds=20 * at):%Y/%m/%d %H:%M:%S}.500, {gpu}, "
            f"GPU-{number:08}-0000-0000-0000-{gpu:012}, {90 if low <= at / 3 < high else 0} %"
            for at in range(181)
            for gpu, (low, high) in worked.items()
        ]
        text = "\n".join(["hostname, timestamp, index, uuid, utilization.gpu [%]", *rows]) + "\n"
        (folder / f"{node}.csv").write_text(text, encoding="utf-8")
    (folder / "jobs.txt").write_text(jobs, encoding="utf-8")
    (folder / "run.toml").write_text('timezone = "UTC"\n', encoding="utf-8")
    return load_run(folder)


def gpus_of(run: Run) -> list[tuple[str, str]]:
    found = measure_attribution(run).trials
    return list(zip(found["gpu"].fillna(""), found["method"], strict=True))


def job(number: int, idx: str, nodes: str = "node1", start: float = 1, end: float | None = 51, gpus: int = 2) -> Job:
    return Job(number, "COMPLETED" if end is not None else "RUNNING", start, end, nodes, gpus, idx)


@pytest.mark.parametrize("form", FORMS)
def test_a_job_had_the_gpus_that_slurm_names_and_others_were_of_somebody_else(
    form: Callable[[Sequence[Job]], str], tmp_path: Path
) -> None:
    """50 minutes on two of four GPUs. GPU 0 worked for somebody who is not listed."""
    run = written(tmp_path, form([job(1, "2-3")]), node1={0: (0, 60), 1: (0, 0), 2: (2, 51), 3: (2, 51)})
    assert gpus_of(run) == [("2,3", "scheduler")]
    assert tenants(run).of == {"0": "", "1": "", "2": "a job", "3": "a job"}
    assert str(tenants(run).why).startswith("No job that is listed had GPUs 0 and 1")
    ledger = measure_ledger(run)
    assert (ledger.n_gpus, ledger.total_gpu_s) == (2, pytest.approx(2 * 50 * 60))
    assert ledger.mean_util_pct == pytest.approx(90 * 49 / 50, rel=0.01)


def test_jobs_at_once_on_a_node_have_their_own_gpus(tmp_path: Path) -> None:
    worked = {0: (2.0, 51.0), 1: (2.0, 51.0), 2: (0.0, 0.0), 3: (2.0, 51.0)}
    both = [job(1, "0-1"), job(2, "2-3")]
    assert gpus_of(written(tmp_path, scontrol(both), node1=worked)) == [("0,1", "scheduler"), ("2,3", "scheduler")]
    without = gpus_of(written(tmp_path, scontrol(both, details=False), node1=worked))
    assert all(method != "scheduler" for _, method in without)


def test_numbers_are_of_each_node_by_itself(tmp_path: Path) -> None:
    line = "  Nodes=node[1-2] CPU_IDs=0-7 Mem=65536 GRES=gpu:a100:2(IDX:0)"
    each = "  Nodes=node1 CPU_IDs=0 Mem=1 GRES=gpu:1(IDX:1)\n     Nodes=node2 CPU_IDs=1 Mem=1 GRES=gpu:1(IDX:0)"
    text = scontrol([job(1, "0", "node[1-2]")])
    assert line in text
    logs = {name: {0: (2.0, 51.0), 1: (2.0, 51.0)} for name in ("node1", "node2")}
    assert gpus_of(written(tmp_path, text.replace(line, each), **logs)) == [("node1/1,node2/0", "scheduler")]


@pytest.mark.parametrize(
    ("idx", "worked"),
    [
        ("2-3", {0: (2, 51), 1: (2, 51), 2: (0, 0)}),  # a number that was not recorded: counted anew
        ("0-1", {0: (0, 0), 1: (0, 0), 2: (2, 51), 3: (2, 51)}),  # at work were others: counted otherwise
    ],
)
def test_numbers_that_the_record_contradicts_are_not_taken(idx: str, worked: Worked, tmp_path: Path) -> None:
    run = written(tmp_path, scontrol([job(1, idx)]), node1=worked)
    assert [method for _, method in gpus_of(run)] != ["scheduler"]
    assert all(len(spans) == 1 for spans in job_spans(run).values())  # each may have been the job's


def test_a_recorder_within_the_job_counts_its_gpus_anew(tmp_path: Path) -> None:
    run = written(tmp_path, scontrol([job(1, "4-5")]), node1={0: (2, 51), 1: (2, 51)})
    assert gpus_of(run) == [("0,1", "scheduler")]


def test_a_gpu_that_a_job_did_not_use_beside_one_that_it_used_is_its_gpu(tmp_path: Path) -> None:
    run = written(tmp_path, scontrol([job(1, "0-1")]), node1={0: (2, 51), 1: (0, 0), 2: (0, 60)})
    assert gpus_of(run) == [("0,1", "scheduler")]
    assert measure_ledger(run).mean_util_pct == pytest.approx(90 * 49 / 50 / 2, rel=0.01)


@pytest.mark.slow
def test_a_job_that_waits_leaves_the_times_of_the_others_known(tmp_path: Path) -> None:
    """It has no node, and never held a GPU."""
    worked = {0: (2.0, 26.0), 1: (2.0, 26.0)}
    jobs = [job(1, "0-1", end=26), Job(8, "PENDING", None, None, task="3-9"), Job(10, "CANCELLED", None, 12)]
    for form in (sacct, scontrol):
        run = written(tmp_path, form(jobs), node1=worked)
        assert {gpu: len(spans) for gpu, spans in job_spans(run).items()} == {"0": 1, "1": 1}
        assert measure_ledger(run).total_gpu_s == pytest.approx(2 * 25 * 60)


@pytest.mark.slow
def test_the_diagnosis_is_that_of_saccts_table(tmp_path: Path) -> None:
    """Which GPUs the jobs had is known without their numbers: all of the node."""
    worked = {0: (2.0, 40.0), 1: (2.0, 40.0)}
    jobs = [one for one in JOBS if one.nodes != "node7"]
    runs = [written(tmp_path, write(jobs), node1=worked) for write in (sacct, sacct_json, scontrol, controller_json)]
    wanted = runs[0]
    for found in runs[1:]:
        assert gpus_of(found) == gpus_of(wanted)
        for measure in (measure_ledger, measure_trials):
            assert str(measure(found)) == str(measure(wanted))
        assert measure_costs(found).outcomes.equals(measure_costs(wanted).outcomes)
    told = [
        {verdict.rule: (verdict.status, str(verdict.reason)) for verdict in diagnose(run).verdicts} for run in runs[:3]
    ]
    assert told[0] == told[1] == told[2]
