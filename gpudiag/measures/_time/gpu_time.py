"""The time of every GPU cut into labelled pieces: what the ledger and the costs are both made of."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpudiag.errors import NotMeasurable
from gpudiag.measures._time.bins import bin_cuts
from gpudiag.measures._time.concurrency import count_at
from gpudiag.measures._time.gpu_samples import samples_by_gpu
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._time.own_time import held_windows
from gpudiag.measures._time.phase_steps import Steps, cut_steps
from gpudiag.measures._time.phases import Phases, find_phases
from gpudiag.measures._time.span import limits_us
from gpudiag.measures._time.timeline import Intervals, MaybeTrials, Samples, Timeline, draw_timeline
from gpudiag.measures._time.window import (
    TimedTrials,
    maybe_by_gpu,
    places_by_gpu,
    study_windows,
    telemetry_windows,
    timed_trials,
)
from gpudiag.measures.attribution import AttributionProfile, measure_attribution
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import IDLE_PCT
from gpudiag.spans import Window, clipped, overlap, union

MOSTLY_KNOWN_PCT = 50.0
"""Below this share of trials whose GPU is known, the others are too many to learn phases beside them."""


LEAST_WITHIN = 3
"""Samples of a GPU within the trials. Below, one sample is half of all that is known, or all of it."""


@dataclass(frozen=True)
class GpuTime:
    """``timelines`` by GPU; ``places``: positions in ``trials`` of those on each GPU; ``maybe``: of those that may have
    run there, with the chance; ``where`` is None without trials.

    ``windows``: the time of any GPU, ``windows_of``: of each, without that in which no job held it.

    ``joined`` is False where there are no timed trials, or where their clock cannot be joined with the
    telemetry's: then the windows are the telemetry's and no trial is on any GPU. ``exact`` is False where what depends
    on the seconds of their starts and ends may not be read off. ``phases``: of the GPUs that trials share, where they
    can be told apart.
    """

    samples: dict[str, Samples]
    trials: TimedTrials
    where: AttributionProfile | None
    places: dict[str, np.ndarray]
    maybe: dict[str, tuple[np.ndarray, np.ndarray]]
    windows: list[Window]
    windows_of: dict[str, list[Window]]
    timelines: dict[str, Timeline]
    cuts_us: np.ndarray
    joined: bool
    exact: bool
    phases: dict[str, Phases]

    def intervals(self, gpu: str) -> Intervals:
        """Starts and ends of the trials on one GPU."""
        places = self.places.get(gpu, np.zeros(0, np.int64))
        return Intervals(self.trials.start_us[places], self.trials.end_us[places])

    def in_doubt(self, gpu: str) -> bool:
        """Whether other clocks would name its time otherwise: not that of a GPU that is idle throughout, or never."""
        idle = self.samples.get(gpu, Samples.none()).value < IDLE_PCT
        return self.joined and not self.exact and bool(idle.any() and not idle.all())

    def likeliest(self, rather: str = "") -> dict[str, np.ndarray]:
        """``places`` with each trial of unknown GPU on the one where it most likely ran: of several that are as likely,
        on ``rather``, or else the first.
        """
        best, where = np.zeros(len(self.trials.start_us)), np.full(len(self.trials.start_us), None)
        for gpu, (places, chance) in self.maybe.items():
            better = places[(chance > best[places]) | ((chance == best[places]) & (gpu == rather))]
            where[better], best[places] = gpu, np.maximum(best[places], chance)
        return {gpu: np.union1d(places, np.flatnonzero(where == gpu)) for gpu, places in self.places.items()}

    def maybe_on(self, gpu: str) -> MaybeTrials:
        """Trials that may have run on one GPU."""
        if gpu not in self.maybe:
            return MaybeTrials.none()
        places, chance = self.maybe[gpu]
        return MaybeTrials(self.trials.start_us[places], self.trials.end_us[places], chance)


@memoized
def gpu_time(run: Run) -> GpuTime:
    """Cut the time of every GPU that the run knows of, or that a trial names, into pieces."""
    trials, samples = timed_trials(run), samples_by_gpu(run, "util_pct")
    windows = study_windows(trials) if run.info.clock.joined else []
    joined = bool(windows)
    windows = clipped(windows or telemetry_windows(samples), limits_us(run))
    if joined:
        _need_samples(samples, windows)
    where = measure_attribution(run) if len(run.trials) else None
    places = places_by_gpu(trials, where, list(samples)) if joined and where else {}
    places = {gpu: place for gpu, place in places.items() if gpu not in run.info.left_out_gpus}
    maybe = maybe_by_gpu(trials, where) if joined and where else {}
    maybe = {gpu: some for gpu, some in maybe.items() if gpu not in run.info.left_out_gpus}
    held = {gpu: _held(run, gpu, windows, trials, places.get(gpu)) for gpu in places or samples}
    if any(own != windows for own in held.values()):
        windows = union(window for own in held.values() for window in own)
    cuts = bin_cuts(windows) if windows else np.zeros(0, np.int64)
    made = GpuTime(samples, trials, where, places, maybe, windows, held, {}, cuts, joined, run.info.clock.exact, {})
    for gpu in places:
        samples[gpu] = samples.get(gpu, Samples.none()).of_trials(made.intervals(gpu))
    made.phases.update(_phases(made))
    for gpu in (places or samples) if windows else ():
        made.timelines[gpu] = draw_timeline(
            samples.get(gpu, Samples.none()),
            made.intervals(gpu),
            held[gpu],
            has_trials=joined,
            cuts_us=cuts,
            phases=made.phases.get(gpu),
            maybe=made.maybe_on(gpu),
            doubt_us=run.info.clock.doubt_s * SECOND_US if made.in_doubt(gpu) else 0.0,
        )
    return made


def _held(run: Run, gpu: str, windows: list[Window], trials: TimedTrials, places: np.ndarray | None) -> list[Window]:
    """What of the windows may have held the GPU, and trials on it."""
    held = held_windows(run, gpu, windows)
    if held == windows or places is None:
        return held
    on_it = zip(trials.start_us[places].tolist(), trials.end_us[places].tolist(), strict=True)
    return union([*held, *overlap(on_it, windows)])


def _need_samples(samples: dict[str, Samples], windows: list[Window]) -> None:
    """Raise NotMeasurable where so few samples lie within the trials that one would stand for most of the time."""
    within = [
        sum(int(np.count_nonzero((part.time_us >= low) & (part.time_us <= high))) for low, high in windows)
        for part in samples.values()
        if len(part.time_us) > 1 and any(((part.end_us > low) & (part.start_us < high)).any() for low, high in windows)
    ]
    if within and not max(within):
        raise NotMeasurable(
            "No sample lies between the first trial and the last.",
            "Give the telemetry of the same run. If only the clocks differ, state timezone or clock_offset_s in "
            "run.toml.",
        )
    if within and max(within) < LEAST_WITHIN:
        raise NotMeasurable(
            "No GPU has more than {n:sample} between the first trial and the last; {least} are needed to say how it "
            "was used.",
            "Sample every 1 to 5 s (nvidia-smi -l 1) while the trials run.",
            n=max(within),
            least=LEAST_WITHIN,
        )


def _phases(made: GpuTime) -> dict[str, Phases]:
    """The phases on each GPU that trials share; what is seen while another may run there tells nothing of them."""
    if not made.exact or made.where is None or made.where.attributed_pct < MOSTLY_KNOWN_PCT:
        return {}
    gpus = [gpu for gpu, places in made.places.items() if len(places) and gpu in made.samples]
    found = find_phases([_steps(made, gpu) for gpu in gpus])
    named = {gpu: phases for gpu, phases in zip(gpus, found, strict=True) if phases is not None}
    return {gpu: phases.of_trials(len(made.places[gpu])) for gpu, phases in named.items()}


def _steps(made: GpuTime, gpu: str) -> Steps:
    steps, maybe = cut_steps(made.samples[gpu], made.intervals(gpu)), made.maybe_on(gpu)
    return replace(steps, seen=steps.seen.astype(bool) & (count_at(steps.start_us, maybe.start_us, maybe.end_us) == 0))
