"""The section of the ledger where a number of it is unknown."""

from __future__ import annotations

import re
from dataclasses import replace

import pandas as pd
import pytest
from toyrun import toy_run, whole_toy_diagnosis

from gpudiag.diagnosis import diagnose
from gpudiag.measures.ledger import measure_ledger
from gpudiag.simulation import Gpu, simulate


@pytest.mark.slow
def test_unknown_mean_utilization_is_left_out() -> None:
    """Telemetry of another week: the window of the trials is unobserved, so that nothing has a mean."""
    run = toy_run()
    apart = replace(run, gpu=run.gpu.assign(time=run.gpu["time"] + pd.Timedelta(days=9)))
    found = diagnose(apart)
    facts = found.to_dict()["measures"]["ledger"]
    assert facts["mean_util_pct"]["value"] is None and facts["coverage_pct"]["value"] == 0
    text = found.to_markdown()
    assert "100 % was not observed." in text and "Mean utilization from" not in text


@pytest.mark.slow
def test_energy_of_a_partly_observed_run_says_so() -> None:
    run = toy_run()
    half = run.gpu["time"] <= run.gpu["time"].quantile(0.6)
    whole, part = (one.to_markdown() for one in (whole_toy_diagnosis(), diagnose(replace(run, gpu=run.gpu[half]))))
    heads = [next(line for line in text.splitlines() if "Worker time |" in line) for text in (whole, part)]
    assert "Energy |" in heads[0] and "observed |" in heads[1] and "Energy |" not in heads[1]


@pytest.mark.slow
def test_energy_of_a_run_with_power_in_a_part_says_so_though_all_was_observed() -> None:
    run = toy_run()
    late = run.gpu["time"] >= run.trials["start"].min() + 0.6 * (run.trials["end"].max() - run.trials["start"].min())
    text = diagnose(replace(run, gpu=run.gpu.assign(power_w=run.gpu["power_w"].where(late)))).to_markdown()
    head = next(line for line in text.splitlines() if "Worker time |" in line)
    assert "| Energy, 40 % observed |" in head and "was not observed." not in text


@pytest.mark.slow
def test_unclear_time_bounds_start_up_and_stalls() -> None:
    run = simulate(
        seed=7, gpus=(Gpu(),) * 8, workers=8, n_trials=80, epochs=6, startup_s=(8.0, 12.0), epoch_s=(14.0, 22.0),
        gpu_share_pct=(70.0, 90.0), period_s=30.0,
    ).run  # fmt: skip
    seconds = measure_ledger(run).totals.set_index("cell")["gpu_s"]
    said = re.search(
        r"start-up only ([\d.]+)–([\d.]+) %, tail only .* and stalled ([\d.]+)–([\d.]+) %", diagnose(run).to_markdown()
    )
    assert said
    for cell, low, high in (("startup_only", *said.groups()[:2]), ("stalled", *said.groups()[2:])):
        assert float(low) == round(100 * seconds[cell] / seconds.sum(), 1)
        assert float(high) == round(100 * (seconds[cell] + seconds["waiting"]) / seconds.sum(), 1)
    high_pct = measure_ledger(run).totals.set_index("cell")["share_high_pct"]
    assert high_pct["busy"] == 100 * seconds["busy"] / seconds.sum()
    assert high_pct["tail_only"] == 100 * (seconds["tail_only"] + seconds["waiting"]) / seconds.sum()
    assert "What is unclear may" not in whole_toy_diagnosis().to_markdown()


@pytest.mark.slow
def test_worker_time_is_in_worker_hours_here_as_in_the_table_of_trials() -> None:
    text = whole_toy_diagnosis().to_markdown()
    table = text[text.index("| Outcome | Trials | Worker time") :].split("\n\n")[0].splitlines()[2:]
    cells = [line.split("|")[3].strip() for line in table]
    assert cells and all(cell.endswith(("worker-h", "worker-s", "–")) for cell in cells)
    assert len({len(cell.split(" ")[0].partition(".")[2]) for cell in cells if cell.endswith("worker-h")}) <= 1


@pytest.mark.slow
def test_a_zone_that_nobody_stated_is_said_to_be_the_machines() -> None:
    run = toy_run()
    stated = whole_toy_diagnosis().to_markdown().splitlines()[2]
    assumed = diagnose(replace(run, info=replace(run.info, timezone_assumed=True))).to_markdown().splitlines()[2]
    assert assumed == stated.replace(f"({run.info.timezone})", f"({run.info.timezone}, this machine's zone)") != stated
