"""The time of one GPU without a kernel divided among its causes, by all sources in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpudiag.measures._steps.ranks import world_size
from gpudiag.measures._time.gpu_time import gpu_time
from gpudiag.measures._time.no_waits import between_jobs
from gpudiag.measures._waits.bounds import Share, Waits
from gpudiag.measures._waits.by_log import joined_trainings, logged_waits, logs_of_gpu, stated_waits
from gpudiag.measures._waits.by_signature import signature_waits
from gpudiag.measures._waits.by_trace import Fit, ProfiledStep, traced_waits
from gpudiag.measures._waits.logged import LoggedTraining, behind_steps
from gpudiag.measures._waits.pieces import UnusedTime, unused_time
from gpudiag.memo import memoized
from gpudiag.run import Run


@dataclass(frozen=True, eq=False)
class LoggedGpu:
    """The time of one GPU and the logs that tell of it. ``surely`` is False where a log may tell of another GPU's work:
    then nothing of it is certain.
    """

    part: UnusedTime
    logs: Sequence[LoggedTraining]
    surely: bool


@memoized
def logged_gpus(run: Run) -> dict[str, LoggedGpu]:
    """By GPU. Logs are certain to tell of it where they name their trials, or tell of all GPUs that work meanwhile."""
    time = gpu_time(run)
    spans = [training.span_us for training in joined_trainings(run)]
    parts = {gpu: unused_time(line, time, gpu, spans, between_jobs(run)) for gpu, line in time.timelines.items()}
    logs = {gpu: logs_of_gpu(run, time, gpu, part) for gpu, part in parts.items()}
    for gpu, own in logs.items():
        if time.joined and (behind := behind_steps(own)):
            parts[gpu] = unused_time(time.timelines[gpu], time, gpu, spans, between_jobs(run), behind)
    of_all = sum(map(bool, logs.values())) in (1, world_size(run))
    placed = len(time.trials.rows) > 0
    return {
        gpu: LoggedGpu(part, logs[gpu], of_all or (placed and all(one.trial >= 0 for one in logs[gpu])))
        for gpu, part in parts.items()
    }


def divided(run: Run, gpu: str, of_gpu: LoggedGpu, step: ProfiledStep | None) -> tuple[list[Share], Fit]:
    """All causes on one GPU, and whether the profiled steps are those of its logs."""
    part, logs, surely = of_gpu.part, of_gpu.logs, of_gpu.surely
    logged = logged_waits(logs, part, surely=surely)
    stated = stated_waits(run, part, logged, surely=surely)
    traced, fit = traced_waits(step, logs, part, logged) if step and logs else (Waits("trace"), "none")
    return _all_causes(run, gpu, part, (logged, stated, traced)), fit


def divided_by_log(run: Run, gpu: str, of_trial: LoggedGpu) -> list[Share]:
    """All causes in the time of one trial, without what the run states of all its steps or a trace shows of some: these
    need not be those of each trial.
    """
    part = of_trial.part
    return _all_causes(run, gpu, part, (logged_waits(of_trial.logs, part, surely=of_trial.surely),))


def _all_causes(run: Run, gpu: str, part: UnusedTime, found: Sequence[Waits]) -> list[Share]:
    """What was found, what the samples beside the GPU make likely of the rest, and the unknown."""
    known = sum(one.s for one in part.of_record) + sum(waits.total_s for waits in found)
    signs = signature_waits(run, gpu, part, part.unused_s - known)
    named = [*part.of_record, *(share for waits in (*found, signs) for share in waits.shares())]
    left, low, high = (part.unused_s - sum(getattr(one, end) for one in named) for end in ("s", "high_s", "low_s"))
    return [*named, Share("unknown", "", max(left, 0.0), max(low, 0.0), max(high, 0.0))]
