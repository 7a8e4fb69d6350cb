"""What is measured of a run serves all tests of comparisons: most share a baseline, and to measure takes longest."""

from __future__ import annotations

import hashlib
import pickle
from importlib import import_module
from types import SimpleNamespace

import pytest

from gpudiag.analysis import Analysis
from gpudiag.comparison.side import Side, as_side
from gpudiag.load import RunLike, as_run
from gpudiag.run import Run

KEPT: dict[bytes, Analysis] = {}
"""By what a run holds."""


def known_side(given: RunLike, role: str) -> Side:
    if not isinstance(given, Run):
        return as_side(given, role)
    key = hashlib.sha256(pickle.dumps(given)).digest()
    if key not in KEPT:
        KEPT[key] = Analysis(as_run(given))
    return as_side(SimpleNamespace(analysis=KEPT[key]), role)


@pytest.fixture(autouse=True)
def _measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("gpudiag.comparison.compare"), "as_side", known_side)
