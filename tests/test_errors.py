from __future__ import annotations

import inspect

import pytest

from gpudiag import errors
from gpudiag.errors import GpudiagError, InputNotFound, NotMeasurable, nearest
from gpudiag.report.sections import SECTIONS

TREE = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, GpudiagError)]


@pytest.mark.parametrize("kind", TREE)
def test_every_error_is_drawn_in_the_tree_and_documented(kind: type) -> None:
    assert errors.__doc__ is not None and kind.__name__ in errors.__doc__
    assert kind.__doc__


def test_a_missing_file_is_also_the_builtin_and_prints_its_sentence() -> None:
    error = InputNotFound("gpu.csv: no such file.")
    assert isinstance(error, FileNotFoundError)
    assert str(error) == "gpu.csv: no such file."


def test_not_measurable_keeps_reason_and_remedy_apart() -> None:
    error = NotMeasurable("There is no telemetry.", "Record it.")
    assert (error.reason, error.remedy) == ("There is no telemetry.", "Record it.")
    assert str(error) == "There is no telemetry. Record it."


def test_nearest_offers_one_name_or_all() -> None:
    assert nearest("max_utl_pct", ["max_util_pct", "min_s"]) == "did you mean 'max_util_pct'?"
    assert nearest("zzz", ["b", "a"]) == "legal names are: a, b"
    assert nearest("power", SECTIONS) == f"legal names are: {', '.join(sorted(SECTIONS))}"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("gpu-lowutil", "gpu-low-utilization"),  # more like gpu-lost by letters alone
        ("gpu-low-utilisation", "gpu-low-utilization"),
        ("gpu-lsot", "gpu-lost"),
        ("gpu-los", "gpu-lost"),
    ],
)
def test_a_name_that_is_shortened_or_misspelt_finds_its_own(typed: str, meant: str) -> None:
    names = ["gpu-lost", "gpu-low-utilization", "gpu-unused", "loader-slow"]
    assert nearest(typed, names) == f"did you mean '{meant}'?"
