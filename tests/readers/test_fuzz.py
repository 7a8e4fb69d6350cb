"""Damaged inputs: every reader of every registry gives tables or one InputError, never anything else.

Every file starts as a good sample and is changed in a few places: odd tokens for numbers and timestamps, cells and
lines lost, doubled or swapped, bytes flipped. The changes are seeded, so that a failure is found again.
"""

from __future__ import annotations

import importlib.util
import json
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest
from mutations import cell, cut, lines, noise, token
from reading import refusal
from slurmforms import JOBS, controller_json, sacct_json, scontrol
from writtendumps import Call, Dump
from writtenevents import Course

from gpudiag.readers import artifacts, telemetry, trials

HERE = Path(__file__).resolve().parent
Content = bytes | Mapping[str, bytes]

ARTIFACTS: dict[str, Content] = {
    "task-jsonl": b"".join(
        json.dumps({"task": f"t{k}", "status": "ok", "start": 1761645600 + k, "end": 1761645700.5, "gpu": k}).encode()
        + b"\n"
        for k in range(6)
    ),
    "task-csv": b"Task,Status,Start Time,End-Time,GPU,depth\n"
    + b"a,ok,2026-03-01 10:00:00,2026-03-01 10:01:40,1,9\nb,FAILED,2026-03-01 10:00:10,2026-03-01 10:00:20,0,7\n",
    "slurm-sacct": b"JobID|JobName|State|ExitCode|Start|End|Elapsed|AllocTRES|MaxRSS|NodeList\n"
    + b"7|train|FAILED|0:0|2026-01-15T19:00:00|2026-01-15T20:00:00|1-01:00:00|billing=4,gres/gpu:a100=2|| gpu3\n"
    + b"7.0|python|OUT_OF_MEMORY|0:125||||cpu=1|1.5G|gpu3\n8_1|b|RUNNING|0:0|2026-01-15T19:00:00|Unknown|00:10:00|||\n",
    "nextflow-trace": b"task_id\thash\tnative_id\tname\tstatus\texit\tsubmit\tduration\trealtime\t%cpu\tpeak_rss\t"
    + b"rchar\n"
    + b"1\t02/5852bd\t771\tTRAIN (a)\tCOMPLETED\t0\t2026-03-01 10:00:00.964\t1m 39s\t17.5s\t79.6%\t1.2 GB\t0\n"
    + b"2\tc4/cfcba8\t772\tTRAIN (b)\tFAILED\t137\t2026-03-01 10:00:10.100\t325ms\t0ms\t-\t-\t-\n"
    + b"3\tc4/cfcba9\t773\tTRAIN (c)\tCACHED\t0\t1772359210100\t99000\t17500\t79.6\t1048576\t12\n",
    "lightning-csv": b"train_loss,epoch,step,val_loss\n0.9,0,9,\n,0,9,0.8\n0.7,1,19,\n,1,19,0.6\n",
    "training-log": b"2026-03-01 10:00:00 Trial 3 using GPU 3\nEpoch 3/100 train loss 0.51 time: 91.17 s\n"
    + b"[TRAIN PROFILE] DataLoader avg: 25.3ms, max: 78.1ms\nepoch 2 took 1:31\n[trial #4] device=cuda:1\n"
    + b"RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\nexitcode  : -9 (pid: 812)\n"
    + b"03/01 10:00:07 - mmengine - INFO - Iter(train) [ 10/500] lr: 1e-3  time: 0.5  data_time: 0.1  loss: 5.3\n"
    + b" 13%|#   | 310/2436 [3:55:12<27:02:11, 45.83s/it]\r 14%|#   | 320/2436 [4:05:12<26:02:11, 45.8s/it]\n"
    + b"Train: 0 [  50/312 ( 16%)]  Loss: 6.9 (6.9)  Time: 0.32s,  800.1/s  (0.33s,  768.2/s)  Data: 0.01 (0.02)\n"
    + b"epoch  train_loss  valid_loss  time\n0  0.5  0.4  00:12\n1  0.4  0.3  00:11\n"
    + b"{'loss': 2.31, 'grad_norm': 1.2, 'learning_rate': 4.9e-05, 'epoch': 0.12}\n"
    + b"{'train_runtime': 65.5, 'train_steps_per_second': 1.527, 'train_loss': 2.16, 'epoch': 1.0}\n",
    "step-jsonl": b'{"timestamp": "2026-03-01 10:00:00,125", "step": 1, "loss": 2.5, "step_time_ms": 250, "rank": 0}\n'
    + b'{"_timestamp": 1772359202.5, "global_step": 2, "train/loss": 2.4, "tokens_per_sec": 1e4, "epoch": 1}\n'
    + b'{"iter": 3, "lr": 0.1, "loss": 2.3, "time": 0.5, "data_time": 0.1, "step": 3, "memory": 900}\n'
    + b'{"iteration": 4, "total_loss": 2.2, "time": 0.5, "data_time": 0.1}\n{"val/acc": 0.5, "step": 4}\n',
    "metrics-csv": b"epoch,time,train/box_loss,metrics/mAP50(B),val/box_loss,lr/pg0\n"
    + b"".join(b"%d,%d.5,0.5,0.3,nan,1e-3\n" % (epoch, 300 * epoch) for epoch in range(1, 9)),
    "trainer-state": b'{\n "global_step": 100,\n "is_world_process_zero": true,\n "log_history": [\n'
    + b'{"epoch": 0.5, "learning_rate": 2.5e-05, "loss": 2.31, "step": 50, "train_runtime": 26.0},\n'
    + b'{"epoch": 1.0, "learning_rate": 0.0, "loss": 2.01, "step": 100},\n'
    + b'{"epoch": 1.0, "eval_loss": 1.9, "eval_runtime": 12.5, "eval_samples_per_second": 80.0, "step": 100},\n'
    + b'{"epoch": 1.0, "step": 100, "train_loss": 2.16, "train_runtime": 65.5, "train_steps_per_second": 1.527}\n'
    + b'],\n "max_steps": 100\n}\n',
    "ray-tune": {
        "t_0_x=1_2020-09-10_19-23-55/params.json": b'{"x": 0.5, "kind": "a"}',
        "t_0_x=1_2020-09-10_19-23-55/result.json": b"".join(
            b'{"training_iteration": %d, "loss": 0.%d, "timestamp": %d, "time_total_s": %d.5, "trial_id": "a_1", '
            b'"pid": 7, "done": false, "experiment_tag": "0", "config": {"x": 1}, "hostname": "n", "node_ip": "1"}\n'
            % (step, step, 1599758635 + step, step)
            for step in range(1, 5)
        ),
        "experiment_state-2020-09-10_19-23-55.json": b'{"checkpoints": [{"trial_id": "a_1", "status": "TERMINATED", '
        b'"config": {"x": 1}, "start_time": 1599758635.2, "last_update_time": 1599758699}], "runner_data": {}}',
    },
    "ray-tune-table": b"accuracy,done,training_iteration,trial_id,date,timestamp,time_total_s,pid,config/lr,logdir\n"
    + b"0.5,False,1,a1,2020-09-10_19-28-55,1599737335,300.0,41,0.5,/home/a/ray/Train_a1_2020-09-10_19-28-55\n"
    + b"0.7,True,2,a1,2020-09-10_19-30-35,1599737435,400.0,41,0.5,/home/a/ray/Train_a1_2020-09-10_19-28-55\n"
    + b"0.6,True,1,b2,2020-09-10_19-30-35,1599737435,90.0,42,0.1,/home/a/ray/Train_b2_2020-09-10_19-30-35\n",
    "mlflow-steps": {
        "mlruns/1/abc/meta.yaml": b"experiment_id: '1'\nrun_id: abc\nrun_name: big\nstatus: 3\n",
        **{
            f"mlruns/1/abc/metrics/{name}": b"".join(b"%d 0.5 %d\n" % (1_772_359_200_000 + k, k) for k in range(9))
            for name in ("loss", "train/lr", "val_loss")
        },
    },
    "wandb-run": {
        "wandb/run-20260301_100000-ab12cd34/files/wandb-metadata.json": b'{"startedAt": "2026-03-01T10:00:00.5Z", '
        b'"gpu_count": 2, "gpu_nvidia": [{"name": "NVIDIA H200", "memoryTotal": "150754820096"}], "host": "n"}',
        "wandb/run-20260301_100000-ab12cd34/files/wandb-summary.json": b'{"loss": 0.25, "_runtime": 99, '
        b'"_timestamp": 1772359300.5, "_wandb": {"runtime": 99}}',
        "wandb/run-20260301_100000-ab12cd34/files/config.yaml": b"lr:\n  value: 0.1\n",
    },
    "hydra-multirun": {
        "0/.hydra/overrides.yaml": b"- lr=0.1\n- model=big\n",
        "0/main.log": b"[2026-03-01 10:00:00,123][main][INFO] - start\n[2026-03-01 10:10:00,000][main][INFO] - end\n",
        "1/.hydra/overrides.yaml": b"- lr=0.2\n- model=big\n",
        "multirun.yaml": b"hydra:\n  job: {name: main}\n  sweep: {dir: multirun}\n",
    },
}


def _module(path: Path) -> ModuleType:
    """A module of tests, wherever it lies."""
    sys.path.insert(0, str(path.parent))
    try:
        spec = importlib.util.spec_from_file_location(f"fuzz_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


def _contents(folder: Path) -> dict[str, Content]:
    """A few good inputs of every reader, by its name and theirs; trial files are written below ``folder``."""
    out: dict[str, Content] = {}
    for sample in _module(HERE / "telemetry" / "test_contract.py").SAMPLES:
        content = sample.content
        if isinstance(content, Mapping):
            out[sample.id] = {name: text.encode() for name, text in content.items()}
        else:
            out[sample.id] = content.encode() if isinstance(content, str) else content
    contract = _module(HERE / "trials" / "test_trials_contract.py")
    for kind, write in contract.WRITERS.items():
        write(folder / kind, contract.usual())
        out[f"{kind}:usual"] = (folder / kind).read_bytes()
    traces = _module(HERE.parent / "traces" / "test_nsight.py")
    trace = traces.training(2)
    out["torch-profiler:small"] = trace.text().encode()
    out["nsight-systems:small"] = traces.exported(trace, folder / "report.sqlite").read_bytes()
    out["torch-flight-recorder:small"] = json.dumps(
        Dump(1, [Call(1, 1.0), Call(2, 2.0, None)]).as_json() | {"rank": 1}
    ).encode()
    out["tensorboard:small"] = Course(n=40).events(folder / "events")[0].read_bytes()
    out |= {"slurm-json:sacct": sacct_json(JOBS).encode(), "slurm-json:squeue": controller_json(JOBS).encode()}
    out["slurm-scontrol:small"] = scontrol(JOBS).encode()
    return out | {f"{name}:small": content for name, content in ARTIFACTS.items()}


def mutate(rng: random.Random, data: bytes) -> bytes:
    """``data`` with one to four changes."""
    for _ in range(rng.randint(1, 4)):
        data = rng.choice((token, token, token, lines, cell, noise, cut))(rng, data, b"")
    return data


def put(content: Content, folder: Path) -> Path:
    path = folder / "input.dat"
    if isinstance(content, bytes):
        path.write_bytes(content)
        return path
    for name, data in content.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def read(path: Path) -> None:
    """Read the path, and everything in it where it is a folder, as an inspection would."""
    for one in (path, *(sorted(path.rglob("*")) if path.is_dir() else ())):
        assert "claimed by several" not in refusal(one)


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Content]:
    return _contents(tmp_path_factory.mktemp("whole"))


READERS = (*telemetry.READERS, *trials.READERS, *artifacts.READERS)


@pytest.mark.parametrize("name", sorted({reader.name for reader in READERS if not reader.refuses}))
@pytest.mark.parametrize(
    "at", [0, *(pytest.param(at, marks=(pytest.mark.slow, pytest.mark.many)) for at in range(1, 6))]
)
def test_only_input_errors_escape(name: str, at: int, contents: dict[str, Content], tmp_path: Path) -> None:
    rng = random.Random(f"{name} {at}")
    own = [content for key, content in contents.items() if key.startswith(f"{name}:")]
    assert own, f"no good sample of {name} to start from"
    for number, content in enumerate(own[:3]):
        (tmp_path / str(number)).mkdir()
        if isinstance(content, bytes):
            changed: Content = mutate(rng, content)
        else:
            changed = {key: mutate(rng, data) for key, data in content.items()}
        read(put(changed, tmp_path / str(number)))
