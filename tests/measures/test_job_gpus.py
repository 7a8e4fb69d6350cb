"""Jobs of a scheduler in one run: their GPUs by node and number, and time in which no job held a GPU."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from gpudiag.errors import NotMeasurable
from gpudiag.load import load_run
from gpudiag.measures._gpu.tenants import tenants
from gpudiag.measures._time.work import work_by_gpu, work_coverage_pct
from gpudiag.measures.attribution import measure_attribution
from gpudiag.measures.costs import measure_costs
from gpudiag.measures.idleness import measure_idleness
from gpudiag.measures.ledger import measure_ledger
from gpudiag.measures.sampling import measure_sampling
from gpudiag.measures.trials import measure_trials
from gpudiag.rules.trials import failure_rate_high
from gpudiag.run import Run

HEADER = "JobID|JobName|State|Start|End|NodeList|AllocTRES"
BEGAN = datetime(2026, 3, 2, 1)
Worked = dict[int, tuple[float, float]]
"""By number of the GPU: from when to when it worked, in minutes."""


def clock(minutes: float) -> str:
    return f"{BEGAN + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%S}"


def job(number: int, state: str, start: float, end: float, nodes: str, tres: str) -> str:
    return f"{number}|train|{state}|{clock(start)}|{clock(end)}|{nodes}|{tres}"


def written(folder: Path, *jobs: str, host: str = "", **logs: Worked) -> Run:
    """A log for each host, an hour with a sample each 10 s; that of ``gpu`` names no host. ``host``: in run.toml."""
    for number, (name, worked) in enumerate(logs.items()):
        rows = [
            f"{name}, {BEGAN + timedelta(seconds=10 * at):%Y/%m/%d %H:%M:%S}.500, {gpu}, "
            f"GPU-{number:08}-0000-0000-0000-{gpu:012}, {90 if low <= at / 6 < high else 0} %"
            for at in range(361)
            for gpu, (low, high) in worked.items()
        ]
        text = "\n".join(["hostname, timestamp, index, uuid, utilization.gpu [%]", *rows]) + "\n"
        if name == "gpu":
            text = text.replace("hostname, ", "").replace("gpu, 2026", "2026")
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    (folder / "sacct.txt").write_text("\n".join([HEADER, *jobs]) + "\n", encoding="utf-8")
    (folder / "run.toml").write_text(f'timezone = "UTC"\nhost = "{host}"\n', encoding="utf-8")
    return load_run(folder)


def gpus_of(run: Run) -> list[str]:
    return measure_attribution(run).trials["gpu"].fillna("").tolist()


def gpu_s_of(run: Run) -> dict[str, float]:
    outcomes = measure_costs(run).outcomes
    return {name: s for name, s in zip(outcomes["outcome"], outcomes["gpu_s"], strict=True) if s}


@pytest.mark.slow
@pytest.mark.parametrize("domain", ["", ".hpc.example.org"])
def test_a_node_is_held_by_its_own_jobs_alone(tmp_path: Path, domain: str) -> None:
    """Job a on node1, then job b on node2, 25 minutes each on two GPUs: 50 GPU-minutes a job, and none without one."""
    jobs = [
        job(1, "COMPLETED", 1, 26, f"node1{domain}", "gres/gpu=2"),
        job(2, "FAILED", 26, 51, f"node2{domain}", "gres/gpu=2"),
    ]
    run = written(tmp_path, *jobs, node1={0: (2, 26), 1: (2, 26)}, node2={0: (27, 51), 1: (27, 51)})
    assert gpus_of(run) == ["node1/0,node1/1", "node2/0,node2/1"]
    assert set(measure_attribution(run).trials["method"]) == {"scheduler"}
    assert gpu_s_of(run) == {"COMPLETE": pytest.approx(3000), "FAIL": pytest.approx(3000)}
    ledger = measure_ledger(run)
    assert ledger.total_gpu_s == pytest.approx(6000) and ledger.pct("waiting", "idle_no_trial") == 0
    assert ledger.mean_util_pct == pytest.approx(90 * 24 / 25, rel=0.01)
    idle = measure_idleness(run).per_gpu
    assert idle[["lead_s", "trail_s"]].to_numpy().max() < 100  # not the 25 minutes of the other job
    assert measure_sampling(run).coverage_pct == pytest.approx(100)


@pytest.mark.slow
def test_a_gpu_that_no_listed_job_had_is_outside_of_the_jobs(tmp_path: Path) -> None:
    """Two jobs of 25 and 21 minutes on node2. Node1 worked 38 minutes on one GPU, for somebody else."""
    jobs = [
        job(1, "COMPLETED", 1, 26, "node2", "gres/gpu=2"),
        job(2, "COMPLETED", 30, 51, "node2", "gres/gpu=2"),
    ]
    run = written(tmp_path, *jobs, node1={0: (2, 40), 1: (0, 0)}, node2={0: (2, 51), 1: (2, 51)})
    ledger = measure_ledger(run)
    assert (ledger.n_gpus, ledger.total_gpu_s) == (2, pytest.approx(2 * 46 * 60))
    assert ledger.per_gpu.loc["node1/0", ["window_s", "outside_busy_s"]].tolist() == [0, pytest.approx(38 * 60)]
    assert math.isnan(ledger.per_gpu.at["node1/1", "idle_pct"])
    assert "node1/1" not in measure_idleness(run).per_gpu.index
    assert measure_sampling(run).coverage_pct == work_coverage_pct(run, work_by_gpu(run)) == pytest.approx(100)
    own = tenants(run)
    assert own.keep_apart(["node1/1"], beside=False) and not own.keep_apart(["node2/0"], beside=False)
    assert str(own.why).startswith("No job that is listed had GPUs node1/0 and node1/1")


def test_no_sample_lies_in_a_job(tmp_path: Path) -> None:
    run = written(tmp_path, job(1, "FAILED", 2.02, 2.15, "node1", "gres/gpu=1"), node1={0: (2, 51)})
    with pytest.raises(NotMeasurable, match="No sample was taken while a job"):
        measure_idleness(run)


@pytest.mark.slow
def test_gpus_that_a_job_had_and_did_not_use_are_its_gpus(tmp_path: Path) -> None:
    run = written(
        tmp_path, job(1, "COMPLETED", 1, 51, "node1", "gres/gpu=4"), gpu={0: (2, 51), 1: (0, 0), 2: (0, 0), 3: (0, 0)}
    )
    assert gpus_of(run) == ["0,1,2,3"]
    ledger = measure_ledger(run)
    assert ledger.pct("idle_no_trial") == 0 and ledger.mean_util_pct == pytest.approx(90 * 49 / 50 / 4, rel=0.01)
    assert gpu_s_of(run) == {"COMPLETE": pytest.approx(4 * 3000)}


@pytest.mark.slow
def test_the_only_job_failed_and_had_the_node(tmp_path: Path) -> None:
    """Not where it had fewer GPUs than the node, or where nothing says how many."""
    worked = {0: (2.0, 51.0), 1: (2.0, 51.0)}
    assert gpu_s_of(written(tmp_path, job(1, "FAILED", 1, 51, "node1", "gres/gpu=2"), gpu=worked)) == {"FAIL": 6000}
    assert gpus_of(written(tmp_path, job(1, "FAILED", 1, 51, "node1", "cpu=8"), gpu=worked)) == [""]


def test_jobs_of_a_node_at_once_have_not_all_of_its_gpus_each(tmp_path: Path) -> None:
    """Each had as many as were recorded: the node has more of them."""
    worked = {0: (2.0, 51.0), 1: (2.0, 51.0)}
    both = [job(1, "COMPLETED", 1, 51, "node1", "gres/gpu=2"), job(2, "COMPLETED", 1, 51, "node1", "gres/gpu=2")]
    assert "scheduler" not in set(measure_attribution(written(tmp_path, *both, gpu=worked)).trials["method"])
    handed = [job(1, "COMPLETED", 1, 26, "node1", "gres/gpu=2"), job(2, "COMPLETED", 25.98, 51, "node1", "gres/gpu=2")]
    assert gpus_of(written(tmp_path, *handed, gpu=worked)) == ["0,1", "0,1"]


@pytest.mark.slow
def test_a_job_of_several_nodes_has_all_gpus_of_them_if_it_has_as_many(tmp_path: Path) -> None:
    logs = {name: {0: (2.0, 51.0), 1: (2.0, 51.0)} for name in ("node1", "node2")}
    assert gpus_of(written(tmp_path, job(1, "COMPLETED", 1, 51, "node[1-2]", "gres/gpu=4"), **logs)) == [
        "node1/0,node1/1,node2/0,node2/1"
    ]
    part = written(tmp_path, job(1, "COMPLETED", 1, 51, "node[1-3]", "gres/gpu=6"), **logs)
    assert "scheduler" not in set(measure_attribution(part).trials["method"])


def cluster_jobs() -> list[str]:
    others = [job(10 + at, "FAILED", 1, 26, f"node{5 + at}", "gres/gpu=2") for at in range(9)]
    return [job(1, "COMPLETED", 1, 51, "node1", "gres/gpu=2"), *others]


@pytest.mark.slow
def test_jobs_of_other_nodes_are_left_out_where_the_telemetry_names_its_own(tmp_path: Path) -> None:
    run = written(tmp_path, *cluster_jobs(), node1={0: (2, 51), 1: (2, 51)})
    assert run.trials["user_attrs.job"].tolist() == ["1"]
    assert "9 jobs ran on nodes of which there is no telemetry, and are left out." in run.info.notes
    assert not any("run.toml" in note for note in run.info.notes)  # which was read
    assert (measure_trials(run).n_fail, measure_trials(run).n_nodes) == (0, 0)


@pytest.mark.slow
def test_without_a_name_run_toml_says_which_node_was_recorded(tmp_path: Path) -> None:
    worked = {0: (2.0, 51.0), 1: (2.0, 51.0)}
    unnamed = written(tmp_path, *cluster_jobs(), gpu=worked)
    assert len(unnamed.trials) == 10 and measure_trials(unnamed).n_nodes == 10
    with pytest.raises(NotMeasurable, match="which of these the telemetry is of"):
        failure_rate_high.judge(measure_trials(unnamed))
    stated = written(tmp_path, *cluster_jobs(), host="node1", gpu=worked)
    assert gpus_of(stated) == ["0,1"] and measure_trials(stated).n_fail == 0


def test_what_the_scheduler_ended_is_no_failure(tmp_path: Path) -> None:
    states = ("COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "REQUEUED", "CANCELLED by 7")
    jobs = [job(at, state, 5 * at, 5 * at + 5, "node1", "gres/gpu=1") for at, state in enumerate(states)]
    trials = measure_trials(written(tmp_path, *jobs, gpu={0: (0, 60)}))
    assert (trials.n_finished, trials.n_fail, trials.n_stopped) == (3, 2, 4)
