"""`gpudiag inspect` of real studies: states and the most trials at once are those of REFERENCE.jsonl."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from gpudiag._load.inspection import inspect

pytestmark = pytest.mark.corpus


@pytest.mark.slow
def test_studies_of_the_corpus(corpus: Path) -> None:
    references = [json.loads(line) for line in (corpus / "optuna" / "REFERENCE.jsonl").read_text().splitlines()]
    databases = [reference for reference in references if reference["file"].endswith(".db")]
    parallel = [r for r in databases if r["db_max_concurrent_finished"] and r["db_max_concurrent_finished"] > 1]
    chosen = databases[:6] + parallel[:6]
    most = []
    for reference in chosen:
        (record,) = inspect([corpus / "optuna" / "sqlite" / reference["file"]], timezone="UTC")
        found = {study.name: study for study in record.studies}
        assert set(found) == {study["name"] for study in reference["studies"]}
        for study in reference["studies"]:
            ours = found[study["name"]]
            assert ours.states == study["states"]
            assert ours.max_concurrent == study.get("max_concurrent_finished"), reference["file"]
            if "first_start" in study:  # of trials with both timestamps
                assert ours.start is not None
                assert pd.Timestamp(ours.start) <= pd.Timestamp(study["first_start"], tz="UTC")
            most.append(ours.max_concurrent)
    assert max(number for number in most if number is not None) > 1
