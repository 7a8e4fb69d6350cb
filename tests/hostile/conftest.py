"""What tests with hostile input begin from."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path, samples: Path) -> Path:
    """A run of one good log, to put something bad beside."""
    run = tmp_path / "run"
    run.mkdir()
    shutil.copy(samples / "tiny-batch-laptop" / "gpu.csv", run)
    return run
