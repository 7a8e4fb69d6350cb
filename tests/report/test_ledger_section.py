"""The section of the ledger where a number of it is unknown."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
from toyrun import toy_run

from gpudiag.diagnosis import diagnose


def test_unknown_mean_utilization_is_a_dash() -> None:
    """Telemetry of another week: the window of the trials is unobserved, so that nothing has a mean."""
    run = toy_run()
    apart = replace(run, gpu=run.gpu.assign(time=run.gpu["time"] + pd.Timedelta(days=9)))
    found = diagnose(apart)
    facts = found.to_dict()["measures"]["ledger"]
    assert facts["mean_util_pct"]["value"] is None and facts["coverage_pct"]["value"] == 0
    text = found.to_markdown()
    assert any("mean utilization" in line and "–" in line for line in text.splitlines())


def test_energy_of_a_partly_observed_run_says_so() -> None:
    run = toy_run()
    half = run.gpu["time"] <= run.gpu["time"].quantile(0.6)
    whole, part = (diagnose(each).to_markdown() for each in (run, replace(run, gpu=run.gpu[half])))
    heads = [next(line for line in text.splitlines() if "Worker time |" in line) for text in (whole, part)]
    assert "Energy |" in heads[0] and "observed |" in heads[1] and "Energy |" not in heads[1]
