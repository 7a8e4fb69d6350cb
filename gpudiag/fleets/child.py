"""A process that diagnoses one run after another: a request a line on stdin, an answer a line on stdout.

It ends when stdin does, at once and whatever it is doing: the process that asked has ended.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from functools import lru_cache
from queue import SimpleQueue
from typing import Any

from gpudiag.diagnosis import diagnose
from gpudiag.errors import GpudiagError
from gpudiag.faults import Fault, attempt
from gpudiag.fleets.found import FoundRun
from gpudiag.fleets.row import row_of, to_plain
from gpudiag.load import load_run
from gpudiag.run import Run


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """``row`` and ``document`` (JSON text), ``parts`` (names of studies that are a run each), or ``error``."""
    found = FoundRun(**request["found"])
    made = attempt(f"the diagnosis of {found.name}", lambda: _diagnosed(found, request["options"]))
    return {"error": str(made)} if isinstance(made, Fault) else made


def _diagnosed(found: FoundRun, options: dict[str, Any]) -> dict[str, Any]:
    try:
        run = _loaded(found.source, json.dumps(options["reading"]), found.fingerprint)
        studies = [str(name) for name in run.studies["study"]]
        if found.study:
            run = run.study(found.study)
        elif len(studies) > 1 and run.gpu.empty:
            return {"parts": studies}
        diagnosis = diagnose(run, **options["judging"])
        row = row_of(found, diagnosis)
        return {"row": to_plain(row), "document": diagnosis.to_json()}
    except GpudiagError as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": "it needs more memory than there is."}


@lru_cache(maxsize=1)
def _loaded(source: str, reading: str, fingerprint: str) -> Run:
    """The run as a whole: of a storage, each study comes after the other."""
    return load_run(source, **json.loads(reading))


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
