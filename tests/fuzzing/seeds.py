"""Good files to begin from: the samples, one of each dialect, and the corpus of real files where there is one."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
SAMPLES = TESTS.parent / "data" / "samples"
MOST_LINES = 120
MOST_BYTES = 400_000
"""Of a database, which cannot be shortened by lines."""

Seed = tuple[str, bytes]
"""The name of a file, and what it holds."""


def seeds() -> list[Seed]:
    """By name; what is long is shortened to its first lines, since a case must be quick."""
    corpus = os.environ.get("GPUDIAG_CORPUS")
    folders = [SAMPLES, *([Path(corpus)] if corpus and Path(corpus).is_dir() else [])]
    files = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    kept = [
        path for path in files if path.suffix != ".md" and path.name != "truth.json" and "REFERENCE" not in path.name
    ]
    found = [(path.name, _short(path.read_bytes())) for path in kept]
    return [one for one in (*found, *_dialects()) if 0 < len(one[1]) <= MOST_BYTES]


def _short(data: bytes) -> bytes:
    if data.startswith((b"SQLite format 3", b"PAR1", b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        return data
    return b"".join(data[:MOST_BYTES].splitlines(keepends=True)[:MOST_LINES])


def _dialects() -> list[Seed]:
    """The samples that each reader of telemetry brings with it."""
    sys.path[:0] = [str(TESTS / "readers" / "telemetry"), str(TESTS)]
    samples = importlib.import_module("test_contract").SAMPLES
    out: list[Seed] = []
    for sample in samples:
        if not isinstance(sample.content, Mapping):
            data = sample.content.encode() if isinstance(sample.content, str) else sample.content
            out.append((sample.id.replace(":", "-").replace("/", "-"), data))
    return out
