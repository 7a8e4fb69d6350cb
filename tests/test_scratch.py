"""A private folder is gone afterwards, wherever one signal interrupts."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from gpudiag import scratch as module
from gpudiag.scratch import OWN_NAME, scratch


def interrupt_at(n: int) -> Callable[..., Any]:
    """A trace function that raises KeyboardInterrupt at the n-th call or line of the functions that scratch() calls."""
    left = itertools.count(n, -1)

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        code = frame.f_code
        if code.co_filename != module.__file__ or code.co_name == "scratch":
            return None
        if event in ("call", "line") and next(left) == 0:
            raise KeyboardInterrupt
        return trace

    return trace


@pytest.mark.filterwarnings("ignore:unclosed scandir:ResourceWarning")  # interrupted before its ``with`` holds it
def test_one_interrupt_anywhere_leaves_nothing(tmp_path: Path) -> None:
    before = sys.gettrace()
    for n in itertools.count():
        sys.settrace(interrupt_at(n))
        try:
            with scratch(tmp_path) as folder:
                (folder / "part").write_text("half")
        except KeyboardInterrupt:
            assert not list(tmp_path.iterdir()), f"after an interrupt at step {n}"
        else:
            break
        finally:
            sys.settrace(before)
    assert n > 20 and not list(tmp_path.iterdir())


@pytest.mark.parametrize("hidden", [True, False])
def test_it_has_a_name_that_is_known_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hidden: bool) -> None:
    monkeypatch.setattr(module.tempfile, "gettempdir", lambda: str(tmp_path))
    with scratch(tmp_path if hidden else None) as folder:
        assert OWN_NAME.fullmatch(folder.name) and folder.name.startswith(".") == hidden
        assert folder.stat().st_mode & 0o777 == 0o700
