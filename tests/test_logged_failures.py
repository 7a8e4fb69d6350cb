"""Why trials failed of which the study keeps no text: Optuna's own log says it, or their last report is NaN."""

from __future__ import annotations

import logging
import math
import shutil
from pathlib import Path

import optuna
import pytest

import gpudiag as gd
from gpudiag._run.failure_text import failure_classes

FORM = "[%(levelname)1.1s %(asctime)s] %(message)s"


@pytest.fixture
def search(written: Path, tmp_path: Path) -> Path:
    """A copy, which may be changed."""
    return shutil.copytree(written, tmp_path / "search")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve trials of a real study, each with its log: of every three one runs out of memory and one returns NaN."""
    folder = tmp_path_factory.mktemp("search")
    log = logging.FileHandler(folder / "search.log")
    log.setFormatter(logging.Formatter(FORM))
    logging.getLogger("optuna").addHandler(log)
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.INFO)  # other tests want less
    try:
        study = optuna.create_study(storage=f"sqlite:///{folder / 'optuna.db'}", study_name="search")

        def objective(trial: optuna.Trial) -> float:
            x = trial.suggest_float("x", 0, 1)
            for step in range(5):
                trial.report(math.nan if trial.number % 3 == 2 and step > 1 else x, step)
            if trial.number % 3 == 1:
                raise MemoryFull("CUDA out of memory. Tried to allocate 2.00 GiB.")
            return math.nan if trial.number % 3 == 2 else x

        study.optimize(objective, n_trials=12, catch=(MemoryFull,))
    finally:
        optuna.logging.set_verbosity(before)
        logging.getLogger("optuna").removeHandler(log)
        log.close()
    return folder


class MemoryFull(RuntimeError):
    """As PyTorch's own error reads."""


@pytest.mark.slow
def test_the_log_of_a_search_says_why_each_trial_failed(search: Path) -> None:
    run = gd.load_run(search)
    kinds = failure_classes(run.trials)
    assert kinds.tolist() == ["unknown", "oom", "nan"] * 4
    said = run.trials["detail"].tolist()
    assert said[1] == "Trial 1 failed: MemoryFull('CUDA out of memory. Tried to allocate 2.00 GiB.')."
    assert said[2] == "Trial 2 failed: The value nan is not acceptable."
    assert run.trials["detail"].isna().tolist() == [True, False, False] * 4


@pytest.mark.slow
def test_a_traceback_below_the_line_is_no_second_failure(search: Path) -> None:
    run = gd.load_run(search)
    assert (search / "search.log").read_text().count("MemoryFull: CUDA out of memory") == 4  # of the tracebacks
    assert run.events["kind"].tolist() == ["trial_failed"] * 8
    assert sorted(run.events["trial"]) == [1, 2, 4, 5, 7, 8, 10, 11]
    found = {one.rule: one.summary for one in gd.diagnose(run).findings}
    assert found["failures-out-of-memory"] == "4 of 8 failed trials ran out of GPU memory."
    assert found["failures-not-finite"] == "4 of 8 failed trials ended in a value that is not finite."


@pytest.mark.slow
def test_a_program_that_dies_of_it_ends_below_the_next_line(search: Path) -> None:
    log = search / "search.log"
    log.write_text(
        log.read_text() + "Traceback (most recent call last):\ntorch.OutOfMemoryError: CUDA out of memory.\n"
    )
    assert gd.load_run(search).events["kind"].tolist() == ["trial_failed"] * 8 + ["oom"]


@pytest.mark.slow
def test_without_a_log_a_last_report_of_nan_says_it(search: Path) -> None:
    (search / "search.log").unlink()
    kinds = failure_classes(gd.load_run(search).trials)
    assert kinds.tolist() == ["unknown", "unknown", "nan"] * 4


def test_a_log_of_another_time_names_other_trials(search: Path) -> None:
    log = search / "search.log"
    year = log.read_text()[3:7]
    log.write_text(log.read_text().replace(f" {year}-", f" {int(year) - 1}-"))
    assert failure_classes(gd.load_run(search).trials).tolist() == ["unknown", "unknown", "nan"] * 4


def test_numbers_of_several_studies_name_nothing(search: Path) -> None:
    optuna.create_study(storage=f"sqlite:///{search / 'optuna.db'}", study_name="other").add_trial(
        optuna.trial.create_trial(state=optuna.trial.TrialState.FAIL)
    )
    assert "oom" not in failure_classes(gd.load_run(search).trials).tolist()
