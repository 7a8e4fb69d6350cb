"""Optuna's JournalStorage in a file, whatever its name; it may be written to while it is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BufferedReader
from typing import cast

import numpy as np

from gpudiag.readers.base import Reader, ReadOptions, Trials
from gpudiag.readers.problems import ProblemLog
from gpudiag.readers.source import Source
from gpudiag.readers.trials.assemble import assemble
from gpudiag.readers.trials.journal import BLOCKS_IN_USE, no_collection, replay
from gpudiag.readers.trials.journal_tables import to_stored
from gpudiag.readers.trials.stored import pick_study

NAME = "optuna-journal"
BLOCK_BYTES = 16 * 1024 * 1024
"""Large enough that threads seldom wait for the interpreter: with 4 MiB two of them were no faster than one."""
_LF = 10


def recognises(source: Source) -> bool:
    """True if the first line is an operation of a journal."""
    first = source.head.lstrip()[:65536].partition(b"\n")[0]
    if not first.startswith(b"{") or b'"op_code"' not in first:
        return False
    try:
        operation = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(operation.get("op_code"), int) and "worker_id" in operation


def _blocks(source: Source, problems: ProblemLog) -> Iterator[tuple[int, memoryview]]:
    """The complete lines. The last one has no newline while it is being written.

    The same few buffers are filled again and again: new memory would cost as much as reading.
    """
    line, rest, at = 1, b"", 0
    buffers: list[bytearray] = []
    with source.stream() as stream:
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
                yield line, memoryview(buffer)[:cut]
                line += int(np.count_nonzero(np.frombuffer(buffer, np.uint8, cut) == _LF))  # 4 x as fast as bytes.count
                at = (at + 1) % BLOCKS_IN_USE  # not before: the others may still be looked at
    if rest:
        problems.add("last line without its end, still being written or cut", line=line)


@no_collection()
def read(source: Source, options: ReadOptions) -> Trials:
    """Every study of the journal, or the one of ``options.study``."""
    problems = ProblemLog()
    state = replay(_blocks(source, problems), problems, "line that is not a JSON object")
    pick_study(options.study, (name for name, _ in state.studies.values()), source.path)
    stored = to_stored(state, options.timezone, options.study, problems)
    return assemble(stored, options.timezone, str(source.path), NAME, problems)


READER: Reader[Trials] = Reader(NAME, recognises, read)
