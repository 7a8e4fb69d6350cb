"""Parameters, intermediate values and attributes of a journal, nearly all of its lines, column by column.

Optuna writes them in one spelling, which is cut at fixed words without parsing JSON. Lines in any other
spelling, and all other operations, are left to be read one by one.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from gpudiag.readers._studies.journal_piece import ArrayColumns, JournalPiece
from gpudiag.readers._studies.journal_text import ANY, Positions, Text

BULK_BYTES = 256 * 1024
"""Below it, lines are read one by one: there are too few for columns to gain anything."""
WORKER_SIZES = 16
"""So many lengths of the names of workers are expected in one block; lines of others are read one by one."""
WORKER_BYTES = 64
"""Lines of workers with longer names are read one by one: no look reaches further than MARGIN."""
_BEGIN, _TRIAL_ID = b'{"op_code":' + ANY + b',"worker_id":"', b'","trial_id":'
_STEP, _VALUE = b',"step":', b',"intermediate_value":'
_NAME, _INTERNAL, _DISTRIBUTION = b',"param_name":"', b',"param_value_internal":', b',"distribution":"'
_USER, _SYSTEM = b',"user_attr":{"', b',"system_attr":{"'
_PARAM_OP, _REPORT_OP, _USER_OP, _SYSTEM_OP = b"5", b"7", b"8", b"9"
_OPS = np.bincount(np.frombuffer(b"5789", np.uint8), minlength=256).astype(bool)
"""By byte, where it is one of those."""


def take_apart(data: memoryview) -> JournalPiece:
    """Whole lines as a piece that does not refer to them any more.

    Depends on nothing else, so that it may run beside the reading of other lines.
    """
    if len(data) < BULK_BYTES or not _is_utf8(data):
        rest = list(enumerate(bytes(data).split(b"\n")[:-1]))
        return JournalPiece(len(rest), rest)
    text = Text(data)
    cut = _Cut(text)
    reports, params = cut.reports(), cut.params()
    attributes = cut.attributes(_USER_OP, _USER), cut.attributes(_SYSTEM_OP, _SYSTEM)
    return JournalPiece(len(text.ends), cut.rest(data), reports, params, *attributes)


def _is_utf8(data: memoryview) -> bool:
    if not len(data) or np.frombuffer(data, np.uint8).max() < 128:
        return True
    try:
        bytes(data).decode()
    except UnicodeDecodeError:
        return False
    return True


class _Cut:
    """The lines that belong to a trial: ``op`` is the operation, ``at`` the place behind the trial's id."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self._left = np.ones(len(text.ends), dtype=bool)
        begin = text.starts[: text.lines]
        self._op = text.byte_at(begin + _BEGIN.index(ANY))
        self._find(np.flatnonzero(text.holds(begin, _BEGIN) & _OPS[self._op]))

    def _find(self, left: np.ndarray) -> None:
        """Workers have names of a few lengths: each is tried at once on all lines that are left."""
        text, skip = self.text, len(_BEGIN)
        found: list[tuple[np.ndarray, ...]] = [(left[:0],) * 3]
        for _ in range(WORKER_SIZES):
            if not len(left):
                break
            worker, end = text.starts[left] + skip, text.ends[left]
            size = text.find(_TRIAL_ID, int(worker[0]), int(end[0]))
            if size < 0:
                left = left[1:]
                continue
            if size > WORKER_BYTES:
                left = left[~text.holds(np.minimum(worker + size, end), _TRIAL_ID)]
                continue
            trial, behind, fits = text.whole(np.minimum(worker + size, end), _TRIAL_ID)
            good = fits & text.lacks(worker, b'"', size)
            found.append((left[good], behind[good], trial[good]))
            fits[0] = True  # the line that told the size, even if its number is odd
            left = left[~fits]
        self.lines, self.at, self.trial = (np.concatenate(part) for part in zip(*found, strict=True))
        self.op = self._op[self.lines]

    def _of(self, op: bytes) -> tuple[np.ndarray, Positions, np.ndarray, Positions]:
        """Lines of one operation, where each goes on behind the trial's id, the id, and the brace at its end."""
        which = np.flatnonzero(self.op == op[0])
        lines = self.lines[which]
        return lines, self.at[which], self.trial[which], self.text.ends[lines] - 1

    def rest(self, data: memoryview) -> list[tuple[int, bytes]]:
        """Number and text of the lines that nothing was made of."""
        odd = np.flatnonzero(self._left)
        starts, ends = self.text.starts[odd].tolist(), self.text.ends[odd].tolist()
        stretches = zip(odd.tolist(), starts, ends, strict=True)
        return [(line, bytes(data[begin:end])) for line, begin, end in stretches]

    def reports(self) -> ArrayColumns:
        """The intermediate values that are spelt as expected."""
        text = self.text
        lines, at, trial, last = self._of(_REPORT_OP)
        step, behind, good = text.whole(at, _STEP)
        begin = np.minimum(behind + len(_VALUE), last)
        good &= text.holds(behind, _VALUE) & text.holds(last, b"}")
        value = _floats(text, begin, last, good)
        return self._kept(lines, good, trial_id=trial, step=step, value=value)[0]

    def params(self) -> tuple[ArrayColumns, list[str], list[str]]:
        """The parameters that are spelt as expected, with the distinct names and distributions."""
        text = self.text
        lines, at, trial, last = self._of(_PARAM_OP)
        name, name_end, good = self._quoted(at, _NAME, last)
        begin = np.minimum(name_end + len(_INTERNAL), last)
        end = text.search(begin, b",", last)
        distribution = np.minimum(end + len(_DISTRIBUTION) - 1, last - 1)
        good &= text.holds(name_end, _INTERNAL) & text.holds(end, _DISTRIBUTION)
        good &= text.holds(last - 1, b'"}') & (distribution < last - 1)
        value = _floats(text, begin, end, good)
        rows, kept = self._kept(lines, good, trial_id=trial, value=value)
        rows["name"], names = _coded(text, name[kept], name_end[kept])
        rows["distribution"], distributions = _coded(text, distribution[kept], last[kept])
        return rows, names, distributions

    def attributes(self, op: bytes, word: bytes) -> tuple[ArrayColumns, list[str]]:
        """The attributes that are one number each, as JSON text, with the distinct keys."""
        text = self.text
        lines, at, trial, last = self._of(op)
        key, key_end, good = self._quoted(at, word, last)
        begin = np.minimum(key_end + 1, last - 1)
        good &= text.holds(key_end, b":") & text.holds(last - 1, b"}}")
        good &= text.digit_or_minus(begin)
        _floats(text, begin, last - 1, good)
        rows, kept = self._kept(lines, good, trial_id=trial)
        rows["key"], keys = _coded(text, key[kept], key_end[kept])
        rows["value_json"] = text.strings(begin[kept], last[kept] - 1).to_numpy(zero_copy_only=False)
        return rows, keys

    def _quoted(self, at: Positions, word: bytes, last: Positions) -> tuple[Positions, Positions, np.ndarray]:
        """Begin and end of the quoted text at the end of ``word``, and where it is one without a quote inside."""
        begin = np.minimum(at + len(word) - 1, last)
        end = np.minimum(self.text.search(begin + 1, b'"', last) + 1, last)
        return begin, end, self.text.holds(at, word) & (self.text.byte_at(end - 2) != ord("\\"))

    def _kept(self, lines: np.ndarray, good: np.ndarray, **cells: np.ndarray) -> tuple[ArrayColumns, np.ndarray]:
        """The good rows and their places among all; their lines are not left any more."""
        kept = np.flatnonzero(good)
        self._left[lines[kept]] = False
        rows = {"line": lines, **cells}
        return {name: cell if len(kept) == len(lines) else cell[kept] for name, cell in rows.items()}, kept


def _floats(text: Text, begin: Positions, end: Positions, good: np.ndarray) -> np.ndarray:
    """Numbers where ``good``, which becomes False where there is none."""
    at = np.flatnonzero(good)
    texts = text.strings(begin[at], end[at])
    out = np.full(len(good), np.nan)
    try:
        out[at] = texts.cast(pa.float64()).to_numpy()
    except pa.ArrowException:  # one is none, and Arrow does not say which
        import polars as pl

        found = pl.Series(pl.from_arrow(texts)).cast(pl.Float64, strict=False)
        out[at] = found.to_numpy()
        good[at] = found.is_not_null().to_numpy()
    return out


def _coded(text: Text, begin: Positions, end: Positions) -> tuple[np.ndarray, list[str]]:
    """JSON strings as codes of distinct texts. Only those are decoded."""
    encoded = text.strings(begin, end).dictionary_encode()
    return encoded.indices.to_numpy(), [_decoded(quoted) for quoted in encoded.dictionary.to_pylist()]


def _decoded(quoted: str) -> str:
    """The text of a JSON string; damaged, it stays as it is and will be found unknown."""
    try:
        return str(json.loads(quoted))
    except ValueError:
        return quoted
