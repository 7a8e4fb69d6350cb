"""How many GPUs a scheduler gave a job, as sacct lists its resources: ``cpu=8,gres/gpu:a100=4,gres/gpu=4``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_GPUS = re.compile(r"(?:^|,)gres/gpu(:[\w.-]+)?=(\d+)")
_PARTS_OF_GPUS = re.compile(r"(?:^|,)gres/(?:shard|mps)\b")


def counts_gpus(rows: Iterable[Mapping[str, str]]) -> bool:
    """Whether the scheduler counts GPUs: some job has, or asked for, some. Of one that does not no job names any."""
    return any(_GPUS.search(row.get(name, "")) for row in rows for name in ("AllocTRES", "ReqTRES"))


def allocated_gpus(row: Mapping[str, str], *, counted: bool) -> tuple[int | None, str]:
    """How many, and of which type. What was allocated counts, else what was asked for, and where the scheduler has not
    ``counted`` GPUs, or gave parts of them, what its details state (``GpuCount``). None where nothing says so: a node
    may be given whole without it.
    """
    count = row.get("GpuCount", "")
    stated = int(count) if count.isdecimal() and len(count) < 10 else None
    for name in ("AllocTRES", "ReqTRES"):
        cell = row.get(name, "")
        found = _GPUS.findall(cell)
        typed = [(kind[1:], int(n)) for kind, n in found if kind]
        plain = [int(n) for kind, n in found if not kind]
        if found:  # a typed entry repeats the untyped one
            models = [kind for kind, n in typed if n]
            return max([*plain, sum(n for _, n in typed)]), ", ".join(sorted(set(models)))
        if cell:
            return (0 if counted and not _PARTS_OF_GPUS.search(cell) else stated), ""
    return stated, ""
