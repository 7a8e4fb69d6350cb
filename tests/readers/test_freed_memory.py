"""The promises of freed_memory: nothing is touched, once a process; what a long log leaves is given back."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from smallruns import gpu

from gpudiag import load_run
from gpudiag._load import assemble
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


def test_only_a_long_log_gives_memory_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given = []
    monkeypatch.setattr(assemble, "give_back_freed_memory", lambda: given.append(1))
    gpu(range(20), util_pct=50.0).to_csv(tmp_path / "gpu.csv", index=False)
    load_run(tmp_path)
    assert given == []
    monkeypatch.setattr(assemble, "MANY_SAMPLES", 20)
    load_run(tmp_path)
    assert given == [1]


def test_giving_back_leaves_what_is_held() -> None:
    held = [bytes([number]) * 100_000 for number in range(20)]
    freed_memory.give_back_freed_memory()
    assert held == [bytes([number]) * 100_000 for number in range(20)]
