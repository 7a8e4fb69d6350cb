"""The log of a training: the file that it was written to, or several of which each goes on where another ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd

from gpudiag._run.allocated_gpus import of_a_search
from gpudiag.measures._steps.event_files import as_one, dated_by, is_of_events, tells_of
from gpudiag.measures._steps.going_on import GOES_ON, Fit, fit_of, is_rest, stood_still
from gpudiag.measures._steps.histories import without_earlier_histories
from gpudiag.measures._steps.lines import since_of
from gpudiag.measures._steps.log_files import LogFile, as_told, likeness
from gpudiag.measures._steps.told_twice import without_second_tellings
from gpudiag.measures._steps.whole_time import without_whole_times
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import text_dtype

_NOTHING: Mapping[str, str] = MappingProxyType({})


class TrainingLogs(NamedTuple):
    """``lines``: the table ``steps`` in the order of its logs and within each of its lines, with ``log`` (the first
    file of it) and ``part`` (the file's place in it, from 0). ``n_joined``: files that go on with another's training;
    ``n_twice``: files left out, for others tell of the same steps; ``n_unclear``: files of which it is not clear
    whether they go on with another's training. ``told_by``: by file left out one that is not and tells of its steps.
    """

    lines: pd.DataFrame
    n_joined: int = 0
    n_twice: int = 0
    n_unclear: int = 0
    told_by: Mapping[str, str] = _NOTHING


@memoized
def training_logs(run: Run) -> TrainingLogs:
    """Which files are one log: a job that is started anew and a log that is rotated leave several.

    A file goes on with another's training where it begins behind the other's end, with lines of the same kind, rank,
    trial and number of steps, and its steps go on, or go back as far as one says that resumes. Without timestamps it
    must say so. Two that fit the same place are told apart by their names, or not at all. Lines that only state the
    time of a whole training are no part of any. Jobs of a scheduler are no trials of a search.
    """
    trials = of_a_search(run.trials)
    lines, n_earlier = without_earlier_histories(without_whole_times(run.steps))
    ordered = lines.drop_duplicates().sort_values(["path", "line"], kind="stable")
    files = [LogFile(str(path), lines) for path, lines in ordered.groupby("path", sort=False)]
    if len(files) < 2:
        return TrainingLogs(ordered.assign(log=ordered["path"], part=0), n_twice=n_earlier)
    files, n_ahead, told_ahead = _with_events_joined(files, trials)
    files, told = without_second_tellings(files)
    chains, n_unclear = _chains(files, trials)
    lines = pd.concat([_joined(chain.files) for chain in sorted(chains, key=lambda one: one.files[0].path)])
    lines = lines.astype({"log": text_dtype()})
    n_joined, told_by = n_ahead + len(files) - len(chains), _followed({**told_ahead, **told})
    return TrainingLogs(lines, n_joined, n_earlier + len(told_by), n_unclear, told_by)


def _followed(told_by: dict[str, str]) -> dict[str, str]:
    """By file that is left out one that is not."""
    out = {}
    for path, other in told_by.items():
        while other in told_by:
            other = told_by[other]
        out[path] = other
    return out


def _with_events_joined(files: Sequence[LogFile], trials: pd.DataFrame) -> tuple[list[LogFile], int, dict[str, str]]:
    """The files with the event files of each training as one, and logs without timestamps dated by these; how many
    files were joined, and which told of nothing else. Another log may tell of all that a training and its resumptions
    wrote.
    """
    events = [file for file in files if is_of_events(file)]
    if not events:
        return list(files), 0, {}
    own, told_by = without_second_tellings(events)
    chains, _ = _chains(own, trials)
    whole = [as_one([*chain.files], _joined(chain.files)) for chain in chains]
    others = [file for file in files if not is_of_events(file)]
    told_by |= {file.path: one.path for file in others for one in whole if tells_of(one, file)}
    left = [dated_by(whole, file) for file in others if file.path not in told_by]
    return [*left, *whole], len(own) - len(chains), told_by


@dataclass(eq=False)
class _Chain:
    files: list[LogFile] = field(default_factory=list)


def _chains(files: Sequence[LogFile], trials: pd.DataFrame) -> tuple[list[_Chain], int]:
    """The files of each log in order, and of how many files it is not clear."""
    chains: list[_Chain] = []
    n_unclear = 0
    order = sorted(files, key=_begins)
    for place, file in enumerate(order):
        chain, unclear = _chain_of(file, chains, order[:place], order[place + 1 :], trials)
        n_unclear += unclear
        if chain is None:
            chains.append(_Chain([file]))
        else:
            chain.files.append(file)
    return chains, n_unclear


def _begins(file: LogFile) -> tuple[bool, int, float, float, str]:
    """Dated files by their moments, others by the step that they begin with."""
    first = next(iter(file.written.values())).first
    moment = int(file.opened.astype(np.int64)) if file.is_dated else 0
    return not file.is_dated, moment, float(np.nan_to_num(first.epoch)), first.step, file.path


def _chain_of(
    file: LogFile, chains: Sequence[_Chain], before: Sequence[LogFile], behind: Sequence[LogFile], trials: pd.DataFrame
) -> tuple[_Chain | None, bool]:
    """The log that the file goes on with, if any, and whether that is not clear."""
    rest = is_rest(file)
    tails = chains if rest else _latest(chains, file)
    fits = [(chain, fit_of(chain.files[-1], file, trials)) for chain in tails]
    found = [(chain, fit) for chain, fit in fits if fit in GOES_ON]
    if not found:
        others = before if rest else [chain.files[-1] for chain in tails]
        return None, any(fit_of(other, file, trials) is not Fit.NONE for other in others)
    best = max(_likeness(chain.files[-1], file, fit) for chain, fit in found)
    likely = [chain for chain, fit in found if _likeness(chain.files[-1], file, fit) == best]
    if len(likely) > 1:
        return None, True
    last = likely[0].files[-1]
    alone = [chain.files[0] for chain in chains if len(chain.files) == 1 and chain is not likely[0]]
    rivals = [(other, fit_of(last, other, trials)) for other in [*alone, *behind] if _side_by_side(file, other, trials)]
    if any(fit in GOES_ON and _likeness(last, other, fit) >= best for other, fit in rivals):
        return None, True
    return likely[0], False


def _latest(chains: Sequence[_Chain], file: LogFile) -> list[_Chain]:
    """The log that ended last before the file began; without timestamps the one before it in order."""
    ended = [chain for chain in chains if not file.is_dated or chain.files[-1].last <= file.opened]
    return ([max(ended, key=lambda chain: chain.files[-1].last)] if file.is_dated else ended[-1:]) if ended else []


def _likeness(last: LogFile, file: LogFile, fit: Fit) -> tuple[bool, int]:
    return fit is Fit.SEAMLESS, likeness(last.path, file.path)


def _side_by_side(file: LogFile, other: LogFile, trials: pd.DataFrame) -> bool:
    """Whether the other was written while this one was, or neither can go on with the other."""
    if file.is_dated and other.is_dated:
        return bool(other.opened < file.last and file.opened < other.last)
    return fit_of(file, other, trials) is Fit.NONE and fit_of(other, file, trials) is Fit.NONE


def _joined(files: Sequence[LogFile]) -> pd.DataFrame:
    """The lines of one log. What a file tells of behind its last step passed before the next file's first."""
    parts = []
    for part, file in enumerate(files):
        lines = file.lines
        if part:
            still = stood_still(files[part - 1], file)
            lines = _behind(files[part - 1].behind | ({"resumption"} if still else set()), lines)
        if part < len(files) - 1:
            lines = lines.drop(columns=["then", "then_s"], errors="ignore")
        parts.append(lines.assign(log=files[0].path, part=part))
    return pd.concat(parts)


def _behind(words: set[str], lines: pd.DataFrame) -> pd.DataFrame:
    """The lines of a file behind one that told of other work last: it stands before the first line of each writer."""
    first = ~lines.duplicated([name for name in ("series", "rank", "trial") if name in lines])
    since = [
        as_told(words.union(text.split(", ")) - {""}) if begins else text or None
        for text, begins in zip(since_of(lines), first, strict=True)
    ]
    return lines.assign(since=pd.Series(since, lines.index, dtype=text_dtype()))
