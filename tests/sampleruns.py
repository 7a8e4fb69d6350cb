"""The shipped samples, each read and diagnosed once a session: for tests that look, and change nothing."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from gpudiag.diagnosis import Diagnosis, diagnose
from gpudiag.load import load_run
from gpudiag.memo import MemoRun

SAMPLES = Path(__file__).resolve().parent.parent / "data" / "samples"


@cache
def sample(name: str) -> MemoRun:
    """The run, which keeps what is made of it."""
    return MemoRun.of(load_run(SAMPLES / name))


@cache
def diagnosed(name: str) -> Diagnosis:
    return diagnose(sample(name))
