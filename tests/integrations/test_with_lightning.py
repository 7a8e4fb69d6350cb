"""The callback in a training with the real Lightning: waits, validation and checkpoints against what it did."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from trainingtruth import EVALUATION_S, WORK_S, Slow, judged

from gpudiag import load_run, read_telemetry

L = pytest.importorskip("lightning")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


class Batches(Slow, torch.utils.data.Dataset):  # type: ignore[misc]
    def __getitem__(self, index: int) -> Any:
        self.wait()
        return torch.ones(4)


class Model(L.LightningModule):  # type: ignore[misc]
    def __init__(self, fails_at: int = -1) -> None:
        super().__init__()
        self.layer, self.fails_at = torch.nn.Linear(4, 1), fails_at

    def training_step(self, batch: Any, index: int) -> Any:
        if index == self.fails_at:
            raise RuntimeError("CUDA out of memory")
        time.sleep(WORK_S)
        return self.layer(batch).mean()

    def validation_step(self, batch: Any, index: int) -> None:
        time.sleep(EVALUATION_S)

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def fit(folder: Path, model: Any, data: Slow, **options: Any) -> Any:
    from gpudiag.integrations.lightning import GpudiagCallback

    callback = GpudiagCallback(folder / "run" / "metrics.csv", interval_s=0.1)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    trainer = L.Trainer(callbacks=[callback], default_root_dir=folder / "other", **(quiet | options))
    validation = torch.utils.data.DataLoader(torch.ones(1, 4))
    trainer.fit(model, torch.utils.data.DataLoader(data, batch_size=1), validation)
    return trainer


def test_waits_and_validations(tmp_path: Path) -> None:
    data = Batches()
    fit(tmp_path, Model(), data, max_epochs=2, enable_checkpointing=False)
    steps = judged(tmp_path / "run", data, n_epochs=2, n_evaluations=2)
    assert steps.checkpoints_s == 0
    events = read_telemetry(tmp_path / "run" / "metrics.csv").events
    assert list(events["kind"]).count("epoch") == 2 and "record_end" in set(events["kind"])


def test_the_wait_behind_a_checkpoint_is_unknown_and_the_checkpoint_is_seen(tmp_path: Path) -> None:
    data = Batches()
    fit(tmp_path, Model(), data, max_epochs=2)
    steps = judged(tmp_path / "run", data, n_epochs=2, n_evaluations=2)
    assert steps.both_s == pytest.approx(2 * EVALUATION_S, rel=0.25)
    lines = load_run(tmp_path / "run").steps.set_index("step")
    assert lines["loader_s"].isna().sum() == 1 and lines["loader_s"].isna()[25]


def test_accumulated_batches_are_one_step(tmp_path: Path) -> None:
    fit(tmp_path, Model(), Batches(), max_epochs=1, accumulate_grad_batches=4, limit_val_batches=0)
    lines = load_run(tmp_path / "run").steps
    assert list(lines["step"]) == [1, 2, 3, 4, 5, 6]
    assert lines["step_s"].median() == pytest.approx(4 * 0.1, rel=0.3)
    assert lines["loader_s"].median() == pytest.approx(4 * 0.04, rel=0.3)


def test_a_failure_of_the_training_is_its_own_and_an_event(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="CUDA out of memory"):
        fit(tmp_path, Model(fails_at=5), Batches(), max_epochs=1, limit_val_batches=0)
    events = read_telemetry(tmp_path / "run" / "metrics.csv").events.set_index("kind")["detail"]
    assert events["exception"] == "RuntimeError" and "record_end" in events
    assert list(load_run(tmp_path / "run").steps["step"]) == [1, 2, 3, 4, 5]


def test_a_file_that_cannot_be_written_costs_the_training_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run").write_text("a file where the folder would be")
    trainer = fit(tmp_path, Model(), Batches(8), max_epochs=1, limit_val_batches=0)
    assert trainer.global_step == 8
    assert capsys.readouterr().err.count("gpudiag: recording the training has stopped: ") == 1
