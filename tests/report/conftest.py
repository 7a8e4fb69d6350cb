"""Documents that the renderers are tested on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from toyrun import toy_diagnosis

from gpudiag.diagnosis import Diagnosis


@pytest.fixture(scope="session")
def toy() -> Diagnosis:
    return toy_diagnosis()


@pytest.fixture(scope="module")
def undrawn_for_all() -> Iterator[None]:
    """Figures stay blank, for all that the module makes after it: to draw them takes longest."""
    with pytest.MonkeyPatch.context() as patch:
        yield _leave_blank(patch)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures stay blank."""
    _leave_blank(monkeypatch)


def _leave_blank(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Figure, "draw", lambda self, renderer: None)
    patch.setattr(ConstrainedLayoutEngine, "execute", lambda self, figure: None)


@pytest.fixture
def document(toy: Diagnosis) -> dict[str, Any]:
    return toy.to_dict()
