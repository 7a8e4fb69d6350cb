"""The time of every GPU cut into labelled pieces: what the ledger and the costs are both made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpudiag.measures._time.bins import bin_cuts
from gpudiag.measures._time.gpu_samples import samples_by_gpu
from gpudiag.measures._time.phase_steps import cut_steps
from gpudiag.measures._time.phases import Phases, find_phases
from gpudiag.measures._time.span import clipped, limits_us
from gpudiag.measures._time.timeline import Intervals, Samples, Timeline, Window, draw_timeline
from gpudiag.measures._time.window import (
    TimedTrials,
    places_by_gpu,
    telemetry_windows,
    timed_trials,
    trial_windows,
)
from gpudiag.measures.attribution import AttributionProfile, measure_attribution
from gpudiag.memo import memoized
from gpudiag.run import Run


@dataclass(frozen=True)
class GpuTime:
    """``timelines`` by GPU; ``places``: positions in ``trials`` of those on each GPU; ``where`` is None without trials.

    ``joined`` is False where there are no timed trials, or where their clock cannot be joined with the
    telemetry's: then the windows are the telemetry's and no trial is on any GPU. ``phases``: of the GPUs that trials
    share, where they can be told apart.
    """

    samples: dict[str, Samples]
    trials: TimedTrials
    where: AttributionProfile | None
    places: dict[str, np.ndarray]
    windows: list[Window]
    timelines: dict[str, Timeline]
    cuts_us: np.ndarray
    joined: bool
    phases: dict[str, Phases]

    def intervals(self, gpu: str) -> Intervals:
        """Starts and ends of the trials on one GPU."""
        places = self.places.get(gpu, np.zeros(0, np.int64))
        return Intervals(self.trials.start_us[places], self.trials.end_us[places])


@memoized
def gpu_time(run: Run) -> GpuTime:
    """Cut the time of every GPU that the run knows of, or that a trial names, into pieces."""
    trials, samples = timed_trials(run), samples_by_gpu(run, "util_pct")
    windows = trial_windows(trials) if run.info.clock.joined else []
    joined = bool(windows)
    windows = clipped(windows or telemetry_windows(samples), limits_us(run))
    where = measure_attribution(run) if len(run.trials) else None
    places = places_by_gpu(trials, where, list(samples)) if joined and where else {}
    places = {gpu: place for gpu, place in places.items() if gpu not in run.info.left_out_gpus}
    cuts = bin_cuts(windows) if windows else np.zeros(0, np.int64)
    made = GpuTime(samples, trials, where, places, windows, {}, cuts, joined, {})
    made.phases.update(_phases(made))
    for gpu in (places or samples) if windows else ():
        made.timelines[gpu] = draw_timeline(
            samples.get(gpu, Samples.none()),
            made.intervals(gpu),
            windows,
            has_trials=joined,
            cuts_us=cuts,
            phases=made.phases.get(gpu),
        )
    return made


def _phases(made: GpuTime) -> dict[str, Phases]:
    """The phases on each GPU that trials share; none where nobody knows on which GPU trials ran."""
    if made.where is None or made.where.n_attributed < made.where.n_trials:
        return {}
    gpus = [gpu for gpu, places in made.places.items() if len(places) and gpu in made.samples]
    found = find_phases([cut_steps(made.samples[gpu], made.intervals(gpu)) for gpu in gpus])
    return {gpu: phases for gpu, phases in zip(gpus, found, strict=True) if phases is not None}
