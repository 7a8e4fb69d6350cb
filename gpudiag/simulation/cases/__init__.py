"""The sample cases: situations that occur, with known truth, for tests, documentation and first steps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpudiag.errors import ConfigError, nearest
from gpudiag.simulation.cases import (
    aggressive_pruning,
    healthy,
    idle_gpu,
    memory_exhaustion,
    starved_input,
    tiny_batch,
)
from gpudiag.simulation.cases.case import Case

CASES: dict[str, Callable[[], Case]] = {
    "hpo-aggressive-pruning": aggressive_pruning.make,
    "starved-input-pipeline": starved_input.make,
    "idle-second-gpu": idle_gpu.make,
    "memory-exhaustion": memory_exhaustion.make,
    "tiny-batch-laptop": tiny_batch.make,
    "healthy": healthy.make,
}


def write_case(name: str, folder: str | Path) -> Path:
    """Write one case into ``folder``, which is made if absent. Returns the folder.

    Raises ConfigError where there is no case of that name.
    """
    if name not in CASES:
        raise ConfigError(f"there is no case '{name}'; {nearest(name, CASES)}")
    CASES[name]().write(Path(folder))
    return Path(folder)
