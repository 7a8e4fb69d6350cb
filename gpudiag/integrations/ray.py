"""``RunConfig(callbacks=[GpudiagCallback("runs/a/metrics.csv")])`` records the machine of a search with Ray Tune."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpudiag.errors import PackageMissing
from gpudiag.record.training import TrainingRecord, harmless

try:
    from ray.tune import Callback
except ImportError:  # Ray without Tune's own packages
    raise PackageMissing("gpudiag.integrations.ray needs Ray Tune: pip install 'ray[tune]'.") from None


@harmless
class GpudiagCallback(Callback):  # type: ignore[misc]  # Ray may be absent
    """Records GPUs, processes and host of the machine that runs ``Tuner.fit``, and when trials begin and end there.

    gpudiag reads the trials themselves from Ray's own folder of results; ``path`` lies beside it, not within. Other
    machines of the cluster are not seen: run ``gpudiag record`` on them. For steps, use the callback of the trial's
    framework within the trial.

    Args:
        path: as of :class:`gpudiag.Recorder`.
        recorder: further arguments of it.
    """

    def __init__(self, path: str | Path = "metrics.csv", **recorder: Any) -> None:
        self.record = TrainingRecord(path, recorder)

    def setup(self, *_: Any, **__: Any) -> None:
        self.record.begin_machine()

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        self.record.mark("trial_start", f"trial {trial.trial_id}")

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        self.record.mark("trial_end", f"trial {trial.trial_id}")

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        self.record.mark("trial_error", f"trial {trial.trial_id}")

    def on_experiment_end(self, trials: list[Any], **_: Any) -> None:
        self.record.end()
