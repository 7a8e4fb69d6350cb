"""What the offset between trials and telemetry is, by the best evidence there is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial

import numpy as np
import pandas as pd

from gpudiag.alignment.apply import shifts_s
from gpudiag.alignment.jobs import BY_LOGS, with_jobs
from gpudiag.alignment.judge import Judgement, ObservedTime, judge
from gpudiag.alignment.oddities import oddities, pauses, steps_back
from gpudiag.alignment.scan import REACH_S, noise_at, responses_within, scan_offsets
from gpudiag.alignment.signals import Lack, SampleTimes, covered_s, make_grid, starts_and_ends, trial_signals
from gpudiag.alignment.skew import with_skew
from gpudiag.alignment.stepped import with_step
from gpudiag.errors import ConfigError
from gpudiag.run import ClockRecord, Run
from gpudiag.spans import seconds
from gpudiag.statement import Statement
from gpudiag.timezones import parse_zone

MIN_TRIALS = 3
MAX_SPLITS = 8
ONE_CLOCK = "There is no {missing}, so no two clocks to compare."
BOTH_UTC = "Trials and telemetry both carry their zone in their timestamps."
SHORT = (
    "The telemetry near the trials, {covered_s} with a sample every {period_s}, is too little to show how anything "
    "changed with trials of {trial_s}."
)
KEPT = "No GPU was busy and idle in turn, and memory was taken but hardly ever freed."
STEADY = "Neither activity nor memory of any GPU ever changed."
APART = (
    "Trials and telemetry share no time: {order}. They are not joined. If the clocks differ, state clock_offset_s in "
    "run.toml. {evidence}"
)
FAR_S = 30 * 86_400.0
"""No clock is wrong by a month: what lies so far apart was not one run (a default without a published source)."""
NOT_ONE_RUN = "{order}: this is not the same run. They are not joined."


def establish_clock(run: Run) -> ClockRecord:
    """The offset between the trials' clock and the telemetry's, and how it is known.

    Best first (METHODS 2): an offset stated in run.toml; a zone in the timestamps of both sides; the fit of
    memory and activity to the trials at every candidate offset; else equal clocks, assumed. An offset
    found in the data is applied only where it is strong. ``joined`` is False where no trial shares any
    time with the telemetry even so, or where the clock was set within the study and the times are not put right.
    """
    if run.trials["start"].notna().sum() == 0 or run.gpu.empty:
        missing = "GPU telemetry" if run.gpu.empty else "trial with a start"
        return ClockRecord(method="none", evidence=Statement(ONE_CLOCK, missing=missing), joined=False)
    zone, samples = zone_of(run), SampleTimes.of(run)
    found = _offset(run, samples, zone)
    stepped = with_step(run, samples, found, lambda trials: correlate(run, samples, trials, zone))
    record = replace(stepped, notes=oddities(run, zone))
    if not record.joined:
        return record
    of_jobs = with_jobs(run, samples, record)
    return _joined(run, samples, of_jobs if of_jobs.method == BY_LOGS else with_skew(run, samples, of_jobs))


def _offset(run: Run, samples: SampleTimes, zone: tzinfo) -> ClockRecord:
    given = run.info.given_offset_s
    if given is not None:
        return ClockRecord(
            given, "strong", "given", Statement("Stated as clock_offset_s in run.toml."), applied_s=given
        )
    if _both_in_utc(run):
        return ClockRecord(0.0, "strong", "utc", Statement(BOTH_UTC))
    foreign = _of_another_clock(run)
    back = foreign + [(study, trial) for study, trial, _ in steps_back(run.trials)]
    splits = back + [split for split in _silences(run, zone) if split not in back]
    parts = [(split, correlate(run, samples, _piece(run.trials, split, splits), zone)) for split in splits]
    found = correlate(run, samples, run.trials[~_from(run.trials, splits)], zone)
    strong = {part.offset_s for part in (found, *(part for _, part in parts)) if part.confidence == "strong"}
    if splits and not back and len(strong) < 2:
        parts, found = [], correlate(run, samples, run.trials, zone)
    applied = found.offset_s if found.confidence == "strong" else 0.0
    method = "correlation" if found.candidates else "none"
    record = ClockRecord(found.offset_s, found.confidence, method, found.evidence, applied, found.candidates)
    return replace(record, parts=tuple(_changes(parts, applied, foreign)), apart_s=found.apart_s)


def _of_another_clock(run: Run) -> list[tuple[str, int]]:
    """(study, first trial) of the studies whose timestamps are meant in another way than those of the first study."""
    if "clock" not in run.studies or run.studies.empty:
        return []
    meant = run.studies.drop_duplicates("study").set_index("study")["clock"].fillna("")
    first = run.trials.groupby("study", sort=False)["trial"].min()
    reference = meant.get(first.index[0])
    return [(str(study), int(trial)) for study, trial in first.items() if meant.get(study) != reference]


def _silences(run: Run, zone: tzinfo) -> list[tuple[str, int]]:
    """Pauses behind which another version of Optuna may have gone on with a study.

    A zone behind UTC makes the timestamps jump forward there, by more than its offset, as in a pause.
    """
    first = datetime.fromtimestamp(float(np.nanmin(seconds(run.trials["start"]))), UTC)
    ahead_s = (first.astimezone(zone).utcoffset() or timedelta(0)).total_seconds()
    if ahead_s >= 0 or not _naive(run):
        return []
    return list(pauses(run.trials, -0.9 * ahead_s))[:MAX_SPLITS]


def _changes(
    parts: list[tuple[tuple[str, int], Judgement]], applied_s: float, foreign: list[tuple[str, int]]
) -> Iterator[tuple[str, int, float]]:
    """Where a study strongly shows another offset than before; one of another clock starts without any."""
    current: dict[str, float] = {}
    for (study, trial), part in sorted(parts, key=lambda pair: pair[0]):
        before = current.get(study, applied_s)
        offset = part.offset_s if part.confidence == "strong" else 0.0 if (study, trial) in foreign else before
        if offset != before:
            current[study] = offset
            yield study, trial, offset


def correlate(run: Run, samples: SampleTimes, trials: pd.DataFrame, zone: tzinfo) -> Judgement:
    """The offset that the data show for these trials, or why they cannot."""
    start, end = starts_and_ends(trials)
    if len(start) < MIN_TRIALS:
        return _unknown(Statement("Only {n:trial} with a start and an end: too few to compare.", n=len(start)))
    low, high = float(start.min()), float(end.max())
    trial_s = float(np.median(end - start))
    grid = make_grid(samples, low - REACH_S, high + REACH_S, trial_s)
    if grid is None:
        return _unknown(Statement("No telemetry lies within {reach_s} of the trials.", reach_s=REACH_S))
    if not {"util_pct", "mem_used_mib"} & set(run.gpu.columns):
        return _unknown(Statement("The telemetry has neither utilization nor memory."))
    observed = ObservedTime(covered_s(samples, low - REACH_S, high + REACH_S), high - low, samples.period_s, trial_s)
    signals, lacking = trial_signals(run, samples, grid)
    if not signals:
        return Judgement(0.0, "undetermined", _no_signal(lacking, observed), ())
    responses_s = responses_within(trial_s)
    scan = scan_offsets(signals, grid, start, end, responses_s)
    noise = partial(noise_at, signals=signals, grid=grid, start_s=start, end_s=end, responses_s=responses_s)
    return judge(scan, _prior(zone, low, high), observed, noise)


def _no_signal(lacking: set[Lack], observed: ObservedTime) -> Statement:
    """Why nothing in the telemetry can be compared with the trials."""
    if Lack.SHORT in lacking:
        return Statement(SHORT, covered_s=observed.covered_s, period_s=observed.period_s, trial_s=observed.trial_s)
    return Statement(KEPT if Lack.KEPT in lacking else STEADY)


def _unknown(why: Statement) -> Judgement:
    return Judgement(0.0, "assumed", Statement("{why} Equal clocks are assumed.", why=why), ())


def _joined(run: Run, samples: SampleTimes, record: ClockRecord) -> ClockRecord:
    """The record with ``joined`` set, and the evidence for it where nothing overlaps."""
    shift = shifts_s(run.trials, record)
    start, end = seconds(run.trials["start"]) + shift, seconds(run.trials["end"]) + shift
    end = np.where(np.isnan(end), np.inf, end)
    time, slack = samples.time_s, float(np.nan_to_num(samples.period_s))
    if np.isnan(time).all():
        return record
    if bool(((start <= np.nanmax(time) + slack) & (end >= np.nanmin(time) - slack)).any()):
        return record
    order = _order(start, end, float(np.nanmin(time)), float(np.nanmax(time)))
    confidence = "undetermined" if record.confidence == "assumed" else record.confidence
    evidence = Statement(APART, order=order, evidence=record.evidence)
    gap_s = order.values.get("gap_s")
    if isinstance(gap_s, float) and gap_s > FAR_S and "before" not in order.values:
        far = f"{order.template[0].upper()}{order.template[1:]}".replace("{gap_s}", "{n:day}")
        evidence = Statement(NOT_ONE_RUN, order=Statement(far, n=round(gap_s / 86_400)))
    return replace(record, joined=False, confidence=confidence, evidence=evidence)


def _order(start: np.ndarray, end: np.ndarray, first: float, last: float) -> Statement:
    """Which comes first, for trials none of which ran between the first sample and the last; s.

    Trials may lie on both sides. One without an end has begun after the last sample, or has never begun.
    """
    begun, ended = start[start > last], end[end < first]
    if not len(ended):
        gap_s = abs(float(np.nanmin(start)) - last)
        return Statement("the trials begin {gap_s} after the telemetry ends", gap_s=gap_s)
    before = Statement("the telemetry begins {gap_s} after the trials end", gap_s=abs(first - float(ended.max())))
    if not len(begun):
        return before
    gap_s = abs(float(begun.min()) - last)
    return Statement("{before} and ends {gap_s} before others begin", before=before, gap_s=gap_s)


def _prior(zone: tzinfo, low_s: float, high_s: float) -> set[float]:
    """Offsets that arise where one side wrote UTC and the other local time."""
    moments = [datetime.fromtimestamp(timestamp, UTC) for timestamp in (low_s, high_s)]
    local = [moment.astimezone(zone).utcoffset() for moment in moments]
    away = {offset.total_seconds() for offset in local if offset is not None}
    return {0.0, *away, *(-offset for offset in away)}


def zone_of(run: Run) -> tzinfo:
    """The zone in which the run's timestamps without one are read."""
    try:
        return parse_zone(run.info.timezone)
    except ConfigError:  # a tzinfo object without an IANA name was passed
        return UTC


def _naive(run: Run) -> bool:
    """True unless the timestamps of every study are known to be UTC."""
    return "clock" not in run.studies or not bool((run.studies["clock"] == "utc").all())


def _both_in_utc(run: Run) -> bool:
    telemetry = [record for record in run.info.inputs if record.kind == "telemetry"]
    return bool(telemetry) and not run.studies.empty and not _naive(run) and all(r.clock == "utc" for r in telemetry)


def _from(trials: pd.DataFrame, splits: list[tuple[str, int]]) -> np.ndarray:
    """True for the trials at and after any of the splits of their study."""
    out = np.zeros(len(trials), bool)
    for study, trial in splits:
        out |= ((trials["study"] == study) & (trials["trial"] >= trial)).to_numpy(dtype=bool)
    return out


def _piece(trials: pd.DataFrame, split: tuple[str, int], splits: list[tuple[str, int]]) -> pd.DataFrame:
    """The trials of the split's study from there to its next split."""
    later = [other for other in splits if other[0] == split[0] and other[1] > split[1]]
    return trials[_from(trials, [split]) & ~_from(trials, later)]
