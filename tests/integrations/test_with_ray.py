"""The callback in a search with the real Ray Tune."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from gpudiag import load_run

ray = pytest.importorskip("ray")
tune = pytest.importorskip("ray.tune")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def test_the_machine_and_the_trials(tmp_path: Path) -> None:
    from gpudiag.integrations.ray import GpudiagCallback

    def objective(config: dict[str, Any]) -> None:  # goes to its workers by value, who cannot import this file
        time.sleep(0.5)
        if config["x"] == 1:
            raise ValueError("planted")
        tune.report({"loss": config["x"]})

    folder = tmp_path / "run"
    callback = GpudiagCallback(folder / "metrics.csv", interval_s=0.1)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        kept = tune.RunConfig(name="search", storage_path=str(folder), callbacks=[callback], verbose=0)
        tune.Tuner(objective, param_space={"x": tune.grid_search([0, 1, 2])}, run_config=kept).fit()
    finally:
        ray.shutdown()
    run = load_run(folder)
    kinds = list(run.events["kind"])
    assert (kinds.count("trial_start"), kinds.count("trial_end"), kinds.count("trial_error")) == (3, 2, 1)
    assert "record_end" in kinds and len(run.host) > 3
    assert sorted(run.trials["state"]) == ["COMPLETE", "COMPLETE", "FAIL"]
