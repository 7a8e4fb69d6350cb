"""Timestamps on Optuna trials: when (in UTC), where and on which GPU each ran, as user attributes ``gpudiag:...``.

start_utc first_step_utc end_utc   ISO 8601; the first step is the first intermediate value reported
host pid zone                      where it ran, and the zone that machine is set to
gpu_uuid                           the GPU of the process, where it uses or may see exactly one
peak_mem_mib                       torch.cuda.max_memory_reserved since the start, if torch is in use
energy_j                           what that whole GPU drew meanwhile, by its energy counter
exception                          class of the exception that ended it, and the failure that its message names
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache, wraps
from typing import Any

from optuna.samplers import BaseSampler

from gpudiag.errors import expected
from gpudiag.record import visible_gpu as seen
from gpudiag.record.failure import failure
from gpudiag.record.readings import DriverGone, GpuLost
from gpudiag.record.torch_cuda import peak_reserved_mib, torch_cuda
from gpudiag.timezones import machine_zone

PREFIX = "gpudiag:"

Objective = Callable[[Any], Any]
SetAttr = Callable[[str, Any], None]


class TrialTimestamps:
    """An objective that timestamps its trials: ``study.optimize(gd.TrialTimestamps(objective), n_trials=100)``.

    Works with ``n_jobs`` threads and with any number of processes on one storage. ``gpu`` names the uuid of the GPU
    where it cannot be told (several GPUs visible, no torch). Optuna refuses attributes of finished trials, so that
    timestamps must be set from within: as here, or by :func:`optuna_callback`.
    """

    def __init__(self, objective: Objective, *, gpu: str = "") -> None:
        if not callable(objective):
            raise expected("the objective, a function of a trial", objective)
        self._objective = objective
        self._gpu = gpu
        wraps(objective)(self)

    def __call__(self, trial: Any) -> Any:
        timestamp = Timestamp(trial.set_user_attr, self._gpu)
        report = trial.report

        def first_report(value: float, step: int) -> None:
            trial.report = report
            timestamp.first_step()
            report(value, step)

        trial.report = first_report
        try:
            value = self._objective(trial)
        except BaseException as error:
            timestamp.end(error)
            raise
        timestamp.end()
        return value


def optuna_callback(study: Any = None, *, gpu: str = "") -> Callable[[Any, Any], None]:
    """A callback that timestamps trials of an objective that you would not touch.

    ::

        study.optimize(objective, callbacks=[gd.optuna_callback(study)])

    It hooks into the study's sampler, which Optuna calls at the start and the end of each trial. Without ``study`` it
    can do so only after the first trial of this process, which then goes without timestamps. The first step and
    the class of an exception are known to :class:`TrialTimestamps` only.
    """

    def install(study: Any) -> None:
        if not isinstance(study.sampler, StampingSampler):
            study.sampler = StampingSampler(study.sampler, gpu)

    if study is not None:
        if not hasattr(study, "sampler"):
            raise expected("an Optuna study", study)
        install(study)
    return lambda of, trial: install(of)


class StampingSampler(BaseSampler):  # type: ignore[misc]
    """Samples as ``inner`` does, and timestamps each trial before and after."""

    def __init__(self, inner: BaseSampler, gpu: str = "") -> None:
        self.inner = inner
        self._gpu = gpu
        self._open: dict[int, Timestamp] = {}

    def __str__(self) -> str:
        return str(self.inner)

    def reseed_rng(self) -> None:
        self.inner.reseed_rng()

    def infer_relative_search_space(self, study: Any, trial: Any) -> Any:
        return self.inner.infer_relative_search_space(study, trial)

    def sample_relative(self, study: Any, trial: Any, search_space: Any) -> Any:
        return self.inner.sample_relative(study, trial, search_space)

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
        return self.inner.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Any, trial: Any) -> None:
        key = trial._trial_id
        self._open[key] = Timestamp(lambda name, value: study._storage.set_trial_user_attr(key, name, value), self._gpu)
        self.inner.before_trial(study, trial)

    def after_trial(self, study: Any, trial: Any, state: Any, values: Any) -> None:
        timestamp = self._open.pop(trial._trial_id, None)
        if timestamp is not None:
            timestamp.end()
        self.inner.after_trial(study, trial, state, values)


class Timestamp:
    """The timestamps of one trial; what cannot be told is left out, and no failure of ours reaches the trial."""

    def __init__(self, set_attr: SetAttr, gpu: str = "") -> None:
        self._set_attr = set_attr
        self._gpu = gpu or seen.visible_gpu()
        self._energy_j = _energy_j(self._gpu)
        if (cuda := torch_cuda()) is not None:
            with suppress(RuntimeError):
                cuda.reset_peak_memory_stats()
        self._set("start_utc", _now())
        self._set("host", socket.gethostname())
        self._set("pid", os.getpid())
        self._set("zone", _zone())
        self._set("gpu_uuid", self._gpu)

    def first_step(self) -> None:
        """The first result is there: everything before was start-up."""
        self._set("first_step_utc", _now())

    def end(self, error: BaseException | None = None) -> None:
        """The trial ends, by ``error`` if that is given."""
        self._set("end_utc", _now())
        gpu = self._gpu or seen.visible_gpu()
        if gpu != self._gpu:  # torch came to use a GPU in this trial
            self._set("gpu_uuid", gpu)
        after = _energy_j(gpu) if gpu == self._gpu else None
        if after is not None and self._energy_j is not None and after >= self._energy_j:
            self._set("energy_j", round(after - self._energy_j, 3))
        if (peak_mib := peak_reserved_mib()) is not None:
            self._set("peak_mem_mib", round(peak_mib, 3))
        if error is not None:
            self._set("exception", failure(error))

    def _set(self, name: str, value: Any) -> None:
        if value == "":
            return
        with suppress(Exception):  # a storage that is away, or a trial that another process has ended
            self._set_attr(PREFIX + name, value)


def _energy_j(uuid: str) -> float | None:
    adapter, devices = seen.known_devices()
    device = next((device for device in devices if device.uuid == uuid), None)
    if adapter is None or device is None:
        return None
    with suppress(GpuLost, DriverGone):
        value = adapter.read(device, pcie=False).get("energy_j")
        return float(value) if value is not None else None
    return None


@cache
def _zone() -> str:
    return str(machine_zone())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
