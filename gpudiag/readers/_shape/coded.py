"""A column of few different texts as numbers: what pandas calls categorical, without what its checks cost."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gpudiag.schema import text_dtype

_MANY = 2**15
_FEW = 1000
"""So many texts are sooner made one by one than by a library's selection."""


@dataclass(frozen=True, eq=False)
class Coded:
    """``codes`` are positions in ``labels``, which are distinct; -1 is no text."""

    codes: np.ndarray
    labels: list[str]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> Coded:
        return Coded(self.codes[rows], self.labels)

    def texts(self) -> Any:
        """The column, where every row has a text."""
        labels = np.array(self.labels, dtype=object)
        if len(self) < _FEW:
            return pd.array(labels[self.codes], dtype=text_dtype())
        return pd.array(labels, dtype=text_dtype()).take(self.codes)


def coded(values: Any) -> Coded:
    """A column of texts, its labels in natural order."""
    if isinstance(values, Coded):
        codes, labels = values.codes, values.labels
    elif isinstance(values.dtype, pd.CategoricalDtype):
        codes, labels = pd.Categorical(values).codes, values.dtype.categories.tolist()
    else:
        codes, found = pd.factorize(values)
        labels = found.tolist()
    in_order = sorted(labels, key=natural)
    if in_order != labels:
        places = {label: place for place, label in enumerate(in_order)}
        codes = np.array([*map(places.__getitem__, labels), -1])[codes]
    return Coded(codes.astype(np.int16 if len(labels) < _MANY else np.int32, copy=False), in_order)


def natural(label: str) -> tuple[tuple[bool, int, str], ...]:
    """Sort key by which '2' comes before '10'; a number is known by its digits, of which a label may have any."""
    out = []
    for part in re.findall(r"[0-9]+|[^0-9]+", label):
        digits = part.lstrip("0") if part[0] in "0123456789" else ""
        out.append((part[0] not in "0123456789", len(digits), digits or part))
    return tuple(out)
