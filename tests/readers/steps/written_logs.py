"""A training with known steps, waits and pauses, and its log as several frameworks would print it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta

BEGIN = datetime(2026, 1, 5, 10, 0, 0)


@dataclass
class Training:
    """``at_s`` is when each step ended, ``step_s`` how long it took, ``wait_s`` its wait for data; pauses by step."""

    step_s: list[float] = field(default_factory=list)
    wait_s: list[float] = field(default_factory=list)
    at_s: list[float] = field(default_factory=list)
    pause_s: dict[int, float] = field(default_factory=dict)

    @property
    def span_s(self) -> float:
        return self.at_s[-1]


def train(
    rng: random.Random,
    n: int,
    step_s: float,
    *,
    wait: float = 0.1,
    first_s: float = 0.0,
    eval_every: int = 0,
    eval_s: float = 0.0,
    drift: float = 1.0,
) -> Training:
    """``n`` steps of about ``step_s``, a share ``wait`` of them waiting; a pause after each ``eval_every`` steps."""
    out, now = Training(), 0.0
    for at in range(n):
        took = step_s * rng.uniform(0.9, 1.1) * drift ** (at / n) + (first_s if at == 0 else 0.0)
        now += took
        out.step_s.append(took)
        out.wait_s.append(wait * step_s * rng.uniform(0.8, 1.2))
        out.at_s.append(now)
        if eval_every and (at + 1) % eval_every == 0 and at + 1 < n:
            out.pause_s[at + 1] = eval_s * rng.uniform(0.9, 1.1)
            now += out.pause_s[at + 1]
    return out


def _stamp(seconds: float) -> str:
    return (BEGIN + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S")


def _clock(seconds: float) -> str:
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute:02d}:{second:02d}"


def megatron(run: Training, every: int) -> list[str]:
    n = len(run.step_s)
    return [
        f" [{_stamp(run.at_s[at - 1])}] iteration {at:8d}/{n:8d} | consumed samples: {16 * at:12d} | elapsed time per "
        f"iteration (ms): {1000 * sum(run.step_s[at - every : at]) / every:.1f} | global batch size:    16 |"
        for at in range(every, n + 1, every)
    ]


def mmengine(run: Training, every: int) -> list[str]:
    n = len(run.step_s)
    return [
        f"{_stamp(run.at_s[at - 1]).replace('-', '/')} - mmengine - INFO - Iter(train) [{at:6d}/{n}]  lr: 1e-3  eta: "
        f"0:18:23  time: {sum(run.step_s[at - every : at]) / every:.4f}  data_time: "
        f"{sum(run.wait_s[at - every : at]) / every:.4f}  loss: 5.3"
        for at in range(every, n + 1, every)
    ]


def timm(run: Training, every: int) -> list[str]:
    n = len(run.step_s)
    return [
        f"Train: 0 [{at:4d}/{n} ({100 * at / n:3.0f}%)]  Loss: 6.9 (6.9)  Time: {run.step_s[at]:.3f}s,  100.0/s  "
        f"({sum(run.step_s[: at + 1]) / (at + 1):.3f}s,  100.0/s)  LR: 1e-5  Data: {run.wait_s[at]:.3f} "
        f"({sum(run.wait_s[: at + 1]) / (at + 1):.3f})"
        for at in range(0, n, every)
    ]


def bar(run: Training, every: int) -> list[str]:
    n = len(run.step_s)
    lines = [f"  0%|          | 0/{n} [00:00<?, ?it/s]"]
    for at in range(every, n + 1, every):
        lines.append(
            f" {100 * at // n:2d}%|##   | {at}/{n} [{_clock(run.at_s[at - 1])}<10:00, {run.step_s[at - 1]:.2f}s/it]"
        )
    return lines


def stamped(run: Training, every: int) -> list[str]:
    return [
        f"{_stamp(run.at_s[at - 1])},000 INFO step {at} loss: 0.5" for at in range(every, len(run.step_s) + 1, every)
    ]


WRITERS = {"megatron": megatron, "mmengine": mmengine, "timm": timm, "bar": bar, "stamped": stamped}
