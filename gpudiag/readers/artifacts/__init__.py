"""What a batch leaves behind: task logs and result files, as trials or events. One file a format."""

from __future__ import annotations

from gpudiag.readers.base import Reader, Trials

READERS: tuple[Reader[Trials], ...] = ()
