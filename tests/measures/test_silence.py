"""A log that falls silent before its last step, and what its GPUs do meanwhile."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest
from verdicts import verdict_of, verdicts_of

from gpudiag.load import load_run
from gpudiag.measures.silence import measure_silence
from gpudiag.run import Run

WORK_S, SILENT_S = 600, 1500


def run_of(
    tmp_path: Path,
    *,
    util: int,
    mib: int = 20000,
    power: tuple[int, int] | None = None,
    total: int = 1000,
    said: str = "",
    shift_s: int = 0,
) -> Run:
    """A line each 10 s for 10 min; then two GPUs at that utilization for 25 min."""
    rows = []
    for at in range(0, WORK_S + SILENT_S, 10):
        works = at < WORK_S
        cells = [97 if works else util, 20000 if works else mib, 80000]
        cells += [] if power is None else [power[0] if works else power[1]]
        stamp = f"2026-03-01T10:{at // 60:02}:{at % 60:02}Z"
        rows += [",".join([stamp, str(gpu), *map(str, cells)]) for gpu in (0, 1)]
    head = "timestamp,gpu,util_pct,mem_used_mib,mem_total_mib" + ("" if power is None else ",power_w")
    (tmp_path / "gpu.csv").write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    lines = [
        f"{datetime(2026, 3, 1, 10) + timedelta(seconds=at + shift_s)} step {at // 10}/{total} loss 0.5"
        for at in range(10, WORK_S + 1, 10)
    ]
    (tmp_path / "train.log").write_text("\n".join([*lines, said]) + "\n", encoding="utf-8")
    return load_run(tmp_path, timezone="UTC")


@pytest.mark.parametrize(
    ("util", "mib", "state", "freed"), [(0, 20000, "idle", False), (0, 5, "idle", True), (100, 20000, "full", False)]
)
def test_gpus_are_idle_or_full_behind_the_last_line(
    tmp_path: Path, util: int, mib: int, state: str, freed: bool
) -> None:
    found = measure_silence(run_of(tmp_path, util=util, mib=mib))
    assert (found.last_step, found.total_steps, found.line_every_s, found.due_s) == (60, 1000, 10, 100)
    assert found.silent_s == pytest.approx(SILENT_S, abs=10)
    assert found.per_gpu["state"].tolist() == [state] * 2 and found.per_gpu["is_freed"].tolist() == [freed] * 2
    assert found.per_gpu["silent_s"].tolist() == pytest.approx([SILENT_S] * 2, abs=10)


@pytest.mark.parametrize(
    "told",
    [
        {"util": 90},
        {"util": 100, "power": (300, 290)},
        {"util": 0, "total": 60},
        {"util": 0, "said": "Early stopping: val_loss did not improve for 5 evaluations"},
        {"util": 0, "said": "ValueError: bad shape"},
        {"util": 0, "shift_s": 600},
        {"util": 100, "shift_s": -3600},
    ],
    ids=["at work", "power tells", "done", "stopped early", "error", "later clock", "earlier clock"],
)
def test_nothing_is_said_where_another_end_or_work_is_possible(tmp_path: Path, told: dict[str, object]) -> None:
    assert measure_silence(run_of(tmp_path, **told)).silent_s == 0  # type: ignore[arg-type]


def test_a_gpu_that_works_on_may_be_of_another_job(tmp_path: Path) -> None:
    run = run_of(tmp_path, util=0)
    of_other = run.gpu[run.gpu["gpu"] == "0"].assign(gpu="7", util_pct=80.0)
    run = dataclasses.replace(run, gpu=pd.concat([run.gpu, of_other], ignore_index=True))
    silent = verdict_of(run, "log-silent")
    assert (silent.severity.value, silent.where["gpu"], silent.lost_gpu_h) == ("note", "0, 1", None)
    assert silent.summary.endswith("Another GPU worked on: it may be of the same job.")


def test_it_explains_idle_time_after_the_work_and_costs_what_that_did(tmp_path: Path) -> None:
    found = verdicts_of(run_of(tmp_path, util=0), "log-silent", "idle-after-work")
    silent = found["log-silent"]
    assert silent.lost_gpu_h == pytest.approx(2 * SILENT_S / 3600, abs=0.01)
    assert found["idle-after-work"].caused_by == "log-silent"
    assert silent.summary == (
        "The log stops at step 60 of 1,000 and tells of no error. Until then it had a line every 10 s; GPUs 0 and 1 "
        "were recorded for 24 min 55 s more, idle, with memory held: the training most likely hangs."
    )
