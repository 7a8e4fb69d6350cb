"""Searches that prune, at the same number of steps: times are drawn from start-up and steps, with known factors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from batchruns import T0

from gpudiag.comparison.compare import Comparison, compare
from gpudiag.comparison.quantity import Quantity
from gpudiag.manifest import Settings
from gpudiag.run import Run, RunInfo
from gpudiag.schema import REPORTS, TRIALS, conform

START_UP_S, STEP_S = 30.0, 10.0
NAME = "duration_at_same_steps"

pytestmark = pytest.mark.slow


def search(
    seed: int,
    *,
    n: int = 40,
    stop: float = 0.6,
    budget: tuple[int, int] = (12, 12),
    factor: float = 1.0,
    saving: float = 1.0,
    pause_s: float = 1.0,
    every: int = 1,
    counted: int = 1,
    widths: tuple[float, ...] = (0.5, 0.5),
    by_width: float = 1.0,
    params: dict[str, Any] | None = None,
) -> Run:
    """One worker. A trial is stopped with probability ``stop`` at any step before its last; a wide one takes
    ``by_width`` times as long, a COMPLETE one ``saving`` times. Every ``every``th step is reported, ``counted`` times.
    """
    rng = np.random.default_rng(seed)
    rows, reports, now = [], [], 3e5 * seed
    for trial in range(n):
        last = int(rng.integers(budget[0], budget[1] + 1))
        pruned = bool(rng.random() < stop)
        steps = int(rng.integers(1, last)) if pruned else last
        wide = int(rng.choice(len(widths), p=widths))
        took = factor * (START_UP_S + STEP_S * steps) * by_width**wide * rng.lognormal(0, 0.06)
        took *= 1.0 if pruned else saving
        rows.append((trial, "PRUNED" if pruned else "COMPLETE", now, now + took, wide))
        numbers = range(counted * steps) if counted > 1 else [*range(every - 1, steps, every)]
        reports += [(trial, number, 1.0) for number in numbers]
        now += took + pause_s
    table = pd.DataFrame(rows, columns=["trial", "state", "start", "end", "params.width"])
    for column in ("start", "end"):
        table[column] = T0 + pd.to_timedelta(table[column].round(6), unit="s")
    table = table.assign(study="s", **{f"params.{name}": value for name, value in (params or {}).items()})
    steps_said = pd.DataFrame(reports, columns=["trial", "step", "value"]).assign(study="s")
    info = RunInfo(name=f"search {seed}", settings=Settings(parallel=1))
    return Run(trials=conform(table, TRIALS), reports=conform(steps_said, REPORTS), info=info)


def compared(one: Run, other: Run) -> Comparison:
    found = compare(one, other)
    assert isinstance(found, Comparison)
    return found


def withheld(found: Comparison, why: str) -> bool:
    held: Quantity = found.quantity(NAME)
    unknown = np.isnan([held.ratio, held.low, held.p, held.baseline]).all()
    leads = found.leader is not None and found.leader.name == NAME
    return held.verdict == "invalid" and why in str(held.note) and bool(unknown) and not leads


@pytest.mark.parametrize(
    ("factor", "verdict"), [(1.0, ("no evidence", "equivalent")), (0.7, ("faster",)), (1.4, ("slower",))]
)
def test_searches_that_prune_alike_are_judged_at_the_same_number_of_steps(
    factor: float, verdict: tuple[str, ...]
) -> None:
    found = compared(search(1), search(2, factor=factor))
    held = found.quantity(NAME)
    assert found.leader is held and found.verdict in verdict
    assert held.low <= factor <= held.high and held.high / held.low < 1.15
    assert (held.n_baseline, held.n_experiment) == (40, 40) and held.detectable < 1.2
    assert not found.quantity("time_per_complete").detectable < 1.5  # which leads without it
    at = int(str(held.note).split("about ")[1].split()[0])
    assert held.baseline == pytest.approx(START_UP_S + STEP_S * at, rel=0.1)
    assert "at the same number of steps" in found.headline["verdict"]


@pytest.mark.parametrize("saving", [1.0, 1.5])
def test_a_pruner_that_stops_earlier_is_no_change_of_speed(saving: float) -> None:
    """Also where a COMPLETE trial takes 1.5 times as long for its last step, which pruned ones leave out."""
    found = compared(search(3, stop=0.1, saving=saving), search(4, stop=0.7, saving=saving))
    held = found.quantity(NAME)
    assert found.quantity("time_per_complete").kind == "price" and found.leader is held
    assert held.low <= 1 <= held.high and found.verdict in ("no evidence", "equivalent")
    head = found.headline
    assert "per COMPLETE trial, which any pruner makes longer" in head["sentences"][0]
    assert "same best value" in head["sentences"][2]


def test_what_else_changed_beside_the_pruner_shows() -> None:
    found = compared(search(3, stop=0.1), search(5, stop=0.7, factor=1.5))
    held = found.quantity(NAME)
    assert (found.verdict, found.leader) == ("slower", held) and held.low <= 1.5 <= held.high


@pytest.mark.parametrize("stops", [(0.6, 0.6), (0.05, 0.7)])
def test_a_parameter_that_is_drawn_otherwise_is_no_change_of_speed(stops: tuple[float, float]) -> None:
    """Wide trials take twice as long: 80 % against 20 % of them are 1.5 times the time of a trial."""
    one = search(6, stop=stops[0], widths=(0.8, 0.2), by_width=2.0)
    other = search(7, stop=stops[1], widths=(0.2, 0.8), by_width=2.0)
    held = compared(one, other).quantity(NAME)
    assert held.low <= 1 <= held.high and held.high / held.low < 1.5
    assert "explain durations: width" in str(held.note)


def test_longer_pauses_make_wall_time_lead() -> None:
    """The same trials with pauses as long as they are: no time of a trial shows that."""
    found = compared(search(1), search(2, pause_s=80.0))
    held = found.quantity(NAME)
    assert held.low <= 1 <= held.high
    assert found.leader is not None and found.leader.name == "time_per_complete"


def test_steps_that_mean_something_else_are_withheld() -> None:
    drawn = {"budget": (8, 16)}
    often = compared(search(8, n=24, **drawn), search(9, n=24, counted=2, **drawn))
    assert withheld(often, "COMPLETE trials do not show that a step is the same")
    rarely = compared(search(8, **drawn), search(9, every=2, **drawn))
    assert withheld(rarely, "count or report steps in another way")
    batches = [search(seed, params={"batch_size": size}) for seed, size in ((1, 32), (2, 64))]
    assert withheld(compared(*batches), "another batch")
    longer = compared(search(1, budget=(20, 20)), search(2, budget=(21, 21)))
    assert withheld(longer, "COMPLETE trials do not show")


def test_too_little_in_common_is_withheld() -> None:
    apart = compared(search(10, stop=0.0), search(11, stop=0.95))
    assert withheld(apart, "too few trials of a like number of steps")
    one, other = search(1), search(2)
    steady = [
        replace(run, trials=run.trials.assign(end=run.trials["start"] + pd.to_timedelta(seconds, unit="s")))
        for run, seconds in ((one, STEP_S), (other, np.random.default_rng(1).lognormal(2.3, 0.1, 40)))
    ]
    assert withheld(compared(*steady), "does not follow its number of steps")
    with pytest.raises(KeyError):
        compared(one, replace(other, reports=other.reports.head(0))).quantity(NAME)
    with pytest.raises(KeyError):
        compared(search(1, stop=0.0), search(2, stop=0.0)).quantity(NAME)
