"""What files are called that hold something without a name of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudiag.readers._io.paths import without_kind


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("trials.csv", "trials"),
        ("resnet.v1.5.csv", "resnet.v1.5"),
        ("a.b.csv.gz", "a.b"),
        ("a.b.JSON.ZST", "a.b"),
        ("search.log.1", "search"),
        ("search.log.2026-11-20", "search"),
        ("run_lr0.001", "run_lr0.001"),
        ("run_lr0.001.csv", "run_lr0.001"),
        (".hidden.csv", ".hidden"),
        (".csv", ".csv"),
        ("plain", "plain"),
    ],
)
def test_a_name_loses_its_kind_and_nothing_else(name: str, called: str) -> None:
    assert without_kind(Path("folder.with.dots") / name) == called
