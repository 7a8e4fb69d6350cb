"""Failures by number of workers and of trials at once, against numbers worked out by hand or by brute force."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from smallruns import run, study, trials
from verdicts import verdicts_of

from gpudiag.measures._trials.error_texts import error_texts, failure_texts
from gpudiag.measures._trials.split import best_split
from gpudiag.measures.failure_rates import measure_failure_rates
from gpudiag.measures.search import measure_search
from gpudiag.measures.trials import measure_trials
from gpudiag.rules._engine.verdict import Status
from gpudiag.run import Run, RunInfo

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {} MiB."
Row = tuple[str, float, float]


def workers(n_workers: int, n: int, since: float = 0.0, length: float = 100.0) -> list[Row]:
    """``n`` trials of 99 s on so many workers, one after another."""
    return [("COMPLETE", since + length * (i // n_workers) + i % n_workers, since + length * (i // n_workers + 1) - 1)
            for i in range(n)]  # fmt: skip


def four_then_two(failing: list[int], n: int = 40, **columns: Any) -> Run:
    rows = [*workers(4, n), *workers(2, n, since=100.0 * n / 4)]
    return run(trials=trials([("FAIL", *row[1:]) if i in failing else row for i, row in enumerate(rows)], **columns))


def shifted(failed: np.ndarray, more: np.ndarray) -> float:
    """Part of all shifts whose G statistic is as large, by scipy, one by one."""
    n, values = len(failed), []
    for shift in range(-(n - 1), n):
        moved = more[np.clip(np.arange(n) - shift, 0, n - 1)]
        if not 0 < moved.sum() < n:
            continue
        table = np.array([[(failed & here).sum(), (~failed & here).sum()] for here in (moved, ~moved)])
        sign = 1 if table[0, 0] * table[1].sum() >= table[1, 0] * table[0].sum() else -1
        values.append((sign * stats.chi2_contingency(table, False, "log-likelihood").statistic, shift))
    actual = next(value for value, shift in values if shift == 0)
    return sum(value >= actual - 1e-6 for value, _ in values) / n


@pytest.mark.parametrize("seed", range(12))
def test_the_border_is_the_best_of_all_and_is_held_against_every_other_place(seed: int) -> None:
    rng = np.random.default_rng(seed)
    number = np.repeat([4, 3, 2], [20, 15, 25]) if seed % 2 else rng.integers(1, 4, 60)
    failed = rng.random(60) < np.where(number >= 3, 0.4, 0.15)
    found = best_split(failed, number)
    tables = {least: [[int((failed & h).sum()), int((~failed & h).sum())] for h in (number >= least, number < least)]
              for least in np.unique(number)[1:]}  # fmt: skip
    exact = {least: stats.fisher_exact(table, "greater").pvalue for least, table in tables.items()}
    assert found.p == pytest.approx(min(1.0, len(exact) * min(exact.values())))
    assert exact[found.least] == min(exact.values()) or found.p == 1
    assert found.aligned == pytest.approx(shifted(failed, number >= found.least))


def test_nothing_is_split_that_is_all_alike() -> None:
    assert math.isnan(best_split(np.ones(5, bool), np.full(5, 2)).p)
    assert math.isnan(best_split(np.zeros(5, bool), np.arange(5)).p)


def test_the_course_in_time_is_by_number_of_workers() -> None:
    periods = measure_trials(four_then_two([0, 5, 9, 50])).by_period
    assert periods["n_workers"].tolist() == [4, 2] and periods["n_ended"].tolist() == [40, 40]
    assert periods["n_fail"].tolist() == [3, 1] and periods["fail_pct"].tolist() == [7.5, 2.5]
    low, high = stats.binomtest(3, 40).proportion_ci(method="wilson")
    assert periods["fail_low_pct"].iloc[0] == pytest.approx(100 * low)
    assert periods["fail_high_pct"].iloc[0] == pytest.approx(100 * high)
    assert periods["trial_h"].sum() == pytest.approx(
        sum(row[2] - row[1] for row in [*workers(4, 40), *workers(2, 40)]) / 3600
    )


def test_trials_that_ran_alone_for_hours_are_not_counted_with_two_workers() -> None:
    """A second worker runs for 2,000 s at the beginning and comes back for the end: 8 of its time's 20 trials fail."""
    alone = [("COMPLETE", 2000.0 + 100 * i, 2099.0 + 100 * i) for i in range(60)]
    rows = [*workers(2, 40), *alone, *workers(2, 20, since=8000.0)]
    failing = {i for i in range(0, 40, 5)}
    found = measure_trials(
        run(trials=trials([("FAIL", *row[1:]) if i in failing else row for i, row in enumerate(rows)]))
    )
    assert found.by_period[["n_workers", "n_ended", "n_fail"]].to_numpy().tolist() == [
        [2, 40, 8],
        [1, 60, 0],
        [2, 20, 0],
    ]


def test_levels_are_counted_at_the_end_with_the_trial_itself() -> None:
    rows = [("COMPLETE", 0, 100), ("FAIL", 50, 80), ("COMPLETE", 200, 300)]
    levels = measure_failure_rates(run(trials=trials(rows))).by_level
    assert levels["n_ended"].to_dict() == {"1": 2, "2": 1} and levels["n_fail"].to_dict() == {"1": 0, "2": 1}
    assert levels["trial_h"].to_dict() == pytest.approx({"1": 170 / 3600, "2": 60 / 3600})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("failing", "found"),
    [
        (list(range(0, 39, 3)), True),  # throughout the time with four workers
        (list(range(0, 80, 5)), False),  # throughout
        (list(range(4, 16)), False),  # one bad stretch within it
    ],
)
def test_only_failures_that_fit_the_change_are_said_to_come_with_it(failing: list[int], found: bool) -> None:
    verdicts = verdicts_of(four_then_two(failing), "failures-by-number-at-once", "failure-rate-high")
    ids = {verdict.rule: verdict for verdict in verdicts if verdict.status is Status.FOUND}
    assert ("failures-by-number-at-once" in ids) is found
    if found:
        assert ids["failures-by-number-at-once"].summary.startswith("With 4 workers, 13 of 40 trials failed, 32.5 %")
        assert ids["failure-rate-high"].caused_by == "failures-by-number-at-once"
    assert "The number of workers changed: " in ids["failure-rate-high"].summary


def test_a_failure_that_ends_its_worker_is_not_held_against_the_number() -> None:
    rows = [("COMPLETE", 100 * i, 100 * i + 99) for i in range(30)]
    rows += [("COMPLETE", 100 * i, 100 * i + 98) for i in range(9)] + [("FAIL", 900, 990)]
    named = trials(rows, worker=["w0"] * 30 + ["w1"] * 10)
    counts = measure_failure_rates(run(trials=named)).counts
    assert counts.empty, "the only failure is the last trial of a worker that left"


def test_kinds_are_judged_apart() -> None:
    texts = [OOM.format(i) if i < 39 and i % 3 == 0 else None for i in range(80)]
    failing = [*range(0, 39, 3), *range(1, 80, 10)]
    found = measure_failure_rates(four_then_two(failing, detail=texts))
    kinds = found.splits.set_index(["kind", "by"])
    assert kinds.at[("oom", "workers"), "p_split"] < 0.01 < kinds.at[("other", "workers"), "p_split"]
    assert kinds.at[("oom", "workers"), "fail_more"] == 13 and found.n_oom == 13


@pytest.mark.parametrize(
    ("texts", "said", "n"),
    [
        ([OOM.format(12.5), OOM.format(999)], "torch.OutOfMemoryError: CUDA out of memory.", 2),
        (["KeyError: 'a'", "ValueError: b"], "KeyError: 'a'", 1),
        (["ValueError: 3 of 7", "ValueError: 4 of 9", "x"], "ValueError: ... of ...", 2),
        (["Error: no /home/jane/data/x.csv"] * 3, "Error: no ...", 3),
        (["Error: ask jane@example.org"] * 2, "Error: ask ...", 2),
        (["Error: token " + "a1" * 20] * 2, "Error: token ...", 2),
        (["RuntimeError: " + "word " * 40] * 2, "RuntimeError: " + "word " * 15 + "...", 2),
        (["Traceback\n  File x\nKeyError: 'lr'\n"] * 2, "KeyError: 'lr'", 2),
        (["2025-12-02 18:33:57 ERROR w2 trial 5 failed: KeyError: 'lr'", "KeyError: 'lr'"], "KeyError: 'lr'", 2),
        ([None, None], "", 2),
    ],
)
def test_the_most_frequent_error_is_short_and_names_nobody(texts: list[str | None], said: str, n: int) -> None:
    rows = error_texts(pd.Series(texts, dtype=object), pd.Series(["other"] * len(texts)))
    found = (str(rows["text"].iloc[0]), int(rows["n"].iloc[0]))
    assert rows["n"].sum() == len(texts) and rows["n"].is_monotonic_decreasing
    assert found == (said, n) or (len(found[0]) <= 90 and found[1] == n and found[0].startswith("RuntimeError: word"))


def test_attributes_of_users_are_quoted_only_where_run_toml_says_so() -> None:
    table = trials([("FAIL", 0, 10), ("FAIL", 10, 20)], **{"user_attrs.error": ["KeyError: 'x'"] * 2})
    assert failure_texts(Run(trials=table)).isna().all()
    shown = Run(trials=table, info=RunInfo(show_attrs=("error",)))
    found = error_texts(failure_texts(shown), pd.Series(["unknown"] * 2))
    assert found.to_dict("records") == [{"kind": "other", "n": 2, "text": "KeyError: 'x'"}]


def test_what_trials_out_of_memory_have_in_common() -> None:
    texts = [OOM.format(i) if i % 4 == 0 else None for i in range(80)]
    rows = [("FAIL" if i % 4 == 0 else "COMPLETE", 100 * i, 100 * i + 99) for i in range(80)]
    batch = [512 if (i % 4 == 0 and i < 68) or i % 20 == 1 else 64 for i in range(80)]
    found = measure_failure_rates(
        run(trials=trials(rows, detail=texts, **{"params.batch": batch}), studies=study("MINIMIZE"))
    )
    between = range(77)  # from the first to the last of them
    well = [i for i in between if i % 4]
    a, b = sum(batch[i] == 512 for i in between if i % 4 == 0), sum(batch[i] == 512 for i in well)
    assert (str(found.condition), found.n_oom_with, found.n_oom_compared) == ("batch ≥ 512", a, 20)
    assert (found.n_well_with, found.n_well_compared) == (b, len(well))
    places = [range(first, first + 10) for first in range(0, 80, 10)]
    total = np.ones(1)
    for ten in places:
        n_bad, n_with = sum(i % 4 == 0 for i in ten), sum(batch[i] == 512 for i in ten)
        total = np.convolve(total, stats.hypergeom.pmf(np.arange(n_with + 1), 10, n_with, n_bad))
    assert found.p_condition == pytest.approx(2 * total[a:].sum()), "at least 512, and at most 64"


@pytest.mark.slow
@pytest.mark.parametrize("text", [None, "ValueError: x"])
def test_failures_of_any_kind_may_share_a_value(text: str | None) -> None:
    """Of 60 trials those with the middle one of three batch sizes fail, which no border in the number tells."""
    batch = [(64, 128, 256)[i % 3] for i in range(60)]
    rows = [("FAIL" if b == 128 else "COMPLETE", 100 * i, 100 * i + 99) for i, b in enumerate(batch)]
    table = trials(rows, detail=[text] * 60, **{"params.batch": batch, "params.lr": np.linspace(0, 1, 60)})
    found = measure_trials(run(trials=table, studies=study("MINIMIZE")))
    assert (str(found.fail_condition), found.n_fail_with, found.n_fail_compared) == ("batch = 128", 20, 20)
    assert (found.n_well_with, found.n_well_compared) == (0, 38), "one before the first failure, one after the last"
    n_tried = 3 + 2 + 2 * 8  # three values, both borders at the middle one, both sides of eight borders of lr
    assert found.p_condition == pytest.approx(n_tried / (math.comb(10, 3) ** 4 * math.comb(10, 4) ** 2))
    few = measure_trials(run(trials=table.assign(state=["FAIL"] * 4 + ["COMPLETE"] * 56), studies=study("MINIMIZE")))
    assert math.isnan(few.p_condition) and not few.fail_condition


@pytest.mark.parametrize(("failed", "named"), [(range(100, 120), False), (range(0, 160, 8), True)])
def test_an_outage_while_a_sampler_prefers_a_value_has_no_value_in_common(failed: range, named: bool) -> None:
    """From the 80th trial on nearly all have 32; an outage fails 20 in a row, a cause those that have the value."""
    batch = [32 if (i in failed if named else i > 80 and i % 9) else 64 for i in range(160)]
    rows = [("FAIL" if i in failed or i in (10, 150) else "COMPLETE", 100 * i, 100 * i + 99) for i in range(160)]
    table = trials(rows, **{"params.batch": batch})
    found = measure_trials(run(trials=table, studies=study("MINIMIZE")))
    assert (found.p_condition < 0.01) is named


def test_trials_that_get_shorter_because_fewer_run_are_no_drift() -> None:
    rows = [*workers(4, 60, length=200.0), *workers(2, 40, since=3000.0, length=100.0)]
    found = measure_search(run(trials=trials(rows)))
    assert (found.drift_workers, found.n_drift) == (4, 60) and not abs(found.drift_rho) > 0.3
    alone = [("COMPLETE", 200 * i, 200 * i + 50 + i) for i in range(40)]
    steady = measure_search(run(trials=trials(alone)))
    assert (steady.drift_workers, steady.drift_rho) == (0, 1.0)


def test_a_pause_is_an_hour_without_any_trial() -> None:
    rows = [("COMPLETE", 0, 1000), ("COMPLETE", 500, 2000), ("COMPLETE", 5599, 6000), ("COMPLETE", 9600, 10_000)]
    found = measure_search(run(trials=trials(rows)))
    assert (found.n_pauses, found.pause_s, found.longest_pause_s, found.pause_pct) == (1, 3600, 3600, 36)
    assert measure_search(run(trials=trials(rows[:3]))).n_pauses == 0


@pytest.mark.slow
def test_the_best_trial_is_named_with_its_parameters() -> None:
    rows = [("COMPLETE", 10 * i, 10 * i + 9) for i in range(3)]
    columns = {"value": [0.3, 0.1, 0.2], "params.lr": [0.1, 0.01, 0.001], "params.model": ["a", "b", None]}
    found = measure_trials(run(trials=trials(rows, **columns), studies=study("MINIMIZE")))
    assert (found.best_trial, found.best_value, found.best_direction) == ("1", 0.1, "MINIMIZE")
    assert str(found.best_params) == "lr = 0.01, model = b"
    most = measure_trials(run(trials=trials(rows, **columns), studies=study("MAXIMIZE")))
    assert (most.best_trial, str(most.best_params)) == ("0", "lr = 0.1, model = a")
    unknown = measure_trials(run(trials=trials(rows, **columns)))
    assert unknown.best_trial == "" and math.isnan(unknown.best_value) and not unknown.best_params
