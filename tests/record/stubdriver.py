"""The recorder on a driver that tests write: tests/record/nvml_stub as libnvidia-ml.so.1, and what it shall answer.

The loader finds the library as it finds the real one: by its name, on the search path of a process of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent / "nvml_stub" / "nvml_stub.c"
Answers = int | str | list[int] | list[str] | list[int | str]
"""One answer for ever, or those to the first call, the second and so on, of which the last stays."""

MIB = 2**20
H200: dict[str, Answers] = {
    "name": "NVIDIA H200",
    "mem_total": 143_771 * MIB,
    "mem_used": 12_000 * MIB,
    "mem_reserved": 600 * MIB,
    "util": 85,
    "mem_util": 40,
    "power": 410_250,
    "power_limit": 700_000,
    "energy": 123_456_789,
    "field_185": 409_500,
    "field_186": 431_250,
    "field_82": 72,
    "temp": 61,
    "sm_clock": 1755,
    "mem_clock": 3201,
    "event_reasons": 4,
    "reasons": 4,
    "pstate": 0,
    "encoder": 1,
    "decoder": 2,
    "pcie_rx": 2048,
    "pcie_tx": 1024,
    "mig": 0,
}


def build(folder: Path, *flags: str) -> Path:
    """The folder with the library; no compiler skips, or fails with GPUDIAG_REQUIRE_COMPILER=1."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        if os.environ.get("GPUDIAG_REQUIRE_COMPILER") == "1":
            pytest.fail("a C compiler is required but absent (cc)")
        pytest.skip("no C compiler (cc)")
    strict = ["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *strict, *flags, "-o", str(folder / "libnvidia-ml.so.1"), str(SOURCE)], check=True)
    return folder


def h200(number: int, **more: Answers | None) -> dict[str, Answers]:
    """All that an H200 answers; None takes an answer away, which is then not supported."""
    known = H200 | {"uuid": f"GPU-{number}{'cd' * 8}", "bus_id": f"00000000:0{number}:00.0"} | more
    return {key: answers for key, answers in known.items() if answers is not None}


@dataclass
class StubDriver:
    """A driver and its GPUs; ``record`` runs the recorder on them, ``python`` any program."""

    library: Path
    folder: Path
    gpus: list[dict[str, Answers]]
    driver: str = "570.86.15"
    init: list[int | str] = field(default_factory=lambda: ["ok"])

    @property
    def path(self) -> Path:
        return self.folder / "gpu.csv"

    def record(self, *options: str, seconds: float = 0.4, prelude: str = "") -> subprocess.CompletedProcess[str]:
        """``gpudiag record -o gpu.csv OPTIONS -- sleep SECONDS``; ``prelude`` is Python that runs before it."""
        call = f"{prelude}\nimport sys; from gpudiag.cli import main; sys.exit(main())"
        return self.python(call, "record", "-o", str(self.path), *options, "--", "sleep", str(seconds))

    def python(self, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        (self.folder / "scenario").write_text(self.scenario(), encoding="utf-8", errors="surrogateescape")
        ours = {"LD_LIBRARY_PATH": str(self.library), "NVML_STUB": str(self.folder / "scenario")}
        ours["NVML_STUB_CALLS"] = str(self.folder / "calls")
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(command, env=os.environ | ours, capture_output=True, text=True, timeout=60)

    def scenario(self) -> str:
        """What the library is told, as the file that it reads."""
        lines = [self._line("system", "driver", self.driver), self._line("system", "init", self.init)]
        lines += [self._line(n, key, answers) for n, gpu in enumerate(self.gpus) for key, answers in gpu.items()]
        return "".join(lines)

    def calls(self, gpu: int) -> Counter[str]:
        """How often each key of a GPU was asked for."""
        noted = (line.split() for line in (self.folder / "calls").read_text(encoding="utf-8").splitlines())
        return Counter(key for of, key in noted if of == str(gpu))

    @staticmethod
    def _line(who: object, key: str, answers: Answers) -> str:
        given = answers if isinstance(answers, list) else [answers]
        return "\t".join([str(who), key, *map(str, given)]) + "\n"
