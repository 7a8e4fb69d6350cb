"""What the texts in a column that names the GPU say: an index, a uuid, a bus id, host and index, or just a name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from gpudiag.readers._shape.identity import BUS_ID, UUID, GpuIdentity

_DEVICE = re.compile(r"(?i)((?:gpu|cuda|card|nvidia|device)[ :_-]?)(\d{1,3})")
_WHOLE = re.compile(r"(\d+)(?:\.0+)?")
_OF_HOST = re.compile(r"([^/]*[A-Za-z][^/]*)/([^/]*\d[a-z]?)")
_PRODUCT = re.compile(
    r"(?i:.*\b(?:nvidia|geforce|tesla|quadro|titan|grid|rtx|gtx|amd|radeon|instinct|intel|arc|apple|ascend)\b.*)"
    r"|(?:GB|GH|MI|A|B|H|K|L|P|T|V)\d{1,4}[A-Z]*\b.*"
)


def is_identity(text: str) -> bool:
    """True for a text in one of the forms that name a GPU, and nothing else."""
    return any(form.fullmatch(text) for form in (UUID, BUS_ID, _DEVICE, _OF_HOST))


def is_product(text: str) -> bool:
    """True for the name of a board, which several GPUs of a machine may share."""
    return not is_identity(text) and _PRODUCT.fullmatch(text) is not None


def told(faces: Iterable[GpuIdentity]) -> Mapping[GpuIdentity, GpuIdentity]:
    """For each identity whose ``index`` is the text of its cell, what that text says.

    Any text that is none of the known forms is the name of its GPU as it stands. The word before a number
    (``cuda:0``) is left out where all texts have the same one.
    """
    plain = {face: _parts(face) for face in faces}
    found = [(_DEVICE.fullmatch(face.index), _WHOLE.fullmatch(face.index)) for face in plain.values() if face.index]
    words = {device[1] if device else "" for device, whole in found if device or whole}
    return {face: replace(parts, index=_number(parts.index, bare=len(words) == 1)) for face, parts in plain.items()}


def _parts(face: GpuIdentity) -> GpuIdentity:
    text = face.index
    if UUID.fullmatch(text):
        return replace(face, index="", uuid=face.uuid or text)
    if BUS_ID.fullmatch(text):
        return replace(face, index="", bus_id=face.bus_id or text)
    if match := _OF_HOST.fullmatch(text):
        return replace(face, host=match[1], index=match[2])
    return face


def _number(text: str, *, bare: bool) -> str:
    """An index as its number, where the text is one or (``bare``) ends in one behind a word."""
    device = _DEVICE.fullmatch(text) if bare else None
    whole = _WHOLE.fullmatch(device[2] if device else text)
    return str(int(whole[1])) if whole else text
