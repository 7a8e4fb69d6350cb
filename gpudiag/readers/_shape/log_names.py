"""What to call logs that hold different GPUs of one index: by the part of their paths in which they differ."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

_MACHINE = re.compile(
    r"(?:[a-z0-9]*(?:node|host|machine|server)[-_.]?(?:\d+|[a-rt-z])"
    r"|(?<![a-z0-9])(?:(?:nid|cn|dgx|hgx|vm)[-_]?|(?:[a-z]\d+)+n|n0)\d+"
    r"|(?<![a-z0-9])ip(?:-\d+){4})(?![a-z0-9])"
)
"""Names of machines in file names: node1, gpu-node-03, host_b, r3i1n04, nid001234, dgx2, ip-10-0-0-7."""
_GPU_NODE = re.compile(r"(?<![a-z0-9])gpu(\d{2,})(?![a-z0-9])")
"""A machine called gpu17; below the number of GPUs that its log holds it may as well be that of a GPU or a rank."""


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


def machines(paths: Sequence[str], indices: Sequence[Sequence[str]]) -> list[str]:
    """For each log the machine that its path names, ``""`` where it names none.

    Args:
        paths: those of the logs.
        indices: the indices of the GPUs that each log holds.
    """
    numbers = [int(one) for own in indices for one in own if one.isascii() and one.isdecimal()]
    texts = [PurePath(path).with_suffix("").as_posix().casefold() for path in paths]
    named = [tuple(dict.fromkeys(_MACHINE.findall(text))) for text in texts]
    if not any(named) and len(numbers) > len(paths):
        called = [_GPU_NODE.search(text) for text in texts]
        named = [(one[0],) if one and int(one[1]) > max(numbers) else () for one in called]
    common = set(named[0]).intersection(*named[1:]) if named else set()
    return ["/".join(name for name in own if name not in common) for own in named]


def shortened(paths: Sequence[str]) -> list[str]:
    """The paths without the folders that all have in common."""
    parts = [PurePath(path).parts for path in paths]
    n = 0
    while len({own[: n + 1] for own in parts}) == 1 and all(len(own) > n + 1 for own in parts):
        n += 1
    return ["/".join(own[n:]) for own in parts]


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
