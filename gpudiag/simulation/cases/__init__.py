"""The cases that ship: simulated runs with known truth, for first steps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpudiag.errors import ConfigError, nearest
from gpudiag.simulation.cases import aggressive_pruning, healthy, hung_collective, second_worker, slow_rank
from gpudiag.simulation.cases.case import Case

CASES: dict[str, Callable[..., Case]] = {
    "hpo-aggressive-pruning": aggressive_pruning.make,
    "healthy": healthy.make,
    "second-worker": second_worker.make,
    "slow-rank": slow_rank.make,
    "hung-collective": hung_collective.make,
}


def write_case(name: str, folder: str | Path, seed: int | None = None) -> Path:
    """Write one case into ``folder``, which is made if absent; with another seed it begins that many days later.
    Returns the folder.

    Raises ConfigError where there is no case of that name.
    """
    if name not in CASES:
        raise ConfigError(f"there is no case '{name}'; {nearest(name, CASES)}")
    CASES[name](seed).write(Path(folder))
    return Path(folder)
