"""GPUs of other jobs: told by what monitoring and the log of a training say, and no fault of the job."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from verdicts import verdict_of, verdicts_of

import gpudiag as gd
from gpudiag.errors import ConfigError
from gpudiag.measures._gpu.tenants import tenants
from gpudiag.measures._gpu.terms import terms_of
from gpudiag.measures.ledger import measure_ledger
from gpudiag.rules._engine.verdict import Status, Verdicts
from gpudiag.run import Run

OTHERS = "The log says that the training was given GPUs 2 and 3; the others may have been of other jobs, or of none."
COMPARED = ("gpu-idle-beside-busy", "gpu-unused", "gpu-imbalance")


def _monitored(folder: Path, pods: list[dict[str, str]], busy: list[int]) -> Path:
    """Twenty minutes of GPUs of one host, each with its labels and its utilization."""
    rows = []
    for gpu, (labels, util) in enumerate(zip(pods, busy, strict=True)):
        for name, value in (("DCGM_FI_DEV_GPU_UTIL", util), ("DCGM_FI_DEV_FB_USED", 9000 if util else 4)):
            metric = {"__name__": name, "gpu": str(gpu), "UUID": f"GPU-{gpu}", "Hostname": "n1", **labels}
            rows.append({"metric": metric, "values": [[1_772_409_600 + 15 * k, str(value)] for k in range(80)]})
    text = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": rows}})
    (folder / "prometheus.json").write_text(text)
    return folder


def _in_turn(folder: Path, *terms: tuple[int, str, int, int, int]) -> Path:
    """GPUs of one host: each with a pod, or none, from one sample to another, 15 s apart, and its utilization."""
    rows = []
    for gpu, pod, start, end, util in terms:
        for name, value in (("DCGM_FI_DEV_GPU_UTIL", util), ("DCGM_FI_DEV_FB_USED", 9000 if util else 4)):
            labels = {"__name__": name, "gpu": str(gpu), "UUID": f"GPU-{gpu}", "Hostname": "n1"}
            labels |= _pod(pod) if pod else {}
            rows.append({"metric": labels, "values": [[1_772_409_600 + 15 * k, str(value)] for k in range(start, end)]})
    text = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": rows}})
    (folder / "prometheus.json").write_text(text)
    return folder


def _logged(folder: Path, said: str, use: Sequence[int] = (40, 40, 95, 95, 0, 0, 0, 0)) -> Path:
    """GPUs with this utilization, beside a training that says what it was given."""
    samples = [
        f"2026-03-01T10:{at // 60:02}:{at % 60:02}Z,{gpu},{util},{9000 if util else 4},80000\n"
        for at in range(0, 1200, 10)
        for gpu, util in enumerate(use)
    ]
    (folder / "gpu.csv").write_text("timestamp,gpu,util_pct,mem_used_mib,mem_total_mib\n" + "".join(samples))
    steps = [f"2026-03-01 10:{at // 60:02}:{at % 60:02} step {at}/1200 loss 0.5\n" for at in range(10, 1201, 10)]
    (folder / "train.log").write_text(f"{said}\n" + "".join(steps))
    return folder


def _compared(run: Run) -> Verdicts:
    return verdicts_of(run, *COMPARED)


def _pod(name: str) -> dict[str, str]:
    return {"pod": name, "namespace": "ml", "container": "train"}


@pytest.mark.parametrize("label", ["", "exported_"])
@pytest.mark.slow
def test_gpus_of_other_pods_and_of_none_are_told_and_not_advised_upon(label: str, tmp_path: Path) -> None:
    own, other = ({label + key: text for key, text in _pod(name).items()} for name in ("trainer-0", "other-x"))
    run = gd.load_run(_monitored(tmp_path, [own, own, other, {}], [90, 90, 50, 0]))
    why = "The GPUs may be of several jobs: monitoring names ml/other-x on 2; ml/trainer-0 on 0, 1; nobody on 3."
    remedy = "Name the GPUs of one job, and only these are looked at: --gpus 0,1."
    for verdict in _compared(run):
        assert (verdict.status, verdict.reason, verdict.remedy) == (Status.NOT_ASSESSED, why, remedy), verdict.rule
    diagnosis = gd.diagnose(run)
    assert f"But the{why[3:]} {remedy}" in diagnosis.headline and "Spread the workers" not in diagnosis.to_markdown()


def test_whoever_names_the_gpus_has_said_that_they_are_of_one_job(tmp_path: Path) -> None:
    folder = _monitored(tmp_path, [_pod("worker-0"), _pod("worker-1")], [90, 0])
    apart, chosen = (_compared(gd.load_run(folder, gpus=gpus)) for gpus in ("", "0,1"))
    assert {one.status for one in apart} <= {Status.NOT_ASSESSED, Status.FOUND}
    assert apart["gpu-idle-beside-busy"].status is Status.NOT_ASSESSED
    assert apart["gpu-unused"].status is Status.FOUND, "a pod that held a GPU and never used it"
    assert chosen["gpu-idle-beside-busy"].status is Status.FOUND


def test_pods_that_follow_each_other_on_a_gpu_are_several_jobs(tmp_path: Path) -> None:
    """Of the hour, p1 had GPU 0 for the first 20 minutes and GPU 1 for 40: both for 20."""
    first = [(0, "p1", 0, 80, 90), (0, "", 80, 160, 0), (0, "p2", 160, 240, 60)]
    second = [(1, "p1", 0, 160, 90), (1, "", 160, 240, 0)]
    run = gd.load_run(_in_turn(tmp_path, *first, *second), timezone="UTC")
    own = tenants(run)
    names = "ml/p1, then nobody on 1; ml/p1, then nobody, then ml/p2 on 0"
    assert str(own.why) == f"The GPUs may be of several jobs: monitoring names {names}."
    assert str(own.remedy).endswith('--gpus 0,1 --between "2026-03-02 00:00:00,2026-03-02 00:20:00".')
    assert own.keep_apart(["0"], beside=False) and own.keep_apart(["1"], beside=False)
    between = run.between("2026-03-02 00:00:00", "2026-03-02 00:20:00")
    assert not tenants(between).why and dict(tenants(between).of) == {"0": "ml/p1", "1": "ml/p1"}
    assert measure_ledger(between).total_gpu_s == pytest.approx(2 * 20 * 60, abs=30)


@pytest.mark.parametrize(
    ("names", "terms"),
    [
        ("aaaaaaaa", ["a"]),
        ("aa--aaaa", ["a"]),  # a container that starts again
        ("-aaaaaaa", ["a"]),  # named a sample late
        ("aaabbbbb", ["a", "b"]),
        ("aaa-bbbb", ["a", "b"]),
        ("aaa--bbb", ["a", "", "b"]),
        ("--------", [""]),
    ],
)
def test_terms_of_a_gpu(names: str, terms: list[str]) -> None:
    """Samples half a minute apart: two of them are a minute."""
    tenant = np.array([name.replace("-", "") for name in names], object)
    found = terms_of(np.arange(len(names)) * 30_000_000, tenant)
    assert [term.tenant for term in found] == terms


@pytest.mark.parametrize(
    "pods",
    [
        [_pod("trainer-0"), _pod("trainer-0")],
        [{"pod": "dcgm-exporter-x1"}, {"pod": "dcgm-exporter-x2"}],
        [{"pod": "metrics-1", "container": "nvidia-dcgm-exporter"}, {"pod": "metrics-2", "container": "exporter"}],
        [{}, {}],
    ],
    ids=["one pod", "exporters", "containers of exporters", "none"],
)
def test_gpus_of_one_job_are_held_against_each_other(pods: list[dict[str, str]], tmp_path: Path) -> None:
    found = _compared(gd.load_run(_monitored(tmp_path, pods, [90, 0])))
    assert found["gpu-idle-beside-busy"].status is Status.FOUND


def test_jobs_of_slurm_are_told_apart_as_pods_are(tmp_path: Path) -> None:
    folder = _monitored(tmp_path, [{"hpc_job": "11"}, {"hpc_job": "12"}], [90, 0])
    found = _compared(gd.load_run(folder))["gpu-idle-beside-busy"]
    assert found.reason == "The GPUs may be of several jobs: monitoring names job 11 on 0; job 12 on 1."


@pytest.mark.parametrize(
    "said",
    [
        "CUDA_VISIBLE_DEVICES=2,3",
        "[rank0]: LOCAL_RANK: 0 - CUDA_VISIBLE_DEVICES: [2,3]",
        "SLURM_JOB_GPUS=2-3",
        "SLURM_JOB_GPUS=2,3\nCUDA_VISIBLE_DEVICES=0,1",
        "rank 0 CUDA_VISIBLE_DEVICES=2\nrank 1 CUDA_VISIBLE_DEVICES=3",
    ],
)
def test_gpus_that_the_log_does_not_name_are_of_other_jobs(said: str, tmp_path: Path) -> None:
    run = gd.load_run(_logged(tmp_path, said), timezone="UTC")
    for verdict in _compared(run):
        assert (verdict.status, verdict.reason) == (Status.NOT_ASSESSED, OTHERS), verdict.rule
        assert verdict.remedy.endswith("--gpus 2,3.")
    assert verdict_of(run, "gpu-low-utilization").status is not Status.FOUND


@pytest.mark.slow
def test_a_report_tells_that_other_gpus_are_of_other_jobs(tmp_path: Path) -> None:
    diagnosis = gd.diagnose(gd.load_run(_logged(tmp_path, "CUDA_VISIBLE_DEVICES=2,3"), timezone="UTC"))
    assert OTHERS in diagnosis.headline and "Spread the workers" not in diagnosis.to_markdown()


@pytest.mark.parametrize(
    ("use", "why"),
    [
        ([40, 40, 95, 95, 0, 0, 0, 0], "was given 2 GPUs, by numbers that a container or Slurm may have given anew"),
        ([40, 0, 0, 0, 0, 0, 0, 0], "was given GPUs 0 and 1; the others may have been of other jobs, or of none"),
    ],
)
def test_numbers_from_0_on_tell_how_many_and_which_if_no_other_worked(use: list[int], why: str, tmp_path: Path) -> None:
    run = gd.load_run(_logged(tmp_path, "CUDA_VISIBLE_DEVICES=0,1", use), timezone="UTC")
    own = tenants(run)
    assert why in str(own.why) and "--gpus 0,1" in str(own.remedy)
    assert own.keep_apart(["4", "5"], beside=False) and own.keep_apart(["1"], beside=True)
    assert own.keep_apart(["1"], beside=False) is (use[2] > 0), "nothing shows which two of these it had"


def test_a_training_that_was_given_gpus_and_used_none_is_told(tmp_path: Path) -> None:
    run = gd.load_run(_logged(tmp_path, "CUDA_VISIBLE_DEVICES=0,1", [0] * 8), timezone="UTC")
    assert not tenants(run).why


@pytest.mark.parametrize("said", ["", "CUDA_VISIBLE_DEVICES=8,9", "SLURM_JOB_GPUS=0-7"])
def test_numbers_of_other_gpus_or_of_all_tell_nothing(said: str, tmp_path: Path) -> None:
    found = _compared(gd.load_run(_logged(tmp_path, said), timezone="UTC"))
    assert found["gpu-idle-beside-busy"].status is Status.FOUND


def test_the_gpus_of_a_job_alone(tmp_path: Path) -> None:
    folder = _logged(tmp_path, "")
    run = gd.load_run(folder, timezone="UTC", gpus=[2, 3])
    assert set(run.gpu["gpu"]) == {"2", "3"} and run.gpu["util_pct"].mean() == 95
    assert {one.status for one in _compared(run)} == {Status.OK}
    with pytest.raises(ConfigError, match="no GPU '9'"):
        gd.load_run(folder, timezone="UTC", gpus="9")
