"""A small part of benchmarks/rules.py: healthy runs stay quiet, planted faults are found."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from planted import simulated

from gpudiag.load import load_run
from gpudiag.rules import RULES
from gpudiag.rules._engine.verdict import Status


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "rules.py"
    spec = importlib.util.spec_from_file_location("benchmarks_rules", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_healthy_runs_stay_quiet(bench: ModuleType) -> None:
    alarms = bench.false_alarms(5)
    assert alarms.n_loud <= 0.1 * alarms.runs, alarms.above
    assert not alarms.too_many
    assert alarms.clear["gpu-low-utilization"] > 0.8 * alarms.runs, "quiet because it was judged"


@pytest.mark.many
@pytest.mark.slow
@pytest.mark.parametrize("rule", [*simulated.PLANTED, *simulated.SIMULATED])
def test_faults_of_life_size_are_found_and_told_without_gaps(bench: ModuleType, rule: str) -> None:
    run = simulated.faulty_run(rule, 1)
    assert run is not None
    found = bench.judged_by(run, rule)
    assert found.status is Status.FOUND, found.reason
    assert "nan" not in found.summary.split(), found.summary


def test_the_table_is_of_these_rules_and_holds_what_was_promised(bench: ModuleType, root: Path) -> None:
    text = (root / "benchmarks" / "rules.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")][1:]
    measured = [row[0] for row in rows]
    assert measured == [rule.id for rule in RULES if rule.id in measured], "python benchmarks/rules.py writes the table"
    runs = int(re.search(r"(\d+) simulated runs without a fault", text).group(1))  # type: ignore[union-attr]
    assert runs >= 200
    assert all(int(row[2]) + int(row[3]) <= bench.MAX_RULE_PCT / 100 * runs for row in rows)
    assert int(re.search(r"(\d+) of them had a finding above a note", text).group(1)) <= bench.MAX_LOUD_PCT / 100 * runs  # type: ignore[union-attr]
    for row in rows:
        right, of = row[5].split(" of ")
        assert right == of, row[0]
        if row[6] != "-":
            found, of = row[6].split(" of ")
            assert int(found) >= 0.8 * int(of), row[0]


@pytest.mark.slow
def test_every_rule_was_tried_on_healthy_runs(root: Path) -> None:
    text = (root / "benchmarks" / "rules.md").read_text(encoding="utf-8")
    lacking = [rule.id for rule in RULES if f"| {rule.id} |" not in text]
    assert not lacking, f"its false alarms are not measured, python benchmarks/rules.py does it in minutes: {lacking}"


@pytest.mark.slow
def test_the_healthy_sample_has_no_finding_above_a_note(bench: ModuleType, samples: Path) -> None:
    assert bench.loud(bench.judged(load_run(samples / "healthy"))) == []


@pytest.mark.slow
def test_cases_name_what_the_investigator_found(bench: ModuleType, samples: Path) -> None:
    idle = bench.judged(load_run(samples / "idle-second-gpu" / "baseline"))
    assert idle["gpu-idle-beside-busy"].where == {"gpu": "0"}
    assert idle["gpu-imbalance"].caused_by == "gpu-idle-beside-busy"
    search = bench.judged(load_run(samples / "hpo-aggressive-pruning"))
    assert search["stated-counts-differ"].summary == "COMPLETE: 10 stated, 8 found."
    assert search["trials-abandoned"].where == {"trial": "207, 208"}
    assert search["trial-duration-outliers"].where == {"trial": "209"}
    crashed = bench.judged(load_run(samples / "memory-exhaustion"))
    assert crashed["failures-device-assert"].status is crashed["failures-out-of-memory"].status is Status.FOUND
    assert crashed["failures-poisoned"].caused_by == "failures-device-assert"
    tiny = bench.judged(load_run(samples / "tiny-batch-laptop"))
    assert tiny["batch-or-kernels-small"].status is tiny["cpu-bound-input"].status is Status.NOT_ASSESSED
