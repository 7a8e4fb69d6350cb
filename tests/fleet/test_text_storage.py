"""How text is held while a run is diagnosed changes the time that it takes and nothing else."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from sampleruns import SAMPLES, diagnosed

from gpudiag.fleets.child import answer
from gpudiag.fleets.found import runs_below
from gpudiag.fleets.text_storage import SMALL_MIB, text_for
from gpudiag.plain_data import plain

STORAGE = "mode.string_storage"


@pytest.mark.parametrize(("size_mib", "wanted"), [(0.5, "python"), (SMALL_MIB, "python"), (SMALL_MIB + 0.01, None)])
def test_small_runs_alone_have_objects(tmp_path: Path, size_mib: float, wanted: str | None) -> None:
    usual = pd.get_option(STORAGE)
    (tmp_path / "a").mkdir()
    for name, part in (("x", 0.75), ("a/y", 0.25)):
        (tmp_path / name).write_bytes(b"\0" * int(part * size_mib * 2**20))
    with text_for(str(tmp_path)):
        assert pd.get_option(STORAGE) == (wanted or usual)
    assert pd.get_option(STORAGE) == usual


@pytest.mark.parametrize("place", ["sqlite:///studies.db", "s3://bucket/run", "nowhere"])
def test_what_is_no_file_here_is_held_as_usual(place: str) -> None:
    usual = pd.get_option(STORAGE)
    with text_for(place):
        assert pd.get_option(STORAGE) == usual


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hpo-aggressive-pruning", "starved-input-pipeline/before"])
def test_a_worker_says_the_same_as_a_diagnosis(name: str) -> None:
    found = runs_below([SAMPLES / name]).runs[0]
    request = {"found": plain(found), "options": {"reading": {"timezone": None}, "judging": {}}, "call": ""}
    assert answer(request)["document"] == diagnosed(name).to_json()
