"""Idle, low and busy mean one thing each: every sample is on one side, and a page has one idle share."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sampleruns import diagnosed

from gpudiag.measures.ledger import IDLE, GpuLedger, LedgerProfile
from gpudiag.report._render.blocks import Folded, TableBlock
from gpudiag.report._sections.key_numbers import key_numbers
from gpudiag.report._sections.topics import utilization
from gpudiag.report.format import share

PACKAGE = Path(__file__).resolve().parents[2] / "gpudiag"
RUNS = (
    "healthy",
    "hpo-aggressive-pruning",
    "starved-input-pipeline/before",
    "starved-input-pipeline/after",
    "idle-second-gpu/baseline",
    "idle-second-gpu/experiment",
    "memory-exhaustion",
    "tiny-batch-laptop",
)


def idle_pct(name: str) -> float:
    held = diagnosed(name).document.ledger
    assert held is not None
    return 100 * sum(held.seconds().get(cell, 0.0) for cell in IDLE) / held.total_gpu_s


@pytest.mark.many
@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_the_table_of_gpus_and_the_table_of_gpu_time_have_one_idle_share(name: str) -> None:
    document = diagnosed(name).document
    rows = document.values(LedgerProfile).by_row(GpuLedger)
    idle_s = sum(row["idle_s"] for row in rows.values())
    assert 100 * idle_s / document.ledger.total_gpu_s == pytest.approx(idle_pct(name))
    folds = [block for block in utilization(document) if isinstance(block, Folded)]
    table = next(part for part in folds[0].blocks if isinstance(part, TableBlock) and "Idle" in part.columns)
    shown = [row[table.columns.index("Idle")].text for row in table.rows]
    assert shown == [share(row["idle_pct"], exact=True) for row in rows.values()]


@pytest.mark.slow
@pytest.mark.many
@pytest.mark.parametrize("name", RUNS)
def test_the_number_at_the_top_is_that_of_the_table(name: str) -> None:
    said = [re.search(r", (\S+ %) of it idle", words) for words, _ in key_numbers(diagnosed(name).document)]
    assert all(found.group(1) == share(idle_pct(name)) for found in said if found)


@pytest.mark.many
@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_the_page_says_idle_of_no_other_share(name: str) -> None:
    """'Idle for x %' is said of the GPU time alone; other bases have other words."""
    text = diagnosed(name).to_markdown()
    shares = re.findall(r"idle for (\d[\d.]* %)", text)
    assert set(shares) <= {share(idle_pct(name))}


def test_a_sample_of_ten_percent_is_low_and_of_fifty_busy() -> None:
    from gpudiag.measures._time.timeline import CELLS, Intervals, Samples, draw_timeline

    at = np.arange(6, dtype=np.int64) * 1_000_000
    samples = Samples(at, at, at + 1_000_000, np.array([9.0, 10.0, 11.0, 49.0, 50.0, 51.0]))
    trial = Intervals(at[:1] - 9_000_000, at[-1:] + 9_000_000)
    line = draw_timeline(samples, trial, [(0, 6_000_000)], has_trials=True, cuts_us=np.zeros(0, np.int64))
    cells = [CELLS[code] for code in line.cell]
    assert cells[1:] == ["busy_low", "busy_low", "busy_low", "busy", "busy"] and cells[0] in IDLE


def test_whole_percents_shift_no_mass() -> None:
    """A GPU at 10 to 12 %, read in whole percents, is never idle."""
    from smallruns import gpu, run

    from gpudiag.measures.ledger import measure_ledger
    from gpudiag.measures.utilization import measure_utilization

    true_pct = 10.0 + 2.0 * np.random.default_rng(1).random(500)
    work = run(gpu=gpu(range(500), util_pct=np.rint(true_pct)))
    assert measure_utilization(work).idle_pct == 0
    assert measure_ledger(work).pct(*IDLE) == 0


def test_no_file_puts_ten_percent_on_the_idle_side() -> None:
    wrong = re.compile(r"(<=|(?<![=<>-])>)\s*IDLE_PCT")
    found = [str(p.relative_to(PACKAGE)) for p in PACKAGE.rglob("*.py") if wrong.search(p.read_text(encoding="utf-8"))]
    assert not found


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.slow
def test_no_cost_exceeds_the_gpu_time_that_it_is_part_of(name: str) -> None:
    document = diagnosed(name).document
    assert document.ledger is not None
    costs = {one.rule: one.lost_gpu_h for one in document.findings if one.lost_gpu_h}
    assert all(0 < hours <= document.ledger.total_gpu_s / 3600 for hours in costs.values()), costs
