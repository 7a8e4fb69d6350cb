"""``gpudiag demo --seed``: other runs, later ones, and the same bytes again."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from commandline import called

import gpudiag as gd
from gpudiag.simulation.cases import CASES, write_case


@pytest.mark.slow
@pytest.mark.parametrize("case", ["healthy", "hpo-aggressive-pruning"])
def test_another_seed_is_another_run_that_many_days_later(tmp_path: Path, case: str) -> None:
    first, other, again = (write_case(case, tmp_path / name, seed) for name, seed in (("a", 3), ("b", 17), ("c", 17)))
    assert (other / "gpu.csv").read_bytes() == (again / "gpu.csv").read_bytes()
    runs = [gd.load_run(folder) for folder in (first, other)]
    apart = runs[1].gpu["time"].min() - runs[0].gpu["time"].min()
    assert abs(apart - pd.Timedelta(days=14)) < pd.Timedelta(hours=3)
    seconds = [(run.trials["end"] - run.trials["start"]).dt.total_seconds().tolist() for run in runs]
    assert seconds[0] != seconds[1]
    assert f"gpudiag demo --case {case} --seed 17 -o" in (other / "ORIGIN.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_command_takes_a_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert called(monkeypatch, "demo", "--case", "second-worker", "--seed", "4", "-o", tmp_path / "pair") == 0
    write_case("second-worker", tmp_path / "wanted", 4)
    for name in ("baseline/gpu.csv", "experiment/gpu.csv"):
        assert (tmp_path / "pair" / name).read_bytes() == (tmp_path / "wanted" / name).read_bytes()
    assert called(monkeypatch, "demo", "--seed", "-1", "-o", tmp_path / "x") == 2
    assert set(CASES) >= {"healthy", "second-worker"}
