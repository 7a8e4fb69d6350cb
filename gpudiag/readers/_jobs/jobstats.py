"""What Princeton's jobstats leaves in Slurm's AdminComment: ``JS1:`` and base64 of gzip of JSON.

By node it holds the mean utilization of each GPU that the job had, the most memory that was used of it and the memory
it has, in bytes, under the number of the GPU (https://github.com/PrincetonUniversity/jobstats,
docs/setup/summaries.md).
``Short`` and ``None`` stand for jobs that were too short, or of which nothing was recorded.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gpudiag.readers._io.problems import ProblemLog
from gpudiag.schema import MOST_MIB
from gpudiag.values import is_number

MARK = "JS1:"
_NOTHING = ("", "Short", "None")
MOST_BYTES = 8 * 2**20
_MIB = 2**20

NO_RECORD, NO_VALUE = "record of jobstats", "value of jobstats that is none"

ByGpu = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class JobstatsRecord:
    """By node and number of the GPU: mean utilization, the most memory used, and the memory it has. NaN where a value
    is none; ``odd``: these values, as written.
    """

    use_pct: ByGpu = field(default_factory=dict)
    used_mib: ByGpu = field(default_factory=dict)
    total_mib: ByGpu = field(default_factory=dict)
    odd: tuple[str, ...] = ()

    def known_pct(self) -> list[float]:
        """Mean utilization of the GPUs of which it is known."""
        return [pct for use in self.use_pct.values() for pct in use.values() if pct == pct]

    def fullest(self) -> tuple[float, float]:
        """Memory used and memory there is, of the GPU with the most used; NaN where unknown."""
        used = [(mib, node, gpu) for node, held in self.used_mib.items() for gpu, mib in held.items() if mib == mib]
        if not used:
            return math.nan, math.nan
        most, node, gpu = max(used)
        return most, self.total_mib.get(node, {}).get(gpu, math.nan)


def jobstats_record(comment: str) -> JobstatsRecord:
    """The record in a comment; an empty one where the comment holds none.

    Raises ValueError for a comment with the mark and something else behind it.
    """
    if not comment.startswith(MARK) or comment.removeprefix(MARK) in _NOTHING:
        return JobstatsRecord()
    try:
        inflate = zlib.decompressobj(wbits=31)
        text = inflate.decompress(base64.b64decode(comment.removeprefix(MARK)), MOST_BYTES)
        nodes = {str(node): dict(held) for node, held in json.loads(text)["nodes"].items()}
    except (binascii.Error, zlib.error, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("no record of jobstats follows JS1:") from error
    odd: list[str] = []
    return JobstatsRecord(
        use_pct=_by_gpu(nodes, "gpu_utilization", _pct, odd),
        used_mib=_by_gpu(nodes, "gpu_used_memory", _mib, odd),
        total_mib=_by_gpu(nodes, "gpu_total_memory", _mib, odd),
        odd=tuple(odd),
    )


def _by_gpu(
    nodes: Mapping[str, Mapping[str, object]], name: str, unit: Callable[[float], float], odd: list[str]
) -> ByGpu:
    """Nodes without GPUs are there, with none."""
    out = {}
    for node, held in nodes.items():
        values = held.get(name)
        out[node] = {
            str(gpu): _value(value, unit, f"{name} {value!r:.40} of GPU {gpu!s:.20} of {node:.60}", odd)
            for gpu, value in (values.items() if isinstance(values, dict) else ())
        }
    return out


def _value(value: object, unit: Callable[[float], float], said: str, odd: list[str]) -> float:
    """NaN for what is no number and for one that cannot be. A word is no fault: it says that nothing is known."""
    if value is None or isinstance(value, str):
        return math.nan
    try:
        number = unit(float(value)) if is_number(value) else math.nan
    except OverflowError:
        number = math.nan
    if number != number:
        odd.append(said)
    return number


def _pct(number: float) -> float:
    return number if 0 <= number <= 100 else math.nan


def _mib(number: float) -> float:
    return number / _MIB if 0 <= number <= MOST_MIB * _MIB else math.nan


def recorded(comment: str, line: int, log: ProblemLog) -> JobstatsRecord:
    """What jobstats left of the job of a line; what is wrong in it costs that and not the job."""
    try:
        record = jobstats_record(comment)
    except ValueError as error:
        log.add(NO_RECORD, line=line, example=str(error))
        return JobstatsRecord()
    if record.odd:
        log.add(NO_VALUE, len(record.odd), line=line, example=record.odd[0])
    return record
