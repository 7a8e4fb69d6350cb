"""A process that diagnoses one run after another: a request a line on stdin, an answer a line on stdout, after a first
line that says that it is ready.

It ends when stdin does, at once and whatever it is doing: the process that asked has ended.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from gpudiag._load.sessions import SessionsApart
from gpudiag.diagnosis import diagnose
from gpudiag.errors import GpudiagError
from gpudiag.faults import Fault, attempt
from gpudiag.fleets.cloud_runs import on_disk
from gpudiag.fleets.found import FoundRun
from gpudiag.fleets.parts import Part, part_from, parts_of, sessions_apart
from gpudiag.fleets.row import row_of, to_plain
from gpudiag.fleets.text_storage import text_for
from gpudiag.interpreter import COLLECT_AFTER
from gpudiag.load import load_part, load_run
from gpudiag.manifest import place_of, read_manifest
from gpudiag.plain_data import plain
from gpudiag.run import Run

HEAVY = ("pandas", "polars", "scipy.special")
"""What any diagnosis imports: the time for it is nobody's run's."""


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """``row`` and ``document`` (JSON text), ``parts`` (what lies there is several runs), or ``error``."""
    part = request["found"].pop("part")
    found = FoundRun(**request["found"], part=part_from(part) if part else None)
    with text_for(found.source):
        made = attempt(f"the diagnosis of {found.name}", lambda: _diagnosed(found, request["options"], request["call"]))
    return {"error": str(made)} if isinstance(made, Fault) else made


def _diagnosed(found: FoundRun, options: dict[str, Any], call: str) -> dict[str, Any]:
    part = found.part or Part()
    session = Part(files=part.files, since=part.since, before=part.before)
    try:
        run = _loaded(found.source, session, json.dumps(options["reading"]), found.fingerprint or call)
        if parts := parts_of(run, found.part):
            return {"parts": plain(parts)}
        diagnosis = diagnose(found.part.of(run) if found.part else run, **options["judging"])
        return {"row": to_plain(row_of(found, diagnosis)), "document": diagnosis.to_json()}
    except SessionsApart as error:
        return {"parts": plain(sessions_apart(error))} if not part.files else {"error": str(error)}
    except GpudiagError as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": "it needs more memory than there is."}


@lru_cache(maxsize=1)
def _loaded(source: str, session: Part, reading: str, fingerprint: str) -> Run:
    """The run as a whole, of which each part comes after the other."""
    with on_disk(source) as place:
        options = json.loads(reading)
        options["timezone"] = _stated_zone(Path(place)) or options.get("timezone")
        if not session.files:
            return load_run(place, **options)
        return load_part(Path(place), session.files, **options, since=session.since, before=session.before)


def _stated_zone(place: Path) -> str | None:
    """The zone that the run's own run.toml states: that of a fleet is for runs that state none, since they differ."""
    _, file = place_of(place)
    if file.suffix != ".toml" or not file.is_file():
        return None
    try:
        return read_manifest(file).timezone
    except GpudiagError:  # reading the run says so
        return None


def main() -> None:
    """Say that all is imported, then answer until stdin ends."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints is not an answer
    requests: SimpleQueue[str] = SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            requests.put(line)
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    for name in HEAVY:
        import_module(name)
    gc.set_threshold(*COLLECT_AFTER)
    gc.freeze()  # a million objects of libraries that would be looked through again and again
    out.write(json.dumps({"ready": True}) + "\n")
    out.flush()
    while True:
        out.write(json.dumps(answer(json.loads(requests.get()))) + "\n")
        out.flush()
        gc.collect()


if __name__ == "__main__":
    main()
