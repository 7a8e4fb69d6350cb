"""A pruner over recorded curves: which trial it cuts, and where."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gpudiag.forecast.progress import ReplayProgress
from gpudiag.forecast.pruning.recorded import Array, Recorded

EVERY = 2000
JITTER = 0.1
NOT_CUT = -1
START = -1
MOST_AHEAD = 10_000
"""Reports that a trial is carried on for beyond the last step of its study; a longer way is gone in longer steps."""
ReportEvent = tuple[int, int]
"""Trial, and the position of its report; START; or past its last report: the end."""


class Judge(Protocol):
    """What decides in a replay. Trials are known by the order of their starts, from 0."""

    def start(self, number: int) -> None:
        """The next trial starts."""

    def prunes(self, trial: int, step: int, value: float) -> bool:
        """A trial reports a value; is it to be pruned?"""

    def end(self, trial: int, state: str, value: float) -> None:
        """A trial ends."""


@dataclass(frozen=True, eq=False)
class Script:
    """What each trial of a study does if nothing cuts it: as recorded, or with what is assumed to follow.

    ``times_s`` of reports and ``end_s`` are on the clock of the log; ``state`` is how the trial ends then.
    """

    record: Recorded
    steps: list[list[int]]
    values: list[list[float]]
    times_s: list[Array]
    end_s: Array
    state: list[str]

    @property
    def events(self) -> int:
        """Starts, reports and ends in all."""
        return sum(map(len, self.steps)) + 2 * len(self.steps)

    def final(self, i: int) -> float:
        """The objective: as recorded, or the value held where the trial was carried on."""
        carried = len(self.steps[i]) > len(self.record.steps[i])
        return self.values[i][-1] if carried else float(self.record.value[i])


def as_recorded(record: Recorded) -> Script:
    """Nothing beyond the record: a trial that the log pruned leaves there, and takes part in nothing more."""
    ends = [max([end, *part[-1:]]) for end, part in zip(record.end_s, record.times_s, strict=True)]
    return Script(record, record.steps, record.values, record.times_s, np.array(ends), record.state)


def carried_on(record: Recorded, cut: Array) -> Script:
    """Trials that the log pruned and the candidate did not (``cut`` NOT_CUT) hold their last value to the end.

    They go on at their own pace to the longest length of the study and end COMPLETE. Nobody knows what they would
    have reported: this is the other extreme to leaving.
    """
    plain = as_recorded(record)
    steps, values, times, state = plain.steps.copy(), plain.values.copy(), plain.times_s.copy(), plain.state.copy()
    ends = plain.end_s.copy()
    ahead = _grid(record)
    for i in np.flatnonzero(cut == NOT_CUT):
        if record.state[i] not in ("PRUNED", "RUNNING") or not record.steps[i] or not record.ran[i]:
            continue
        more = _further(record.steps[i], ahead)
        pace_s = (record.end_s[i] - record.start_s[i] - record.startup.typical_s[i]) / len(record.steps[i])
        reports = (more - max(record.steps[i])) / _stride(record.steps[i], int(record.done[i]))
        steps[i] = [*record.steps[i], *more.tolist()]
        values[i] = [*record.values[i], *[record.values[i][-1]] * len(more)]
        times[i] = np.concatenate([plain.times_s[i], ends[i] + max(pace_s, 0.0) * reports])
        ends[i], state[i] = times[i][-1], "COMPLETE"
    return Script(record, steps, values, times, ends, state)


def _further(steps: list[int], ahead: Array) -> Array:
    """The steps of the study that a trial would go on to report at.

    One that passed over some at which others report, such as every tenth where they report each, goes on so.
    """
    first, last = min(steps), max(steps)
    passed = np.searchsorted(ahead, last) - np.searchsorted(ahead, first)
    every = max(1, round(passed / (len(steps) - 1))) if len(steps) > 1 else 1
    return ahead[np.searchsorted(ahead, last, "right") :][every - 1 :: every]


def _stride(steps: list[int], done: int) -> float:
    """The usual distance between two reports of a trial; of a lone one, the way to it."""
    return max(float(np.median(np.diff(np.sort(steps)))) if len(steps) > 1 else float(done), 1.0)


def _grid(record: Recorded) -> Array:
    """The steps at which the study reports, in order, and those up to its longest length at the usual distance.

    A study may count batches and report at every thousandth: what lies between is no report.
    """
    seen = np.unique(np.concatenate([np.asarray(part, np.int64) for part in record.steps]))
    if not len(seen):
        return seen
    last = record.max_steps + record.counts_from - 1
    usual = int(np.median(np.diff(seen))) if len(seen) > 1 else 1
    beyond = np.arange(seen[-1] + usual, last + 1, max(usual, 1, (last - int(seen[-1])) // MOST_AHEAD))
    return np.concatenate([seen, beyond])


def not_asked(script: Script) -> Script:
    """The same without the last report of each FAIL trial: it may have failed before the pruner was asked."""
    steps, values, times = script.steps.copy(), script.values.copy(), script.times_s.copy()
    for i in np.flatnonzero(np.array(script.state) == "FAIL"):
        steps[i], values[i], times[i] = steps[i][:-1], values[i][:-1], times[i][:-1]
    return Script(script.record, steps, values, times, script.end_s, script.state)


def jittered(script: Script, rng: np.random.Generator) -> Script:
    """The same with every pace changed by about 10 %: another order that could as well have happened."""
    record = script.record
    times, ends = [], script.end_s.copy()
    for i, part in enumerate(script.times_s):
        took = np.diff(part, prepend=record.start_s[i]) * np.exp(
            JITTER * (rng.standard_normal() + rng.standard_normal(len(part)))
        )
        times.append(record.start_s[i] + np.cumsum(took))
        if len(part):
            ends[i] = times[i][-1] + max(0.0, script.end_s[i] - part[-1])
    return Script(record, script.steps, script.values, times, ends, script.state)


def logged_order(script: Script) -> Iterator[ReportEvent]:
    """Events by the time of the log; at equal times the trial that started first, each in its own order."""
    n = len(script.steps)
    count = np.array([len(part) for part in script.steps], np.int64)
    at = np.concatenate([script.record.start_s, *script.times_s, script.end_s])
    trial = np.concatenate([np.arange(n), np.repeat(np.arange(n), count), np.arange(n)])
    within = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    position = np.concatenate([np.full(n, START), within, count])
    order = np.lexsort((position, trial, at))
    return zip(trial[order].tolist(), position[order].tolist(), strict=True)


class Retimed:
    """Events as the log's workers would have them: whoever is free takes the next trial.

    A trial that is cut frees its worker at once, so that the next one starts earlier than it did. Each trial keeps
    its own pace, and waits as long after its predecessor as trials usually did. Call :meth:`cut` for each cut.
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self._gap_s = script.record.gap_s
        self._waiting = iter(range(len(script.steps)))
        self._began: dict[int, float] = {}
        self._heap: list[tuple[float, int, int]] = []
        self._now = 0.0
        for _ in range(script.record.workers):
            self._take(0.0)

    def cut(self, trial: int) -> None:
        """That trial ends now."""
        del self._began[trial]
        self._take(self._now + self._gap_s)

    def __iter__(self) -> Iterator[ReportEvent]:
        script = self._script
        while self._heap:
            self._now, i, position = heapq.heappop(self._heap)
            if position == START:
                self._began[i] = self._now - float(script.record.start_s[i])
            yield i, position
            if position == len(script.steps[i]):
                self._take(self._now + self._gap_s)
            elif i in self._began:
                self._next(i, position + 1)

    def _next(self, i: int, position: int) -> None:
        times = self._script.times_s[i]
        at = times[position] if position < len(times) else self._script.end_s[i]
        heapq.heappush(self._heap, (max(self._now, float(at) + self._began[i]), i, position))

    def _take(self, at: float) -> None:
        i = next(self._waiting, None)
        if i is not None:
            heapq.heappush(self._heap, (at, i, START))


def play(script: Script, judge: Judge, events: Iterable[ReportEvent], progress: ReplayProgress | None = None) -> Array:
    """Position of the report at which the judge prunes each trial, NOT_CUT where it does not."""
    cut = np.full(len(script.record), NOT_CUT)
    for i, place, position, pruned in _asked(script, judge, events, cut, progress):
        if pruned and script.record.ran[i]:
            judge.end(place, "PRUNED", np.nan)
            cut[i] = position
            if isinstance(events, Retimed):
                events.cut(i)
    return cut


def _asked(
    script: Script, judge: Judge, events: Iterable[ReportEvent], cut: Array, progress: ReplayProgress | None
) -> Iterator[tuple[int, int, int, bool]]:
    """(trial, its place for the judge, position of the report, whether the judge prunes) of trials not ``cut`` yet."""
    place = [0] * len(script.record)
    started = 0
    for done, (i, position) in enumerate(events):
        if progress and done % EVERY == 0:
            progress(done, script.events)
        if cut[i] != NOT_CUT:
            continue
        if position == START:
            place[i], started = started, started + 1
            judge.start(int(script.record.number[i]))
        elif position == len(script.steps[i]):
            judge.end(place[i], script.state[i], script.final(i))
        else:
            yield i, place[i], position, judge.prunes(place[i], script.steps[i][position], script.values[i][position])


@dataclass(frozen=True)
class ReplayBacktest:
    """The logging pruner asked again over its own log, with every trial ending as it did.

    ``repeated`` of ``prunes`` pruned trials with reports are pruned again at that very report; at ``others`` of
    ``reports`` other reports it says prune though the trial went on. ``pruner`` is the one stated.
    """

    pruner: str
    repeated: int
    prunes: int
    others: int
    reports: int

    @property
    def exact(self) -> bool:
        """Every answer is the log's."""
        return self.repeated == self.prunes and not self.others


def backtest(script: Script, judge: Judge, pruner: str, progress: ReplayProgress | None = None) -> ReplayBacktest:
    """Ask the logging pruner again, in the order of the log."""
    record = script.record
    repeated = prunes = others = 0
    reports = sum(len(part) for part, ran in zip(script.steps, record.ran, strict=True) if ran)
    none_cut = np.full(len(record), NOT_CUT)
    for i, _, position, pruned in _asked(script, judge, logged_order(script), none_cut, progress):
        if not record.ran[i]:
            continue  # another pruner, or none, ended it
        last = record.state[i] == "PRUNED" and position == len(script.steps[i]) - 1
        prunes += last
        repeated += last and pruned
        others += pruned and not last
    return ReplayBacktest(pruner, repeated, prunes, others, reports - prunes)
