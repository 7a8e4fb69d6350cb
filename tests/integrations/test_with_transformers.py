"""The callback in a training with the real Trainer of Hugging Face, against what it did."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from trainingtruth import EVALUATION_S, WORK_S, Slow, judged

from gpudiag import load_run

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")
pytest.importorskip("accelerate")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


class Batches(Slow, torch.utils.data.Dataset):  # type: ignore[misc]
    def __getitem__(self, index: int) -> dict[str, Any]:
        self.wait()
        return {"x": torch.ones(4)}


class Item(torch.utils.data.Dataset):  # type: ignore[misc]
    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"x": torch.ones(4)}


class Model(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x: Any, return_loss: bool = True) -> dict[str, Any]:
        time.sleep(WORK_S if self.training else EVALUATION_S)
        return {"loss": self.layer(x).mean()}


def train(folder: Path, data: Slow, *, resume: int = 0, **options: Any) -> None:
    from gpudiag.integrations.transformers import GpudiagCallback

    usual = {"per_device_train_batch_size": 1, "num_train_epochs": 2, "report_to": [], "disable_tqdm": True}
    usual |= {"use_cpu": True, "save_strategy": "no", "logging_strategy": "no"}
    trainer = transformers.Trainer(
        model=Model(),
        args=transformers.TrainingArguments(output_dir=str(folder / "other"), **(usual | options)),
        train_dataset=data,
        eval_dataset=Item(),
        callbacks=[GpudiagCallback(folder / "run" / "metrics.csv", interval_s=0.1)],
    )
    trainer.train(resume_from_checkpoint=str(folder / "other" / f"checkpoint-{resume}") if resume else None)


def test_waits_and_evaluations(tmp_path: Path) -> None:
    data = Batches()
    train(tmp_path, data, eval_strategy="epoch")
    steps = judged(tmp_path / "run", data, n_epochs=2, n_evaluations=2)
    assert steps.checkpoints_s == 0


def test_an_evaluation_and_a_checkpoint_are_told_apart(tmp_path: Path) -> None:
    """An evaluation after 12, 24, 36 and 48 steps, a checkpoint after 18 and 36, and always one at the end."""
    data = Batches()
    train(tmp_path, data, eval_strategy="steps", eval_steps=12, save_strategy="steps", save_steps=18)
    judged(tmp_path / "run", data, n_epochs=2, n_evaluations=4)
    lines = load_run(tmp_path / "run").steps.set_index("step")
    told = lines["since"].dropna().to_dict()
    assert told == {13: "evaluation", 19: "checkpoint", 25: "evaluation", 37: "evaluation, checkpoint"}
    assert lines["then"].dropna().to_dict() == {48: "evaluation, checkpoint"}
    assert lines["loader_s"].notna().all(), "Hugging Face says when a checkpoint is written"


def test_a_training_that_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    train(tmp_path, Batches(), save_strategy="steps", save_steps=12, max_steps=16)
    train(tmp_path, Batches(), save_strategy="no", max_steps=20, resume=12)
    lines = load_run(tmp_path / "run").steps
    assert list(lines["step"]) == [*range(1, 17), *range(13, 21)]
    assert "resumption" in str(lines["since"].iloc[16])


def test_accumulated_batches_are_one_step(tmp_path: Path) -> None:
    train(tmp_path, Batches(), gradient_accumulation_steps=4, num_train_epochs=1)
    lines = load_run(tmp_path / "run").steps
    assert list(lines["step"]) == [1, 2, 3, 4, 5, 6]
    assert lines["step_s"].median() == pytest.approx(4 * 0.1, rel=0.3)
    assert lines["loader_s"].median() == pytest.approx(4 * 0.04, rel=0.3)
