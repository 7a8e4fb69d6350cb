"""Forecasts of workers that stay on their GPUs, evenly or not: rates that follow from the placement by hand."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from smallruns import gpu as gpu_of
from smallruns import gpus as gpus_of
from smallruns import run as run_of
from smallruns import trials as trials_of

import gpudiag as gd
from gpudiag.forecast.memory.net import seen_net
from gpudiag.forecast.parallelism.free_gpus import free_gpus
from gpudiag.forecast.parallelism.observed import observe
from gpudiag.forecast.parallelism.placement import evenly, gpu_of_workers, with_workers

HOUR_S = 3600


def placed_run(*placed: int, names: bool = True, hours: float = 1.0) -> gd.Run:
    """Every trial uses half a GPU for 40 s of work: beside one other it takes 40 s, beside two others 60 s.

    Workers of a GPU follow each other evenly and stay on it.
    """
    rows, where, names_of = [], [], []
    logs = []
    for gpu, workers in enumerate(placed):
        takes_s = 40.0 * max(1.0, workers / 2)
        for worker in range(workers):
            begins = np.arange(worker * takes_s / workers, hours * HOUR_S - takes_s, takes_s)
            rows += [("COMPLETE", float(begin), float(begin + takes_s)) for begin in begins]
            where += [str(gpu)] * len(begins)
            names_of += [f"w{gpu}-{worker}"] * len(begins)
        seconds = np.arange(0.0, hours * HOUR_S, 2.0)
        util = np.full(len(seconds), min(100.0, 50.0 * workers))
        logs.append(gpu_of(seconds, str(gpu), util_pct=util, mem_used_mib=500.0 + 1000.0 * workers))
    more = {"worker": names_of} if names else {}
    n = len(placed)
    return run_of(
        gpu=pd.concat(logs).sort_values("time", kind="stable", ignore_index=True),
        gpus=gpus_of(gpu=[str(i) for i in range(n)], name="G", mem_total_mib=24000.0),
        trials=trials_of(rows, gpu=where, **more),
        settings={"parallel": sum(placed), "cpu_cores": 64},
    )


@pytest.fixture(scope="module")
def uneven() -> gd.Run:
    return placed_run(3, 1)


@pytest.mark.slow
@pytest.mark.parametrize("names", [True, False])
def test_workers_are_seen_where_they_stay(names: bool) -> None:
    run = placed_run(3, 1, names=names, hours=0.3)
    assert observe(run).placed(4) == (3, 1)
    assert observe(run).placed(5) == (3, 2), "never seen, so evenly"


@pytest.mark.slow
def test_trials_that_go_wherever_there_is_room_have_no_usual_placement(uneven: gd.Run) -> None:
    rng = np.random.default_rng(3)
    mixed = uneven.trials.assign(gpu=rng.permutation(uneven.trials["gpu"].to_numpy()))
    moved = run_of(gpu=uneven.gpu, gpus=uneven.gpus, trials=mixed.drop(columns="worker"))
    assert observe(moved).placed(4) == (2, 2)


@pytest.mark.slow
def test_throughput_is_that_of_the_placement(uneven: gd.Run) -> None:
    """Three that fill one GPU end 180 trials an hour, one alone 90; two and two would end 180 each."""
    made = gd.what_if(uneven, [2, 4, 5, 6])
    assert {k: made.at(k).placed for k in (2, 4, 5, 6)} == {
        2: {"0": 1, "1": 1}, 4: {"0": 3, "1": 1}, 5: {"0": 3, "1": 2}, 6: {"0": 3, "1": 3}
    }  # fmt: skip
    for k, rate in ((2, 180), (4, 270), (5, 360), (6, 360)):
        assert made.at(k).throughput.value == pytest.approx(rate, rel=0.03)
    assert made.at(5).gain.low <= 360 / 270 <= made.at(5).gain.high + 1e-9
    assert made.spread is not None and made.spread.k == 4 and made.spread.placed == {"0": 2, "1": 2}
    assert made.spread.gain.low <= 360 / 270 <= made.spread.gain.high + 1e-9
    assert made.at(5).gain.value == pytest.approx(360 / 270, rel=0.04)
    text = " ".join(repr(made).split())
    assert "spread unevenly: 3 on GPU 0 and 1 on GPU 1. Spread evenly, they would be 1.3" in text
    assert json.loads(made.to_json())["spread"]["placed"] == {"0": 2, "1": 2}


@pytest.mark.slow
def test_further_workers_join_a_gpu_that_was_idle() -> None:
    """One uses half a GPU and ends 90 trials an hour, and so does another one on the idle GPU."""
    one = gd.what_if(placed_run(1, 0), [1, 2])
    assert one.at(2).placed == {"0": 1, "1": 1} and one.gaps == () and one.spread is None
    assert one.at(2).gain.value == pytest.approx(2, rel=0.04)
    assert one.at(1).util.value == pytest.approx(25, abs=1), "of both GPUs"
    # Three fill one GPU and end 180 trials an hour; a fourth alone ends 90, and so does one of the three. No log of
    # a GPU that is always full can tell that.
    made = gd.what_if(placed_run(3, 0), [3, 4])
    assert made.at(4).placed == {"0": 3, "1": 1}
    assert made.spread is not None and made.spread.placed == {"0": 2, "1": 1}
    for gain in (made.at(4).gain, made.spread.gain):
        assert gain.bounds_only and gain.low <= 270 / 180 <= gain.high and "GPU was full" in gain.reason
    assert "3 on GPU 0 and none on GPU 1. Spread evenly" in " ".join(repr(made).split())


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({}, ""),
        ({"util_pct": 60.0}, "GPU 1: it worked without a trial"),
        ({"util_pct": np.nan}, "GPU 1: its load is not known"),
        ({"mem_used_mib": 9000.0}, "GPU 1: its memory was in use without a trial"),
        ({"name": "H"}, "GPU 1: its model is another one, or not known"),
    ],
)
def test_only_a_gpu_that_is_free_and_alike_is_counted(changed: dict[str, Any], why: str) -> None:
    made = placed_run(2, 0, hours=0.1)
    other = made.gpu["gpu"] == "1"
    telemetry = made.gpu.assign(
        **{name: made.gpu[name].where(~other, value) for name, value in changed.items() if name != "name"}
    )
    boards = made.gpus.assign(name=["G", changed.get("name", "G")])
    idle, reason = free_gpus(run_of(gpu=telemetry, gpus=boards, trials=made.trials), ["0"])
    assert (idle == ["1"]) is (not why) and why in reason and bool(reason) is bool(why)


@pytest.mark.slow
def test_memory_of_the_fullest_gpu_counts(uneven: gd.Run) -> None:
    made = gd.what_if(uneven, [4])
    assert made.capacity is not None and made.spread is not None
    assert made.at(4).overflow == made.capacity.overflow(3)
    assert made.spread.overflow == made.capacity.overflow(2)
    assert seen_net(uneven, 2, 2) is None, "four ran, and not two on each"
    counted = seen_net(placed_run(2, 2), 2, 2)
    assert counted is not None and counted.value == pytest.approx(360, rel=0.05)


@pytest.mark.slow
def test_an_even_placement_says_nothing_of_itself() -> None:
    made = gd.what_if(placed_run(2, 2), [4, 5])
    assert made.spread is None and "unevenly" not in repr(made)
    assert made.at(4).throughput.value == pytest.approx(360, rel=0.03)


@pytest.mark.slow
def test_one_more_is_advised_where_it_is_taken_to_run(uneven: gd.Run) -> None:
    more = {one.id: one for one in gd.diagnose(uneven).recommendations}["more-workers"]
    assert "taken to run on GPU 1, which has 1 of the 4 now" in more.assumption
    assert "spread evenly over the GPUs" in more.assumption
    assert more.gain is not None and more.gain.low <= 360 / 270 <= more.gain.high + 1e-9


def test_further_workers_join_the_gpu_with_the_fewest() -> None:
    assert with_workers((3, 1), 7) == (4, 3) and with_workers((3, 1), 3) == (2, 1) and with_workers((3, 1), 2) == (1, 1)
    for gpus in (1, 2, 3):
        for k in range(1, 9):
            assert with_workers(evenly(k, gpus), k + 1) == evenly(k + 1, gpus)
            assert with_workers(evenly(k + 1, gpus), k) == evenly(k, gpus)
    assert gpu_of_workers((3, 1)).tolist() == [0, 1, 0, 0] and gpu_of_workers((2, 2)).tolist() == [0, 1, 0, 1]
