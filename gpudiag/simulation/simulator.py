"""``simulate``: from a spec and a seed to a run and the truth about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gpudiag.errors import expected
from gpudiag.run import Run
from gpudiag.simulation.files import write_folder
from gpudiag.simulation.spec import Spec, check, override
from gpudiag.simulation.tables import build_run, origin_of
from gpudiag.simulation.telemetry_log import sample
from gpudiag.simulation.truth import Truth, establish_truth, window
from gpudiag.simulation.world import History, World


@dataclass(frozen=True, eq=False)
class Simulated:
    """A run and what really happened in it.

    ``samples`` is the telemetry in the order of the log (tick, then GPU) with ``true_s``, seconds since
    the run's start; ``history`` the exact events behind it all.
    """

    spec: Spec
    run: Run
    truth: Truth
    history: History
    samples: pd.DataFrame

    def write(self, folder: str | Path, *, artifacts: Sequence[str] = ()) -> Path:
        """Write the run folder: run.toml, gpu.csv, optuna.db or tasks.jsonl, truth.json. Returns the folder.

        The same seed gives the same bytes. ``artifacts`` are files of the caller that run.toml shall name.
        """
        return write_folder(Path(folder), self.spec, self.history, self.samples, self.truth, artifacts)


def simulate(spec: Spec | None = None, *, seed: int = 0, **overrides: Any) -> Simulated:
    """Simulate a run whose truth is known.

    >>> len(gd.simulate(seed=1, n_trials=8).run.trials)
    8

    Args:
        spec: what to simulate; default: 40 trials by 4 workers on one GPU.
        seed: the only source of chance; trials depend on it and on their number alone.
        **overrides: fields of the spec or of its parts by name, e.g. ``workers=2, startup_s=(5, 9)``.

    Raises:
        ConfigError: there is no field of that name, a value cannot be simulated, or the pruner's text is no pruner.
    """
    if not isinstance(spec, Spec | None):
        raise expected("a Spec of what to simulate", spec)
    spec = check(override(spec or Spec(), overrides))
    return observe(spec, World(spec, seed).run(), seed)


def observe(spec: Spec, history: History, seed: int) -> Simulated:
    """The run and the truth of a history, simulated or scripted."""
    start_s, end_s = window(history.lives)
    last_s = float(np.nanmax([end_s, *(life.end_s for life in history.lives)]))
    samples = sample(spec, history, seed, start_s - spec.telemetry.lead_s, last_s + spec.telemetry.lag_s)
    return observed(spec, history, samples)


def observed(spec: Spec, history: History, samples: pd.DataFrame) -> Simulated:
    """The run and the truth of a history with the telemetry given."""
    truth = establish_truth(spec, history, samples, origin_of(spec))
    return Simulated(spec, build_run(spec, history.lives, samples), truth, history, samples)
