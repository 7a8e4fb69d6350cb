"""One tenant of a GPU after another: who had it from when to when, as its samples name them."""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

import numpy as np

from gpudiag.measures._time.microseconds import SECOND_US

LEAST_S = 60.0
"""A glance, as for a check: monitoring names a pod a sample late, or misses it once."""


class Term(NamedTuple):
    """A tenant, "" for nobody, and the first and last microsecond of it."""

    tenant: str
    start_us: int
    end_us: int

    @property
    def length_us(self) -> int:
        return self.end_us - self.start_us


def terms_of(time_us: np.ndarray, tenants: np.ndarray) -> list[Term]:
    """In order; each lasts until the next. The longest alone where none is longer than a glance; a time with nobody
    between two of one tenant is its own: a container started again.
    """
    fresh = np.flatnonzero(np.append(True, tenants[1:] != tenants[:-1])) if len(tenants) else np.zeros(0, int)
    ends = np.append(time_us[fresh[1:]], time_us[-1:])
    every = [Term(str(tenants[at]), int(time_us[at]), int(end)) for at, end in zip(fresh, ends, strict=True)]
    long = [term for term in every if term.length_us >= LEAST_S * SECOND_US] or sorted(every, key=_length)[-1:]
    held = [term for at, term in enumerate(long) if term.tenant or not _is_pause(long, at)]
    return [
        Term(tenant, own[0].start_us, own[-1].end_us)
        for tenant, group in groupby(held, key=lambda term: term.tenant)
        for own in [list(group)]
    ]


def _length(term: Term) -> int:
    return term.length_us


def _is_pause(terms: list[Term], at: int) -> bool:
    return 0 < at < len(terms) - 1 and terms[at - 1].tenant == terms[at + 1].tenant
