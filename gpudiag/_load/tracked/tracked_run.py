"""What a tracker says of a run, and the files in which readers find it."""

from __future__ import annotations

import json
import math
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from gpudiag.readers._steps.step_object import is_of_evaluation, is_of_training

STEPS, TASKS = "metrics.jsonl", "runs.jsonl"
"""Lines on steps, as step-jsonl reads them, and a line a run, as task-jsonl reads it."""

EPOCH = ("epoch", "epochs")

Point: TypeAlias = tuple[float, float, int]
"""Seconds since 1970, value, step."""


@dataclass(frozen=True)
class TrackedRun:
    """A run, or the runs of a search. ``name`` and ``stated`` are what a run.toml would say; ``tasks``: what
    :mod:`gpudiag.readers.artifacts.task_jsonl` takes, a run each; ``metrics``: all values of each, by its name;
    ``n_children``: how many of the tasks are runs within the run, 0 where it is the run itself.
    """

    name: str
    tasks: Sequence[Mapping[str, Any]]
    metrics: Mapping[str, Sequence[Point]] = field(default_factory=dict)
    stated: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    n_children: int = 0

    def write(self, folder: Path) -> None:
        """The files below ``folder``."""
        steps = list(step_objects(self.metrics))
        for name, objects in ((TASKS, self.tasks), (STEPS, steps)):
            if objects:
                lines = (json.dumps(one, allow_nan=False, default=str) + "\n" for one in objects)
                (folder / name).write_text("".join(lines), encoding="utf-8")


def step_objects(metrics: Mapping[str, Sequence[Point]]) -> Iterator[dict[str, float | None]]:
    """An object a step of the training, in the order of time, and one for each value of an evaluation.

    A tracker keeps each metric by itself. The steps are those of the metric with the most values among losses and
    learning rates; what others have at the same step stands with it, and an evaluation between two steps by itself.
    """
    clock = max(filter(is_of_training, metrics), key=lambda name: (len(metrics[name]), name), default=None)
    if clock is None or len({step for _, _, step in metrics[clock]}) < 2:
        return  # a metric that was logged without steps
    if any(_is_step(metrics.get(name, ()), metrics[clock]) for name in EPOCH):
        return  # it was logged once an epoch, and says nothing of the steps within
    found: list[tuple[float, dict[str, float | None]]] = [
        (time_s, {name: value, "timestamp": time_s})
        for name, points in metrics.items()
        if is_of_evaluation(name)
        for time_s, value, _ in points
        if math.isfinite(value)
    ]
    others = {
        name: _by_step(points) for name, points in metrics.items() if name != clock and not is_of_evaluation(name)
    }
    for time_s, value, step in sorted(metrics[clock]):
        beside = {name: left[step].popleft() for name, left in others.items() if left.get(step)}
        values = {name: one for name, one in {clock: value, **beside}.items() if math.isfinite(one)}
        found.append((time_s, {clock: None, **values, "step": step, "timestamp": time_s}))
    for _, one in sorted(found, key=lambda pair: pair[0]):
        yield one


def _is_step(epochs: Sequence[Point], clock: Sequence[Point]) -> bool:
    """Whether the epochs are what the metric was given as its step."""
    epoch_at = {step: value for _, value, step in epochs}
    return all(epoch_at.get(step) == step for _, _, step in clock)


def _by_step(points: Sequence[Point]) -> dict[int, deque[float]]:
    """The values at each step in the order of time: a step that was done again has several."""
    found: dict[int, deque[float]] = defaultdict(deque)
    for _, value, step in sorted(points):
        found[step].append(value)
    return found
