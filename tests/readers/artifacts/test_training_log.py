"""Training logs: classes of failure kept apart, timestamps, and which texts are no logs at all."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.readers._batches.log_lines import KINDS, kind_of
from gpudiag.readers._io.source import Source
from gpudiag.readers.artifacts import READERS, training_log
from gpudiag.readers.base import ReadOptions, Trials
from gpudiag.readers.identify import identify
from gpudiag.timezones import parse_zone

LINES = {
    "trial_failed": [
        "[W 2026-03-02 09:15:29,320] Trial 6 failed with parameters: {'x': 1} because of the following error: E().",
    ],
    "oom": [
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "RuntimeError: CUDA error: out of memory",
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1073741824 bytes.",
    ],
    "device_assert": ["RuntimeError: CUDA error: device-side assert triggered", "cudaErrorAssert: device-side assert"],
    "illegal_access": ["RuntimeError: CUDA error: an illegal memory access was encountered"],
    "cublas_alloc": ["RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"],
    "nccl": [
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled system error",
        "[E ProcessGroupNCCL.cpp:563] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)",
    ],
    "killed": [
        "Killed",
        "run.sh: line 3: 41231 Killed                  python train.py",
        "[ 1234.5] Out of memory: Killed process 4711 (python) total-vm:68719476kB",
        "srun: error: node7: task 0: Exited with exit code 137",
        "exitcode  : -9 (pid: 812)",
        "RuntimeError: DataLoader worker (pid 77) is killed by signal: Killed.",
        "subprocess finished with returncode=137",
    ],
    "time_limit": ["slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-01T11:00:00 DUE TO TIME LIMIT ***"],
    "canceled": [
        "slurmstepd: error: *** JOB 77 ON n1 CANCELLED AT 2026-03-01T12:00:00 ***",
        "slurmstepd: error: *** STEP 77.0 ON n1 CANCELLED AT 2026-03-01T12:00:00 DUE TO PREEMPTION ***",
    ],
    "exited": [
        "srun: error: node1: tasks 2-3,7: Exited with exit code 1",
        "srun: error: node1: task 3: Aborted (core dumped)",
        "flux-job: task(s) exited with exit code 1",
        "[2026-03-01 10:00:00] [ERROR] [launch.py:325:sigkill_handler] ['python', 'a.py'] exits with return code = 1",
        "E0302 02:00:00 1 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 2",
    ],
    "diverged": ["Loss is nan, stopping training", "Loss is inf, stopping training"],
    "gpus_given": ["CUDA_VISIBLE_DEVICES=2,3", "LOCAL_RANK: 0 - CUDA_VISIBLE_DEVICES: [0,1]", "SLURM_JOB_GPUS=2-3"],
    "raised": [
        "ValueError: bad shape",
        "KeyboardInterrupt",
        "[rank3]: json.decoder.JSONDecodeError: Expecting value",
        "run.sh: line 3: 812 Segmentation fault      (core dumped) python train.py",
    ],
    "xid": ["kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."],
    "sxid": ["nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Non-fatal, Link 46 MC TS crumbstore MCTO (First)"],
    "gpu_lost": ["Unable to determine the device handle for GPU 0000:01:00.0: GPU is lost. Reboot the system."],
    "nccl_status": [
        "[rank2]:[E301 10:11:42.1 ProcessGroupNCCL.cpp:1744] [PG ID 0 PG GUID 0(default_pg) Rank 2] Received a dump "
        "signal due to a collective timeout from  rank 0 and we will try our best to dump the debug info. Last "
        "enqueued NCCL work: 1100, last completed NCCL work: 1100.",
        "[rank0]:[E709 17:05:38.1 ProcessGroupNCCL.cpp:2271] [PG ID 0 PG GUID 0(default_pg) Rank 0]  failure detected "
        "by watchdog at work sequence id: 20585 PG status: last enqueued work: 20589, last completed work: 20584",
    ],
    "loader": ["[TRAIN PROFILE] DataLoader avg: 25.3ms, max: 78.1ms"],
    "loader_workers": [
        "UserWarning: This DataLoader will create 8 worker processes in total. Our suggested max number of worker in "
        "current system is 4, which is smaller than what this DataLoader is going to create."
    ],
    "epoch": [
        "Epoch 3/100 train loss 0.51 time: 91.17 s",
        "[EPOCH 1] time: 11.3min | 30.0 batch/s",
        "epoch 2 took 1:31",
        "epoch 2 took 6m3s",
    ],
    "gpu_assigned": ["Trial 3 using GPU 3", "[trial #3] device=cuda:3", "[Trial 3] Using GPU 3"],
    "worker": ["w3 trial 12 started, model=base", "[worker-2] Trial #7 begins", "slot 0: starting trial 3 (running)"],
    "model": [
        "[INFO|trainer.py:2137] >>   Number of trainable parameters = 7,840,794",
        "trainable params: 10,485,760 || all params: 8,030,261,248 || trainable%: 0.1306",
        "[rank0]:[titan] - root - INFO - Model llama3 8B size: 8,030,261,248 total parameters",
        " > number of parameters on (tensor, pipeline) model parallel rank (0, 0): 354871296",
        "number of parameters: 123.59M",
        "tokens per iteration will be: 491,520",
        "Using bfloat16 Automatic Mixed Precision (AMP)",
    ],
    "monitor": ["GPU: 85% | VRAM:12.3/24.0GB(51.2%) | CPU: 45.2% | RAM:18.4/64.0GB(28.8%)"],
}
ORDINARY = [
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
    "epoch 3 step 137 loss 0.44 lr 1e-9",
    "NCCL INFO Using network Socket",
    "Using device: cuda:0, 24 GB of memory",
    "wandb: Waiting for W&B process to finish... (success).",
    "trial 96 started, model=small batch_size=32",
    "GPU memory usage: 137 MiB",
    "code: 13",
    "Trial 7 pruned at epoch 3. GPU 85%",
    "overkilled the learning rate",
    "w2 trial 2 finished, value 0.31",
    "low trial 3 started",
]


@pytest.mark.parametrize(("kind", "line"), [(kind, line) for kind, lines in LINES.items() for line in lines])
def test_each_kind_of_line(kind: str, line: str) -> None:
    assert kind_of(line) == kind
    at_its_start = kind == "raised" or line.startswith("Killed")
    assert kind_of(f"2025-12-02 18:22:51,187 ERROR {line}") == kind or at_its_start


@pytest.mark.parametrize("line", ORDINARY)
def test_ordinary_lines_are_no_events(line: str) -> None:
    assert kind_of(line) is None


@pytest.mark.parametrize(
    "line",
    [
        "124 M     Trainable params",
        "124 M     Total params",
        "| precision             | BF16                                               |",
        "  num_experts ..................................... 8",
        '    "num_local_experts": 8,',
    ],
)
def test_lines_that_begin_with_what_they_state(line: str) -> None:
    assert kind_of(line) == "model" and kind_of(f"so {line}") is None


@pytest.mark.parametrize(
    "line",
    [
        "497.759   Total estimated model params size (MB)",
        "num decayed parameter tensors: 50, with 124,354,560 parameters",
        "  num_experts ..................................... None",
        "the total of all parameters",
    ],
)
def test_lines_near_a_statement_of_the_model(line: str) -> None:
    assert kind_of(line) is None


def test_parameters_alone_make_no_log(tmp_path: Path) -> None:
    card = write(tmp_path, "A small model.", "Total parameters: 1,234,567", "Trained for three days.")
    assert not training_log.recognises(Source.open(card))


@pytest.mark.parametrize(
    "line",
    [
        *("loss error: 0.5", "An Error: see above", "see ValueError: bad", "Errors: 0"),
        "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Severity 0 Engine instance 46 Sub-engine instance 00",
        "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Data {0x00002800, 0x00000000, 0x00000000, 0x00000000}",
    ],
)
def test_lines_that_only_name_errors(line: str) -> None:
    assert kind_of(line) is None


def test_what_a_program_printed_as_it_died_is_a_log_and_a_text_on_it_is_none(tmp_path: Path) -> None:
    lines = "Traceback (most recent call last):", '  File "train.py", line 8, in <module>', "ValueError: bad shape"
    for name, recognised in (("job.err", True), ("readme.md", False)):
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        assert training_log.recognises(Source.open(path)) == recognised


def test_every_kind_is_tested() -> None:
    assert set(LINES) == set(KINDS)


def write(folder: Path, *lines: str) -> Path:
    path = folder / "train.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def read(path: Path) -> Trials:
    return training_log.read(Source.open(path), ReadOptions(parse_zone("Asia/Taipei")))


@pytest.mark.parametrize(
    ("prefix", "utc"),
    [
        ("2025-12-02 18:22:51,187 ERROR ", "2025-12-02T10:22:51.187Z"),
        ("[2025-12-02 18:22:51,187][__main__][ERROR] - ", "2025-12-02T10:22:51.187Z"),
        ("[W 2025-12-02 18:22:51,187] ", "2025-12-02T10:22:51.187Z"),
        ("2025/12/02 18:22:51 ", "2025-12-02T10:22:51Z"),
        ("2025-12-02T18:22:51+01:00 ", "2025-12-02T17:22:51Z"),
        ("2025-12-02T18:22:51.5Z ", "2025-12-02T18:22:51.5Z"),
        ("[Tue Dec  2 18:22:51 2025] ", "2025-12-02T10:22:51Z"),
        ("Dec  2 18:22:51 node7 python: ", None),
        ("", None),
        ("02/12/2025 18:22:51 ", None),
    ],
)
def test_timestamps(tmp_path: Path, prefix: str, utc: str | None) -> None:
    (event,) = read(write(tmp_path, prefix + LINES["oom"][0])).events.to_dict("records")
    assert event["time"] == pd.Timestamp(utc) if utc else pd.isna(event["time"])


def test_lines_trials_and_gpus(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "2025-12-02 18:20:00,000 INFO Trial 3 using GPU 1",
        "ordinary",
        "2025-12-02 18:22:51,187 ERROR w2 trial 2 failed: CUDA out of memory. GPU 0 has a total capacity of 24 GiB",
        "RuntimeError: CUDA error: device-side assert triggered",
    )
    out = read(path)
    events = out.events
    assert events["kind"].tolist() == ["gpu_assigned", "oom", "device_assert"]
    assert events["line"].tolist() == [1, 3, 4]
    assert events["trial"].tolist() == [3, 2, pd.NA]
    assert events["gpu"].fillna("").tolist() == ["1", "", ""], "an error message's GPU counts within its process"
    assert events["time"].isna().tolist() == [False, False, True]
    assert set(events["path"]) == {str(path)}
    assert out.rows == 3 and len(out.trials) == 0
    assert any("Asia/Taipei" in note for note in out.notes)


def test_workers_of_trials(tmp_path: Path) -> None:
    lines = ("2025-12-02 18:20:00,000 INFO w0 trial 3 started, x=1", "2025-12-02 18:20:01,000 INFO w11 trial 4 started")
    events = read(write(tmp_path, *lines)).events
    assert events[["kind", "trial", "worker"]].to_numpy().tolist() == [["worker", 3, "w0"], ["worker", 4, "w11"]]


def test_a_training_log_without_events_is_known_and_says_so(tmp_path: Path) -> None:
    path = write(tmp_path, *(f"2025-12-02 18:2{i}:00 about epoch: loss {1 / (i + 1):.3f}" for i in range(4)))
    found = identify(Source.open(path))
    assert found is not None and found[1].name == "training-log"
    out = read(path)
    assert out.rows == 0 and "without a line about steps" in out.notes[0]


@pytest.mark.parametrize(
    "text",
    [
        '{"error": "CUDA out of memory"}\n',
        '[\n  {"error": "CUDA out of memory"}\n]\n',
        "# Notes\n\nWe met CUDA out of memory at batch 64.\n",
        "Our notes\n```\nRuntimeError: CUDA out of memory\n```\n",
        'import torch\n\nif "CUDA out of memory" in text:\n    pass\n',
        '"""Train."""\nfrom x import y\nERROR = "CUDA out of memory"\n',
        "#!/bin/sh\ngrep 'CUDA out of memory' x\n",
        "<html>CUDA out of memory</html>\n",
        "dear diary\n",
        "epoch 1 loss 0.5\nepoch 2 loss 0.4\nepoch 3 loss 0.3\n",
        "",
    ],
)
def test_texts_that_only_speak_of_errors_are_no_logs(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x"
    path.write_text(text)
    assert not training_log.recognises(Source.open(path))


def test_a_log_of_another_tool_stays_its_own(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text('{"task": "a", "status": "failed", "seconds": 1, "error": "CUDA out of memory"}\n' * 3)
    gpu = tmp_path / "gpu.csv"
    gpu.write_text(
        "timestamp, index, utilization.gpu [%], memory.used [MiB]\n"
        "2026/03/01 10:00:00.000, 0, 95 %, 9000 MiB\n"
        "Unable to determine the device handle for GPU 0000:01:00.0: GPU is lost\n"
    )
    for file in (path, gpu):
        found = identify(Source.open(file))
        assert found is not None and found[1].name != training_log.NAME
        claims = [reader.name for reader in READERS if reader.recognises(Source.open(file))]
        assert training_log.NAME not in claims


@pytest.mark.slow
def test_a_log_of_megabytes_in_utf_16(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    lines = ["2025-12-02 18:22:51 epoch 1 step 2 loss 0.3 " + 400 * "."] * 6_000
    lines[5_500] = LINES["oom"][0]
    path.write_bytes("\n".join(["Trial 3 using GPU 3", *lines]).encode("utf-16"))
    assert training_log.recognises(Source.open(path))
    assert read(path).events["line"].tolist() == [1, 5_502]


def test_logs_of_the_samples(samples: Path) -> None:
    events = read(samples / "memory-exhaustion" / "train.log").events
    text = (samples / "memory-exhaustion" / "train.log").read_text()
    assert (events["kind"] == "oom").sum() == text.count("CUDA out of memory")
    assert (events["kind"] == "device_assert").sum() == text.count("device-side assert triggered")
    assert events["trial"].notna().all() and events["time"].notna().all()


def test_steps_alone(tmp_path: Path) -> None:
    lines = [f"2026-01-05 10:00:{n:02d} step {n} loss 0.5" for n in range(5)]
    steps = gd.read_steps(write(tmp_path, *lines, "Killed"), timezone="Asia/Taipei")
    assert steps["step"].tolist() == [0, 1, 2, 3, 4]
    assert steps["time"].iloc[0] == pd.Timestamp("2026-01-05 02:00:00", tz="UTC")
    with pytest.raises(gd.InputError, match="how far a training is"):
        gd.read_steps(write(tmp_path, "Killed"))
