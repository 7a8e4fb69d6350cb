"""What to call logs that hold different GPUs of one index: by the part of their paths in which they differ."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath


def apart(paths: Sequence[str], gpus: Sequence[Sequence[str]]) -> list[str]:
    """For each log the name of the logs that share GPUs with it; none where all do, or no part of a path tells.

    Args:
        paths: those of the logs.
        gpus: the GPUs that each log holds, by the names that they have over all logs.
    """
    group = _groups(gpus)
    first = {own: path for own, path in zip(reversed(group), reversed(paths), strict=True)}
    if len(first) < 2:
        return []
    parts = [(*PurePath(path).parent.parts, PurePath(path).stem) for path in first.values()]
    for depth in range(1, min(map(len, parts)) + 1):
        names = [own[-depth].replace(".", "-").replace("/", "-") for own in parts]  # a point begins a domain of hosts
        if len({name.casefold() for name in names}) == len(names):
            named = dict(zip(first, names, strict=True))
            return [named[own] for own in group]
    return []


def _groups(gpus: Sequence[Sequence[str]]) -> list[int]:
    """A number for each log; logs that share a GPU, and those that share one with these, have the same."""
    group = list(range(len(gpus)))
    of_gpu: dict[str, int] = {}
    for at, own in enumerate(gpus):
        for gpu in own:
            other, mine = of_gpu.setdefault(gpu, group[at]), group[at]
            if other != mine:
                group = [other if number == mine else number for number in group]
                of_gpu = {name: other if number == mine else number for name, number in of_gpu.items()}
    return group
