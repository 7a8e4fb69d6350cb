"""Real files and folders: no two readers of any registry claim the same one, and prose is claimed by none."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudiag.readers import artifacts, telemetry, trials
from gpudiag.readers._io.source import Source

pytestmark = pytest.mark.corpus


def claims(path: Path) -> list[str]:
    source = Source.open(path)
    return [
        reader.name
        for readers in (telemetry.READERS, trials.READERS, artifacts.READERS)
        for reader in readers
        if reader.recognises(source)
    ]


@pytest.mark.slow
def test_at_most_one_reader_claims_a_path(corpus: Path) -> None:
    found = {path: claims(path) for path in sorted(corpus.rglob("*"))}
    assert {str(path): names for path, names in found.items() if len(names) > 1} == {}
    assert {path.name: names for path, names in found.items() if path.suffix == ".md" and names} == {}


def test_every_artifact_and_run_file_is_claimed(corpus: Path) -> None:
    expected = {
        "artifacts/lightning_csv/*metrics.csv": "lightning-csv",
        "artifacts/slurm_sacct/*": "slurm-sacct",
        "artifacts/ray_tune/*/results/*": "ray-tune",
        "telemetry/wandb/*.wandb": "W&B run file",
        "telemetry/wandb/*.jsonl": "W&B events",
    }
    for pattern, reader in expected.items():
        paths = sorted(corpus.glob(pattern))
        assert paths and all(claims(path) == [reader] for path in paths), pattern
