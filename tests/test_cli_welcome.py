"""``gpudiag`` alone: in a folder with data what to do with them, elsewhere the commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpudiag.cli._welcome import MOST_NAMED, welcome

SAMPLE = Path(__file__).resolve().parent.parent / "data" / "samples" / "hpo-aggressive-pruning"


def test_in_a_folder_with_data_it_says_what_it_would_do(gpudiag: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SAMPLE)
    code, out, _ = gpudiag()
    assert code == 0 and "gpu.csv: GPU telemetry" in out and "optuna.db: trials" in out
    assert "gpudiag diagnose ." in out and "ORIGIN.md" not in out


def test_elsewhere_it_lists_the_commands(gpudiag: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    code, out, _ = gpudiag()
    assert code == 0 and "Usage" in out and "diagnose" in out and "holds data" not in out


def test_a_folder_that_is_gone_is_no_crash(tmp_path: Path) -> None:
    assert welcome(tmp_path / "gone") == []


def test_many_inputs_are_counted(tmp_path: Path) -> None:
    for n in range(MOST_NAMED + 2):
        (tmp_path / f"gpu{n}.csv").write_bytes((SAMPLE / "gpu.csv").read_bytes()[:4000])
    lines = welcome(tmp_path)
    assert sum("GPU telemetry" in line for line in lines) == MOST_NAMED and "  ... and 2 more" in lines
