"""Columns of lines on steps, as arrays."""

from __future__ import annotations

import numpy as np
import pandas as pd


def floats(lines: pd.DataFrame, name: str) -> np.ndarray:
    if name not in lines:
        return np.full(len(lines), np.nan)
    return lines[name].to_numpy("float64", na_value=np.nan)


def told_of(lines: pd.DataFrame) -> list[str]:
    """What lines since the one before tell of, '' for nothing."""
    return lines["since"].fillna("").astype(str).tolist() if "since" in lines else [""] * len(lines)
