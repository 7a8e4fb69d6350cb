"""What a recording keeps of an exception: its class, and what its message names of the failures that gpudiag knows."""

from __future__ import annotations

from gpudiag.readers._batches.log_lines import FAILURES, KINDS, kind_of


def failure(error: BaseException) -> str:
    """``RuntimeError: CUDA out of memory``; the class alone where the message names none. What else a message says
    is the user's own. Of an exit its code: ``SystemExit: 1``.
    """
    name = type(error).__name__
    if isinstance(error, SystemExit):
        return f"{name}: {error.code if isinstance(error.code, int) else int(error.code is not None)}"
    try:
        text = str(error)
    except Exception:  # a class of the user's
        return name
    kind = next((found for line in text.splitlines() if (found := kind_of(line)) in FAILURES), None)
    said = KINDS[kind].search(text) if kind else None
    return f"{name}: {' '.join(said[0].split())}" if said and said[0] != name else name
