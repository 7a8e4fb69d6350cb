"""Hydra multiruns: overrides as parameters, log timestamps as times, other files left to their readers."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from gpudiag.load import load_run
from gpudiag.readers._io.source import Source
from gpudiag.readers.artifacts import hydra_multirun
from gpudiag.readers.base import ReadOptions
from gpudiag.readers.identify import identify
from gpudiag.timezones import parse_zone


def job(folder: Path, number: int, overrides: str, *log: str) -> Path:
    path = folder / str(number)
    (path / ".hydra").mkdir(parents=True)
    (path / ".hydra" / "overrides.yaml").write_text(overrides)
    if log:
        (path / "main.log").write_text("\n".join(log) + "\n")
    return path


def sweep(tmp_path: Path) -> Path:
    folder = tmp_path / "multirun"
    begun, ended = (f"[2026-03-01 {clock}][__main__][INFO] - x" for clock in ("10:00:00,000", "10:01:40,500"))
    job(folder, 10, "- lr=0.1\n- +model.depth=3\n- name=a b\n", begun, ended)
    job(folder, 2, "- lr=0.2\n", begun, "Traceback (most recent call last):", "RuntimeError: CUDA out of memory")
    job(folder, 3, "!!python/object/apply:os.getcwd []\n")
    return folder


def test_jobs(tmp_path: Path) -> None:
    source = Source.open(sweep(tmp_path))
    found = identify(source)
    assert found is not None and found[1].name == "hydra-multirun"
    out = hydra_multirun.read(source, ReadOptions(parse_zone("Asia/Taipei")))
    trials = out.trials
    assert trials["trial"].tolist() == [2, 3, 10]
    assert trials["state"].tolist() == ["FAIL", "WAITING", "COMPLETE"]
    assert trials["start"][2] == pd.Timestamp("2026-03-01T02:00Z")
    assert (trials["end"][2] - trials["start"][2]).total_seconds() == 100.5
    assert (trials["params.lr"][2], trials["params.model.depth"][2], trials["params.name"][2]) == (0.1, 3, "a b")
    assert [problem.kind for problem in out.problems] == ["overrides.yaml that is no plain YAML"]


def test_what_lies_below_is_found_too(tmp_path: Path) -> None:
    run = load_run(sweep(tmp_path).parent, timezone="UTC")
    assert [record.reader for record in run.info.inputs] == ["hydra-multirun", "training-log"]
    assert run.events["kind"].tolist() == ["oom"]
