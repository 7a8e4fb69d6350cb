"""Lines on steps as intervals: so many steps in so many seconds, between one line of a training and the next."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import text_dtype

WHOLE_SECONDS_S = 10.0
"""A clock that shows whole seconds tells shorter times to no better than a tenth."""
AT_ONCE = 10
"""Times the usual steps between two lines that no training does within the first second of a bar, or in half the time
that they would take."""
COLUMNS = (
    "path",
    "training",
    "rank",
    "trial",
    "unit",
    "attempt",
    "recounted",
    "coarse",
    "undated",
    "start",
    "end",
    "done",
    "n",
    "took_s",
    "stated_s",
    "loader_s",
    "tokens_s",
    "first",
    "resumed",
    "repeated",
    "since",
    "begun_s",
)


@memoized
def step_intervals(run: Run) -> pd.DataFrame:
    """The intervals of every training in the run's table ``steps``, in the order of its lines.

    A training is one kind of line in one file (of one rank and one trial, where lines name them), and of the kinds in
    a file the one that spans most time. A step that is no further than the one before begins an epoch where an epoch
    was complete or another is named, else a new attempt: the training was resumed. If its steps begin at the first and
    the log tells of no checkpoint, it is another training, named ``FILE (2)`` and so on.

    Columns: ``path`` (file), ``training`` (its name), ``rank`` and ``trial`` (NaN without), ``unit``, ``attempt``
    from 0, ``recounted`` (how often steps had been counted anew while no line numbered epochs), ``coarse`` (its
    clock shows whole seconds), ``undated`` (lines in it whose timestamp lies before an earlier line's), ``start``
    and ``end`` (UTC; NaT without timestamps), ``done`` (steps since the first epoch began, at the end), ``n``
    (steps in it), ``took_s`` (by timestamps, else by the bar's clock, else as stated; NaN unknown), ``stated_s`` (n
    times the stated mean of just these steps, NaN where none is stated), ``loader_s`` (n times the stated wait for
    data), ``tokens_s`` (stated tokens per second, mean over its steps; NaN where a line states none), ``first``
    (with the first steps of its attempt), ``resumed`` (time from the last line of the attempt before), ``repeated``
    (steps done before), ``since`` (other work that the log tells of in it, '' for none), ``begun_s`` (time since
    the log's first timestamp, at the end; NaN unknown). What the log tells of behind its last step is an interval
    without steps.
    """
    parts = []
    ordered = run.steps.drop_duplicates().sort_values(["path", "line"], kind="stable")
    for path, of_file in ordered.groupby("path", sort=False):
        for rank, trial, lines in _writers(of_file):
            found = [_of_series(group) for _, group in lines.groupby("series", sort=False)]
            main = max((parts for parts in found if parts), key=_extent, default=[])
            for number, part in enumerate(main, 1):
                name = str(path) if number == 1 else f"{path} ({number})"
                parts.append(part.assign(path=str(path), training=name, rank=rank, trial=trial))
    if not parts:
        return pd.DataFrame(columns=list(COLUMNS))
    out = pd.concat(parts, ignore_index=True)[list(COLUMNS)]
    out = out.astype(dict.fromkeys(("path", "training"), text_dtype()))
    return out


def _writers(lines: pd.DataFrame) -> Iterator[tuple[float, float, pd.DataFrame]]:
    """The lines of each rank and trial that they name."""
    rank, trial = _floats(lines, "rank"), _floats(lines, "trial")
    for (of_rank, of_trial), part in lines.groupby([rank, trial], sort=True, dropna=False):
        yield float(of_rank), float(of_trial), part


def _extent(parts: list[pd.DataFrame]) -> tuple[bool, float, int]:
    """Whether it counts steps, the time that it spans, and how many lines it has."""
    took_s = sum(float(part["took_s"].sum()) for part in parts)
    return parts[0]["unit"].iloc[0] == "step", took_s, sum(map(len, parts))


def _of_series(lines: pd.DataFrame) -> list[pd.DataFrame]:
    """Intervals of one kind of line, by training; those of one line each are no course."""
    lines = lines[~_redrawn(lines)]
    ahead = _advanced(lines)
    lines = lines.assign(advanced=np.append(False, ahead[:-1]))[~ahead]
    places = _places(lines)
    found = []
    for number, own in enumerate(_trainings(lines, places.done, places.attempt)):
        part = lines[own]
        part = part.assign(begun_s=np.nan) if number else part  # the log began with another training
        found.append(_of_training(part, places.of(own)))
    return [part for part in found if len(part)]


def _redrawn(lines: pd.DataFrame) -> np.ndarray:
    """Bars that are drawn empty again under the name of the epoch that they have just completed, as Lightning's are."""
    step, total, epoch = (_floats(lines, name) for name in ("step", "total", "epoch"))
    empty, last = (step == 0) & (epoch >= 0), 0
    out = np.zeros(len(lines), bool)
    for at in np.flatnonzero(empty).tolist():
        last = at - 1 if at and not out[at - 1] else last
        out[at] = at > 0 and epoch[last] == epoch[at] and step[last] >= total[last] > 0
    return out


def _advanced(lines: pd.DataFrame) -> np.ndarray:
    """Bars that are drawn empty before their first step advances them at once to where a training goes on, as Hugging
    Face's are.
    """
    step, elapsed = _floats(lines, "step"), _floats(lines, "elapsed_s")
    ahead, took_s = np.diff(step, append=np.nan), np.diff(elapsed, append=np.nan)
    known = (ahead > 0) & (took_s > 0)
    in_time = 2 * took_s <= ahead * (np.median(took_s[known] / ahead[known]) if known.any() else 0.0)
    return (step == 0) & (ahead > AT_ONCE * _stride(ahead)) & ((took_s <= 1) | in_time)


def _trainings(lines: pd.DataFrame, done: np.ndarray, attempt: np.ndarray) -> list[slice]:
    """The lines of each training: what begins at the first step is another, unless the log tells of a resumption, or of
    a failure before the one that it follows had come to its last step.
    """
    since, total = _told(lines), _floats(lines, "total")
    whole = done == total  # a line for all of the first epoch
    at_first = whole | (done <= np.nanmax([_spacing(done, attempt), done[0]]))
    ended = done >= total
    begins = [
        at
        for at in (np.flatnonzero(np.diff(attempt) > 0) + 1).tolist()
        if at_first[at] and "resumption" not in since[at] and not ("failure" in since[at] and not ended[at - 1])
    ]
    return [slice(low, high) for low, high in pairwise([0, *begins, len(lines)])]


def _of_training(lines: pd.DataFrame, places: _Places) -> pd.DataFrame:
    """Intervals of one training by one kind of line."""
    done, attempt, bar, recounted = places
    stamps = lines["time"].to_numpy("datetime64[us]")
    time = _in_order(stamps)
    told = np.array([bool(text) for text in _told(lines)])
    # A bar redrawn stands where it stood, but for one behind other work.
    keep = np.append((np.diff(done) != 0) | (np.diff(bar) != 0) | told[1:], True)
    told = np.array([bool(text) for text in _since(lines, keep)])
    coarse = _is_coarse(clock := _clock(time[keep], _floats(lines[keep], "elapsed_s")))
    keep[keep] = _apart(clock, bar[keep], told) if coarse else True
    since = _since(lines, keep)
    undated = _added_up((np.isnat(time) & ~np.isnat(stamps)).astype(float), keep)
    n, stated, loader, guessed, per_token = (_added_up(part, keep) for part in _stated_times(lines, done, attempt, bar))
    lines, time = lines[keep], time[keep]
    done, attempt, bar, recounted = places.of(keep)
    if len(lines) < 2:
        return pd.DataFrame()
    elapsed = _floats(lines, "elapsed_s")
    first, opens = np.append(True, np.diff(attempt) > 0), np.append(True, np.diff(bar) > 0)
    by_time = np.append(np.nan, np.diff(time).astype("timedelta64[us]").astype(float) / 1e6)
    by_time[np.isnat(time) | np.append(True, np.isnat(time[:-1]))] = np.nan
    before_s = np.nan_to_num(_floats(lines, "since_s"))  # what the bar of an evaluation took before this one opened
    anew = np.where(elapsed + before_s > 0, elapsed + before_s, np.nan)
    by_bar = np.where(opens, anew, np.append(np.nan, np.diff(elapsed)))
    by_bar[first & (n != _floats(lines, "step"))] = np.nan
    took = np.where(first, by_bar, np.where(np.isnan(by_time), by_bar, by_time))
    nothing_known = bool(np.isnan(took[~first]).all())
    took = guessed if nothing_known else took
    took[~(took >= 0)] = np.nan
    origin = first & (n == 0)
    took[origin] = 0.0
    before = np.append(0.0, done[:-1])
    return _with_end(
        pd.DataFrame(
            {
                "unit": lines["unit"].to_numpy(),
                "attempt": attempt,
                "recounted": recounted,
                "coarse": coarse,
                "undated": undated,
                "start": pd.to_datetime(np.append(np.datetime64("NaT", "us"), time[:-1]), utc=True),
                "end": pd.to_datetime(time, utc=True),
                "done": done,
                "n": n,
                "took_s": took,
                "stated_s": np.full(len(n), np.nan) if nothing_known else stated,
                "loader_s": loader,
                "tokens_s": np.divide(n, per_token, out=np.full(len(n), np.nan), where=per_token > 0),
                "first": (first & ~origin) | np.append(False, origin[:-1]),
                "resumed": np.where(first & (attempt > 0), np.where(by_time >= 0, by_time, 0.0), 0.0),
                "since": since,
                "begun_s": _floats(lines, "begun_s"),
                "repeated": np.where(first & (attempt > 0), np.maximum(before - (done - n), 0), 0.0),
            }
        ),
        lines,
    )


def _with_end(intervals: pd.DataFrame, lines: pd.DataFrame) -> pd.DataFrame:
    """The intervals, and without a step the time from the last line on a step to the last that tells of other work."""
    last = lines.iloc[-1]
    if not last.get("then_s", math.nan) > 0:
        return intervals
    row = intervals.iloc[[-1]].assign(
        start=intervals["end"].iloc[-1:],
        end=intervals["end"].iloc[-1:] + pd.Timedelta(seconds=float(last["then_s"])),
        n=0.0, took_s=float(last["then_s"]), stated_s=np.nan, loader_s=np.nan, tokens_s=np.nan, first=False,
        resumed=0.0, repeated=0.0,
        since=str(last.get("then", "")), begun_s=float(last.get("begun_s", np.nan)) + float(last["then_s"]),
    )  # fmt: skip
    return pd.concat([intervals, row.astype(intervals.dtypes)], ignore_index=True)


def _stated_times(
    lines: pd.DataFrame, done: np.ndarray, attempt: np.ndarray, bar: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """By line, of the steps since the one before: how many, the stated time of just these, their stated wait for data,
    their time if a stated mean of others holds for them, and how many over the stated tokens per second.
    """
    step_s, loader_s = _floats(lines, "step_s"), _floats(lines, "loader_s")
    first, opens = np.append(True, np.diff(attempt) > 0), np.append(True, np.diff(bar) > 0)
    n, spacing = np.append(done[0], np.diff(done)).astype(float), _spacing(done, attempt)
    usual = n[0] if np.isnan(spacing) else spacing
    n[first] = np.minimum(np.where(n[first] > 0, n[first], usual), usual)
    advanced = lines["advanced"].to_numpy(bool)
    goes_on = (attempt > 0) & (_floats(lines, "elapsed_s") == 0)
    n[first & ((_floats(lines, "step") == 0) | goes_on)] = 0.0  # a bar is drawn once before its first step
    n[first & advanced] = 1.0
    stated, loader = _stated(lines, n, opens, step_s), _stated(lines, n, opens, loader_s)
    loader = np.where(np.isnan(loader), n * loader_s, loader)  # the mean of the last steps stands for all of them
    tokens_s = _floats(lines, "tokens_s")
    per_token = np.divide(n, tokens_s, out=np.where(n > 0, np.nan, 0.0), where=tokens_s > 0)
    return n, stated, loader, np.where(np.isnan(stated), _guessed(lines, n, step_s), stated), per_token


def _guessed(lines: pd.DataFrame, n: np.ndarray, each_s: np.ndarray) -> np.ndarray:
    """Time of the ``n`` steps of each interval if they took the mean of others that its line states. A line that states
    the time of one step, with an evaluation in it perhaps, says nothing of those before: they take the usual time.
    """
    of_one = (_meant(lines) == "step") & (n > 1) & ~np.isnan(each_s)
    return np.where(of_one, each_s + (n - 1) * np.median(each_s[of_one]), n * each_s) if of_one.any() else n * each_s


def _meant(lines: pd.DataFrame) -> np.ndarray:
    return lines["meant"].to_numpy(dtype=object) if "meant" in lines else np.full(len(lines), "")


def _added_up(values: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """Sums over the lines up to each that is kept, from behind the one kept before."""
    return np.add.reduceat(values, np.flatnonzero(np.append(True, keep[:-1])))


def _spacing(done: np.ndarray, attempt: np.ndarray) -> float:
    """Median number of steps from one line to the next; NaN without two lines of an attempt."""
    return _stride(np.diff(done)[np.diff(attempt) == 0])


def _stride(ahead: np.ndarray) -> float:
    """Median of the steps ahead, those back left out; NaN without any."""
    steps = ahead[ahead > 0]
    return float(np.median(steps)) if len(steps) else np.nan


def _in_order(time: np.ndarray) -> np.ndarray:
    """The timestamps without those, as few as may be, that lie before an earlier line's: they are no moments."""
    stamps = time.astype(np.int64)
    known = np.flatnonzero(~np.isnat(time))
    if not len(known) or (np.diff(stamps[known]) >= 0).all():
        return time
    ends: list[int] = []  # the last line of the best sequence of each length, and before each line the one it follows
    values: list[int] = []
    before = np.full(len(time), -1)
    for at in known:
        length = bisect_right(values, stamps[at])
        before[at] = ends[length - 1] if length else -1
        ends[length : length + 1] = [int(at)]
        values[length : length + 1] = [int(stamps[at])]
    out = np.full(len(time), np.datetime64("NaT", "us"))
    line = ends[-1]
    while line >= 0:
        out[line] = time[line]
        line = int(before[line])
    return out


def _told(lines: pd.DataFrame) -> list[str]:
    """What lines since the one before tell of, '' for nothing."""
    return lines["since"].fillna("").astype(str).tolist() if "since" in lines else [""] * len(lines)


def _since(lines: pd.DataFrame, keep: np.ndarray) -> list[str]:
    """What lines since the kept line before tell of, by kept line."""
    out, met = [], set[str]()
    for text, kept in zip(_told(lines), keep, strict=True):
        met |= {work for work in text.split(", ") if work}
        if kept:
            out.append(", ".join(sorted(met, reverse=True)))
            met.clear()
    return out


def _clock(time: np.ndarray, elapsed: np.ndarray) -> np.ndarray:
    """Seconds by the timestamps, or by the bar's clock where no line has any; NaN unknown."""
    return elapsed if np.isnat(time).all() else np.where(np.isnat(time), np.nan, time.astype(np.int64) / 1e6)


def _is_coarse(clock: np.ndarray) -> bool:
    known = clock[~np.isnan(clock)]
    return len(known) > 0 and not (known != np.round(known)).any()


def _apart(clock: np.ndarray, bar: np.ndarray, told: np.ndarray) -> np.ndarray:
    """Lines far enough apart for a clock of whole seconds, the last of each bar, and those on both sides of other work
    that the log tells of: others tell of no time between.
    """
    keep = np.append(np.diff(bar) > 0, True)
    seen, of_bar = -np.inf, -1
    for at in range(len(clock)):
        if bar[at] != of_bar:
            seen, of_bar = -np.inf, bar[at]
        elif told[at]:
            keep[at - 1], seen = True, -np.inf
        keep[at] |= not clock[at] < seen + WHOLE_SECONDS_S
        if keep[at] and not np.isnan(clock[at]):
            seen = clock[at]
    return keep


class _Places(NamedTuple):
    """By line: steps since the first epoch began, the attempt, the epoch or bar that it belongs to, and how often steps
    were counted anew before it while no line numbered epochs.
    """

    done: np.ndarray
    attempt: np.ndarray
    bar: np.ndarray
    recounted: np.ndarray

    def of(self, own: slice | np.ndarray) -> _Places:
        """Those of these lines, attempts from 0."""
        done, attempt, bar, recounted = (values[own] for values in self)
        return _Places(done, attempt - attempt[:1], bar, recounted)


def _places(lines: pd.DataFrame) -> _Places:
    step = lines["step"].to_numpy(np.int64)
    total, epoch, elapsed = (_floats(lines, name) for name in ("total", "epoch", "elapsed_s"))
    done = np.zeros(len(step))
    attempt, bar, recounted = (np.zeros(len(step), int) for _ in range(3))
    base, tries, bars, counts = 0.0, 0, 0, 0
    if _are_epochs(lines, step):
        total = np.full(len(step), float(step.max()))
    for at in range(len(step)):
        if at and epoch[at] > epoch[at - 1] and step[at] <= step[at - 1]:
            base, bars = base + (total[at - 1] if total[at - 1] >= step[at - 1] else step[at - 1]), bars + 1
        elif at and (step[at] < step[at - 1] or epoch[at] < epoch[at - 1]):
            if epoch[at] <= epoch[at - 1] or not step[at - 1] >= total[at - 1]:
                tries, bars = tries + 1, bars + 1
                base = _base_of(lines, epoch[at], at, done, step)
            else:
                base, bars, counts = base + step[at - 1], bars + 1, counts + 1
        elif elapsed[at] < elapsed[at - 1]:  # another bar goes on where the one before stood
            tries, bars = tries + 1, bars + 1
        done[at], attempt[at], bar[at], recounted[at] = base + step[at], tries, bars, counts
    return _Places(done, attempt, bar, recounted)


def _are_epochs(lines: pd.DataFrame, step: np.ndarray) -> bool:
    """Whether steps that are counted anew, with no word on epochs or on how many there are, always end at the same."""
    told = ("epoch", "total")
    ends = np.flatnonzero(np.diff(step) < 0)
    if not len(ends) or any(not np.isnan(_floats(lines, name)).all() for name in told):
        return False
    alike = bool((step[ends] == step.max()).all() and (step[ends + 1] <= _stride(np.diff(step))).all())
    return alike and (len(ends) > 1 or step[-1] == step.max())


def _base_of(lines: pd.DataFrame, epoch: float, at: int, done: np.ndarray, step: np.ndarray) -> float:
    """Steps before the epoch in which a resumed training goes on, as its first attempt counted them."""
    if np.isnan(epoch):
        return 0.0
    before = np.flatnonzero(_floats(lines, "epoch")[:at] == epoch)
    return float(done[before[0]] - step[before[0]]) if len(before) else 0.0


def _stated(lines: pd.DataFrame, n: np.ndarray, opens: np.ndarray, each_s: np.ndarray) -> np.ndarray:
    """Stated time of just the ``n`` steps of each interval; NaN where a line states another mean."""
    meant = _meant(lines)
    out = np.where(meant == "window", n * each_s, np.nan)
    out = np.where((meant == "step") & (n == 1), each_s, out)
    so_far = each_s * _floats(lines, "step")  # of the epoch's steps up to here
    since = np.where(opens, so_far, so_far - np.append(0.0, so_far[:-1]))
    return np.where((meant == "epoch") & (since >= 0), since, out)


def _floats(lines: pd.DataFrame, name: str) -> np.ndarray:
    if name not in lines:
        return np.full(len(lines), np.nan)
    return lines[name].to_numpy("float64", na_value=np.nan)
