"""The examples in the docstrings of the public names are true."""

from __future__ import annotations

import doctest
import inspect
from pathlib import Path

import pytest

import gpudiag as gd

SHOWN_BY_EXAMPLE = {
    *("load_run", "diagnose", "what_if", "memory_capacity", "replay_pruner", "compare"),
    *("read_telemetry", "read_trials", "simulate"),
}
EXAMPLES = {
    test.name: test
    for name in gd.__all__
    if not inspect.ismodule(getattr(gd, name)) and name != "__version__"
    for test in doctest.DocTestFinder().find(getattr(gd, name), name, globs={"gd": gd})
    if test.examples
}


def test_functions_have_an_example() -> None:
    assert set(EXAMPLES) >= SHOWN_BY_EXAMPLE


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_true(name: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    said: list[str] = []
    held = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(EXAMPLES[name], out=said.append)
    assert held.attempted and not held.failed, "".join(said)
