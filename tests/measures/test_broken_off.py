"""A stretch without any trial is told where a search broke off before it, and not where somebody had ended it."""

from __future__ import annotations

import pandas as pd
import pytest

from gpudiag import Run
from gpudiag.measures.search import measure_search
from gpudiag.rules.search import search_paused
from tests.rules.small_profiles import verdict
from tests.smallruns import run, trials

NAN = float("nan")
NIGHT_S = 10 * 3600.0


def one_after_another(n: int, state: str = "COMPLETE", since: float = 0.0) -> list[tuple[str, float, float]]:
    """Trials of 300 s."""
    return [(state, since + 300 * i, since + 300 * (i + 1)) for i in range(n)]


def resumed(last: tuple[str, float, float], *, since: float = 3600.0 + NIGHT_S) -> Run:
    """Eleven trials, one more, and ten of the same study the next morning."""
    return run(trials=trials([*one_after_another(11), last, *one_after_another(10, since=since)]))


@pytest.mark.parametrize(
    ("last", "unseen_s", "failed"),
    [
        (("RUNNING", 3300.0, NAN), NIGHT_S + 300.0, False),  # a killed process leaves it so
        (("FAIL", 3300.0, 3600.0), NIGHT_S, True),
        (("COMPLETE", 3300.0, 3600.0), 0.0, False),
        (("PRUNED", 3300.0, 3600.0), 0.0, False),
    ],
)
def test_a_search_broke_off_where_its_last_trial_is_undone(
    last: tuple[str, float, float], unseen_s: float, failed: bool
) -> None:
    found = measure_search(resumed(last))
    assert (found.broken_off_s, found.longest_broken_off_s, found.n_pauses) == (unseen_s, unseen_s, 1)
    assert list(found.pauses["broke_off"]) == ["11" if unseen_s else ""] and list(found.pauses["failed"]) == [failed]
    if unseen_s:
        assert found.broken_off_pct == pytest.approx(100 * unseen_s / (3600 + NIGHT_S + 3000))
        assert found.pauses["end"].iloc[0] - found.pauses["start"].iloc[0] == pd.Timedelta(seconds=unseen_s)


def test_a_study_that_another_one_follows_had_ended() -> None:
    rows = [*one_after_another(11), ("FAIL", 3300.0, 3600.0)]
    later = trials(one_after_another(10, since=3600 + NIGHT_S), study="next")
    found = measure_search(run(trials=pd.concat([trials(rows), later], ignore_index=True)))
    assert (found.n_pauses, found.broken_off_s) == (1, 0.0)


def test_failures_that_the_next_trial_follows_at_once_end_no_search() -> None:
    rows = [*one_after_another(5), ("FAIL", 1500.0, 1700.0), *one_after_another(5, since=1700.0 + 60.0)]
    rows += [("FAIL", 3260.0, 3600.0), *one_after_another(10, since=3600 + NIGHT_S)]
    assert measure_search(run(trials=trials(rows))).broken_off_s == NIGHT_S
    rows = [(state, low - (low == 1760.0), high) for state, low, high in rows]  # a second earlier
    assert measure_search(run(trials=trials(rows))).broken_off_s == 0.0


def test_a_first_try_is_no_search_that_broke_off() -> None:
    rows = [("FAIL", 0.0, 1.0), *one_after_another(10, since=NIGHT_S)]
    assert measure_search(run(trials=trials(rows))).broken_off_s == 0.0


def test_a_dead_trial_of_a_worker_that_others_outlived_is_not_why_nothing_ran() -> None:
    rows = [("RUNNING", 0.0, NAN), *one_after_another(12), *one_after_another(10, since=3600 + NIGHT_S)]
    found = measure_search(run(trials=trials(rows)))
    assert (found.n_pauses, found.broken_off_s) == (1, 0.0)


def test_the_time_of_the_search_leaves_out_the_nights_after_it_was_ended() -> None:
    rows = [*one_after_another(12), *one_after_another(12, since=3600 + NIGHT_S)]
    rows += [("FAIL", 7200 + NIGHT_S, 7300 + NIGHT_S), *one_after_another(12, since=7300 + 7200 + NIGHT_S)]
    found = measure_search(run(trials=trials(rows)))
    assert (found.n_pauses, found.n_broken_off, found.pause_s, found.broken_off_s) == (2, 1, NIGHT_S + 7200, 7200)
    assert found.broken_off_pct == pytest.approx(100 * 7200 / (7300 + 7200 + 3600))


def test_the_sentence_says_from_when_to_when_and_what_it_cost_at_most() -> None:
    said = verdict(search_paused, measure_search(resumed(("FAIL", 3300.0, 3600.0))))
    assert said.summary == (
        "No trial began or ended from 2025-10-24 20:00 to 2025-10-25 06:00 UTC, for 10 h: trial 11 failed before that, "
        "and the study went on after it. If GPUs were held meanwhile, that cost up to 10 h of each."
    )
    assert said.where == {"trial": "11"} and said.lost_gpu_h is None
    killed = verdict(search_paused, measure_search(resumed(("RUNNING", 3300.0, NAN))))
    assert "from 2025-10-24 19:55 to 2025-10-25 06:00 UTC, for 10 h 05 min: trial 11 broke off" in killed.summary
    ended = verdict(search_paused, measure_search(resumed(("COMPLETE", 3300.0, 3600.0))))
    assert ended.status.value == "ok"
    assert ended.summary == "No trial ran for 10 h. Nothing shows that the search was to go on meanwhile."
