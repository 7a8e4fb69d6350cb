"""What a simulated training prints: lines on its steps as mmengine, timm or a plain script writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from gpudiag.simulation.trainings.dumps import watchdog_lines
from gpudiag.simulation.trainings.spec import TrainingSpec
from gpudiag.simulation.trainings.world import RankHistory, TrainingHistory

Stamp = Callable[[float], str]
"""``2026-02-03 09:00:12,345`` of a time in seconds since the start."""


def log_lines(spec: TrainingSpec, history: TrainingHistory, stamp: Stamp, origin: pd.Timestamp) -> Iterator[str]:
    """The lines of rank 0, in order of time, and those of every rank's watchdog. ``origin``: the start, local time."""
    rank, window = history.ranks[0], _Window()
    position = -1
    for moment in history.moments:
        if moment.what in ("start", "resumption"):
            what = f"Resumed from checkpoint at step {moment.step}" if moment.step else "Training begins"
            yield f"{stamp(moment.at_s)} INFO {what}"
            window = _Window()
        elif moment.what == "step":
            position += 1
            window.add(rank, position)
            in_epoch = (moment.step - 1) % spec.steps_per_epoch + 1
            if in_epoch % spec.log_every == 0 or in_epoch == spec.steps_per_epoch:
                yield _step_line(spec, moment.step, window, stamp(rank.steps[position].end_s))
                window = _Window(tuple(window.epoch) if in_epoch < spec.steps_per_epoch else ())
        elif moment.what == "checkpoint":
            yield f"{stamp(moment.at_s)} INFO Saving checkpoint at step {moment.step}"
        elif moment.what == "timeout" and spec.between.hang:
            yield from watchdog_lines(spec.between.hang, history, moment.at_s, origin)
        else:
            epoch = moment.step // spec.steps_per_epoch
            yield f"{stamp(moment.at_s)} INFO Epoch(val) [{epoch}][20/20] accuracy: {0.5 + 0.01 * epoch:.4f}"


class _Window:
    """Times of the steps since the last line, and since the epoch began."""

    def __init__(self, epoch: tuple[tuple[float, float], ...] = ()) -> None:
        self.epoch = list(epoch)
        self.held: list[tuple[float, float]] = []

    def add(self, rank: RankHistory, position: int) -> None:
        step = rank.steps[position]
        pair = (step.end_s - step.start_s, step.waited_s)
        self.held.append(pair)
        self.epoch.append(pair)


def _step_line(spec: TrainingSpec, step: int, window: _Window, stamp: str) -> str:
    """One line as the style has it; timm and mmengine state the mean time of a step and of its wait for data."""
    epoch, at = (step - 1) // spec.steps_per_epoch + 1, (step - 1) % spec.steps_per_epoch + 1
    loss = 2.0 / (1 + step) ** 0.3
    if spec.log == "plain":
        return f"{stamp} INFO step {step}/{spec.epochs * spec.steps_per_epoch} loss {loss:.4f}"
    took, waited = np.mean(window.held if spec.log == "mmengine" else window.epoch, axis=0).tolist()
    if spec.log == "mmengine":
        return (
            f"{stamp.replace('-', '/', 2).partition(',')[0]} - mmengine - INFO - Epoch(train) [{epoch}]"
            f"[{at:>4}/{spec.steps_per_epoch}]  lr: 1.0000e-03  eta: 0:10:00  time: {took:.4f}  data_time: {waited:.4f}"
            f"  memory: 9000  loss: {loss:.4f}"
        )
    share = 100 * (at - 1) / max(spec.steps_per_epoch - 1, 1)
    last, last_waited = window.held[-1]
    return (
        f"{stamp} INFO Train: {epoch - 1} [{at - 1:>4d}/{spec.steps_per_epoch} ({share:>3.0f}%)]  Loss: {loss:.3g} "
        f"({loss:.3g})  Time: {last:.3f}s, {64 / last:>7.2f}/s  ({took:.3f}s, {64 / took:>7.2f}/s)  LR: 1.000e-03  "
        f"Data: {last_waited:.3f} ({waited:.3f})"
    )
