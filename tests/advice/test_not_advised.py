"""What a run has done already, or itself refutes, is not advised; and no gain is told that nobody can rely on."""

from __future__ import annotations

import re

import pandas as pd
import pytest
from sampleruns import diagnosed

from gpudiag.advice import REMEDIES
from gpudiag.advice._engine.framework import is_boosting, may_be_optuna
from gpudiag.advice._engine.recommendation import Recommendation
from gpudiag.report.kinds.recommendations import TEST_FIRST, gain_of
from gpudiag.run import Run

RUNS = (
    "hpo-aggressive-pruning",
    "starved-input-pipeline/before",
    "idle-second-gpu/baseline",
    "idle-second-gpu/experiment",
    "memory-exhaustion",
    "tiny-batch-laptop",
)
OPTUNA = re.compile(r"set_user_attr|optuna|study\.|trial\.")
TORCH = re.compile(r"torch")


def advised(name: str) -> dict[str, Recommendation]:
    return {one.id: one for one in diagnosed(name).advice.recommendations}


def code(name: str) -> str:
    return "\n".join(change.code for one in advised(name).values() for change in one.changes)


def test_fewer_workers_are_not_advised_where_the_run_ended_with_so_few() -> None:
    given = advised("memory-exhaustion")
    assert given and "fewer-workers" not in given


def test_error_messages_need_not_be_saved_where_every_failure_is_classified() -> None:
    assert "log-failures" not in advised("memory-exhaustion")


def test_checkpoints_are_not_advised_where_trials_fail_early() -> None:
    assert "checkpoint" not in advised("hpo-aggressive-pruning")


@pytest.mark.parametrize("name", ["idle-second-gpu/baseline", "idle-second-gpu/experiment"])
def test_tasks_of_lightgbm_are_shown_neither_optuna_nor_torch(name: str) -> None:
    assert advised(name) and not OPTUNA.search(code(name)) and not TORCH.search(code(name))
    assert "gpu_device_id" in code(name)


def test_one_training_is_shown_no_code_of_optuna_and_no_check_that_any_run_meets() -> None:
    name = "starved-input-pipeline/before"
    assert advised(name) and not OPTUNA.search(code(name))
    assert not any("fail_pct" in check.measure for one in advised(name).values() for check in one.verify)


@pytest.mark.parametrize("name", RUNS)
def test_a_gain_that_is_told_can_be_relied_on(name: str) -> None:
    for one in advised(name).values():
        text, wide = gain_of(one), one.gain is not None and one.gain.unit == "x" and one.gain.high > 3 * one.gain.low
        bound = one.is_bounded and text.startswith("up to ")  # the time that a cause took, as it was measured
        assert not wide or bound or text == TEST_FIRST, one.id
        assert text == TEST_FIRST or not (one.gain and one.gain.low < 0 < one.gain.high), one.id
        assert not text.startswith(("1–", "0–")), "from nothing to a bound is 'up to'"


@pytest.mark.parametrize("name", RUNS)
def test_a_change_is_a_setting_with_its_values_or_not_shown(name: str) -> None:
    for one in advised(name).values():
        for text in (change.text for change in one.changes):
            assert not text or re.fullmatch(r"[\w ]+: [\d.]+ → [\d.]+|\w+=(True|False|[\d.]+)", text), text


def test_frameworks_are_told_by_readers_and_parameters() -> None:
    assert may_be_optuna(Run()) and not is_boosting(Run())
    assert may_be_optuna(diagnosed("hpo-aggressive-pruning").run)
    assert not may_be_optuna(diagnosed("idle-second-gpu/baseline").run)
    assert is_boosting(Run(trials=pd.DataFrame({"params.num_leaves": [31]})))


def test_titles_ask_for_something() -> None:
    for item in REMEDIES:
        first = item.title.split()[0]
        assert first[0].isupper() and len(item.title.split()) <= 11 and not item.title.endswith("."), item.title


@pytest.mark.slow
@pytest.mark.parametrize(("name", "k"), [("memory-exhaustion", 2), ("hpo-aggressive-pruning", 4)])
def test_one_number_of_trials_at_once_is_recommended_on_the_page(name: str, k: int) -> None:
    show = diagnosed(name).show
    memory, forecast = (getattr(show, section)._repr_markdown_() for section in ("memory", "forecast"))
    assert memory.count("Recommended:") == 1 and f"Recommended: {k} at once" in memory
    assert (
        memory.count("(recommended)") == 1 and f"| {k} (recommended) |" in memory and "Memory by parameters" in memory
    )
    assert not re.search(r"\d at once (would|may) be|[Rr]ecommended", forecast)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["healthy", "real-h100/two-workers"])
def test_no_number_is_recommended_where_memory_has_room_for_more_than_ever_ran(name: str) -> None:
    page = diagnosed(name).to_markdown(full=True)
    assert "At most 2 ran at once, and memory is not what limits: the largest trials seen fit together, 3" in page
    assert "Recommended:" not in page and "(recommended)" not in page
