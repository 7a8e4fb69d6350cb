"""``proc_N.csv`` of alps-jobreport (CSCS): a row a GPU with means over a whole job; recognized in order to say so."""

from __future__ import annotations

from gpudiag.errors import InputError
from gpudiag.readers._io.source import Source
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "alps-jobreport"

_COLUMNS = frozenset(("gpuId", "powerUsageAvg", "startTime", "endTime", "smUtilizationAvg", "memoryUtilizationAvg"))
"""Every version wrote these (https://github.com/eth-cscs/alps-jobreport, include/dataframe.hpp)."""


def recognises(source: Source) -> bool:
    return not source.is_binary and bool(source.top) and set(source.top[0].strip().split(",")) >= _COLUMNS


def read(source: Source, options: ReadOptions) -> Telemetry:
    """Raise InputError: a mean over hours is no sample, and does not say when a GPU was idle."""
    raise InputError(
        f"{source.path}: is a report of alps-jobreport, which holds the mean, lowest and highest value of each GPU "
        "over a whole job and no samples. Read it with jobreport print; to see when each GPU was busy, record the job "
        "with gpudiag record."
    )


READER = Reader(NAME, recognises, read, refuses=True)
