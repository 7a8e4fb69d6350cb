"""Which rows speak of the same GPU: by uuid, then by bus id, then by index; within a file and over several."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_SUFFIXES = "bcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Face:
    """What rows say of the GPU they speak of; an empty text is unknown."""

    index: str = ""
    uuid: str = ""
    bus_id: str = ""
    name: str = ""
    driver: str = ""


def resolve(faces: Sequence[Face]) -> tuple[list[str], list[str]]:
    """The id of the GPU behind each face, and a note for each id that had to be made up.

    Faces are one GPU if their uuids are equal, or their bus ids, or their indices where nothing above
    contradicts. A second GPU at an index already taken gets a letter: 0, 0b, 0c.
    """
    gpus: list[dict[str, set[str]]] = []
    owner: list[int] = [-1] * len(faces)
    # Faces that say more come first, so that a bare index joins the GPU that has it.
    for at in sorted(range(len(faces)), key=lambda k: (not faces[k].uuid, not faces[k].bus_id, k)):
        owner[at] = _owner(faces[at], gpus)
        known = gpus[owner[at]]
        for kind, value in _keys(faces[at]):
            known[kind].add(value)
    labels, notes = _labels(faces, owner, len(gpus))
    return [labels[gpu] for gpu in owner], notes


def _keys(face: Face) -> list[tuple[str, str]]:
    keys = (("uuid", face.uuid.lower()), ("bus_id", short_bus_id(face.bus_id)), ("index", face.index))
    return [(kind, value) for kind, value in keys if value]


def short_bus_id(text: str) -> str:
    """A PCI bus id without leading zeros of its domain and in lower case: drivers print 4 or 8 digits of it."""
    return re.sub(r"^0*([0-9a-f]*):", r"\1:", text.strip().lower())


def _owner(face: Face, gpus: list[dict[str, set[str]]]) -> int:
    keys = _keys(face)
    for rank, (kind, value) in enumerate(keys):
        for at, gpu in enumerate(gpus):
            if value in gpu[kind] and not any(gpu[above] and other not in gpu[above] for above, other in keys[:rank]):
                return at
    if not keys and gpus:
        return 0
    gpus.append({"uuid": set(), "bus_id": set(), "index": set()})
    return len(gpus) - 1


def _labels(faces: Sequence[Face], owner: Sequence[int], count: int) -> tuple[list[str], list[str]]:
    """An id for each GPU: the index it is first seen with, else the lowest free number."""
    wanted = [""] * count
    for face, gpu in zip(faces, owner, strict=True):
        wanted[gpu] = wanted[gpu] or face.index
    order = list(dict.fromkeys(owner))
    taken: set[str] = set()
    labels = [""] * count
    notes: list[str] = []
    for gpu in sorted(order, key=lambda k: not wanted[k]):
        label = wanted[gpu] or next(str(n) for n in range(count + len(taken) + 1) if str(n) not in taken)
        if label in taken:
            index, label = label, next(label + letter for letter in _SUFFIXES if label + letter not in taken)
            notes.append(f"Two different GPUs have index {index}; the one seen later is called {label}.")
        taken.add(label)
        labels[gpu] = label
    return labels, notes
