"""What is said of idle time in a record without trials, and what is not advised there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gpudiag.analysis import Analysis
from gpudiag.rules import RULES
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.rule import check_thresholds
from gpudiag.rules._engine.verdict import Severity, Status, Verdict
from gpudiag.run import Run
from gpudiag.schema import GPU, TRIALS, conform

T0 = pd.Timestamp("2026-03-10 08:00", tz="UTC")
STEP_S = 20.0
IDLE = ("idle-before-work", "idle-between-work", "idle-after-work")
LOW = ("gpu-low-utilization", "gpu-fluctuating", "gpu-allocated-idle", "stalls-periodic", "stalls-aperiodic")
ASKED = tuple(rule for rule in RULES if rule.id in (*IDLE, *LOW))

Part = tuple[float, float, float]
"""Utilization, GiB in use, minutes."""


def found(*gpus: Sequence[Part], **tables: Any) -> dict[str, Verdict]:
    return {name: one for name, one in judged(*gpus, **tables).items() if one.status is Status.FOUND}


def judged(*gpus: Sequence[Part], step_s: float = STEP_S, **tables: Any) -> dict[str, Verdict]:
    logs = []
    for name, parts in enumerate(gpus):
        repeats = [round(minutes * 60 / step_s) for _, _, minutes in parts]
        util, gib = (np.repeat([float(part[i]) for part in parts], repeats) for i in (0, 1))
        seconds = pd.to_timedelta(np.arange(len(util)) * step_s, unit="s")
        more = {"util_pct": util, "mem_used_mib": 1024 * gib, "mem_total_mib": 81_920.0}
        logs.append(pd.DataFrame({"time": T0 + seconds, "gpu": str(name), **more}))
    run = Run(gpu=conform(pd.concat(logs, ignore_index=True), GPU), **tables)
    return {one.rule: one for one in judge_all(ASKED, Analysis(run), check_thresholds(ASKED, {}))}


def test_all_gpus_idle_in_the_middle() -> None:
    made = found(*[[(95, 60, 300), (0, 0, 180), (95, 60, 120)]] * 2)
    one = made["idle-between-work"]
    assert (one.severity, one.where["gpu"]) == (Severity.WARNING, "0, 1")
    assert one.lost_gpu_h == pytest.approx(6) and one.evidence["between_pct"] == pytest.approx(30, abs=0.1)
    assert (
        "were idle for 3 h each between the first and the last work. The pause began at 2026-03-10 12:59:50 UTC."
        in (one.summary)
    )
    assert "most likely a job ended or crashed" in one.summary and "another GPU" not in one.summary


def test_few_samples_at_an_end_tell_no_end_of_the_work() -> None:
    """Every five minutes: nine of them are 45 minutes, between which the GPU may have worked."""
    few, many = (judged([(0, 60, n * 5), (95, 60, 600), (0, 60, n * 5)], step_s=300) for n in (9, 10))
    for rule in ("idle-before-work", "idle-after-work"):
        assert few[rule].status is Status.NOT_ASSESSED and "Fewer than 10 samples show" in few[rule].reason
        assert many[rule].status is Status.FOUND


def test_what_the_samples_do_not_show_is_said() -> None:
    """No column of memory tells, or it was held, but not as much as before."""
    (made,) = found([(95, 0.1, 300), (0, 0.1, 60), (95, 0.1, 300)]).values()
    assert made.summary.endswith("do not show whether one job waited, or one ended and another began.")
    held = found([(95, 60, 300), (0, 20, 60), (95, 60, 300)])["idle-between-work"]
    assert "with 20.0 GiB held" in held.summary and "do not show" in held.summary
    assert (made.severity, held.severity) == (Severity.NOTE, Severity.WARNING)


def test_a_job_that_keeps_its_memory_is_not_to_be_ended() -> None:
    made = found(*[[(95, 60, 150), (0, 60, 30), (95, 60, 150)]] * 2)
    assert set(made) == {"idle-between-work"}
    one = made["idle-between-work"]
    assert "most likely the job itself waited" in one.summary and "with 60.0 GiB held" in one.summary
    assert "End nothing before you know" in one.remedy and "release" not in one.remedy


def test_neither_is_one_of_trials() -> None:
    rows = {"study": "s", "trial": [0], "state": "COMPLETE", "start": [T0], "end": [T0 + pd.Timedelta(minutes=330)]}
    one = found([(95, 60, 150), (0, 60, 30), (95, 60, 150)], trials=conform(pd.DataFrame(rows), TRIALS))
    assert "most likely the work itself waited" in one["gpu-allocated-idle"].summary
    assert "End nothing before you know" in one["gpu-allocated-idle"].remedy


def test_a_gpu_that_stops_beside_others_may_be_part_of_their_job() -> None:
    works = [(95, 60, 300)]
    one = found(works, works, [(95, 60, 200), (0, 60, 100)])["idle-after-work"]
    assert one.where["gpu"] == "2" and "Another GPU worked on for 1 h 40 min" in one.summary
    assert "End nothing before you know" in one.remedy and not one.remedy.startswith("End the job")
    both = found(*[[(95, 60, 200), (0, 60, 100)]] * 2)["idle-after-work"]
    assert both.remedy.startswith("End the job and release the GPU") and "Another GPU" not in both.summary


def test_one_gpu_idle_beside_others() -> None:
    one = found([(95, 60, 300)], [(95, 60, 100), (0, 0, 60), (95, 60, 140)])["idle-between-work"]
    assert (one.where["gpu"], one.lost_gpu_h) == ("1", pytest.approx(1))
    assert ", while another GPU worked" in one.summary


def test_memory_is_named_where_it_was_held() -> None:
    made = found([(0, 0, 25), (95, 68, 300), (0, 68, 40)])
    assert set(made) == {"idle-before-work", "idle-after-work"}
    assert made["idle-before-work"].severity is Severity.NOTE and "with" not in made["idle-before-work"].summary
    assert "with 68.0 GiB held" in made["idle-after-work"].summary
    forgotten = found([(0, 9, 40)], [(95, 60, 40)])["gpu-allocated-idle"]
    assert forgotten.evidence["allocated_mib"] == 9 * 1024 and "held 9.0 GiB" in forgotten.summary


def test_costs_of_idle_findings_add_up_to_the_idle_time() -> None:
    """Three pauses, ten waits at uneven times, and both ends: each second in one finding, or in one that another
    explains.
    """
    waits = [part for n in range(10) for part in ((95, 60, 6 + 5 * (n % 3)), (0, 60, 4))]
    pauses = [part for _ in range(3) for part in ((95, 60, 40), (0, 0, 30))]
    made = found([(0, 1, 30), *pauses, *waits, (95, 60, 20), (0, 1, 60)])
    idle_h = (30 + 3 * 30 + 10 * 4 + 60) / 60
    apart = {one.rule: one.lost_gpu_h or 0.0 for one in made.values() if one.caused_by is None}
    assert set(apart) == {*IDLE, "stalls-aperiodic"}
    assert sum(apart.values()) == pytest.approx(idle_h, abs=0.01)
    assert made["gpu-fluctuating"].caused_by == "stalls-aperiodic"
    assert made["gpu-fluctuating"].lost_gpu_h == pytest.approx(10 * 4 / 60)


def test_regular_pauses_say_how_often_they_come() -> None:
    made = found([part for _ in range(9) for part in ((95, 60, 105), (0, 60, 15))] + [(95, 60, 60)])
    assert set(made) == {"idle-between-work"}, "what is longer than ten minutes is no wait within the work"
    assert "in 9 pauses of up to 15 min, about every 2 h, with" in made["idle-between-work"].summary
    uneven = [part for n in range(9) for part in ((95, 60, 30 + 60 * (n % 4)), (0, 60, 15))]
    (other,) = found([*uneven, (95, 60, 60)]).values()
    assert "in 9 pauses of up to 15 min, with" in other.summary


def test_nights_are_no_waits_of_the_days() -> None:
    """Half of each day the GPU rests; by day it waits for four minutes of every forty."""
    nights = [part for _ in range(6) for part in ((90, 9, 720), (0, 9, 720))] + [(90, 9, 720)]
    made = found(nights)
    assert set(made) == {"idle-between-work", "gpu-low-utilization"}
    assert ", about every 1 d" in made["idle-between-work"].summary and made["idle-between-work"].caused_by is None
    day = [part for _ in range(18) for part in ((90, 9, 36), (0, 9, 4))]
    both = found([part for _ in range(3) for part in (*day, (90, 9, 36), (0, 0, 720))] + [(90, 9, 36)])
    assert "drops by 90 points every 40 min, for 4 min each time: 9.4 % of its work is lost" in (
        both["stalls-periodic"].summary
    )
    assert both["idle-between-work"].caused_by is None
    assert "was idle for 9.4 % of the time from its first to its last work, pauses of more than 10 min left out" in (
        both["gpu-fluctuating"].summary
    )


def test_a_lower_load_by_night_is_no_wait_either() -> None:
    assert not found([part for _ in range(6) for part in ((90, 9, 120), (20, 9, 120))])


def test_a_pause_explains_low_utilization() -> None:
    made = found([(95, 60, 60), (0, 0, 180), (95, 60, 60)])
    assert made["gpu-low-utilization"].caused_by == "idle-between-work"
