"""A real training on one NVIDIA GPU that writes down where its time truly went.

    python benchmarks/gpu_training.py OUT NAME

Needs torch, numpy, psutil, tzlocal and nvidia-ml-py on a machine with a GPU, and gpudiag on PYTHONPATH. ``RUNS`` names
the runs. OUT/NAME receives gpu.csv (gpudiag's recording), train.log and truth.json: of each step the wait for its
batch, the GPU's time by CUDA events and the whole, in seconds; and when all began and ended (seconds since 1970).
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

SEQUENCE, WIDTH, DEPTH, VOCABULARY = 512, 1024, 12, 8192
EPOCHS = 2


@dataclass(frozen=True)
class Training:
    """What a run does; ``item_ms`` is what the processor needs for an item, ``steps`` are those of an epoch."""

    batch_size: int
    num_workers: int
    item_ms: float
    steps: int


RUNS = {
    "two-loaders": Training(32, 2, 20.0, 75),
    "four-loaders": Training(32, 4, 20.0, 75),
    "eight-loaders": Training(32, 8, 20.0, 75),
    "batch-of-two": Training(2, 4, 1.0, 400),
    "batch-of-eight": Training(8, 4, 1.0, 100),
}


def busy_cpu(seconds: float) -> None:
    import numpy as np

    values = np.random.default_rng(0).random(2_000)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        np.sort(values)


class Items:
    """A data set whose items cost the processor a time that is known."""

    def __init__(self, n: int, item_ms: float) -> None:
        self.n, self.item_ms = n, item_ms

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        import torch

        torch.set_num_threads(1)
        busy_cpu(self.item_ms / 1e3)
        return torch.randint(VOCABULARY, (SEQUENCE,))


class Model:
    """A transformer with its optimizer; one call is one step, in bfloat16."""

    def __init__(self) -> None:
        import torch

        layer = torch.nn.TransformerEncoderLayer(WIDTH, 16, 4 * WIDTH, dropout=0.0, batch_first=True)
        self.net = torch.nn.Sequential(
            torch.nn.Embedding(VOCABULARY, WIDTH),
            torch.nn.TransformerEncoder(layer, DEPTH, enable_nested_tensor=False),
            torch.nn.Linear(WIDTH, VOCABULARY),
        ).cuda()
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-4)

    def step(self, tokens: Any) -> Any:
        import torch

        with torch.autocast("cuda", dtype=torch.bfloat16):
            said = self.net(tokens)
        loss = torch.nn.functional.cross_entropy(said.float().flatten(0, 1), tokens.flatten())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


class Run:
    """One training, its log and its truth."""

    def __init__(self, what: Training, out: Path, rec: Any) -> None:
        self.what, self.rec, self.out = what, rec, out
        self.log = (out / "train.log").open("w")
        self.truth: dict[str, Any] = {"what": asdict(what), "pid": os.getpid(), "start": time.time(), "steps": []}
        self.model = Model()

    def say(self, text: str) -> None:
        print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}", file=self.log, flush=True)

    def batches(self, loader: Any) -> Iterator[tuple[Any, float]]:
        """Batches and how long each was waited for, measured beside gpudiag's own measurement."""
        before = time.perf_counter()
        for tokens in self.rec.timed(loader):
            yield tokens, time.perf_counter() - before
            before = time.perf_counter()

    def epoch(self, number: int, loader: Any) -> None:
        import torch

        last = time.perf_counter()
        for tokens, wait_s in self.batches(loader):
            begun, done = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begun.record()
            loss = self.model.step(tokens.cuda(non_blocking=True))
            done.record()
            value = loss.item()
            now = time.perf_counter()
            took_s, last = now - last, now
            self.truth.setdefault("training_start", time.time())
            self.truth["steps"].append([round(wait_s, 6), round(begun.elapsed_time(done) / 1e3, 6), round(took_s, 6)])
            n = len(self.truth["steps"])
            if n % 10 == 0:
                self.say(f"epoch {number} step {n} loss {value:.4f} data {wait_s:.4f}s batch {took_s:.4f}s")

    def run(self) -> None:
        import torch
        from torch.utils.data import DataLoader

        what = self.what
        items = Items(what.steps * what.batch_size, what.item_ms)
        loader = DataLoader(items, what.batch_size, num_workers=what.num_workers, pin_memory=True)
        for number in range(EPOCHS):
            self.epoch(number, loader)
            self.say(self.rec.epoch(number))
        self.truth["end"] = time.time()
        self.truth["reserved_mib"] = torch.cuda.max_memory_reserved() / 2**20
        self.say(f"training finished after {len(self.truth['steps'])} steps")
        (self.out / "truth.json").write_text(json.dumps(self.truth) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("name", choices=RUNS)
    a = parser.parse_args()
    import torch

    import gpudiag as gd

    what, out = RUNS[a.name], a.out / a.name
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    settings = {
        "batch_size": what.batch_size, "num_workers": what.num_workers, "persistent_workers": False, "pin_memory": True,
    }  # fmt: skip
    with gd.Recorder(out / "gpu.csv", interval_s=0.5, settings=settings, mode="process") as rec:
        Run(what, out, rec).run()


if __name__ == "__main__":
    main()
