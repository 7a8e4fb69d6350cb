"""Logs that frameworks printed of trainings whose steps take a known time (tests/recorded/ORIGIN.md)."""

from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.measures.steps import measure_steps

RECORDED = Path(__file__).resolve().parents[2] / "recorded" / "logs"


def loaded(name: str, folder: Path) -> gd.Run:
    path = folder / "train.log"
    path.write_bytes(gzip.decompress((RECORDED / f"{name}.log.gz").read_bytes()))
    return gd.load_run(folder)


@pytest.mark.parametrize(
    ("name", "n_steps", "step_s", "logged_s", "evaluations_s"),
    [
        ("transformers_bar", 600, 0.2525, 161, 10),
        ("lightning_tqdm", 600, 0.2025, 135, 15),
        ("lightning_rich", 600, 0.2025, 120, 0),  # its clock stands still while it validates
        ("keras", 2 * 800, 0.153, 2 * 124, 0),
    ],
)
def test_steps_and_their_time(
    name: str, n_steps: int, step_s: float, logged_s: float, evaluations_s: float, tmp_path: Path
) -> None:
    said = measure_steps(loaded(name, tmp_path))
    assert said.n_steps == n_steps and said.step_s == pytest.approx(step_s, rel=0.02)
    assert said.logged_s == pytest.approx(logged_s, rel=0.01)
    assert said.n_resumed == 0 and said.n_trainings == 1 + (name == "keras")
    assert said.evaluations_s == said.pauses_s == pytest.approx(evaluations_s, abs=1)


def test_a_second_training_in_a_log_is_no_resumption(tmp_path: Path) -> None:
    """Keras fits twice: 4 epochs with a bar, then 4 with a line each, which would be too few alone."""
    run = loaded("keras", tmp_path)
    assert run.steps["epoch"].tolist()[-4:] == [1, 2, 3, 4] and run.steps["elapsed_s"].tolist()[-4:] == [31.0] * 4
    said = measure_steps(run)
    assert (said.n_trainings, said.n_resumed, said.resumption_s) == (2, 0, 0.0)


def test_a_bar_that_is_advanced_to_its_checkpoint_is_a_resumption(tmp_path: Path) -> None:
    """Step 180 ended before the bar showed it, and the first line of the second attempt is of step 151."""
    said = measure_steps(loaded("transformers_resumed", tmp_path))
    assert (said.n_trainings, said.n_resumed, said.n_repeated) == (1, 1, 179 - 150)
    assert said.n_steps == 179 + (600 - 151) and said.step_s == pytest.approx(0.26, rel=0.03)


def test_evaluations_are_told_where_they_are(tmp_path: Path) -> None:
    steps = loaded("lightning_rich", tmp_path).steps
    told = steps[steps["since"].notna()]
    assert set(told["since"]) == {"evaluation"} and told["step"].isin([0, 200]).all()


@pytest.mark.slow
def test_a_log_of_one_training_after_the_other_counts_each(tmp_path: Path) -> None:
    """Three trials of one script, each 6 epochs of 40 lines: none of them is resumed."""
    lines = []
    for trial in range(3):
        for epoch in range(6):
            for step in range(5, 201, 5):
                at_s = trial * 1300 + epoch * 210 + step
                moment = pd.Timestamp("2026-01-05") + pd.Timedelta(seconds=at_s)
                lines.append(f"{moment:%Y-%m-%d %H:%M:%S} epoch {epoch} step {step}/200 loss 0.4 1.0 s/step")
    (tmp_path / "train.log").write_text("\n".join(lines))
    said = measure_steps(gd.load_run(tmp_path, timezone="UTC"))
    assert (said.n_trainings, said.n_resumed, said.n_repeated) == (3, 0, 0)
    assert said.trainings["training"].str.extract(r"(\(\d\))$")[0].fillna("").tolist() == ["", "(2)", "(3)"]
    assert said.n_steps == pytest.approx(3 * 6 * 200, abs=15)
