"""Files that tell of the same steps at the same moments: one training that is logged twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

import numpy as np
import pandas as pd

from gpudiag.measures._steps.clocks import is_coarse, tick_of
from gpudiag.measures._steps.lines import floats, since_of
from gpudiag.measures._steps.log_files import (
    LogFile,
    Writer,
    WrittenSteps,
    as_told,
    may_be_one,
    may_be_one_training,
    of_one_folder,
    of_one_process,
)
from gpudiag.readers._steps.metric_kinds import EVENTS
from gpudiag.readers._steps.trainer_line import HISTORY
from gpudiag.schema import LASTING, text_dtype
from gpudiag.spans import seconds

ENOUGH = 5
"""Fewer steps that both tell of are no proof."""
OF_ONE_FORM = 10
"""Fewer lines of one form may be the same by chance, by a clock of whole seconds."""
ALIKE = 0.9
"""Share of these steps that both tell of at the same moment; of the rest a timestamp may be damaged."""
FULL = 20
"""Lines that show a course: with timestamps they tell more than any number of lines without."""
APART_S = 2.0
"""Two programs that stamp the same line may differ by so much, and a clock of whole seconds by half of it."""
LEVELS = 5
"""As many stated times that differ do not agree by chance, line by line."""
MEANS = 0.01
"""Part by which the means of times that agree may differ: rounding and lines that one lacks."""
LEAST_OF_TIME, MOST_OF_TIME = 0.5, 1.05
"""The times of a training's steps are so much of the time between its first and last; the rest are other work."""
AT_ONCE_S = 0.5
"""Event files of one training are written at once: by each rank, or one for each of several scalars."""


def without_second_tellings(files: Sequence[LogFile]) -> tuple[list[LogFile], dict[str, str]]:
    """The files without what another tells of as fully, and of those that tell of nothing else which other does.

    What only the one left out tells of other work goes to the interval of the other in which it was.
    """
    every = sorted(
        ((file, at, steps) for at, file in enumerate(files) for steps in file.written.values()), key=_least_full
    )
    begins, ends = (np.array([_edge(steps, place) for _, _, steps in every]) for place in (0, -1))
    out: dict[tuple[int, Writer], int] = {}
    heard: set[int] = set()
    beside = Counter(map(_folder, files))
    history = np.array([steps.kind == HISTORY for _, _, steps in every], bool)
    means = np.array([_mean_s(steps) for _, _, steps in every])
    for number, (file, at, steps) in enumerate(every):
        alike = _near(means, number)
        for other in sorted({*_candidates(history, begins, ends, number), *alike}):
            fuller, fuller_at, by = every[other]
            if (fuller_at, by.writer) in out or fuller_at == at:
                continue
            undated = not steps.is_dated or not by.is_dated
            states_same = undated and (
                (other in alike and _states_same(fuller, by, file, steps))
                or (beside[_folder(file)] == 2 and _lasts_as_long(fuller, by, file, steps))
            )
            if not states_same and (not _may_be_one(fuller, by, file, steps) or (other in heard and undated)):
                continue
            if states_same and steps.is_dated and not by.is_dated and other not in out.values():
                out[fuller_at, by.writer] = number  # timestamps are worth more than lines
                continue
            if states_same or _same(by, steps):
                out[at, steps.writer] = other
                heard |= {other} if undated else set()
                break
    return _kept(files, every, out)


def _kept(
    files: Sequence[LogFile],
    every: Sequence[tuple[LogFile, int, WrittenSteps]],
    out: dict[tuple[int, Writer], int],
) -> tuple[list[LogFile], dict[str, str]]:
    if not out:
        return list(files), {}
    lines = [file.lines for file in files]
    for (at, writer), other in out.items():
        _, into, by = every[other]
        lines[into] = _with_words(lines[into], by, files[at].written[writer], files[at].behind)
    for at, writer in out:
        lines[at] = lines[at][~_of(lines[at], writer)]
    left = [replace(file, lines=own) for file, own in zip(files, lines, strict=True) if len(own)]
    told_by = {
        str(path): every[other][0].path
        for (at, _), other in out.items()
        if not len(lines[at])
        for path in files[at].lines["path"].unique()
    }
    return left, told_by


def _least_full(one: tuple[LogFile, int, WrittenSteps]) -> tuple[bool, int, bool, int, int]:
    """The fuller of two comes first: one with timestamps and lines enough, then one with more lines, one that names its
    rank or trial, and one that tells more.
    """
    file, at, steps = one
    dated = steps.is_dated and len(steps.lines) >= FULL
    return not dated, -len(steps.lines), steps.writer == (None, None), -len(file.told), at


def _edge(steps: WrittenSteps, place: int) -> float:
    """The first or last moment, in seconds; NaN without any."""
    moments = steps.moment[~np.isnat(steps.moment)]
    return float(moments[place].astype(np.int64)) / 1e6 if len(moments) else np.nan


def _candidates(history: np.ndarray, begins: np.ndarray, ends: np.ndarray, number: int) -> list[int]:
    """Which of the fuller ones may tell of the same; a history of Hugging Face's Trainer states the times that its bar
    shows.
    """
    found, others = _overlapping(begins, ends, number), np.flatnonzero(history[:number] != history[number])
    return sorted({*found, *others.tolist()}) if len(others) else found


def _mean_s(steps: WrittenSteps) -> float:
    """The mean of the times of a step that lines state; NaN for fewer than prove anything."""
    stated = floats(steps.lines, "step_s")
    known = stated[stated > 0]
    return float(known.mean()) if len(known) >= OF_ONE_FORM else np.nan


def _near(means: np.ndarray, number: int) -> set[int]:
    """Which of the fuller ones state times that are the same in the mean."""
    return set(np.flatnonzero(np.abs(means[:number] - means[number]) <= MEANS * means[number]).tolist())


def _overlapping(begins: np.ndarray, ends: np.ndarray, number: int) -> list[int]:
    """Which of the fuller ones were written while this one was; of one of the two the time may be unknown."""
    if np.isnan(begins[number]):
        return np.flatnonzero(~np.isnan(begins[:number])).tolist()
    reach = APART_S + (1 - ALIKE) * (ends[number] - begins[number])
    within = (begins[:number] <= begins[number] + reach) & (ends[:number] >= ends[number] - reach)
    return np.flatnonzero(within | np.isnan(begins[:number])).tolist()


def _may_be_one(fuller: LogFile, by: WrittenSteps, file: LogFile, steps: WrittenSteps) -> bool:
    rank, trial = (a is None or b is None or a == b for a, b in zip(by.writer, steps.writer, strict=True))
    if by.kind == steps.kind == EVENTS:  # of one training each of its ranks may write them
        one_unit = by.lines["unit"].iloc[0] == steps.lines["unit"].iloc[0]
        one_training = may_be_one_training(fuller.path, file.path) and of_one_folder(fuller.path, file.path)
        return trial and one_unit and by.is_dated == steps.is_dated and one_training
    named = rank and trial
    return named and by.lines["unit"].iloc[0] == steps.lines["unit"].iloc[0] and (
        may_be_one(fuller.path, file.path)
        and (by.is_dated == steps.is_dated or _is_history(by, steps) or of_one_process(fuller.path, file.path))
    )  # fmt: skip


def _states_same(fuller: LogFile, by: WrittenSteps, file: LogFile, steps: WrittenSteps) -> bool:
    """Whether two in one folder state the same time of each step or epoch that both name, but for what is rounded: no
    two trainings take the same times.
    """
    named = all(a is None or b is None or a == b for a, b in zip(by.writer, steps.writer, strict=True))
    if not named or not may_be_one(fuller.path, file.path) or not of_one_folder(fuller.path, file.path):
        return False
    if by.lines["unit"].iloc[0] != steps.lines["unit"].iloc[0]:
        return False
    one, other = (_stated_of(of) for of in (by, steps))
    keys = ["step"] if one["step"].is_unique and other["step"].is_unique else ["epoch", "step"]
    one, other = (of.drop_duplicates(keys) for of in (one, other))
    met = other.merge(one, on=keys, suffixes=("", "_of_one"))
    if len(met) < max(OF_ONE_FORM, ALIKE * len(other)):
        return False
    first, second = met["step_s"].to_numpy(), met["step_s_of_one"].to_numpy()
    ticks = tick_of(first), tick_of(second)
    same = np.abs(first - second) <= 0.505 * sum(ticks)
    return float(same.mean()) >= ALIKE and len(np.unique(np.round(first / max(ticks)))) >= LEVELS


def _folder(file: LogFile) -> PurePath:
    return PurePath(file.path).parent


def _lasts_as_long(fuller: LogFile, by: WrittenSteps, file: LogFile, steps: WrittenSteps) -> bool:
    """Whether a log with timestamps and one of another form that states times without any may be of one training: they
    name the same steps, and what is stated is nearly all of the time of the other, and no more. In a folder of their
    own, two such are what one program writes.
    """
    if by.writer != (None, None) or steps.writer != (None, None) or by.kind == steps.kind:
        return False
    if _folder(fuller) != _folder(file) or not may_be_one(fuller.path, file.path):
        return False
    if by.is_dated == steps.is_dated or by.lines["unit"].iloc[0] != steps.lines["unit"].iloc[0]:
        return False
    dated, stating = (by, steps) if by.is_dated else (steps, by)
    clock, told = _clock_of(dated), _stated_of(stating)
    if min(len(clock), len(told)) < OF_ONE_FORM or not (
        told["step"].is_unique and clock["step"].is_monotonic_increasing
    ):
        return False
    (begun, begun_s), (done, done_s) = (tuple(clock[["step", "at_s"]].iloc[end]) for end in (0, -1))
    most = max(dated.stride, stating.stride)
    if abs(told["step"].iloc[0] - begun) > most or abs(told["step"].iloc[-1] - done) > most:
        return False
    within = (told["step"] > begun) & (told["step"] <= done)
    stated_s = float(told["step_s"][within].mean()) * (done - begun)
    return LEAST_OF_TIME * (done_s - begun_s) <= stated_s <= MOST_OF_TIME * (done_s - begun_s)


def _stated_of(steps: WrittenSteps) -> pd.DataFrame:
    """The lines that state the time of a step, by their places."""
    numbers = {name: floats(steps.lines, name) for name in ("epoch", "step", "step_s")}
    frame = pd.DataFrame(numbers)
    return frame[frame["step_s"] > 0]


def _same(one: WrittenSteps, other: WrittenSteps) -> bool:
    """Whether the steps that both name were done at the same moments. Of lines of one form no less than the same moment
    counts: those of ranks, or of trainings side by side, are never as close all along.
    """
    if not (one.is_dated or other.is_dated or _is_history(one, other)):
        return False  # two trainings of equal steps have bars that are alike
    dated = one.is_dated and other.is_dated
    if dated and one.kind == other.kind == EVENTS:
        return len(other.lines) >= OF_ONE_FORM and _tells_of(one, other, AT_ONCE_S)
    if dated and _form(one) == _form(other):
        return len(other.lines) >= OF_ONE_FORM and _holds(one, other)
    return _tells_of(one, other, APART_S)


def _tells_of(one: WrittenSteps, other: WrittenSteps, most_s: float) -> bool:
    """Whether the one tells of nearly all steps of the other, nearly all of them within so much of one distance; that
    is no longer itself where both have timestamps.
    """
    apart_s, (met_from, met_to) = _apart_s(one, other)
    step = floats(other.lines, "step")
    if len(apart_s) < ENOUGH or (met_to - met_from < ALIKE * (step.max() - step.min()) - other.stride):
        return False
    middle = float(np.median(apart_s))
    if one.is_dated and other.is_dated and abs(middle) > most_s:
        return False
    return float((np.abs(apart_s - middle) <= most_s).mean()) >= ALIKE


def _is_history(one: WrittenSteps, other: WrittenSteps) -> bool:
    return HISTORY in (one.kind, other.kind) and one.kind != other.kind


def _apart_s(one: WrittenSteps, other: WrittenSteps) -> tuple[np.ndarray, tuple[float, float]]:
    """By line of the other whose step the one names too: how much later it was, by the nearest line of that step; and
    the least and the most of these steps.
    """
    left, right = (_clock_of(steps) for steps in (other, one))
    if not (one.is_dated and other.is_dated):
        left, right = (frame.drop_duplicates("step") for frame in (left, right))
        met = left.merge(right, on="step", suffixes=("", "_of_one"))
    else:
        right = right.assign(at_s_of_one=right["at_s"])
        met = pd.merge_asof(left, right, on="at_s", by="step", direction="nearest").dropna(subset=["at_s_of_one"])
    return (met["at_s"] - met["at_s_of_one"]).to_numpy(), (float(met["step"].min()), float(met["step"].max()))


def _clock_of(steps: WrittenSteps) -> pd.DataFrame:
    """Steps by their moment, or by the time of the bar, in seconds."""
    at_s = steps.moment.astype(np.int64) / 1e6 if steps.is_dated else floats(steps.lines, "elapsed_s")
    known = ~np.isnat(steps.moment) if steps.is_dated else ~np.isnan(at_s)
    frame = pd.DataFrame({"at_s": at_s[known], "step": steps.lines["step"].to_numpy(np.int64)[known]})
    return frame.sort_values("at_s", kind="stable")


def _holds(one: WrittenSteps, other: WrittenSteps) -> bool:
    """Whether the one holds all lines of the other, as a logger's file holds what it prints, too."""
    if not np.isin(other.moment[[0, -1]], one.moment).all():
        return False
    return set(_rows(other)) <= set(_rows(one))


def _rows(steps: WrittenSteps) -> list[tuple[float, ...]]:
    numbers = ("step", "total", "epoch", "step_s", "loader_s", "samples_s", "tokens_s")
    columns = [np.nan_to_num(floats(steps.lines, name), nan=-1.0) for name in numbers]
    return list(zip(steps.moment.astype(np.int64).tolist(), *(column.tolist() for column in columns), strict=True))


def _form(steps: WrittenSteps) -> tuple[object, ...]:
    """The kind of its lines, whether they name a total, and whether their clock has parts of a second."""
    lines = steps.lines
    moments = steps.moment[~np.isnat(steps.moment)].astype(np.int64) / 1e6
    return lines["series"].iloc[0], bool(np.isnan(floats(lines, "total")).all()), is_coarse(moments)


def _of(lines: pd.DataFrame, writer: Writer) -> np.ndarray:
    rank, trial = (np.nan if name is None else name for name in writer)
    of_rank, of_trial = floats(lines, "rank"), floats(lines, "trial")
    return ((of_rank == rank) | (np.isnan(of_rank) & np.isnan(rank))) & (
        (of_trial == trial) | (np.isnan(of_trial) & np.isnan(trial))
    )


def _with_words(lines: pd.DataFrame, by: WrittenSteps, steps: WrittenSteps, behind: set[str]) -> pd.DataFrame:
    """The lines of a file with what another tells of the same steps: each word that the file does not have there at the
    longest interval that ends between the two lines of the other that it stands between. Other work of which those
    state the time is in the interval that is as much longer than usual.
    """
    since = dict(zip(lines.index, since_of(lines), strict=True))
    index, told = by.lines.index.to_numpy(), since_of(steps.lines)
    place, low, high = _spans(by, steps)
    longest = np.append(-np.inf, np.nan_to_num(np.diff(place)))
    usual_s, dated, lines = float(np.median(longest)), by.is_dated and steps.is_dated, lines.copy()
    for at in np.flatnonzero([bool(text) for text in told]).tolist():
        within = np.flatnonzero((place > low[at]) & (place <= high[at]))
        known = {word for one in index[within] for word in since[one].split(", ")}
        for word in sorted(set(told[at].split(", ")) - known if len(within) else ()):
            spot = within[np.argmax(longest[within])] if at else within[-1]
            stated_s = floats(steps.lines, f"{word}_s")[at] if dated and word in LASTING else np.nan
            if at and stated_s > 0:
                spot = within[np.argmin(np.abs(longest[within] - usual_s - stated_s))]
                lines.loc[index[spot], f"{word}_s"] = stated_s
            since[index[spot]] = as_told({*since[index[spot]].split(", "), word} - {""}) or ""
    later = np.flatnonzero(place > high[-1])
    if behind and len(later):
        here = index[later[0]]
        since[here] = as_told({*since[here].split(", "), *behind} - {""}) or ""
    lines = lines.assign(since=pd.Series({key: text or None for key, text in since.items()}, dtype=text_dtype()))
    total = steps.lines["total"] if "total" in steps.lines else pd.Series(dtype="Int64")
    if np.isnan(floats(by.lines, "total")).all() and total.nunique() == 1:  # an event file tells of none
        lines = lines.assign(total=lines["total"].where(~lines.index.isin(by.lines.index), total.dropna().iloc[0]))
    return lines if len(later) else _with_end(lines, behind)


def _spans(by: WrittenSteps, steps: WrittenSteps) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """By line of the one its moment in seconds, and by line of the other the moments that it stands between; where one
    of them has no timestamps, the steps.
    """
    if not (by.is_dated and steps.is_dated):
        place, high = floats(by.lines, "step"), floats(steps.lines, "step")
    else:
        place, high = (seconds(one.moment) for one in (by, steps))
        high = high + APART_S
    return place, np.append(-np.inf, high[:-1]), high


def _with_end(lines: pd.DataFrame, behind: set[str]) -> pd.DataFrame:
    """With what the other tells of behind its last step, too."""
    if not behind:
        return lines
    last = lines.index[-1]
    then = lines["then"] if "then" in lines else pd.Series(None, lines.index, dtype=text_dtype())
    known = set() if pd.isna(then[last]) else set(str(then[last]).split(", "))
    then = then.astype("object")
    then[last] = as_told(known | behind)
    then_s = lines["then_s"] if "then_s" in lines else pd.Series(np.nan, lines.index)
    return lines.assign(then=then.astype(text_dtype()), then_s=then_s.where(lines.index != last, then_s.fillna(0.0)))
