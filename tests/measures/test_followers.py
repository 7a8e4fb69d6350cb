"""Failures that follow from the one before, and failures that only stand beside each other."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from smallruns import run, trials

from gpudiag.measures.failures import measure_failures

ASSERT = "CUDA error: device-side assert triggered"


def _in_a_row(lives: list[tuple[str, float]], workers: int = 1, **columns: object) -> pd.DataFrame:
    """Trials of these outcomes and seconds one after the other, in turn on each worker."""
    free = [0.0] * workers
    rows = []
    for at, (state, lasts_s) in enumerate(lives):
        start = free[at % workers]
        rows.append((state, start, start + lasts_s))
        free[at % workers] = start + lasts_s + 1
    return trials(rows, worker=[str(at % workers) for at in range(len(lives))], **columns)


def _followers(table: pd.DataFrame) -> list[int]:
    failures = measure_failures(run(trials=table)).failures
    return failures.loc[failures["follows"], "trial"].tolist()


@pytest.mark.parametrize("text", [None, ASSERT])
@pytest.mark.parametrize("workers", [1, 3])
def test_where_every_trial_fails_alike_none_follows_from_another(workers: int, text: str | None) -> None:
    lasts_s = 14 + np.random.default_rng(1).uniform(-2, 2, 30)
    table = _in_a_row([("FAIL", one) for one in lasts_s], workers, detail=text)
    assert _followers(table) == []


@pytest.mark.parametrize("named", [True, False])
def test_where_the_first_failure_is_long_the_short_ones_after_it_follow_if_its_error_says_so(named: bool) -> None:
    for text, expected in ((ASSERT, list(range(1, 10))), (None, [])):
        table = _in_a_row([("FAIL", 300.0), *[("FAIL", 2.0)] * 9], detail=text)
        assert _followers(table if named else table.drop(columns="worker").assign(end=table["end"])) == expected


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("before", [0, 40, 80])
def test_one_stretch_in_which_all_fail_is_no_poisoned_process(before: int, workers: int) -> None:
    """A study that begins or ends broken, or is so for a while, has failures in a row, and so has one that is all
    broken; without an error that tells, and without another such stretch, nothing shows what made them fail."""
    lives = [*[("COMPLETE", 150.0)] * before, *[("FAIL", 3.0)] * 40, *[("COMPLETE", 150.0)] * (80 - before)]
    once = [*[("COMPLETE", 150.0)] * 20, ("FAIL", 3.0), *[("COMPLETE", 150.0)] * 20]
    table = _in_a_row([*lives, *once], workers)
    assert _followers(table) == []
    assert measure_failures(run(trials=table)).n_open == 40 - workers, "each but the first on its worker may follow"
    broken = _in_a_row([("FAIL", 3.0)] * 60, workers).assign(study="broken")
    well = _in_a_row([("COMPLETE", 150.0)] * 60, workers)
    later = pd.Timedelta(hours=5)
    well = well.assign(start=well["start"] + later, end=well["end"] + later)
    assert _followers(pd.concat([broken, well], ignore_index=True)) == []


@pytest.mark.parametrize("text", [None, ASSERT])
@pytest.mark.parametrize("seed", range(5))
def test_a_parameter_that_fails_at_once_makes_no_followers(seed: int, text: str | None) -> None:
    """Three trials of ten have the batch size that fails; a sampler that draws it in stretches changes nothing."""
    rng = np.random.default_rng(seed)
    batch = np.where(rng.random(100) < 0.3, 128, rng.choice([16, 32, 64], 100))
    if seed >= 3:
        batch[40:46] = 128
    lives = [("FAIL", 7.0) if one == 128 else ("COMPLETE", 150.0) for one in batch]
    details = [text if one == 128 else None for one in batch]
    assert (batch[1:] == batch[:-1])[batch[1:] == 128].sum() > 2  # neighbors there are
    assert _followers(_in_a_row(lives, detail=details, **{"params.batch": batch})) == []


@pytest.mark.parametrize("text", [None, ASSERT])
@pytest.mark.parametrize("workers", [1, 4])
def test_trials_of_a_poisoned_process_follow_in_a_search_that_goes_on(workers: int, text: str | None) -> None:
    """On each worker every eleventh trial fails after a while, and the two behind it at once; parameters vary."""
    per_worker = [("COMPLETE", 150.0)] * 8 + [("FAIL", 90.0), ("FAIL", 2.0), ("FAIL", 3.0)]
    lives = [one for one in per_worker * 4 for _ in range(workers)]
    lr = np.random.default_rng(2).random(len(lives))
    details = [text if state == "FAIL" else None for state, _ in lives]
    expected = [at for at, (state, lasts_s) in enumerate(lives) if state == "FAIL" and lasts_s < 10]
    assert _followers(_in_a_row(lives, workers, detail=details, **{"params.lr": lr})) == expected


@pytest.mark.parametrize("seed", range(8))
def test_failures_by_chance_make_no_followers(seed: int) -> None:
    fails = np.random.default_rng(seed).random(120) < 0.15
    table = _in_a_row([("FAIL", 5.0) if one else ("COMPLETE", 150.0) for one in fails], 2)
    assert _followers(table) == []
