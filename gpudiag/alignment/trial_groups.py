"""Which trials are looked at beside which samples."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gpudiag._run.gpu_names import declared_gpus
from gpudiag.alignment.signals import SampleTimes
from gpudiag.run import Run


def trial_groups(run: Run, samples: SampleTimes) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Trials and samples (True by row) of each GPU, where every trial says on which one it ran; else all of both."""
    names = {row: gpus[0] for row, gpus in declared_gpus(run).items() if len(gpus) == 1}
    if len(names) < len(run.trials):
        yield np.ones(len(run.trials), bool), np.ones(len(samples.gpu), bool)
        return
    own = np.array([names[row] for row in range(len(run.trials))])
    for code, name in enumerate(run.gpu["gpu"].unique()):
        mine, rows = own == name, samples.gpu == code
        if mine.any() and rows.any():
            yield mine, rows
