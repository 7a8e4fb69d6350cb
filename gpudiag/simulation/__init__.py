"""Runs whose truth is known: a seedable discrete-event simulator, and the cases made with it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HOME = {
    "CASES": "gpudiag.simulation.cases",
    "Curve": "gpudiag.simulation.spec",
    "Faults": "gpudiag.simulation.spec",
    "Foreign": "gpudiag.simulation.spec",
    "Gpu": "gpudiag.simulation.spec",
    "ModelSpec": "gpudiag.simulation.spec",
    "Simulated": "gpudiag.simulation.simulator",
    "Spec": "gpudiag.simulation.spec",
    "TelemetrySpec": "gpudiag.simulation.spec",
    "Trial": "gpudiag.simulation.spec",
    "Truth": "gpudiag.simulation.truth",
    "simulate": "gpudiag.simulation.simulator",
    "write_case": "gpudiag.simulation.cases",
}

__all__ = sorted(_HOME)

if TYPE_CHECKING:
    from gpudiag.simulation.cases import CASES as CASES
    from gpudiag.simulation.cases import write_case as write_case
    from gpudiag.simulation.simulator import Simulated as Simulated
    from gpudiag.simulation.simulator import simulate as simulate
    from gpudiag.simulation.spec import Curve as Curve
    from gpudiag.simulation.spec import Faults as Faults
    from gpudiag.simulation.spec import Foreign as Foreign
    from gpudiag.simulation.spec import Gpu as Gpu
    from gpudiag.simulation.spec import ModelSpec as ModelSpec
    from gpudiag.simulation.spec import Spec as Spec
    from gpudiag.simulation.spec import TelemetrySpec as TelemetrySpec
    from gpudiag.simulation.spec import Trial as Trial
    from gpudiag.simulation.truth import Truth as Truth


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module 'gpudiag.simulation' has no attribute '{name}'")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
