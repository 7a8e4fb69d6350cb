"""A real search on one NVIDIA GPU that writes down what truly happened: worlds that nobody simulated.

    python benchmarks/gpu_search.py OUT --workers 2 --seconds 100 [--own-process] [--kill-after 40] [--cold-start-s 0]

Needs torch and optuna on a machine with a GPU, and no gpudiag. OUT receives optuna.db and truth.json: one entry a trial
with its true times (seconds since 1970: start, training_start, end), pauses, and memory of its process as NVML and
torch count it. The parameters of trial i are the same whatever the number of workers, so that rates compare;
another SEARCH_SEED in the environment draws others.
Record it with ``gpudiag record -o OUT/gpu.csv --processes --host -- python benchmarks/gpu_search.py OUT``.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

EPOCHS = 12
STEPS = 40
LAYERS = 3
PAUSE_EVERY = 5
"""One trial of five waits six seconds for its input half-way: a stall whose time is known."""


def parameters(number: int) -> dict[str, Any]:
    import numpy as np

    rng = np.random.default_rng(int(os.environ.get("SEARCH_SEED", "7000")) + number)
    return {
        "width": int(rng.choice([3072, 4096, 6144, 8192])),
        "batch": int(rng.choice([2048, 4096])),
        "lr": float(10 ** rng.uniform(-4.5, -2.0)),
        "features_s": float(rng.uniform(1.5, 5.0)),
        "input_ms": float(rng.choice([6.0, 12.0, 20.0])),
    }


def busy_cpu(seconds: float) -> None:
    import numpy as np

    values = np.random.default_rng(0).random(20_000)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        np.sort(values)


def process_mib() -> float | None:
    """Memory of this process on the GPU as NVML counts it: tensors, allocator and context."""
    import pynvml

    pynvml.nvmlInit()
    found = pynvml.nvmlDeviceGetComputeRunningProcesses(pynvml.nvmlDeviceGetHandleByIndex(0))
    return next((p.usedGpuMemory / 2**20 for p in found if p.pid == os.getpid() and p.usedGpuMemory), None)


def train(trial: Any, truth: dict[str, Any]) -> float:
    import optuna
    import torch

    p = {name: trial.params[name] for name in parameters(0)}
    torch.manual_seed(trial.number)
    torch.cuda.reset_peak_memory_stats()
    busy_cpu(p["features_s"])
    layers = [layer for _ in range(LAYERS) for layer in (torch.nn.Linear(p["width"], p["width"]), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(p["width"], 1)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=p["lr"])
    truth["training_start"] = time.time()
    loss = float("nan")
    for epoch in range(EPOCHS):
        for _ in range(STEPS):
            busy_cpu(p["input_ms"] / 1e3)
            x = torch.randn(p["batch"], p["width"], device="cuda")
            error = torch.nn.functional.mse_loss(model(x)[:, 0], x[:, :8].sum(1))
            optimizer.zero_grad()
            error.backward()
            optimizer.step()
            loss = error.item()
        truth["process_mib"] = process_mib()
        truth["reserved_mib"] = torch.cuda.max_memory_reserved() / 2**20
        trial.report(loss, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
        if epoch == EPOCHS // 2 and trial.number % PAUSE_EVERY == PAUSE_EVERY - 1:
            truth["pauses"].append([time.time(), time.time() + 6.0])
            time.sleep(6.0)
    return loss


def one_trial(out: Path, worker: int) -> None:
    import optuna
    import torch

    torch.set_float32_matmul_precision("high")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.load_study(
        study_name="search", storage=f"sqlite:///{out}/optuna.db", pruner=pruner(), sampler=by_number()
    )
    asked = time.time()
    trial = study.ask()
    suggest(trial)
    truth: dict[str, Any] = {"number": trial.number, "worker": worker, "pid": os.getpid(), "start": asked, "pauses": []}
    note(out, worker, truth | {"state": "BEGUN"})
    try:
        value = train(trial, truth)
        study.tell(trial, value)
        truth["state"] = "COMPLETE"
    except optuna.TrialPruned:
        study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        truth["state"] = "PRUNED"
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    truth["end"] = time.time()
    note(out, worker, truth)


def suggest(trial: Any) -> None:
    trial.suggest_categorical("width", [3072, 4096, 6144, 8192])
    trial.suggest_categorical("batch", [2048, 4096])
    trial.suggest_float("lr", 1e-5, 1e-1, log=True)
    trial.suggest_float("features_s", 1.0, 6.0)
    trial.suggest_categorical("input_ms", [6.0, 12.0, 20.0])


def by_number() -> Any:
    import optuna

    class ByNumber(optuna.samplers.RandomSampler):
        def sample_independent(self, study: Any, trial: Any, name: str, distribution: Any) -> Any:
            return parameters(trial.number)[name]

    return ByNumber()


def pruner() -> Any:
    import optuna

    return optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=3)


def note(out: Path, worker: int, truth: dict[str, Any]) -> None:
    with (out / f"truth-{worker}.jsonl").open("a") as file:
        file.write(json.dumps(truth) + "\n")


def work(out: Path, worker: int, until: float, own_process: bool) -> None:
    command = [sys.executable, __file__, str(out), "--worker", str(worker), "--until", "0"]
    while time.time() < until:
        if own_process:
            subprocess.run(command, check=True)
        else:
            one_trial(out, worker)


def search(out: Path, workers: int, seconds: float, own_process: bool, kill_after: float) -> None:
    import optuna

    out.mkdir(parents=True, exist_ok=True)
    optuna.create_study(study_name="search", storage=f"sqlite:///{out}/optuna.db")
    until = time.time() + seconds
    command = [sys.executable, __file__, str(out), "--until", str(until), *(["--own-process"] if own_process else [])]

    def start(worker: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*command, "--worker", str(worker)], start_new_session=True)

    running = {worker: start(worker) for worker in range(workers)}
    killed = None
    if kill_after:
        time.sleep(kill_after)
        os.killpg(running[0].pid, signal.SIGKILL)
        killed = time.time()
        time.sleep(3.0)
        running[0] = start(0)
    for process in running.values():
        process.wait()
    trials: dict[int, dict[str, Any]] = {}
    for file in sorted(out.glob("truth-*.jsonl")):
        for line in file.read_text().splitlines():
            trial = json.loads(line)
            trials[trial["number"]] = trial
        file.unlink()
    told = {
        "workers": workers,
        "own_process": own_process,
        "killed": killed,
        "trials": [trials[n] for n in sorted(trials)],
    }
    (out / "truth.json").write_text(json.dumps(told, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=100.0)
    parser.add_argument("--own-process", action="store_true")
    parser.add_argument("--kill-after", type=float, default=0.0)
    parser.add_argument("--worker", type=int)
    parser.add_argument("--until", type=float, default=0.0)
    a = parser.parse_args()
    if a.worker is None:
        search(a.out, a.workers, a.seconds, a.own_process, a.kill_after)
    elif a.until:
        work(a.out, a.worker, a.until, a.own_process)
    else:
        one_trial(a.out, a.worker)


if __name__ == "__main__":
    main()
