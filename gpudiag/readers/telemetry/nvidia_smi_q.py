"""``nvidia-smi -q`` as text, whole or ``-d UTILIZATION,MEMORY,...``: names and values, sections by their indent."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from gpudiag.readers._io.lines import numbered_lines
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.smi_document import take_document
from gpudiag.readers._shape.snapshots import Snapshots
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "nvidia-smi -q"
OTHER = "line that is no sample"

_BANNER = re.compile(r"=+NVSMI LOG=+\s*")
_GPU = re.compile(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s*")
_PAIR = re.compile(r"(?P<indent>\s*)(?P<name>[A-Za-z][^:]*?)\s* : (?P<value>.*)")
_SECTION = re.compile(r"(?P<indent>\s+)(?P<name>[A-Z0-9][\w .()/-]*)")
_OF_PROCESS = {"type": "type", "name": "process_name", "used_gpu_memory": "used_memory"}
_ENOUGH = 0.6


def recognises(source: Source) -> bool:
    """The banner, and lines most of which are names and values."""
    if source.is_dir or source.is_binary or "NVSMI LOG=" not in source.text:
        return False
    lines = [line for line in source.lines if line.strip()]
    good = sum(any(form.fullmatch(line) for form in (_BANNER, _GPU, _PAIR, _SECTION)) for line in lines)
    return any(map(_BANNER.fullmatch, lines)) and good >= _ENOUGH * len(lines)


def read(source: Source, options: ReadOptions) -> Telemetry:
    """Read every document; see :func:`gpudiag.readers.telemetry.read_telemetry`."""
    log = ProblemLog()
    snapshots = Snapshots()
    cards: dict[str, str] = {}
    document, first = _Document(), 0
    for line, text in numbered_lines(source, log):
        if _BANNER.fullmatch(text):
            take_document(document.root, first, snapshots, cards)
            document, first = _Document(), line
        elif text.strip() and not (first and document.take(text.expandtabs())):
            log.add(OTHER, line=line, example=text)
    take_document(document.root, first, snapshots, cards)
    return snapshots.finish(source, NAME, options, log)


class _Document:
    """The tree of one document: what stands further in belongs to the last name further out."""

    def __init__(self) -> None:
        self.root = ET.Element("nvidia_smi_log")
        self._open: list[tuple[int, ET.Element]] = [(-1, self.root)]

    def take(self, text: str) -> bool:
        """Add a line; False if it is none of such a document."""
        if match := _GPU.fullmatch(text):
            self._open = [(-1, self.root), (0, ET.SubElement(self.root, "gpu", id=match[1]))]
            return True
        match = _PAIR.fullmatch(text) or _SECTION.fullmatch(text.rstrip())
        if match is None:
            return False
        indent = len(match["indent"])
        while self._open[-1][0] >= indent:
            self._open.pop()
        self._add(indent, re.sub(r"[^a-z0-9]+", "_", match["name"].lower()).strip("_"), match.groupdict().get("value"))
        return True

    def _add(self, indent: int, name: str, value: str | None) -> None:
        parent = self._open[-1][1]
        if name == "process_id" and parent.tag == "processes":
            made = ET.SubElement(parent, "process_info")
            ET.SubElement(made, "pid").text = value
        elif name in _OF_PROCESS and parent.tag in ("processes", "process_info"):
            process = parent if parent.tag == "process_info" else next(reversed(parent), parent)
            made = ET.SubElement(process, _OF_PROCESS[name])
            made.text = value
        else:
            made = ET.SubElement(parent, name)
            made.text = value
        self._open.append((indent, made))


READER = Reader(NAME, recognises, read)
