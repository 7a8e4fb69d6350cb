"""The promise of freed_memory: nothing is touched, once a process."""

from __future__ import annotations

import resource

import pytest

from gpudiag.readers._io import freed_memory


def test_no_memory_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    empty = freed_memory.np.empty
    monkeypatch.setattr(freed_memory.np, "empty", lambda *given: asked.append(given) or empty(*given))
    freed_memory.keep_freed_memory.cache_clear()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    freed_memory.keep_freed_memory()
    freed_memory.keep_freed_memory()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 500  # 31 MiB are 7,936 pages
    assert len(asked) == 1
