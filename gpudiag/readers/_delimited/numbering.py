"""Numbers for GPUs of which a log gives uuid or bus id alone: as nvidia-smi numbers them, where the log shows it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from gpudiag.readers._delimited.pieces import BlockRows, column_of
from gpudiag.readers._shape.identity import GpuIdentity

BY_BUS_ID = "It names GPUs by uuid or bus id only: they were numbered in the order of their bus ids."
AS_LISTED = "It names GPUs by uuid or bus id only: they were numbered in the order in which each tick lists them."
_ROWS = 40
"""So many rows of each GPU show where ticks begin."""
_CLEARLY = 3


def in_order(identities: Sequence[GpuIdentity], pieces: Sequence[BlockRows]) -> tuple[list[GpuIdentity], list[str]]:
    """The identities in the order of nvidia-smi's indices, with a note, where there are several without an index.

    It counts GPUs by their bus id, and lists them so. A log that begins in the middle of a tick lists the first ones
    last: the longest pause comes before the first.
    """
    if len(identities) < 2 or any(one.index for one in identities):
        return list(identities), []
    if all(one.bus_id for one in identities):
        return sorted(identities, key=_place), [BY_BUS_ID]
    return _turned(list(identities), pieces), [AS_LISTED]


def _place(identity: GpuIdentity) -> tuple[int, ...]:
    return tuple(int(part, 16) for part in re.findall(r"[0-9a-fA-F]+", identity.bus_id))


def _turned(identities: list[GpuIdentity], pieces: Sequence[BlockRows]) -> list[GpuIdentity]:
    piece = next((piece for piece in pieces if len(piece) and piece.code is not None), None)
    if piece is None or piece.code is None or set(piece.identities) != set(identities):
        return identities
    order = np.argsort(piece.lines, kind="stable")[: _ROWS * len(identities)]
    code = piece.code[order][1:]
    step = np.diff(column_of(piece, "time")[order].astype("datetime64[us]").astype(np.int64))
    pauses = {
        piece.identities[at]: float(np.median(step[code == at])) if (code == at).any() else 0.0
        for at in range(len(identities))
    }
    first = max(identities, key=pauses.__getitem__)
    others = max(pause for one, pause in pauses.items() if one != first)
    at = identities.index(first) if pauses[first] > _CLEARLY * max(others, 0.0) else 0
    return identities[at:] + identities[:at]
