"""A small part of benchmarks/rules.py: healthy runs stay quiet, planted faults are found."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from gpudiag.load import load_run
from gpudiag.rules.engine import Status


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "rules.py"
    spec = importlib.util.spec_from_file_location("benchmarks_rules", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_healthy_runs_stay_quiet(bench: ModuleType) -> None:
    above, _, any_above = bench.false_alarms(6)
    assert any_above <= 1 and not [rule for rule, n in above.items() if n > 1]


@pytest.mark.slow
def test_every_planted_fault_is_found_and_told_without_gaps(bench: ModuleType) -> None:
    run = bench.healthy_run(1)
    for rule, plant in bench.FAULTS.items():
        found = bench.judged(plant(run))[rule]
        assert found.status is Status.FOUND, (rule, found.reason)
        assert "nan" not in found.summary.split(), found.summary


def test_the_healthy_sample_has_no_finding_above_info(bench: ModuleType, samples: Path) -> None:
    assert bench.loud(bench.judged(load_run(samples / "healthy"))) == []


def test_cases_name_what_the_investigator_found(bench: ModuleType, samples: Path) -> None:
    idle = bench.judged(load_run(samples / "idle-second-gpu" / "baseline"))
    assert idle["gpu-idle-beside-busy"].where == {"gpu": "0"}
    assert idle["gpu-imbalance"].caused_by == "gpu-idle-beside-busy"
    search = bench.judged(load_run(samples / "hpo-aggressive-pruning"))
    assert search["stated-counts-differ"].summary == "COMPLETE 10 stated, 8 found."
    assert search["trials-orphaned"].caused_by == "parallelism-above-configured"
    assert search["trial-duration-outliers"].where == {"trial": "209"}
    crashed = bench.judged(load_run(samples / "memory-exhaustion"))
    assert crashed["failures-device-assert"].status is crashed["failures-out-of-memory"].status is Status.FOUND
    assert crashed["failures-poisoned"].caused_by == "failures-device-assert"
    tiny = bench.judged(load_run(samples / "tiny-batch-laptop"))
    assert tiny["batch-or-kernels-small"].status is tiny["cpu-bound-input"].status is Status.NOT_ASSESSED
