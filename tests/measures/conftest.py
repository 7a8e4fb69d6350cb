"""Runs that tests of measures load keep what is made of them, as the one that a diagnosis looks at does."""

from __future__ import annotations

from typing import Any

import pytest

from gpudiag import load
from gpudiag.memo import MemoRun
from gpudiag.run import Run


@pytest.fixture(autouse=True)
def _parts_of_measures_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a plain run each measure makes anew what others have made, and some of it twice."""
    assemble = load.assemble

    def kept(*of: Any) -> Run:
        return MemoRun.of(assemble(*of))

    monkeypatch.setattr(load, "assemble", kept)
