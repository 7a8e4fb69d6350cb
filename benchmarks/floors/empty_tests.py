"""What as many tests cost that test nothing: pytest, its two workers, our fixtures and what these import.

    python benchmarks/floors/empty_tests.py [TESTS]

What ``make test`` takes beyond it are the readings, measures and drawings that the tests ask for.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent.parent / "tests"
CASES = 34
TEXT = f"""import pytest


@pytest.mark.parametrize("n", range({CASES}))
def test_nothing(n: int) -> None:
    assert n >= 0
"""


def main() -> None:
    tests = int(sys.argv[1]) if len(sys.argv) > 1 else 13_800
    with tempfile.TemporaryDirectory() as folder:
        for name in ("conftest.py", "commandline.py"):
            shutil.copy(TESTS / name, folder)
        for k in range(tests // CASES):
            (Path(folder) / f"test_{k}.py").write_text(TEXT, encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-n2", "--dist=worksteal", "-pno:cacheprovider", "."]
        start = time.perf_counter()
        subprocess.run(command, cwd=folder, check=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
    spent = os.times()
    cpu_s = spent.children_user + spent.children_system
    print(f"{tests} tests that do nothing: {cpu_s:.1f} s of CPU, {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
