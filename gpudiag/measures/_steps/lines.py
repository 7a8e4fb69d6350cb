"""Columns of lines on steps, as arrays."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.readers._steps.step_line import EVALUATIONS

MIN_LINES = 5
"""Fewer lines show no course, unless others of their log do."""


def standing(series: str, unit: str, n: int) -> tuple[bool, bool, bool]:
    """Of a kind with ``n`` lines: whether they are enough, count steps, and not evaluations. The greatest of a log is
    of its training.
    """
    return n >= MIN_LINES, unit == "step", series != EVALUATIONS


def floats(lines: pd.DataFrame, name: str) -> np.ndarray:
    if name not in lines:
        return np.full(len(lines), np.nan)
    return lines[name].to_numpy("float64", na_value=np.nan)


def meant_of(lines: pd.DataFrame) -> np.ndarray:
    """What the times that each line states are the mean of."""
    return lines["meant"].to_numpy(dtype=object) if "meant" in lines else np.full(len(lines), "")


END = "end"
"""What lines tell of where a training ends, or another begins."""


def told_of(lines: pd.DataFrame) -> list[str]:
    """What lines since the one before tell of but for ends, '' for nothing."""
    return [without_end(text) for text in since_of(lines)]


def without_end(text: str) -> str:
    """The other work that such a text tells of."""
    return ", ".join(work for work in text.split(", ") if work != END)


def ends_before(lines: pd.DataFrame) -> np.ndarray:
    """Lines before which a training ended, as others tell."""
    return np.array([END in text.split(", ") for text in since_of(lines)], bool)


def since_of(lines: pd.DataFrame) -> list[str]:
    """All that lines since the one before tell of, '' for nothing."""
    return lines["since"].fillna("").astype(str).tolist() if "since" in lines else [""] * len(lines)
