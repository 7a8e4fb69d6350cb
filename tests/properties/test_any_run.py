"""Whatever a run holds: every question has an answer, or one of gpudiag's own errors that says why not."""

from __future__ import annotations

import time

import asked
import numpy as np
import pandas as pd
import pytest
from anyrun import Recipe, made, recipes
from asked import answer
from drawn import few_of
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gpudiag.diagnosis import Diagnosis, diagnose
from gpudiag.plots import PLOTS
from gpudiag.run import Run
from gpudiag.schema import GPU, TRIALS, conform

T0 = pd.Timestamp("2026-03-01 10:00", tz="UTC")
RELAXED = list(HealthCheck)
AS_FOUND = [Phase.explicit, Phase.reuse, Phase.generate]
"""A counterexample is told as it was found: to make it smaller takes minutes, and a recipe is short."""
MANY = settings(max_examples=few_of(12), suppress_health_check=RELAXED, phases=AS_FOUND)


def run_of(recipe: Recipe) -> Run | None:
    """None where its tables cannot be a run, which gpudiag says."""
    return answer(lambda: made(recipe))


def shown(recipe: Recipe, plots: tuple[str, ...]) -> None:
    run = run_of(recipe)
    diagnosis = None if run is None else answer(lambda: asked.diagnosed(run))
    if diagnosis is not None:
        asked.rendered(diagnosis)
        asked.exported(diagnosis)
        asked.drawn(diagnosis, plots)


def forecast(recipe: Recipe) -> None:
    if (run := run_of(recipe)) is not None:
        asked.forecast(run)


def compared(first: Recipe, second: Recipe) -> None:
    sides = run_of(first), run_of(second)
    if sides[0] is not None and sides[1] is not None:
        asked.compared(*sides)


@pytest.mark.slow
@MANY
@given(recipes(5), st.integers(0, 2))
def test_a_diagnosis_and_all_that_shows_it(recipe: Recipe, part: int) -> None:
    """Each with every third figure."""
    shown(recipe, tuple(PLOTS)[part::3])


@pytest.mark.slow
@MANY
@given(recipes(5))
def test_forecasts(recipe: Recipe) -> None:
    forecast(recipe)


@pytest.mark.slow
@MANY
@given(recipes(5), recipes(5))
def test_comparisons(first: Recipe, second: Recipe) -> None:
    compared(first, second)


def test_a_run_of_nothing() -> None:
    run = Run()
    diagnosis = asked.diagnosed(run)
    asked.rendered(diagnosis)
    asked.drawn(diagnosis)
    asked.forecast(run)


@pytest.mark.slow
def test_many_gpus() -> None:
    """Each takes about 4 ms of a diagnosis, as docs/promises.md says of thousands; nothing grows with their square:
    four times the GPUs take four times as long, not sixteen.
    """
    (few, diagnosis), (many, _) = _diagnosed_in_s(64), _diagnosed_in_s(256)
    assert many < 10 * max(few, 0.2)
    asked.valid(diagnosis.to_json(), "diagnosis-4")  # to check that of all of them takes longer than all else


def _diagnosed_in_s(n: int) -> tuple[float, Diagnosis]:
    """CPU seconds of the diagnosis of n GPUs, and the diagnosis."""
    times = np.repeat([T0 + pd.Timedelta(seconds=5 * tick) for tick in range(3)], n)
    gpu = pd.DataFrame({"time": times, "gpu": [str(g) for g in range(n)] * 3, "util_pct": 50.0, "power_w": 200.0})
    run = Run(gpu=conform(gpu, GPU))
    began = time.process_time()
    diagnosis = diagnose(run)
    spent = time.process_time() - began
    assert not diagnosis.errors and diagnosis.ledger is not None and diagnosis.ledger.n_gpus == n
    asked.ledger_holds(diagnosis.ledger, run)
    asked.readable(repr(diagnosis))
    return spent, diagnosis


@pytest.mark.slow
def test_a_thousand_parameters() -> None:
    n = 12
    columns = {f"params.p{k}": np.arange(n) * k / 7 for k in range(1000)}
    start = T0 + pd.to_timedelta(np.arange(n) * 60.0, unit="s")
    trials = {"study": "s", "trial": range(n), "state": "COMPLETE", "start": start, "value": np.arange(n) / 3}
    frame = pd.DataFrame({**trials, "end": start + pd.Timedelta(seconds=50), **columns})
    diagnosis = asked.diagnosed(Run(trials=conform(frame, TRIALS)))
    asked.rendered(diagnosis)
    asked.drawn(diagnosis, ("parallel_coordinates",))
