"""Lines on steps as intervals: so many steps in so many seconds, between one line of a training and the next."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from gpudiag.measures._steps.clocks import WHOLE_S, apart, clock_of, in_order, tick_of
from gpudiag.measures._steps.histories import with_named_pauses
from gpudiag.measures._steps.lines import floats, meant_of, since_of, standing, told_of, without_end
from gpudiag.measures._steps.logs import training_logs
from gpudiag.measures._steps.pace import CLOCK_S
from gpudiag.measures._steps.places import Places, advanced, epoch_clocks, places_of, redrawn, trainings_of
from gpudiag.measures._steps.stated_times import stated_times
from gpudiag.measures._time.weighted import known_median
from gpudiag.memo import memoized
from gpudiag.readers._steps.dialects import DIALECTS
from gpudiag.readers._steps.step_line import EVALUATIONS
from gpudiag.run import Run
from gpudiag.schema import LASTING, text_dtype

SHOWN = 2.0
"""Times its usual length that a step states where it shows an evaluation before it."""
STATING = frozenset(dialect.name for dialect in DIALECTS)
"""Kinds of lines of whose stated times it is known what they are the times of."""
STOPPED = "training"
"""A time so stated is by a clock that stands still for the other work of which the log tells."""
COLUMNS = (
    "path",
    "training",
    "rank",
    "trial",
    "unit",
    "attempt",
    "recounted",
    "tick_s",
    "undated",
    "unseen",
    "start",
    "end",
    "done",
    "n",
    "took_s",
    "stated_s",
    "alike_s",
    "loader_s",
    "loader_lines",
    "loader_most_s",
    "tokens_s",
    "first",
    "new_epoch",
    "opens",
    "resumed",
    "down_open",
    "repeated",
    "since",
    "evaluation_s",
    "checkpoint_s",
    "apart_s",
    "begun_s",
)


@memoized
def step_intervals(run: Run) -> pd.DataFrame:
    """The intervals of every training in the run's table ``steps``, in the order of its lines.

    A training is one kind of line in one log (of one rank and one trial, where lines name them), and of the kinds in
    a log the one that spans most time: of those with lines enough, and of evaluations only where no other tells of
    steps. A log is a file, or several of which each goes on where another ended. A step
    that is no further than the one before begins an epoch where an epoch was complete or another is named, else a new
    attempt: the training was resumed. If its steps begin at the first and the log tells of no checkpoint, it is another
    training, named ``FILE (2)`` and so on.

    Columns: ``path`` (the log's first file), ``training`` (its name), ``rank`` and ``trial`` (NaN without), ``unit``,
    ``attempt`` from 0, ``recounted`` (how often steps had been counted anew while no line numbered epochs), ``tick_s``
    (what its clock counts in, at most a second; 0 without one), ``undated`` (lines in it whose timestamp lies before
    an earlier line's), ``unseen``
    (it may hold time outside of steps that no clock tells), ``start`` and ``end`` (UTC; NaT without timestamps),
    ``done`` (steps since the first epoch began, at the end), ``n`` (steps in it), ``took_s`` (by timestamps, else by
    the bar's clock, else as stated; NaN unknown), ``stated_s`` (n times the stated mean of just these steps, NaN where
    none is stated, or only these tell the time), ``alike_s`` (the same for all, or their
    time if the stated mean of others holds for them), ``loader_s`` (n times the stated wait for data), ``loader_lines``
    (its lines that state that wait), ``loader_most_s`` (the most that one of them states of a step; NaN where none
    does), ``tokens_s`` (stated tokens per second, mean over its steps; NaN where a line states none), ``first`` (with
    the first steps of its attempt), ``new_epoch`` (another epoch begins), ``opens`` (with the first steps of a bar or
    of a count),
    ``resumed`` (time from the last line of the attempt before, or since its bar was drawn where ``down_open`` says that
    no clock tells how long that was ago), ``repeated`` (steps done before), ``since`` (other work that the log tells of
    in it, '' for none), ``evaluation_s`` and ``checkpoint_s`` (stated time of these, 0 where none is stated),
    ``apart_s`` (what of it no clock tells, and is known to have passed beside stated times of steps),
    ``begun_s`` (time since the log's first timestamp, at the end; NaN unknown). What the log tells of behind its last
    step is an interval without steps, but for those up to an evaluation.
    """
    parts = []
    for path, of_log in training_logs(run).lines.groupby("log", sort=False):
        for rank, trial, lines in _writers(of_log):
            evaluated = floats(lines[lines["series"] == EVALUATIONS], "step")
            reached = float(evaluated[-1]) if len(evaluated) else math.nan
            found = {str(series): _of_series(group, reached) for series, group in lines.groupby("series", sort=False)}
            main = max((kind for kind in found.items() if kind[1]), key=lambda kind: _extent(*kind), default=("", []))[
                1
            ]
            for number, part in enumerate(main, 1):
                name = str(path) if number == 1 else f"{path} ({number})"
                named = with_named_pauses(part, run)
                parts.append(named.assign(path=str(path), training=name, rank=rank, trial=trial))
    if not parts:
        return pd.DataFrame(columns=list(COLUMNS))
    out = pd.concat(parts, ignore_index=True)[list(COLUMNS)]
    out = out.astype(dict.fromkeys(("path", "training"), text_dtype()))
    return out


def _writers(lines: pd.DataFrame) -> Iterator[tuple[float, float, pd.DataFrame]]:
    """The lines of each rank and trial that they name."""
    rank, trial = floats(lines, "rank"), floats(lines, "trial")
    for (of_rank, of_trial), part in lines.groupby([rank, trial], sort=True, dropna=False):
        yield float(of_rank), float(of_trial), part


def _extent(series: str, parts: list[pd.DataFrame]) -> tuple[tuple[bool, bool, bool], float, int]:
    """How it stands, the time that it spans, and how many lines it has."""
    n, took_s = sum(map(len, parts)), sum(float(part["took_s"].sum()) for part in parts)
    return standing(series, str(parts[0]["unit"].iloc[0]), n), took_s, n


def _of_series(lines: pd.DataFrame, reached: float) -> list[pd.DataFrame]:
    """Intervals of one kind of line, by training; those of one line each are no course. ``reached``: the step of which
    the last line on an evaluation tells.
    """
    lines = lines[~redrawn(lines)]
    lines = _with_clocks(lines)
    ahead = advanced(lines)
    lines = _without_advanced(lines, ahead)
    places = places_of(lines)
    found = []
    for number, own in enumerate(trainings_of(lines, places.done, places.attempt)):
        part = lines[own]
        part = part.assign(begun_s=np.nan) if number else part  # the log began with another training
        found.append(_of_training(part, places.of(own), reached))
    return [part for part in found if len(part)]


def _without_advanced(lines: pd.DataFrame, ahead: np.ndarray) -> pd.DataFrame:
    """The lines but for bars that were advanced at once. What was told before one of them stands before the next line,
    which is marked ``advanced``.
    """
    behind = np.append(False, ahead[:-1])
    since = since_of(lines)
    for at in np.flatnonzero(behind).tolist():
        since[at] = ", ".join(text for text in (since[at - 1], since[at]) if text)
    lines = lines.assign(advanced=behind, since=since) if behind.any() else lines.assign(advanced=behind)
    return lines[~ahead]


def _with_clocks(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines with ``elapsed_s`` by bars alone, and ``log_s``: seconds since the log began, by timestamps without a
    year, which are no moments.
    """
    elapsed, begun = floats(lines, "elapsed_s"), floats(lines, "begun_s")
    of_log = lines["time"].isna().to_numpy() & (elapsed == begun)
    return lines.assign(elapsed_s=np.where(of_log, np.nan, elapsed), log_s=np.where(of_log, elapsed, np.nan))


def _of_training(lines: pd.DataFrame, places: Places, reached: float) -> pd.DataFrame:
    """Intervals of one training by one kind of line."""
    stamps = lines["time"].to_numpy("datetime64[us]")
    time, told = in_order(stamps), told_of(lines)
    keep, tick_s = _kept(lines, places, time, told)
    since = _since(told, keep)
    lasted = {f"{work}_s": _added_up(np.nan_to_num(floats(lines, f"{work}_s")), keep) for work in LASTING}
    undated = _added_up((np.isnat(time) & ~np.isnat(stamps)).astype(float), keep)
    stating = stated_times(lines, places.done, places.attempt, places.bar)
    n, stated, loader, guessed, per_token = (_added_up(part, keep) for part in stating)
    waits_s = floats(lines, "loader_s")
    n_stating, most_s = _added_up(np.isfinite(waits_s).astype(float), keep), np.fmax.reduceat(waits_s, _begins(keep))
    lines, time = lines[keep], time[keep]
    done, attempt, bar, recounted = places.of(keep)
    if len(lines) < 2:
        return pd.DataFrame()
    first, opens = np.append(True, np.diff(attempt) > 0), np.append(True, np.diff(bar) > 0)
    by_time, by_bar = _by_timestamps(lines, time), _by_bar(lines, n, first, opens)
    took = np.where(first, by_bar, np.where(np.isnan(by_time), by_bar, by_time))
    nothing_known = bool(np.isnan(took[~first]).all())
    apart_s = np.zeros(len(took))
    if nothing_known:
        apart_s = _apart_s(lines, np.sum(list(lasted.values()), axis=0), first)
        took = guessed + np.where(_holds(guessed, n, apart_s), 0.0, apart_s)
    took[~(took >= 0)] = np.nan
    between = opens & ~first & np.isnan(by_time).all()
    stopped = (meant_of(lines) == STOPPED) & np.isnan(by_time) & np.array(since, bool)
    unseen = _unseen(lines, since) if nothing_known else between | stopped
    origin = first & (n == 0)
    took[origin] = 0.0
    before = np.append(0.0, done[:-1])
    new_epoch = (opens | np.append(False, np.diff(floats(lines, "epoch")) > 0)) & ~first
    new_epoch |= np.append(False, (new_epoch & (floats(lines, "step") == 0))[:-1])  # a bar drawn before the first batch
    resumes, elapsed = first & (attempt > 0), floats(lines, "elapsed_s")
    drawn_s = np.where(lines["advanced"].to_numpy(bool) & (elapsed > 0), elapsed, 0.0)
    return _with_end(
        pd.DataFrame(
            {
                "unit": lines["unit"].to_numpy(),
                "attempt": attempt,
                "recounted": recounted,
                "tick_s": tick_s,
                "undated": undated,
                "unseen": unseen & ~first,
                "start": pd.to_datetime(np.append(np.datetime64("NaT", "us"), time[:-1]), utc=True),
                "end": pd.to_datetime(time, utc=True),
                "done": done,
                "n": n,
                "took_s": took,
                "stated_s": np.full(len(n), np.nan) if nothing_known else stated,
                "alike_s": guessed,
                "loader_s": loader,
                "loader_lines": n_stating,
                "loader_most_s": most_s,
                "tokens_s": np.divide(n, per_token, out=np.full(len(n), np.nan), where=per_token > 0),
                "first": (first & ~origin) | np.append(False, origin[:-1]),
                "new_epoch": new_epoch,
                "opens": opens,
                "resumed": np.where(resumes, np.where(by_time >= 0, by_time, drawn_s), 0.0),
                "down_open": resumes & ~(by_time >= 0),
                "since": since,
                **lasted,
                "apart_s": apart_s,
                "begun_s": floats(lines, "begun_s"),
                "repeated": np.where(resumes, np.maximum(before - (done - n), 0), 0.0),
            }
        ),
        lines,
        reached,
        unclocked=nothing_known and str(lines["series"].iloc[0]) in STATING,
    )


def _kept(lines: pd.DataFrame, places: Places, time: np.ndarray, told: list[str]) -> tuple[np.ndarray, float]:
    """The lines between which there are intervals, and what their clock counts in."""
    done, _, bar, _ = places
    # A bar redrawn stands where it stood, but for one behind other work.
    keep = np.append((np.diff(done) != 0) | (np.diff(bar) != 0) | np.array(told[1:], bool), True)
    clock = clock_of(time, floats(lines, "log_s"), floats(lines, "elapsed_s"))
    tick_s = tick_of(clock[keep])
    if tick_s >= WHOLE_S:
        stated_s = floats(lines, "step_s")
        keep &= ~_drawn_too_early(keep, done, bar, clock, known_median(stated_s[np.isfinite(stated_s)]))
        keep[keep] = apart(clock[keep], bar[keep], np.array(_since(told, keep), bool))
    return keep, tick_s


def _by_timestamps(lines: pd.DataFrame, time: np.ndarray) -> np.ndarray:
    """Seconds from one line to the next by their timestamps, also by those without a year; NaN unknown."""
    took_s = np.append(np.nan, np.diff(time).astype("timedelta64[us]").astype(float) / 1e6)
    undated = np.isnat(time) | np.append(True, np.isnat(time[:-1]))
    within = np.append(False, np.diff(lines["part"]) == 0)  # each file has a clock of its own
    by_log = np.where(within, np.append(np.nan, np.diff(floats(lines, "log_s"))), np.nan)
    return np.where(undated, by_log, took_s)


def _by_bar(lines: pd.DataFrame, n: np.ndarray, first: np.ndarray, opens: np.ndarray) -> np.ndarray:
    """Seconds from one line to the next by the clock of the bar, or of the row; NaN unknown."""
    elapsed = floats(lines, "elapsed_s")
    # What the bar of an evaluation took before this one opened counts, too.
    opened = elapsed + np.nan_to_num(floats(lines, "since_s"))
    took_s = np.where(opens, np.where(opened > 0, opened, np.nan), np.append(np.nan, np.diff(elapsed)))
    took_s[(first & (n != floats(lines, "step"))) | epoch_clocks(lines)] = np.nan  # steps before the clock began
    return took_s


def _drawn_too_early(
    keep: np.ndarray, done: np.ndarray, bar: np.ndarray, clock: np.ndarray, stated: float
) -> np.ndarray:
    """Lines kept where a bar stands as before and goes on, if together the steps up to the next lines took longer than
    is ``stated`` of one by more than a clock of whole seconds is off in so many: other work lasts beyond the one that
    the bar was redrawn for, as where a checkpoint follows an evaluation.
    """
    out = np.zeros(len(keep), bool)
    at = np.flatnonzero(keep)
    n, other, took = (np.diff(of[at]) for of in (done, bar, clock))
    early = np.flatnonzero((n[:-1] == 0) & (other[:-1] == 0) & (other[1:] == 0)) + 1
    more_s = took[early] - n[early] * stated
    out[at[early]] = bool(np.nansum(more_s) >= CLOCK_S * math.sqrt(len(early)))
    return out


def _unseen(lines: pd.DataFrame, since: list[str]) -> np.ndarray:
    """Where time may have passed outside of steps beside times that are only stated. A stated time of one step holds
    what came before it, as nanoGPT's does, if it shows what the log tells of.
    """
    told = np.array(since, dtype=object) != ""
    each_s = floats(lines, "step_s")
    shown = each_s >= SHOWN * known_median(each_s)
    return (meant_of(lines) != "step") | (told & ~shown)


def _apart_s(lines: pd.DataFrame, lasted_s: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Stated time of evaluations and checkpoints beside stated times of steps: where the dialect is known, and so what
    these are the times of.
    """
    return np.where(lines["series"].isin(STATING).to_numpy() & ~first, lasted_s, 0.0)


def _holds(steps_s: np.ndarray, n: np.ndarray, apart_s: np.ndarray) -> np.ndarray:
    """Where the stated time of steps holds that of other work, as fairseq's and nanoGPT's does: it is longer than usual
    by half of it or more.
    """
    each_s = np.divide(steps_s, n, out=np.full(len(n), np.nan), where=n > 0)
    alone = each_s[apart_s == 0]
    usual_s = known_median(alone if np.isfinite(alone).any() else each_s)
    return steps_s - n * usual_s >= apart_s / 2


def _with_end(intervals: pd.DataFrame, lines: pd.DataFrame, reached: float, *, unclocked: bool) -> pd.DataFrame:
    """The intervals, and the time from the last line on a step to the last that tells of other work: without a step,
    but for those up to an evaluation, if the next line on a step was yet to come. ``unclocked``: no clock tells
    that time.
    """
    last = lines.iloc[-1]
    if not last.get("then_s", math.nan) > 0:
        return intervals
    ahead = reached - float(last["step"])
    n = ahead if 0 < ahead <= float(intervals["n"].median()) else 0.0
    unclocked_s = _known(last["then_s"]) if unclocked and not n else 0.0
    row = intervals.iloc[[-1]].assign(
        start=intervals["end"].iloc[-1:],
        end=intervals["end"].iloc[-1:] + pd.Timedelta(seconds=float(last["then_s"])),
        done=intervals["done"].iloc[-1] + n, n=n, took_s=float(last["then_s"]), stated_s=np.nan, alike_s=np.nan,
        loader_s=np.nan, loader_lines=0.0, loader_most_s=np.nan, tokens_s=np.nan, first=False, new_epoch=False,
        opens=False, resumed=0.0, down_open=False, repeated=0.0, unseen=False, apart_s=unclocked_s,
        since=without_end(str(last.get("then", ""))),
        evaluation_s=_known(last.get("then_evaluation_s")), checkpoint_s=_known(last.get("then_checkpoint_s")),
        begun_s=float(last.get("begun_s", np.nan)) + float(last["then_s"]),
    )  # fmt: skip
    return pd.concat([intervals, row.astype(intervals.dtypes)], ignore_index=True)


def _added_up(values: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """Sums over the lines up to each that is kept, from behind the one kept before."""
    return np.add.reduceat(values, _begins(keep))


def _begins(keep: np.ndarray) -> np.ndarray:
    """Where the lines up to each that is kept begin."""
    return np.flatnonzero(np.append(True, keep[:-1]))


def _since(told: list[str], keep: np.ndarray) -> list[str]:
    """What lines since the kept line before tell of, by kept line."""
    out, met = [], set[str]()
    for text, kept in zip(told, keep, strict=True):
        met |= {work for work in text.split(", ") if work}
        if kept:
            out.append(", ".join(sorted(met, reverse=True)))
            met.clear()
    return out


def _known(seconds: float | None) -> float:
    return float(seconds) if seconds is not None and seconds > 0 else 0.0
