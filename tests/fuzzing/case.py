"""One case: a folder of changed files, asked everything as a command would; and the fault that it shows, if any."""

from __future__ import annotations

import json
import random
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from mutations import mutated
from reading import refusal
from seeds import Seed

from gpudiag import faults
from gpudiag.diagnosis import diagnose
from gpudiag.errors import GpudiagError
from gpudiag.load import load_run

TRIES = 300
"""Of making a file smaller."""
Files = dict[str, bytes]


def made(seed: int, number: int, known: list[Seed]) -> Files:
    """One file, or two that are read as one run, each with changes; the same for the same numbers."""
    rng = random.Random(f"{seed}:{number}")
    out: Files = {}
    for _ in range(rng.choice((1, 1, 1, 2))):
        (name, data), (_, other) = rng.choice(known), rng.choice(known)
        out[f"{len(out)}-{name}"] = mutated(rng, data, other)
    return out


def put(files: Files, folder: Path) -> None:
    for name, data in files.items():
        (folder / name).write_bytes(data)


def fault_of(folder: Path) -> str:
    """Type and place of what should not happen when this folder is read and diagnosed; '' where all is well."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for library in ("optuna", "dateutil", "seaborn"):
            warnings.filterwarnings("ignore", category=DeprecationWarning, module=library)
        try:
            with faults.strict():
                _ask(folder)
        except GpudiagError:  # a full memory is a fault: the files are small
            return ""
        except Exception as error:
            places = [one for one in traceback.extract_tb(error.__traceback__) if "gpudiag/" in one.filename]
            place = f"{Path(places[-1].filename).name}:{places[-1].name}" if places else "case"
            return f"{type(error).__name__} in {place}"
    return ""


def _ask(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        refusal(path)
    diagnosis = diagnose(load_run(folder, timezone="Asia/Taipei"))
    json.loads(diagnosis.to_json())
    assert repr(diagnosis)


def faulty(files: Files) -> str:
    with TemporaryDirectory() as folder:
        put(files, Path(folder))
        return fault_of(Path(folder))


def smallest(files: Files, fault: str) -> Files:
    """The same fault from as little as can be found: fewer files, then fewer lines, then fewer bytes."""
    left = [TRIES]

    def still(tried: Files) -> bool:
        left[0] -= 1
        return left[0] > 0 and faulty(tried) == fault

    for name in list(files):
        fewer = {other: data for other, data in files.items() if other != name}
        if fewer and still(fewer):
            files = fewer
    for name in files:
        for mark in (b"\n", b""):
            if not files[name].startswith(b"SQLite"):
                files = {**files, name: _less(files[name], mark, _with(files, name, still))}
    return files


def _with(files: Files, name: str, still: Callable[[Files], bool]) -> Callable[[bytes], bool]:
    return lambda data: still({**files, name: data})


def _less(data: bytes, mark: bytes, still: Callable[[bytes], bool]) -> bytes:
    """Pieces left out while the fault stays, large ones first."""
    pieces = data.split(mark) if mark else [bytes([one]) for one in data]
    size = len(pieces) // 2
    while size:
        at = 0
        while at < len(pieces):
            fewer = pieces[:at] + pieces[at + size :]
            if fewer and still(mark.join(fewer)):
                pieces = fewer
            else:
                at += size
        size //= 2
    return mark.join(pieces)
