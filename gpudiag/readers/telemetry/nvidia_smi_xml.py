"""``nvidia-smi -q -x``: one XML document per snapshot; in a loop they follow one another in one file.

Only the text between ``<nvidia_smi_log>`` and its end is parsed, so that no document type definition and no
entity of the file reaches the parser; a file that declares entities is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from gpudiag.errors import InputError
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.smi_document import take_document
from gpudiag.readers._shape.snapshots import Snapshots
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "nvidia-smi XML"

_ROOT, _END = "<nvidia_smi_log>", "</nvidia_smi_log>"
_PROLOG = re.compile(r"<\?xml[^>]*\?>|<!DOCTYPE[^>\[]*>|<!--.*?-->", re.DOTALL)


def recognises(source: Source) -> bool:
    return _ROOT in source.text


def read(source: Source, options: ReadOptions) -> Telemetry:
    log = ProblemLog()
    snapshots = Snapshots()
    cards: dict[str, str] = {}
    for line, text in _documents(source, source.read_text().replace("\0", ""), log):
        try:
            root = ET.fromstring(text)
        except ET.ParseError as error:
            log.add("damaged document", line=line, example=str(error), lost=True)
            continue
        take_document(root, line, snapshots, cards)
    return snapshots.finish(source, NAME, options, log)


def _documents(source: Source, text: str, log: ProblemLog) -> Iterator[tuple[int, str]]:
    """Line and text of each complete document. What stands between is counted unless it is a prolog."""
    line, at = 1, 0
    while True:
        start = text.find(_ROOT, at)
        between = text[at:start] if start >= 0 else text[at:]
        if "<!ENTITY" in between:
            raise InputError(f"{source.path}: declares XML entities, which nvidia-smi never does; it was not parsed.")
        if rest := _PROLOG.sub("", between).strip():
            log.add("text between documents", line=line, example=rest)
        if start < 0:
            return
        line += between.count("\n")
        end = text.find(_END, start)
        again = text.find(_ROOT, start + 1)
        if end < 0 or 0 <= again < end:
            log.add("document without an end", line=line, lost=True)
            stop = again if again >= 0 else len(text)
        else:
            stop = end + len(_END)
            yield line, text[start:stop]
        line += text.count("\n", start, stop)
        at = stop


READER = Reader(NAME, recognises, read)
