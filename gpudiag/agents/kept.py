"""Diagnoses of runs, each made once as long as the files of its run stay the same."""

from __future__ import annotations

import gc
import os
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from threading import RLock

from gpudiag.agents.folders import SUPPRESSIONS, Folders
from gpudiag.diagnosis import Diagnosis, diagnose
from gpudiag.fleets.fingerprint import fingerprint
from gpudiag.load import load_run

MOST = 16
"""Runs that are held in memory; the one asked for longest ago goes first."""


@dataclass(frozen=True)
class _Held:
    fingerprint: str
    diagnosis: Diagnosis


class Diagnoses:
    """The diagnoses asked for, of runs in some folders. One is made at a time, also where several threads ask."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._held: OrderedDict[Path, _Held] = OrderedDict()
        self._lock = RLock()

    def of(self, run: Path) -> Diagnosis:
        """The diagnosis of a run. Raises what :meth:`Folders.check`, ``load_run`` and ``diagnose`` raise."""
        self._folders.check(run)
        with self._lock:
            known = self.known(run)
            if known is not None:
                return known
            mark = fingerprint(_real(run))  # before it is read: what changes meanwhile is read again next time
            beside = (run if run.is_dir() else run.parent) / SUPPRESSIONS
            made = diagnose(load_run(run), suppress=str(beside) if beside.is_file() else "")
            lets_go = _real(run) in self._held or len(self._held) >= MOST
            self._held[_real(run)] = _Held(mark, made)
            self._held.move_to_end(_real(run))
            if len(self._held) > MOST:
                self._held.popitem(last=False)
            if lets_go:
                gc.collect()  # a run and its diagnosis name each other, and Python looks for such circles seldom
            return made

    def known(self, run: Path) -> Diagnosis | None:
        """The diagnosis made before, None where there is none or the run has changed."""
        with self._lock:
            held = self._held.get(_real(run))
            if held is None or held.fingerprint != fingerprint(_real(run)):
                return None
            self._held.move_to_end(_real(run))
            return held.diagnosis


def _real(run: Path) -> Path:
    """The same for each way to write it."""
    return Path(os.path.realpath(run))
