"""All that a timeline shows, on one axis: trials, trainings, the ledger, samples of GPUs, events and findings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from gpudiag.analysis import Analysis
from gpudiag.errors import NotMeasurable
from gpudiag.measures.base import RECORD_GPU
from gpudiag.measures.failures import measure_failures
from gpudiag.measures.ledger import LedgerProfile, measure_ledger
from gpudiag.measures.parallelism import measure_parallelism
from gpudiag.measures.steps import measure_steps
from gpudiag.report.format import plural, safe
from gpudiag.report.noun import noun_of, said
from gpudiag.report.timeline.buckets import Raster
from gpudiag.report.timeline.marks import Mark, event_marks, finding_marks, pause_marks
from gpudiag.report.timeline.ribbons import Ribbon, ribbons
from gpudiag.report.timeline.samples import Channel, channels_of, extent_us, period_us
from gpudiag.report.timeline.trainings import Course, training_courses
from gpudiag.report.timeline.trials import Bars, bars
from gpudiag.rules._engine.verdict import Verdict

SLIVER = 0.02
"""Trials that are a smaller part of the whole are shown alone, with a quarter of their span on either side."""
NO_CLOCK = "The clocks of trials and telemetry could not be matched: what stands one above the other may not coincide."
FAR = "Telemetry far from the trials is not shown."


@dataclass(frozen=True)
class Detail:
    """How much goes along: values of samples, spans of the ledger and of a training, and parameters of each trial, at
    most.
    """

    values: int = 900_000
    spans: int = 24_000
    stretches: int = 4_000
    parameters: int = 24

    def less(self) -> Detail:
        """Half of it."""
        values, spans, stretches = max(self.values // 2, 10_000), max(self.spans // 2, 2_000), self.stretches // 2
        return Detail(values, spans, max(stretches, 200), self.parameters // 2)


@dataclass(frozen=True, eq=False)
class Lanes:
    """What is shown from ``start_us`` to ``end_us``. ``notes`` say what is not; ``noun`` is what a bar is called."""

    name: str
    timezone: str
    start_us: int
    end_us: int
    bars: Bars | None
    courses: tuple[Course, ...]
    ribbons: tuple[Ribbon, ...]
    has_trials: bool
    channels: tuple[Channel, ...]
    raster: Raster
    events: tuple[Mark, ...]
    findings: tuple[Mark, ...]
    notes: tuple[str, ...]
    noun: str

    @property
    def label(self) -> str:
        """What is seen, for who cannot see it."""
        parts = [plural(len(self.bars.names), self.noun)] if self.bars else []
        gpus = {gpu for channel in self.channels for gpu, _ in channel.samples}
        parts += [plural(len(gpus), "GPU")] if gpus else []
        return f"Timeline of {safe(self.name)}: {' and '.join(parts)}"


def lanes_of(analysis: Analysis, findings: Iterable[Verdict] = (), detail: Detail | None = None) -> Lanes:
    """The lanes of a run. Raises NotMeasurable where it has neither trials with a start nor telemetry."""
    run, detail = analysis.run, detail or Detail()
    parallelism, ledger = analysis.get(measure_parallelism), analysis.get(measure_ledger)
    findings, noun = tuple(findings), noun_of(run)
    channels = channels_of(analysis, (finding.rule for finding in findings))
    placed = bars(run, parallelism, analysis.get(measure_failures), detail.parameters) if parallelism else None
    start_us, end_us, far = _window(placed, extent_us(channels))
    n_values = max(3 * sum(len(channel.samples) for channel in channels), 1)
    most = int(np.clip(detail.values // n_values, 200, 12_000))
    events, more = event_marks(run)
    steps = analysis.get(measure_steps)
    events += pause_marks(steps) if steps else []
    notes = [NO_CLOCK] if placed and channels and not run.info.clock.joined else []
    notes += [FAR] if far else []
    notes += [f"{more:,} more events are not shown."] if more else []
    notes += [f"{placed.left_out} more parameters are not shown."] if placed and placed.left_out else []
    return Lanes(
        name=run.info.name,
        timezone=run.info.timezone,
        start_us=start_us,
        end_us=end_us,
        bars=placed,
        courses=training_courses(run, (start_us, end_us), detail.stretches),
        ribbons=ribbons(ledger, detail.spans) if ledger else (),
        has_trials=ledger.has_trials if isinstance(ledger, LedgerProfile) else False,
        channels=channels,
        raster=Raster.of(start_us, end_us, period_us(channels), most),
        events=tuple(events),
        findings=tuple(finding_marks(findings, _spans(placed))),
        notes=tuple(said(note, noun) for note in notes),
        noun=noun,
    )


def _window(placed: Bars | None, seen: tuple[int, int] | None) -> tuple[int, int, bool]:
    """The span of all that is drawn, or of the trials alone where they would be a sliver of it; True then."""
    if placed is None and seen is None:
        raise NotMeasurable("There are neither trials with a start nor telemetry of two samples or more.", RECORD_GPU)
    if placed is None or seen is None:
        low, high = seen or (int(placed.start_us.min()), int(placed.end_us.max()))  # type: ignore[union-attr]
        return low, max(high, low + 1_000_000), False
    low, high = int(placed.start_us.min()), int(placed.end_us.max())
    wide = min(low, seen[0]), max(high, seen[1])
    if 0 < high - low < SLIVER * (wide[1] - wide[0]):
        margin = (high - low) // 4
        return low - margin, high + margin, True
    return *wide, False


def _spans(placed: Bars | None) -> dict[str, tuple[int, int]]:
    if placed is None:
        return {}
    return dict(zip(placed.names, zip(placed.start_us.tolist(), placed.end_us.tolist(), strict=True), strict=True))
