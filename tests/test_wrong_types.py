"""The public functions: a wrong type is one sentence that says what was expected, and a signature fits two lines."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gpudiag as gd

THREE_LINES = 320
SAMPLE = Path(__file__).parent.parent / "data" / "samples" / "healthy" / "gpu.csv"
NOT_FUNCTIONS = ("Error", "Run", "Recorder", "NotMeasurable")
"""Classes, which people make with a few of many fields, or get."""

FUNCTIONS = [name for name in gd.__all__ if callable(getattr(gd, name)) and not name.endswith(NOT_FUNCTIONS)]
WRONG = {"a number": 5, "nothing": None, "some object": object()}


def calls(run: gd.Run) -> dict[str, Callable[[Any], object]]:
    """By name: a public function with one argument of a type that it cannot take."""
    return {
        "load_run": gd.load_run,
        "load_run telemetry": lambda wrong: gd.load_run(telemetry=wrong),
        "load_run trials": lambda wrong: gd.load_run(trials=wrong),
        "load_run columns": lambda wrong: gd.load_run("x", columns=wrong),
        "load_run columns list": lambda wrong: gd.load_run("x", columns=[wrong]),
        "load_run list": lambda wrong: gd.load_run([wrong]),
        "read_telemetry": gd.read_telemetry,
        "read_steps": gd.read_steps,
        "read_trace": gd.read_trace,
        "read_trials": gd.read_trials,
        "diagnose": gd.diagnose,
        "diagnose thresholds": lambda wrong: gd.diagnose(run, thresholds=wrong),
        "diagnose preset": lambda wrong: gd.diagnose(run, preset=wrong),
        "diagnose suppress": lambda wrong: gd.diagnose(run, suppress=wrong),
        "diagnose suppress list": lambda wrong: gd.diagnose(run, suppress=[wrong]),
        "diagnose rules list": lambda wrong: gd.diagnose(run, rules=[wrong]),
        "what_if": gd.what_if,
        "memory_capacity": gd.memory_capacity,
        "replay_pruner": lambda wrong: gd.replay_pruner(wrong, "median()"),
        "replay_pruner pruner": lambda wrong: gd.replay_pruner(run, wrong),
        "compare": lambda wrong: gd.compare(wrong, run),
        "compare experiment": lambda wrong: gd.compare(run, wrong),
        "compare experiments": lambda wrong: gd.compare(run, [run, wrong]),
        "fleet": lambda wrong: gd.fleet(wrong, "x"),
        "fleet list": lambda wrong: gd.fleet([wrong], "x"),
        "fleet output": lambda wrong: gd.fleet(SAMPLE, wrong),
        "read_fleet": gd.read_fleet,
        "TrialTimestamps": gd.TrialTimestamps,
        "Recorder": gd.Recorder,
    }


MAY_BE_ABSENT: dict[str, Callable[[gd.Run, Any], object]] = {
    "load_run study": lambda run, wrong: gd.load_run("x", study=wrong),
    "load_run name": lambda run, wrong: gd.load_run("x", name=wrong),
    "load_run timezone": lambda run, wrong: gd.load_run("x", timezone=wrong),
    "load_run period_s": lambda run, wrong: gd.load_run("x", period_s=wrong),
    "read_trials study": lambda run, wrong: gd.read_trials("x", study=wrong),
    "read_telemetry columns": lambda run, wrong: gd.read_telemetry(SAMPLE, columns=wrong),
    "diagnose rules": lambda run, wrong: gd.diagnose(run, rules=wrong),
    "what_if parallel": lambda run, wrong: gd.what_if(run, parallel=wrong),
    "what_if pruner": lambda run, wrong: gd.what_if(run, pruner=wrong),
    "memory_capacity levels": lambda run, wrong: gd.memory_capacity(run, wrong),
    "compare plan": lambda run, wrong: gd.compare(run, run, plan=wrong),
    "simulate": lambda run, wrong: gd.simulate(wrong),
    "optuna_callback": lambda run, wrong: gd.optuna_callback(wrong),
}


@pytest.fixture(scope="module")
def run() -> gd.Run:
    return gd.simulate(seed=3, n_trials=6).run


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("name", calls(None))  # type: ignore[arg-type]
def test_a_wrong_type_is_a_sentence(run: gd.Run, name: str, wrong: object) -> None:
    with pytest.raises(gd.GpudiagError) as caught:
        calls(run)[name](wrong)
    said = str(caught.value)
    assert said.endswith(".") and len(said) < 200
    if wrong is not None:
        assert (type(wrong).__name__ in said and "expected" in said) or "must be" in said, said


@pytest.mark.parametrize("name", MAY_BE_ABSENT)
def test_a_wrong_type_of_what_may_be_absent_is_a_sentence(run: gd.Run, name: str) -> None:
    with pytest.raises(gd.GpudiagError, match=r"expected|must (be|hold)|a number") as caught:
        MAY_BE_ABSENT[name](run, object())
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_signature_fits_three_lines(name: str) -> None:
    signature = str(inspect.signature(getattr(gd, name))).replace("'", "")  # annotations are quoted
    assert len(signature) <= THREE_LINES, signature
    assert " at 0x" not in signature, "a default that shows as an address tells nothing"


def test_the_functions_are_those_of_the_public_face() -> None:
    assert {"load_run", "diagnose", "what_if", "memory_capacity", "replay_pruner", "compare"} <= set(FUNCTIONS)
    assert {name.partition(" ")[0] for name in (*calls(None), *MAY_BE_ABSENT)} >= set(FUNCTIONS)  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_run_may_be_given_as_where_it_lies(samples: Path) -> None:
    """As text or as a path: which of both makes no difference to anybody."""
    path, place = samples / "healthy", str(samples / "healthy")
    held = gd.load_run(path)
    found = gd.diagnose(place)
    assert gd.load_run(place).info.name == held.info.name
    assert found.run.info.name == held.info.name and len(found.verdicts) == len(gd.rules.RULES)
    assert gd.what_if(place, parallel=2).to_json() == gd.what_if(held, parallel=2).to_json()
    assert gd.memory_capacity(found, 2).to_dict() == gd.memory_capacity(held, [2]).to_dict()
    told = gd.replay_pruner(path, "median()"), gd.replay_pruner(found, "median()")
    assert told[0].to_dict() == told[1].to_dict()
    assert gd.compare(place, held).to_json() == gd.compare(found, path).to_json()


@pytest.mark.slow
def test_files_together_are_one_run(samples: Path) -> None:
    files = [samples / "healthy" / "gpu.csv", str(samples / "healthy" / "optuna.db")]
    assert gd.diagnose(files).run.info.inputs[1].kind == "trials"
