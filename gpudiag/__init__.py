"""gpudiag: where did my GPU time go, what is wrong, what should I change, and what will that give me?"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_HOME = {
    "ConfigError": "gpudiag.errors",
    "GpudiagError": "gpudiag.errors",
    "InputError": "gpudiag.errors",
    "NotMeasurable": "gpudiag.errors",
    "Recorder": "gpudiag.record.recorder",
    "ReportError": "gpudiag.errors",
    "Run": "gpudiag.run",
    "TrialTimestamps": "gpudiag.record.optuna_timestamps",
    "compare": "gpudiag.comparison.compare",
    "diagnose": "gpudiag.diagnosis",
    "fleet": "gpudiag.fleets.fleet",
    "load_run": "gpudiag.load",
    "memory_capacity": "gpudiag.forecast.memory.capacity",
    "optuna_callback": "gpudiag.record.optuna_timestamps",
    "read_fleet": "gpudiag.fleets.fleet",
    "read_steps": "gpudiag.readers.artifacts",
    "read_telemetry": "gpudiag.readers.telemetry",
    "read_trace": "gpudiag.readers._traces.trace",
    "read_trials": "gpudiag.readers.trials",
    "replay_pruner": "gpudiag.forecast.pruning.replay",
    "simulate": "gpudiag.simulation",
    "what_if": "gpudiag.forecast.parallelism.what_if",
}

_MODULES = ("measures", "readers", "rules")
"""Where people add their own: a measure, a reader, a rule."""

__all__ = ["__version__", *sorted([*_HOME, *_MODULES])]

if TYPE_CHECKING:
    from gpudiag import measures as measures
    from gpudiag import readers as readers
    from gpudiag import rules as rules
    from gpudiag.comparison.compare import compare as compare
    from gpudiag.diagnosis import diagnose as diagnose
    from gpudiag.errors import ConfigError as ConfigError
    from gpudiag.errors import GpudiagError as GpudiagError
    from gpudiag.errors import InputError as InputError
    from gpudiag.errors import NotMeasurable as NotMeasurable
    from gpudiag.errors import ReportError as ReportError
    from gpudiag.fleets.fleet import fleet as fleet
    from gpudiag.fleets.fleet import read_fleet as read_fleet
    from gpudiag.forecast.memory.capacity import memory_capacity as memory_capacity
    from gpudiag.forecast.parallelism.what_if import what_if as what_if
    from gpudiag.forecast.pruning.replay import replay_pruner as replay_pruner
    from gpudiag.load import load_run as load_run
    from gpudiag.readers._traces.trace import read_trace as read_trace
    from gpudiag.readers.artifacts import read_steps as read_steps
    from gpudiag.readers.telemetry import read_telemetry as read_telemetry
    from gpudiag.readers.trials import read_trials as read_trials
    from gpudiag.record.optuna_timestamps import TrialTimestamps as TrialTimestamps
    from gpudiag.record.optuna_timestamps import optuna_callback as optuna_callback
    from gpudiag.record.recorder import Recorder as Recorder
    from gpudiag.run import Run as Run
    from gpudiag.simulation import simulate as simulate


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that ``import gpudiag`` loads nothing heavy."""
    if name in _MODULES:
        return importlib.import_module(f"gpudiag.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'gpudiag' has no attribute '{name}'")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext gpudiag``: from then on a cell that begins with ``%%gpu`` is recorded."""
    importlib.import_module("gpudiag.record.cell").load(shell)
