"""The command line, run in this process."""

from __future__ import annotations

import sys

import pytest

from gpudiag.cli import main


def called(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """The exit code of ``gpudiag ARGUMENTS``."""
    monkeypatch.setattr(sys, "argv", ["gpudiag", *map(str, arguments)])
    try:
        main()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0
