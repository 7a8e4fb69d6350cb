"""The hour that autumn repeats: which pass through it the starts and ends of trials were written in.

Local time alone does not say, and the ends of trials that run side by side are in no order. What is known: trials are
numbered in the order of their starts, so one trial is the first of the second pass; no trial ends before it starts, nor
before its last heartbeat; and readings that make trials as long, and pauses from an end to the next start as short, as
in the rest of the study are likelier. Where that leaves both readings open, the likelier is taken and counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo

import numpy as np
import pandas as pd

from gpudiag.timezones import readings

SECOND_US, DAY_US = 1_000_000, 86_400_000_000
SLACK_US = 60 * SECOND_US
"""How far starts may run back from one number to the next, and a heartbeat lie outside its trial."""
ODDS = np.log(20.0)
"""A reading is taken for sure where it is twenty times as likely as the other."""
FEW, MANY = 5, 500
IMPOSSIBLE = 1e6
SPLITS = 400
NEVER = np.iinfo(np.int64).min
"""As numpy keeps NaT."""

Array = np.ndarray


@dataclass(frozen=True)
class Settled:
    """Starts and ends, UTC; ``doubtful`` of their timestamps could as well be of the other pass."""

    start: pd.Series
    end: pd.Series
    doubtful: int

    @property
    def said(self) -> str:
        """A clause about the doubtful ones; empty where there is none."""
        if not self.doubtful:
            return ""
        fall = "timestamp falls" if self.doubtful == 1 else "timestamps fall"
        return f"; {self.doubtful} {fall} into the hour that the clock change repeats, and could be of the other pass"


def settle(number: pd.Series, start: pd.Series, end: pd.Series, zone: tzinfo, seen: pd.Series | None = None) -> Settled:
    """Zone-less starts and ends of one study, written in ``zone``, as UTC.

    ``seen``: naive UTC of the last heartbeat of each trial, where it is known.
    """
    order = np.argsort(number.to_numpy(), kind="stable")
    times = _both_readings(start.iloc[order], end.iloc[order], zone)
    alive = np.full(len(order), NEVER) if seen is None else _micros(seen.to_numpy("datetime64[us]")[order])
    out = np.empty_like(times[:, 0])
    out[:, order], doubtful = _settled(times, alive)
    return _as_series(out, start.index, doubtful)


def settle_local(number: pd.Series, start: pd.Series, end: pd.Series, zone: tzinfo) -> Settled:
    """The same for starts and ends on UTC that were read as local time of ``zone`` one by one."""
    begun, ended = (column.dt.tz_convert(zone).dt.tz_localize(None) for column in (start, end))
    return settle(number, begun, ended, zone)


def settle_rows(start: pd.Series, end: pd.Series, zone: tzinfo) -> Settled:
    """The same for tasks in the order of a log: that of their starts, or of their ends where those run back less.

    By ends it is the same question with time turned round.
    """
    begun, ended = (column.dt.tz_convert(zone).dt.tz_localize(None) for column in (start, end))
    times = _both_readings(begun, ended, zone)
    alive = np.full(len(start), NEVER)
    if _runs_back(ended) < _runs_back(begun):
        out, doubtful = _settled(_turned(times[::-1, ::-1, ::-1]), alive)
        out = _turned(out[::-1, ::-1])
    else:
        out, doubtful = _settled(times, alive)
    return _as_series(out, start.index, doubtful)


def _both_readings(start: pd.Series, end: pd.Series, zone: tzinfo) -> Array:
    """(start or end, reading, trial) in microseconds."""
    return np.array([[_micros(reading) for reading in readings(column, zone)[:2]] for column in (start, end)])


def _settled(times: Array, alive: Array) -> tuple[Array, int]:
    """(start or end, trial), one autumn after the other, and how many are open; trials in the order of their starts."""
    times = times.copy()
    doubtful = 0
    while (repeated := times[:, 0] != times[:, 1]).any():
        night = repeated & (times[:, 0] < times[:, 0][repeated].min() + DAY_US)
        second, unsure = _second_pass(times, night, ~repeated, alive)
        doubtful += unsure
        times[:, 0] = np.where(night & second, times[:, 1], times[:, 0])
        times[:, 1] = np.where(night, times[:, 0], times[:, 1])
    return times[:, 0], doubtful


def _as_series(times: Array, index: pd.Index, doubtful: int) -> Settled:
    start, end = (
        pd.Series(column.view("datetime64[us]"), index=index).dt.tz_localize("UTC") for column in times.copy()
    )
    return Settled(start, end, doubtful)


def _turned(times: Array) -> Array:
    return np.where(times == NEVER, NEVER, -times)


def _runs_back(naive: pd.Series) -> int:
    return int((naive.dropna().diff() < pd.Timedelta(0)).sum())


def _second_pass(times: Array, night: Array, sure: Array, alive: Array) -> tuple[Array, int]:
    """Which times of the ``night`` are of the second pass; and how many of these answers are open.

    ``times``: (start or end, reading, trial) in microseconds, trials by number; the others are (start or end, trial).
    ``sure``: has one reading.
    """
    here = night.any(axis=0)
    life = _life_odds(times[:, :, here], alive[here], _Lengths(_durations(times[:, 0, sure.all(axis=0)])))
    pauses = _Lengths(_pauses(times, sure, night))
    at = np.flatnonzero(night[0])
    scored = []
    for split in _splits(times[0], at):
        second = np.zeros_like(night)
        second[0, at[split:]] = True
        begun = np.where(second[0], times[0, 1], times[0, 0])
        odds = np.where(second[0, here], life[1], life[0])  # (reading of the end, trial)
        odds += np.where(night[1, here], _pause_odds(times[1][:, here], np.sort(begun[begun != NEVER]), pauses), 0.0)
        second[1, here] = night[1, here] & (odds[1] > odds[0])
        unsure = np.zeros_like(night)
        unsure[1, here] = night[1, here] & (np.abs(odds[1] - odds[0]) < ODDS)
        scored.append((float(odds.max(axis=0).sum()), second, unsure))
    scored.sort(key=lambda one: -one[0])
    total, chosen, unsure = scored[0]
    for other, second, _ in scored[1:]:
        if total - other < ODDS:
            unsure |= second != chosen
    return chosen, int(unsure.sum())


def _splits(start: Array, at: Array) -> list[int]:
    """How many of the open starts (``at``) may be of the first pass: the numbers that leave the fewest steps back."""
    there = np.flatnonzero(start[0] != NEVER)
    first, second = start[:, there]
    back = [np.append(False, np.diff(reading) < -SLACK_US) for reading in (first, second)]
    turning = np.append(False, second[1:] - first[:-1] < -SLACK_US)
    before, after = (np.cumsum(np.append(0, steps)) for steps in back)
    turn = np.append(np.searchsorted(there, at), len(there))
    # Steps have the reading of their pass; the step at the turn leads from the one to the other.
    disorder = before[turn] + np.append(turning, False)[turn] + after[-1] - after[np.minimum(turn + 1, len(there))]
    return np.flatnonzero(disorder == disorder.min())[:SPLITS].tolist()


class _Lengths:
    """How likely a length is, from known ones: Gaussian kernels on logarithms; one in ten may be anything."""

    def __init__(self, known_s: Array) -> None:
        known = np.log(known_s + 1.0)
        self._grid = np.linspace(0.0, 20.0, 2001)
        density = np.full(len(self._grid), 1 / 12)
        if len(known) >= FEW:
            known = np.quantile(known, np.linspace(0, 1, MANY)) if len(known) > MANY else known
            width = max(0.1, 1.06 * float(np.std(known)) * len(known) ** -0.2)
            near = np.exp(-(((self._grid[:, None] - known) / width) ** 2) / 2).mean(axis=1) / (
                width * np.sqrt(2 * np.pi)
            )
            density = 0.9 * near + 0.1 * density
        self._log = np.log(density)

    def odds(self, seconds: Array) -> Array:
        """Log density of each length."""
        size = np.log(np.maximum(seconds, 0.0) + 1.0)
        return np.interp(size, self._grid, self._log) - size


def _durations(times: Array) -> Array:
    """Seconds from start to end of (start or end, trial), where both are known and in order."""
    lived = (times[1] - times[0])[(times != NEVER).all(axis=0)] / SECOND_US
    return lived[lived >= 0]


def _pauses(times: Array, sure: Array, night: Array) -> Array:
    """Seconds from an end to the next start of any trial, outside the repeated hours."""
    low, high = times[:, 0][night].min(), times[:, 1][night].max()
    begun, ended = (times[column, 0][sure[column] & (times[column, 0] != NEVER)] for column in (0, 1))
    following = _next(np.sort(begun), ended)
    usable = (following != NEVER) & ((following < low) | (ended > high))
    return (following - ended)[usable] / SECOND_US


def _pause_odds(ended: Array, begun: Array, pauses: _Lengths) -> Array:
    """Log density of the pause after each end (any shape); ``begun``: the sorted starts of all trials."""
    following = _next(begun, ended)
    pause_s = np.where(following == NEVER, DAY_US / SECOND_US, (following - ended) / SECOND_US)
    return np.where(ended == NEVER, 0.0, pauses.odds(pause_s))


def _life_odds(times: Array, alive: Array, lengths: _Lengths) -> Array:
    """Log density of each life, (reading of the start, reading of the end, trial); very low for what cannot be."""
    begun, ended = times[0][:, None, :], times[1][None, :, :]
    both = (begun != NEVER) & (ended != NEVER)
    out = np.where(both, lengths.odds(np.where(both, ended - begun, 0) / SECOND_US), 0.0)
    seen = alive != NEVER
    out -= IMPOSSIBLE * (both & (ended < begun))
    out -= IMPOSSIBLE * (seen & (begun != NEVER) & (begun > alive + SLACK_US))
    out -= IMPOSSIBLE * (seen & (ended != NEVER) & (ended < alive - SLACK_US))
    return out


def _next(begun: Array, ended: Array) -> Array:
    """The first of the sorted starts at or after each end."""
    return np.append(begun, NEVER)[np.searchsorted(begun, ended)]


def _micros(times: Array) -> Array:
    """Microseconds since 1970; NEVER where unknown."""
    return times.astype("datetime64[us]").view(np.int64)
