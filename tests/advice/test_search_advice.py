"""What is advised for a search that repeats itself: a grid for a small space, no parallel advice for one worker."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import optuna
import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.advice.search import (
    constant_liar,
    enqueue_once,
    grid_sampler,
    own_seeds,
    skip_repeats,
    whole_grid,
)
from gpudiag.measures.costs import CostsProfile
from gpudiag.measures.search import SearchProfile, measure_search
from gpudiag.run import Run
from tests.advice.situations import gain_of, situation
from tests.rules.small_profiles import profile

MODELS, BATCHES = ("large", "base", "small"), (16, 32, 64, 128, 256, 512)


def search(
    together: Sequence[bool] = (False,), choices: dict[str, list[Any]] | None = None, why: Sequence[str] = ()
) -> SearchProfile:
    n = len(together)
    causes = list(why) or [""] * n
    repeats = pd.DataFrame({
        "study": "s", "trial": range(n), "duration_s": 60.0, "together": list(together), "why": causes,
    })  # fmt: skip
    held = choices or {}
    return profile(
        SearchProfile,
        n_duplicates=n,
        n_with_params=100,
        n_same_seed=causes.count("seed"),
        n_after_grid=causes.count("grid"),
        n_enqueued=causes.count("enqueued"),
        repeats=repeats,
        space=pd.DataFrame({"name": list(held), "values": list(held.values())}),
        n_combinations=float(math.prod(map(len, held.values()))) if held else math.nan,
    )


def searched(n_workers: int, n: int = 60) -> Run:
    """A TPE-like search of 18 combinations by so many workers, each trial 100 s long."""
    start = [pd.Timestamp("2026-01-01", tz="UTC") + pd.Timedelta(seconds=100 * (i // n_workers)) for i in range(n)]
    frame = pd.DataFrame({
        "study": "s", "trial": range(n), "state": "COMPLETE", "start": start, "value": 1.0,
        "end": [t + pd.Timedelta(seconds=99) for t in start],
        "params.model": [MODELS[(i // 2) % 3] for i in range(n)],
        "params.batch": [BATCHES[(i // 2) % 6] for i in range(n)],
    })  # fmt: skip
    return Run(trials=frame, studies=pd.DataFrame({"study": ["s"], "directions": ["MINIMIZE"]}))


@pytest.mark.parametrize(
    ("together", "sampler", "advised"),
    [
        ([False, False], None, False),
        ([False, True], None, True),
        ([True], "TPESampler(seed=1)", True),
        ([True], "TPESampler(constant_liar=True)", False),
        ([True], "RandomSampler", False),
    ],
)
def test_the_liar_is_for_repeats_of_running_trials(together: list[bool], sampler: str | None, advised: bool) -> None:
    stated = {} if sampler is None else {"sampler": sampler}
    made = constant_liar.propose(situation(search(together), rules=("duplicate-trials",), **stated))
    assert (made is not None) is advised
    assert made is None or bool(made.verify_first) is (sampler is None)


@pytest.mark.slow
@pytest.mark.parametrize(("n_workers", "liar"), [(1, False), (2, True)])
def test_one_worker_alone_is_never_told_of_it(n_workers: int, liar: bool) -> None:
    run = searched(n_workers)
    d = gd.diagnose(run)
    ids = {one.id for one in d.advice.recommendations}
    assert {"grid-sampler", "skip-repeats"} <= ids and ("constant-liar" in ids) is liar
    assert liar or "constant_liar" not in d.to_json()


@pytest.mark.slow
def test_a_small_space_is_said_and_searched_as_a_grid() -> None:
    found = measure_search(searched(1))
    pairs = {(MODELS[i % 3], BATCHES[i % 6]) for i in range(30)}
    assert found.n_combinations == 18 and found.n_duplicates == 60 - len(pairs)
    summary = next(f.summary for f in gd.diagnose(searched(1)).findings if f.rule == "duplicate-trials")
    assert summary.startswith("The values tried make only 18 combinations: 54 of 60 trials (90 %) repeat")
    made = grid_sampler.propose(situation(found, rules=("duplicate-trials",)))
    assert made is not None
    code = made.changes[0].code
    assert code.startswith("+space = {")
    added = "\n".join(
        line[1:] for line in code.splitlines() if line.startswith("+space") or (line[:1] == "+" and "study" not in line)
    )
    space: dict[str, Any] = {}
    exec(added, space)
    assert space["space"] == {"model": ["base", "large", "small"], "batch": [16, 32, 64, 128, 256, 512]}
    assert len(optuna.samplers.GridSampler(space["space"])._all_grids) == 18


@pytest.mark.parametrize("change", ["continuous", "two studies", "missing"])
def test_no_grid_where_nobody_knows_the_space(change: str) -> None:
    run = searched(1)
    trials = run.trials.copy()
    if change == "continuous":
        trials["params.lr"] = [1e-3 * i for i in range(len(trials))]
    elif change == "two studies":
        trials.loc[30:, "study"] = "t"
    else:
        trials.loc[7, "params.model"] = None
    studies = pd.DataFrame({"study": ["s", "t"], "directions": "MINIMIZE"})
    found = measure_search(Run(trials=trials, studies=studies))
    assert math.isnan(found.n_combinations) and grid_sampler.propose(situation(found)) is None


def test_repeats_save_their_gpu_time_at_most() -> None:
    costs = profile(CostsProfile, trials=pd.DataFrame({"study": "s", "trial": [0, 1, 2], "gpu_s": [36.0, 72.0, 99.0]}))
    made = skip_repeats.propose(situation(search([False, False]), costs))
    assert gain_of(made) == (0.0, pytest.approx(0.03), "GPU-h", "repeats")
    assert gain_of(skip_repeats.propose(situation(search()))) is None
    assert skip_repeats.propose(situation()) is None


def test_no_grid_over_a_value_that_is_no_number() -> None:
    run = searched(1)
    trials = run.trials.copy()
    trials["params.lr"] = math.inf
    found = measure_search(Run(trials=trials, studies=run.studies))
    assert found.n_combinations > 0 and grid_sampler.propose(situation(found)) is None


@pytest.mark.parametrize(
    ("why", "advised"), [("seed", own_seeds), ("grid", whole_grid), ("enqueued", enqueue_once), ("", None)]
)
def test_what_is_advised_answers_why_trials_repeat(why: str, advised: Any) -> None:
    costs = profile(CostsProfile, trials=pd.DataFrame({"study": "s", "trial": [0, 1], "gpu_s": [36.0, 72.0]}))
    now = situation(search([True, True], why=[why, ""]), costs)
    for remedy in (own_seeds, whole_grid, enqueue_once):
        made = remedy.propose(now)
        assert (made is not None) is (remedy is advised)
        assert made is None or gain_of(made) == (0.0, pytest.approx(0.01), "GPU-h", "repeats")
    assert (constant_liar.propose(situation(search([True, False], why=[why, ""]))) is None) is bool(why)


@pytest.mark.parametrize(("sampler", "why"), [("GridSampler(space)", ""), ("BruteForceSampler()", ""), (None, "grid")])
def test_no_grid_where_a_grid_is_searched(sampler: str | None, why: str) -> None:
    stated = {} if sampler is None else {"sampler": sampler}
    made = search(choices={"a": [1, 2]}, why=[why])
    assert grid_sampler.propose(situation(made)) is not None or why
    assert grid_sampler.propose(situation(made, **stated)) is None
