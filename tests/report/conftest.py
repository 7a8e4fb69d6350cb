"""Documents that the renderers are tested on."""

from __future__ import annotations

from typing import Any

import pytest
from toyrun import TOY_RULES, toy_run

from gpudiag.diagnosis import Diagnosis, diagnose


@pytest.fixture(scope="session")
def toy() -> Diagnosis:
    return diagnose(toy_run(), rules=TOY_RULES)


@pytest.fixture
def document(toy: Diagnosis) -> dict[str, Any]:
    return toy.to_dict()
