"""Optuna's JournalStorage in a file, whatever its name; it may be written to while it is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from typing import cast

from gpudiag.readers._io.json_values import json_object
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._io.surrogates import without_halves
from gpudiag.readers._studies.assemble import assemble
from gpudiag.readers._studies.journal import BLOCKS_IN_USE, no_collection, replay
from gpudiag.readers._studies.journal_tables import to_stored
from gpudiag.readers._studies.stored import pick_study
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "optuna-journal"
BLOCK_BYTES = 8 * 1024 * 1024
"""Large enough that threads seldom wait for the interpreter: with 4 MiB two of them were no faster than one. With
16 MiB 10,000 trials took 40 MiB more memory and as much time.
"""


def recognises(source: Source) -> bool:
    """True if the first line is an operation of a journal."""
    first = source.head.lstrip()[:65536].partition(b"\n")[0]
    if not first.startswith(b"{") or b'"op_code"' not in first:
        return False
    operation = json_object(first.decode(errors="replace"))
    return operation is not None and isinstance(operation.get("op_code"), int) and "worker_id" in operation


@dataclass
class _CompleteLines:
    """The complete lines. The last line has no newline while it is being written: it is left out, and ``torn``.

    The same few buffers are filled again and again: new memory would cost as much as reading.
    """

    source: Source
    torn: bool = False

    def __iter__(self) -> Iterator[memoryview]:
        rest, at = b"", 0
        buffers: list[bytearray] = []
        with self.source.stream() as stream:
            while True:
                if at == len(buffers):
                    buffers.append(bytearray(BLOCK_BYTES))
                buffer = buffers[at]
                if 2 * len(rest) > len(buffer):  # a long line
                    buffer = bytearray(4 * len(rest))
                buffer[: len(rest)] = rest
                filled = len(rest) + cast(BufferedReader, stream).readinto(memoryview(buffer)[len(rest) :])
                if filled == len(rest):
                    break
                cut = buffer.rfind(b"\n", 0, filled) + 1
                rest = bytes(buffer[cut:filled])
                if cut:
                    if buffer.find(b"\\u", 0, cut) >= 0 or buffer.find(b"\xed", 0, cut) >= 0:
                        buffer[:cut] = without_halves(bytes(memoryview(buffer)[:cut]))
                    yield memoryview(buffer)[:cut]
                    at = (at + 1) % BLOCKS_IN_USE  # not before: the others may still be looked at
        self.torn = bool(rest)


@no_collection()
def read(source: Source, options: ReadOptions) -> Trials:
    """Every study of the journal, or the one of ``options.study``."""
    problems, blocks = ProblemLog(), _CompleteLines(source)
    state = replay(blocks, problems, "line that is not a JSON object")
    if blocks.torn:
        problems.add("last line without its end, still being written or cut", line=state.next_line)
    pick_study(options.study, (name for name, _ in state.studies.values()), source.path)
    stored = to_stored(state, options.timezone, None if options.beside else options.study, problems)
    return assemble(stored, options.timezone, str(source.path), NAME, problems)


READER: Reader[Trials] = Reader(NAME, recognises, read)
