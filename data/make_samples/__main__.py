"""``python -m data.make_samples FOLDER``: write every sample into FOLDER/<name>; the cases that ship are among them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from data.make_samples import idle_gpu, memory_exhaustion, starved_input, tiny_batch
from gpudiag.simulation.cases import CASES
from gpudiag.simulation.cases.case import Case

SAMPLES: dict[str, Callable[[], Case]] = {
    "hpo-aggressive-pruning": CASES["hpo-aggressive-pruning"],
    "starved-input-pipeline": starved_input.make,
    "idle-second-gpu": idle_gpu.make,
    "memory-exhaustion": memory_exhaustion.make,
    "tiny-batch-laptop": tiny_batch.make,
    "healthy": CASES["healthy"],
    "slow-rank": CASES["slow-rank"],
    "hung-collective": CASES["hung-collective"],
}


def main(arguments: list[str]) -> int:
    """Returns the exit status."""
    if len(arguments) != 1:
        print("usage: python -m data.make_samples FOLDER", file=sys.stderr)
        return 2
    for name, make in SAMPLES.items():
        make().write(Path(arguments[0]) / name)
        print(Path(arguments[0]) / name)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
