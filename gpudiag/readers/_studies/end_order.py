"""A trial cannot end before it starts: such an end is made unknown, and counted."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from gpudiag.errors import InputError
from gpudiag.readers._io.problems import ProblemLog

END_BEFORE_START = "end before start"


def checked_ends(
    start: pd.Series, end: pd.Series, source: object, problems: ProblemLog, lines: Sequence[int] | None = None
) -> pd.Series:
    """``end`` with NaT where it lies before its ``start``; both are UTC and share their index.

    Such a trial keeps its row, so nothing is lost but the timestamp.

    Args:
        start: starts, NaT where unknown.
        end: ends, NaT where unknown or open.
        source: the input, for messages.
        problems: where the trials concerned are counted.
        lines: line number of each row, where the input has lines.

    Raises:
        InputError: this holds for every trial that has both timestamps, so the columns or their clocks are swapped.
    """
    both = start.notna() & end.notna()
    wrong = (both & (end < start)).to_numpy(dtype=bool)
    if not wrong.any():
        return end
    first = int(wrong.argmax())
    example = f"{end.iloc[first]:%Y-%m-%d %H:%M:%S} ends what started {start.iloc[first]:%Y-%m-%d %H:%M:%S} UTC"
    if wrong.sum() == both.sum():
        raise InputError(
            f"{source}: each of the {wrong.sum()} trials with a start and an end ends before it starts ({example}); "
            "swap the two columns, or write both by one clock."
        )
    line = None if lines is None else lines[first]
    problems.add(END_BEFORE_START, int(wrong.sum()), line=line, example=example)
    return end.where(~wrong)
