"""``python -m gpudiag.simulation FOLDER``: write every sample case into FOLDER/<case>."""

from __future__ import annotations

import sys
from pathlib import Path

from gpudiag.simulation.cases import CASES, write_case


def main(arguments: list[str]) -> int:
    """Returns the exit status."""
    if len(arguments) != 1:
        print("usage: python -m gpudiag.simulation FOLDER", file=sys.stderr)
        return 2
    for name in CASES:
        print(write_case(name, Path(arguments[0]) / name))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
