"""What is kept of an exception: its class and a failure that gpudiag knows, never another word of its message."""

from __future__ import annotations

from pathlib import Path

import pytest
from replay import Replay

import gpudiag as gd
from gpudiag._run.failure_text import classify
from gpudiag.record.failure import failure


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


class OutOfMemoryError(RuntimeError):
    """As PyTorch calls it."""


@pytest.mark.parametrize(
    ("error", "kept", "kind"),
    [
        (
            RuntimeError("CUDA out of memory. Tried 2 GiB for jo"),
            "RuntimeError: CUDA out of memory",
            "oom",
        ),
        (OutOfMemoryError("Tried to allocate"), "OutOfMemoryError", "oom"),
        (
            RuntimeError("CUDA error: device-side assert triggered\nCUDA kernel errors might be reported later"),
            "RuntimeError: device-side assert",
            "device_assert",
        ),
        (RuntimeError("for user jo:\n NCCL error: remote"), "RuntimeError: NCCL error", "nccl"),
        (RuntimeError("worker (pid 7) exited with exit code 137"), "RuntimeError: exit code 137", "host_killed"),
        (RuntimeError("the password is 1234"), "RuntimeError", "unknown"),
        (Unprintable(), "Unprintable", "other"),
        (ValueError("batch of jo"), "ValueError", "other"),
        (KeyboardInterrupt(), "KeyboardInterrupt", "stopped"),
        (SystemExit(), "SystemExit: 0", "other"),
        (SystemExit(3), "SystemExit: 3", "other"),
        (SystemExit("no data of jo"), "SystemExit: 1", "other"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_kept(error: BaseException, kept: str, kind: str) -> None:
    assert failure(error) == kept
    assert classify(kept) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("RuntimeError", "unknown"),
        ("torch.AcceleratorError", "unknown"),
        ("Exception", "unknown"),
        ("RuntimeError: shapes differ", "other"),
        ("ValueError", "other"),
        ("AssertionError", "other"),
    ],
)
def test_a_class_that_stands_for_any_fault_tells_none(text: str, kind: str) -> None:
    assert classify(text) == kind


def test_a_with_block_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with pytest.raises(RuntimeError), gd.Recorder(path, host=False, interval_s=0.05, adapter=Replay({"0": []})):
        raise RuntimeError("CUDA out of memory on the machine of jo")
    events = gd.read_telemetry(path).events
    assert events.loc[events["kind"] == "exception", "detail"].tolist() == ["RuntimeError: CUDA out of memory"]
    assert "jo" not in path.read_text(encoding="utf-8").split("exception", 1)[1]
