"""A process that diagnoses one run after another: a request a line on stdin, an answer a line on stdout.

It ends when stdin does, at once and whatever it is doing: the process that asked has ended.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from functools import lru_cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from gpudiag._load.sessions import SessionsApart
from gpudiag.diagnosis import diagnose
from gpudiag.errors import GpudiagError
from gpudiag.faults import Fault, attempt
from gpudiag.fleets.found import FoundRun
from gpudiag.fleets.parts import part_from, parts_of, sessions_apart
from gpudiag.fleets.row import row_of, to_plain
from gpudiag.load import load_run
from gpudiag.plain_data import plain
from gpudiag.run import Run


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """``row`` and ``document`` (JSON text), ``parts`` (what lies there is several runs), or ``error``."""
    part = request["found"].pop("part")
    found = FoundRun(**request["found"], part=part_from(part) if part else None)
    made = attempt(f"the diagnosis of {found.name}", lambda: _diagnosed(found, request["options"], request["call"]))
    return {"error": str(made)} if isinstance(made, Fault) else made


def _diagnosed(found: FoundRun, options: dict[str, Any], call: str) -> dict[str, Any]:
    files = found.part.files if found.part else ()
    try:
        run = _loaded(found.source, files, json.dumps(options["reading"]), found.fingerprint or call)
        if parts := parts_of(run, found.part):
            return {"parts": plain(parts)}
        diagnosis = diagnose(found.part.of(run) if found.part else run, **options["judging"])
        return {"row": to_plain(row_of(found, diagnosis)), "document": diagnosis.to_json()}
    except SessionsApart as error:
        return {"parts": plain(sessions_apart(error))} if not files else {"error": str(error)}
    except GpudiagError as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": "it needs more memory than there is."}


@lru_cache(maxsize=1)
def _loaded(source: str, files: tuple[str, ...], reading: str, fingerprint: str) -> Run:
    """The run as a whole, of which each part comes after the other."""
    given = [str(Path(source) / name) for name in files] or source
    return load_run(given, **json.loads(reading))


def main() -> None:
    """Answer until stdin ends."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints is not an answer
    requests: SimpleQueue[str] = SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            requests.put(line)
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        out.write(json.dumps(answer(json.loads(requests.get()))) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
