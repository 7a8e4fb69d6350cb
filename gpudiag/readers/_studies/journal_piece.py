"""Some lines of a journal, cut into columns: what one step of reading hands to the next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ArrayColumns = dict[str, np.ndarray]


@dataclass(frozen=True)
class JournalPiece:
    """Some lines, numbered from 0: the steps among them, and number and text of those to be read one by one.

    Behind ``params`` stand the distinct names and distributions that its codes number, behind attributes the keys.
    """

    lines: int
    rest: list[tuple[int, bytes]]
    reports: ArrayColumns | None = None
    params: tuple[ArrayColumns, list[str], list[str]] | None = None
    user_attrs: tuple[ArrayColumns, list[str]] | None = None
    system_attrs: tuple[ArrayColumns, list[str]] | None = None
