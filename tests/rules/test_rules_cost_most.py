"""What cost a search most comes first: a trial that hangs or died, the last ones that run alone, memory that grows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from planted.base import log, run, study, ticks, trials

import gpudiag as gd
from gpudiag._load.marked import without_ends_after_silence
from gpudiag.run import Run

H = 3600.0
Rows = list[tuple[str, float, float]]
Work = list[tuple[float, float]]


def one_after_another(n: int, start: float = 0.0) -> Rows:
    """Trials of 200 to 224 s, one a worker at a time."""
    rows: Rows = []
    for i in range(n):
        rows.append(("COMPLETE", start, start + 200.0 + 6 * (i % 5)))
        start = rows[-1][2] + 1
    return rows


def gpu(name: str, work: Work, held: Work, seconds: float) -> pd.DataFrame:
    """Busy in ``work``; 8,000 MiB in use in ``held``, else 400."""
    at = ticks(seconds)

    def within(spans: Work) -> np.ndarray:
        return np.any([(at >= low) & (at < high) for low, high in spans], axis=0)

    util = np.where(within(work), 95.0, 0.0)
    return log(at, name, util_pct=util, mem_used_mib=np.where(within(held), 8000.0, 400.0))


def search(by_gpu: dict[str, Rows], logs: list[pd.DataFrame], **columns: Any) -> Run:
    rows = [(row, name) for name, own in by_gpu.items() for row in own]
    rows.sort(key=lambda each: each[0][1])
    table = trials([row for row, _ in rows], gpu=[name for _, name in rows], **columns)
    return run(pd.concat(logs).sort_values("time", kind="stable"), trials=table, studies=study())


def spans(rows: Rows) -> Work:
    return [(low, high) for _, low, high in rows]


def beside(last: tuple[str, float, float], worked_s: float, held_s: float) -> Run:
    """GPU 0 runs 60 trials; GPU 1 runs 10 and then one that works for ``worked_s`` and holds memory for ``held_s``."""
    busy, own = one_after_another(60), one_after_another(10)
    begun, end = own[-1][2] + 1, busy[-1][2]
    work, held = [*spans(own), (begun, begun + worked_s)], [*spans(own), (begun, begun + held_s)]
    logs = [gpu("0", spans(busy), spans(busy), end + 60), gpu("1", work, held, end + 60)]
    return search({"0": busy, "1": [*own, (last[0], begun, begun + last[2])]}, logs)


@pytest.mark.slow
@pytest.mark.parametrize(("held_s", "words"), [(9e9, "a trial hangs"), (100.0, "stayed idle after its trial died")])
def test_a_trial_that_stays_running_is_named_with_what_its_gpu_idled(held_s: float, words: str) -> None:
    d = gd.diagnose(beside(("RUNNING", 0.0, np.nan), 100.0, held_s))
    first = d.findings[0]
    assert first.rule == "trials-abandoned" and words in d.headline
    idle_h = (one_after_another(60)[-1][2] - one_after_another(10)[-1][2] - 100) / H
    assert first.lost_gpu_h == pytest.approx(idle_h, rel=0.05)
    symptoms = {found.rule for found in d.findings if found.caused_by == "trials-abandoned"}
    assert {"idle-after-work", "idle-without-trial", "gpu-low-utilization"} <= symptoms
    assert ("heartbeat" in d.headline) == (held_s < H), "a process that hangs sends heartbeats"


@pytest.mark.slow
def test_a_trial_that_hung_and_was_then_ended_is_named_with_what_its_gpu_idled() -> None:
    d = gd.diagnose(beside(("FAIL", 0.0, 2 * H), 100.0, 2 * H))
    assert d.findings[0].rule == "trial-duration-outliers" and "its GPU idle" in d.headline
    assert d.findings[0].lost_gpu_h == pytest.approx(2 - 100 / H, rel=0.05)


@pytest.mark.slow
def test_a_long_trial_that_works_is_no_hang() -> None:
    d = gd.diagnose(beside(("COMPLETE", 0.0, 2 * H), 2 * H, 2 * H))
    long = d.findings["trial-duration-outliers"]
    assert long.lost_gpu_h is None and "hangs" not in long.summary


@pytest.mark.slow
def test_a_failed_trial_whose_gpu_was_let_go_of_ended_long_before_its_mark() -> None:
    gone, hung = (beside(("FAIL", 0.0, 2 * H), 100.0, held_s) for held_s in (100.0, 2 * H))
    assert without_ends_after_silence(gone).trials["end"].isna().sum() == 1
    assert without_ends_after_silence(hung).trials["end"].isna().sum() == 0
    d = gd.diagnose(without_ends_after_silence(gone))
    assert d.findings[0].rule == "trials-abandoned" and "ended long before being marked FAIL" in d.findings[0].summary


@pytest.mark.slow
@pytest.mark.parametrize("n_last", [1, 2])
def test_the_last_trials_alone_are_named_with_the_gpus_that_idled_meanwhile(n_last: int) -> None:
    own = {str(i): one_after_another(8, 10.0 * i) for i in range(4)}
    end = own["3"][-1][2]
    for i in range(n_last):
        own[str(i)].append(("COMPLETE", own[str(i)][-1][2] + 1, end + 4000.0))
    logs = [gpu(name, spans(rows), spans(rows), end + 4060) for name, rows in own.items()]
    d = gd.diagnose(search(own, logs))
    assert d.findings[0].rule == "study-tail" and "ran alone" in d.headline
    assert d.findings[0].lost_gpu_h == pytest.approx((4 - n_last) * 4000 / H, rel=0.02)
    assert d.findings["idle-without-trial"].caused_by == "study-tail"


def failing(late: bool) -> Run:
    """Memory that trials do not free grows by 300 MiB each; the last ten, or each seventh, run out of it."""
    rows = one_after_another(70)
    bad = [i >= 60 if late else i % 7 == 0 for i in range(70)]
    rows = [("FAIL" if out else "COMPLETE", low, high) for out, (_, low, high) in zip(bad, rows, strict=True)]
    at = ticks(rows[-1][2] + 60)
    used = np.full(len(at), 400.0)
    for i, (_, low, high) in enumerate(rows):
        inside = (at >= low + 20) & (at < high)
        used[at >= low] = 400.0 + 300 * min(i, 60)
        used[inside] += 24564 - 500 - used[inside] if bad[i] else 5000.0
    util = np.where([any(low + 20 <= t < high for _, low, high in rows) for t in at], 95.0, 0.0)
    detail = ["CUDA out of memory" if out else None for out in bad]
    table = trials(rows, gpu="0", detail=detail)
    return run(log(at, util_pct=util, mem_used_mib=used, mem_total_mib=24564.0), trials=table, studies=study())


@pytest.mark.slow
@pytest.mark.parametrize("late", [True, False])
def test_memory_that_grew_is_why_trials_ran_out_of_it_where_they_did_late(late: bool) -> None:
    found = gd.diagnose(failing(late)).findings
    assert found["memory-leak"].title.endswith("trials ran out of it") == late
    assert (found["failures-out-of-memory"].caused_by == "memory-leak") == late


@pytest.mark.slow
@pytest.mark.parametrize(("n_oom", "explains"), [(3, False), (15, True)])
def test_a_kind_of_few_failures_is_not_why_trials_fail(n_oom: int, explains: bool) -> None:
    rows = [("FAIL" if i < 20 else "COMPLETE", low, high) for i, (_, low, high) in enumerate(one_after_another(60))]
    detail = ["CUDA out of memory"] * n_oom + ["KeyError: 'a'"] * (20 - n_oom) + [None] * 40
    found = gd.diagnose(run(trials=trials(rows, detail=detail), studies=study())).findings
    assert (found["failure-rate-high"].caused_by == "failures-out-of-memory") == explains


@pytest.mark.slow
def test_long_trials_are_told_with_the_value_that_they_have_in_common() -> None:
    rng = np.random.default_rng(5)
    choice = rng.permutation([f"a{i}" for i in range(12)] * 10)
    rows, free = [], 0.0
    for value in choice:
        rows.append(("COMPLETE", free, free + (1000.0 if value == "a7" else rng.uniform(100, 120))))
        free = rows[-1][2] + 1
    made = run(trials=trials(rows, **{"params.act": choice, "params.lr": 10 ** rng.uniform(-5, -1, 120)}))
    said = gd.diagnose(made).findings["trial-duration-outliers"].summary
    assert "10 of 10 such trials had act = a7; of others, 0 of" in said.replace("\n", " ")
