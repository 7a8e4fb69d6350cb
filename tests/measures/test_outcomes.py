"""One name and one count for what became of a trial: by hand is no failure, and a dead RUNNING one is abandoned."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from smallruns import run, trials

from gpudiag.measures._trials.outcomes import outcomes_of
from gpudiag.measures.costs import measure_costs
from gpudiag.measures.failure_rates import measure_failure_rates
from gpudiag.measures.failures import measure_failures
from gpudiag.measures.parallelism import measure_parallelism
from gpudiag.measures.pruning import measure_pruning
from gpudiag.measures.trials import measure_trials
from gpudiag.run import Run

ROWS = [
    ("COMPLETE", 0, 100), ("FAIL", 101, 150), ("FAIL", 151, 200), ("RUNNING", 201, math.nan), ("COMPLETE", 260, 360),
    ("PRUNED", 361, 400), ("COMPLETE", 401, 500),
]  # fmt: skip
DETAIL = [None, "KeyboardInterrupt", "ValueError: lr", None, None, None, None]


@pytest.fixture
def stopped() -> Run:
    table = trials(ROWS, detail=DETAIL, worker=["w0"] * 7)
    return run(trials=table)


def test_a_trial_has_one_outcome(stopped: Run) -> None:
    wanted = ["COMPLETE", "STOPPED", "FAIL", "ABANDONED", "COMPLETE", "PRUNED", "COMPLETE"]
    assert outcomes_of(stopped).tolist() == wanted
    assert stopped.trials["state"].tolist() == [row[0] for row in ROWS], "the storage's own word stays in the table"


@pytest.mark.slow
def test_every_table_counts_alike(stopped: Run) -> None:
    wanted = {"COMPLETE": 3, "PRUNED": 1, "FAIL": 1, "STOPPED": 1, "ABANDONED": 1}
    found = measure_trials(stopped)
    costs, placed = measure_costs(stopped), measure_parallelism(stopped).placed
    by_state = found.by_state["n"]
    spent = costs.worker_time.set_index("outcome")["n_trials"].drop("gap")
    assert by_state[by_state > 0].to_dict() == wanted == spent[spent > 0].to_dict()
    assert placed["state"].value_counts().to_dict() == costs.trials["outcome"].value_counts().to_dict() == wanted
    assert (found.n_fail, found.n_stopped, found.n_running, found.abandoned) == (1, 1, 1, 1)


@pytest.mark.slow
def test_what_was_stopped_is_no_failure(stopped: Run) -> None:
    found, rates = measure_failures(stopped), measure_failure_rates(stopped)
    n_finished = sum(row[0] in ("COMPLETE", "PRUNED") for row in ROWS) + 1
    assert found.n_fail == rates.n_fail == 1 and found.n_finished == n_finished
    assert found.failures["trial"].tolist() == [2] and found.by_kind["kind"].tolist() == ["other"]
    assert found.by_error["text"].tolist() == ["ValueError: lr"]
    assert measure_pruning(stopped).of_finished_pct == pytest.approx(100 / n_finished)
    assert measure_trials(stopped).fail_pct == pytest.approx(100 / n_finished)


def test_errors_are_counted_by_kind_the_most_frequent_first() -> None:
    said = ["CUDA out of memory. Tried 3", "CUDA out of memory. Tried 4", "KeyError: 'x'", None]
    table = trials([("FAIL", 10 * i, 10 * i + 5) for i in range(4)], detail=said)
    found = measure_failures(run(trials=table)).by_error
    assert found[["kind", "n"]].to_numpy().tolist() == [["oom", 2], ["other", 1], ["unknown", 1]]
    assert found["text"].tolist() == ["CUDA out of memory.", "KeyError: 'x'", ""]
    assert isinstance(found, pd.DataFrame) and found.index.tolist() == ["1", "2", "3"]


def test_a_recorded_command_that_was_killed_is_no_failure_of_a_trial() -> None:
    """How it ended is told by the measure endings; a line of a log that says so is a failure's."""
    rows = [("gpu.csv", "record_start", ""), ("gpu.csv", "killed", "killed by SIGKILL (9)")]
    said = pd.DataFrame([*rows, ("train.log", "killed", "Killed")], columns=["path", "kind", "detail"])
    table = trials([("COMPLETE", 0, 60)])
    for events, n in ((said, 1), (said[:2], 0)):
        kinds = measure_failures(run(trials=table, events=events)).by_kind.set_index("kind")["n_events"]
        assert kinds.get("host_killed", 0) == n
