"""Every callback without its framework: hooks are called as the framework calls them, on stand-ins for its classes.

tests/integrations/test_with_*.py do the same in real trainings, where the frameworks are installed.
"""

from __future__ import annotations

import importlib
import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gpudiag import read_telemetry
from gpudiag.errors import ConfigError, PackageMissing

PACKAGE = Path(importlib.import_module("gpudiag.integrations").__file__ or "").parent
Load = Callable[..., Any]


class Base:
    """What a framework's class of callbacks is to ours."""


def module(name: str, **names: Any) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(names)
    return made


STAND_INS = {
    "lightning": {
        "lightning": module("lightning"),
        "lightning.pytorch": module("lightning.pytorch", Callback=Base, LightningModule=Base, Trainer=Base),
    },
    "transformers": {
        "transformers": module(
            "transformers", TrainerCallback=Base, TrainerControl=Base, TrainerState=Base, TrainingArguments=Base
        )
    },
    "keras": {
        "keras": module(
            "keras",
            callbacks=SimpleNamespace(Callback=Base),
            backend=SimpleNamespace(backend=lambda: "torch"),
        )
    },
    "ray": {"ray": module("ray"), "ray.tune": module("ray.tune", Callback=Base)},
}
FRAMEWORKS = tuple(STAND_INS)


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Load:
    """A callback of a framework, which writes to metrics.csv in the folder of the test."""

    def make(framework: str, **more: Any) -> Any:
        for name, stand_in in STAND_INS[framework].items():
            monkeypatch.setitem(sys.modules, name, stand_in)
        ours = f"gpudiag.integrations.{framework}"
        monkeypatch.setitem(sys.modules, ours, None)  # what is there now comes back at the end of the test
        del sys.modules[ours]
        return importlib.import_module(ours).GpudiagCallback(tmp_path / "metrics.csv", interval_s=0.05, **more)

    return make


def lines(folder: Path, name: str = "metrics.steps.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]


def course(folder: Path, name: str = "metrics.steps.jsonl") -> list[Any]:
    """Steps as (number, epoch), other lines by their phase."""
    return [(line["step"], line["epoch"]) if "step" in line else line["phase"] for line in lines(folder, name)]


def lightning_trainer(**more: Any) -> SimpleNamespace:
    usual = {"global_step": 0, "current_epoch": 0, "global_rank": 0, "local_rank": 0, "world_size": 1}
    return SimpleNamespace(**usual | more)


def test_lightning(load: Load, tmp_path: Path) -> None:
    """Two epochs of three batches; a validation and a checkpoint end the first, and a check of sanity comes before."""
    callback, trainer = load("lightning"), lightning_trainer()
    callback.on_validation_end(trainer, None)
    callback.on_train_start(trainer, None)
    for epoch in range(2):
        trainer.current_epoch = epoch
        callback.on_train_epoch_start(trainer, None)
        for batch in range(3):
            callback.on_train_batch_start(trainer, None, object(), batch)
            trainer.global_step += 1
            callback.on_train_batch_end(trainer, None, {}, object(), batch)
        if epoch == 0:
            callback.on_validation_end(trainer, None)
            callback.on_save_checkpoint(trainer, None, {})
        callback.on_train_epoch_end(trainer, None)
    callback.on_train_end(trainer, None)
    first = ["start", (1, 0), (2, 0), (3, 0), "evaluation", "checkpoint"]
    assert course(tmp_path) == [*first, (4, 1), (5, 1), (6, 1)]
    known = ["data_time" in line for line in lines(tmp_path) if "step" in line]
    assert known == [True, True, True, False, True, True], "when the checkpoint was written, nobody says"


def test_lightning_of_a_rank_that_fails(load: Load, tmp_path: Path) -> None:
    callback = load("lightning")
    trainer = lightning_trainer(global_rank=9, local_rank=0, world_size=16, global_step=100)
    callback.on_train_start(trainer, None)
    callback.on_exception(trainer, None, RuntimeError("no text of this is written"))
    assert lines(tmp_path, "metrics.rank9.steps.jsonl")[0]["phase"] == "resumed"
    events = read_telemetry(tmp_path / "metrics.rank9.csv").events.set_index("kind")["detail"]
    assert events["exception"] == "RuntimeError"


def test_transformers(load: Load, tmp_path: Path) -> None:
    """Two epochs of two steps of two batches each; the first ends with an evaluation, then a checkpoint."""
    callback, control = load("transformers"), SimpleNamespace()
    args = SimpleNamespace(process_index=0, local_process_index=0, world_size=1)
    state = SimpleNamespace(global_step=0, epoch=0)
    given = {"model": None, "train_dataloader": None}
    callback.on_evaluate(args, state, control, metrics={}, **given)
    callback.on_train_begin(args, state, control, **given)
    for epoch in range(2):
        for step in (1, 2):
            callback.on_step_begin(args, state, control, **given)
            state.global_step, state.epoch = 2 * epoch + step, epoch + step / 2
            assert callback.on_step_end(args, state, control, **given) is None
            if step == 2 and epoch == 0:
                callback.on_evaluate(args, state, control, metrics={}, **given)
                callback.on_save(args, state, control, **given)
        callback.on_epoch_end(args, state, control, **given)
    callback.on_train_end(args, state, control, **given)
    assert course(tmp_path) == ["start", (1, 0), (2, 0), "evaluation", "checkpoint", (3, 1), (4, 1)]
    assert all("data_time" in line for line in lines(tmp_path) if "step" in line)
    details = read_telemetry(tmp_path / "metrics.csv").events.query("kind == 'epoch'")["detail"]
    assert [detail.partition(":")[0] for detail in details] == ["epoch 0", "epoch 1"]


@pytest.mark.parametrize("backend", ["torch", "tensorflow"])
def test_keras(backend: str, load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three batches an epoch, then one of two at once; on TensorFlow no wait is known, and none is written."""
    monkeypatch.setattr(STAND_INS["keras"]["keras"].backend, "backend", lambda: backend)
    callback = load("keras")
    callback.on_train_begin()
    for epoch, batches in enumerate([(0, 1, 2), (0,), (1,)]):
        callback.on_epoch_begin(epoch)
        for batch in batches:
            callback.on_train_batch_begin(batch)
            callback.on_train_batch_end(batch, {"loss": 1.0})
        if epoch == 0:
            callback.on_test_end({})
        callback.on_epoch_end(epoch, {})
    callback.on_train_end()
    callback.on_test_end({})
    assert course(tmp_path) == ["start", (1, 0), (2, 0), (3, 0), "evaluation", (4, 1), (6, 2)]
    assert {"data_time" in line for line in lines(tmp_path) if "step" in line} == {backend == "torch"}


def test_ray(load: Load, tmp_path: Path) -> None:
    callback = load("ray")
    callback.setup(stop=None, num_samples=2, total_num_samples=2)
    trials = [SimpleNamespace(trial_id="a1_00000"), SimpleNamespace(trial_id="a1_00001")]
    for trial in trials:
        callback.on_trial_start(iteration=0, trials=trials, trial=trial)
    callback.on_trial_complete(iteration=1, trials=trials, trial=trials[0])
    callback.on_trial_error(iteration=1, trials=trials, trial=trials[1])
    callback.on_experiment_end(trials=trials)
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.csv"]
    events = read_telemetry(tmp_path / "metrics.csv").events
    told = [(kind, detail) for kind, detail in zip(events["kind"], events["detail"], strict=True) if "trial" in kind]
    assert sorted(told) == sorted(
        [
            ("trial_start", "trial a1_00000"),
            ("trial_start", "trial a1_00001"),
            ("trial_end", "trial a1_00000"),
            ("trial_error", "trial a1_00001"),
        ]
    )


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_framework_that_is_absent_is_one_sentence(framework: str, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = {name.split(".")[0] for name in STAND_INS[framework]} | {"pytorch_lightning"}
    for name in [loaded for loaded in sys.modules if loaded.split(".")[0] in absent]:
        monkeypatch.delitem(sys.modules, name)
    for name in absent:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"gpudiag.integrations.{framework}", raising=False)
    with pytest.raises(PackageMissing, match=r"^gpudiag\.integrations\.\w+ needs .*: pip install \S+\.$") as raised:
        importlib.import_module(f"gpudiag.integrations.{framework}")
    assert isinstance(raised.value, ImportError) and isinstance(raised.value, ConfigError)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_callback_can_be_sent_to_another_process_before_it_begins(framework: str, load: Load) -> None:
    """Tune and Lightning's spawn pickle it."""
    callback = load(framework)
    assert pickle.loads(pickle.dumps(callback)).record is not callback.record


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_no_hook_lets_a_failure_through(framework: str, load: Load, capsys: pytest.CaptureFixture[str]) -> None:
    """Called with what they do not expect, all say one sentence at most."""
    callback = load(framework)
    hooks = [name for name in vars(type(callback)) if name.startswith("on_") or name == "setup"]
    assert len(hooks) >= 5

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("planted")

    for name in ("begin", "begin_machine", "batch_begins", "batch_ended", "other_work", "epoch_ended", "mark", "end"):
        setattr(callback.record, name, broken)
    for name in hooks:
        getattr(callback, name)()
    said = capsys.readouterr().err.splitlines()
    assert len(said) == len(hooks) and all("recording the training has stopped" in line for line in said)


def test_each_framework_has_its_file_of_no_more_than_80_lines() -> None:
    files = {path.stem: path for path in PACKAGE.glob("*.py") if path.stem != "__init__"}
    assert set(files) == set(FRAMEWORKS)
    assert all(len(path.read_text(encoding="utf-8").splitlines()) <= 80 for path in files.values())
