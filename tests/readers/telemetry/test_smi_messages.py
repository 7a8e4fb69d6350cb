"""Files that hold only what nvidia-smi says when it cannot work."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudiag.errors import InputError
from gpudiag.readers.telemetry import read_telemetry

FAILED = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
    "Make sure that the latest NVIDIA driver is installed and running.\n\n"
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (FAILED, "1 message.s. in which nvidia-smi says that it could not communicate with the driver"),
        ("Fri Nov 21 11:41:31 2025\n" + FAILED + FAILED, "2 message.s."),
        ("Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.161\n", "do not match"),
        ("No devices were found\n", "no GPU was found"),
        ("Fri 21 Nov 2025 11:41:31 PM EST", "only date lines"),
    ],
)
def test_such_a_file_is_refused_with_what_it_holds(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "gpu.log"
    path.write_text(text)
    with pytest.raises(InputError, match=said) as caught:
        read_telemetry(path, timezone="UTC")
    assert str(path) in str(caught.value) and "Make sure" not in str(caught.value)
