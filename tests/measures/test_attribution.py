"""Which GPU each trial ran on: every way of saying so, and never silently a guess."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from smallruns import T0, at, gpu, gpus, run, trials

from gpudiag._run.gpu_names import GpuNames, declared_gpus
from gpudiag.errors import NotMeasurable
from gpudiag.measures._gpu.shares import share_error_pct
from gpudiag.measures.attribution import measure_attribution
from gpudiag.run import Run
from gpudiag.schema import EVENTS, PROCESSES, conform
from gpudiag.simulation import Gpu, simulate

NAMES = GpuNames({"gpu-5a1b2c3d-11": "0", "gpu-5a1b9999-22": "1"}, {"00000000:01:00.0": "0", "00000000:c1:00.0": "1"})
BOARDS = gpus(
    gpu=["0", "1"], uuid=["GPU-5a1b2c3d-11", "GPU-5a1b9999-22"], bus_id=["00000000:01:00.0", "00000000:C1:00.0"]
)
TWO = pd.concat([gpu(range(0, 100), name, util_pct=60.0) for name in ("0", "1")])
ONE = trials([("COMPLETE", 10, 90)])


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("1", ["1"]), (1, ["1"]), (1.0, ["1"]), ("1.0", ["1"]), ("cuda:1", ["1"]), ("GPU 1", ["1"]), ("gpu_1", ["1"]),
        ("0,1", ["0", "1"]), ("[0, 1]", ["0", "1"]), ("cuda:0; cuda:1", ["0", "1"]), ("'1'", ["1"]), ("01", ["1"]),
        ("GPU-5a1b9999-22", ["1"]), ("GPU-5a1b2", ["0"]), ("0000:C1:00.0", ["1"]), ("C1:00.0", ["1"]),
        ("GPU-5a1b", []), ("GPU-ffffffff", []), ("MIG-GPU-5a1b2c3d/1/0", []),
        ("cuda", []), ("cpu", []), ("auto", []), ("-1", []), ("", []), (None, []), (True, []),
        ("0,cpu", []), ("lr=1", []),
    ],
)  # fmt: skip
def test_values_in_every_spelling(value: object, found: list[str]) -> None:
    assert list(NAMES.parse(value)) == found


@given(st.text(max_size=30) | st.integers() | st.floats() | st.booleans() | st.none())
def test_no_value_breaks_the_parser(value: object) -> None:
    assert all(isinstance(name, str) for name in NAMES.parse(value))


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ({"gpu": "1"}, "1"),
        ({"user_attrs.gpu_id": [1]}, "1"),
        ({"params.device": "cuda:1"}, "1"),
        ({"user_attrs.CUDA_VISIBLE_DEVICES": "1"}, "1"),
        ({"user_attrs.gpu-uuid": "GPU-5a1b9999-22"}, "1"),
        ({"user_attrs.cuda_visible_devices": "0,1"}, "0,1"),
        ({"user_attrs.CUDA_VISIBLE_DEVICES": "1,0", "params.device": "cuda:0"}, "1"),
        ({"user_attrs.CUDA_VISIBLE_DEVICES": "1", "params.device": "cuda"}, "1"),
        ({"gpu": "0", "user_attrs.gpu_id": [1]}, "0"),
    ],
)
def test_what_the_record_says(columns: dict[str, object], found: str) -> None:
    p = measure_attribution(run(gpu=TWO, gpus=BOARDS, trials=trials([("COMPLETE", 10, 90)], **columns)))
    (row,) = p.trials.to_dict("records")
    assert (row["gpu"], row["method"], row["confidence"]) == (found, "declared", "strong")
    assert p.links["gpu"].tolist() == found.split(",") and p.attributed_pct == 100 and p.n_inferred == 0


@pytest.mark.parametrize(
    "columns", [{"user_attrs.gpus": [2]}, {"params.gpu_use_dp": [True]}, {"user_attrs.note": ["cuda:1"]}]
)
def test_what_names_no_gpu_is_not_taken_for_one(columns: dict[str, object]) -> None:
    p = measure_attribution(run(gpu=TWO, gpus=BOARDS, trials=trials([("COMPLETE", 10, 90)], **columns)))
    assert p.trials["method"].tolist() == ["unknown"] and p.trials["gpu"].isna().all() and p.links.empty
    assert p.open_to["gpu"].tolist() == ["0", "1"] and p.n_attributed == 0


def test_names_of_which_the_telemetry_knows_none_say_nothing() -> None:
    """A container numbers its GPUs anew: cuda:3 of the host is its 0."""
    renumbered = run(gpu=gpu(range(100), "0", util_pct=60.0), trials=trials([("COMPLETE", 10, 90)], gpu="3"))
    assert declared_gpus(renumbered) == {}
    assert measure_attribution(renumbered).trials["gpu"].tolist() == ["0"]


def test_a_line_of_a_log_names_the_gpu() -> None:
    lines = pd.DataFrame(
        {
            "time": at([11, 12, 13, 14]),
            "kind": ["log", "gpu_assigned", "log", "oom"],
            "detail": [
                "Trial 0 using GPU 1",
                "[trial #1] device=cuda:0",
                "trial 7 gpu 9",
                "trial 1 failed: CUDA out of memory. GPU 1 has a total capacity of 24 GiB",
            ],
        }
    )
    two = trials([("COMPLETE", 10, 90), ("COMPLETE", 10, 90)])
    p = measure_attribution(run(gpu=TWO, gpus=BOARDS, trials=two, events=conform(lines, EVENTS)))
    assert p.trials["gpu"].tolist() == ["1", "0"] and p.trials["method"].unique().tolist() == ["log line"]
    other = pd.concat([two, trials([("COMPLETE", 10, 90)], study="t")], ignore_index=True)
    both = measure_attribution(run(gpu=TWO, gpus=BOARDS, trials=other, events=conform(lines, EVENTS)))
    assert both.trials["gpu"].fillna("?").tolist() == ["?", "0", "?"]  # two studies have a trial 0


def test_its_process_shows_the_gpu() -> None:
    seen = pd.DataFrame(
        {"time": at([20, 30, 20, 500]), "gpu": ["1", "1", "0", "0"], "pid": [7, 7, 8, 9], "mem_used_mib": 900.0}
    )
    two = trials([("COMPLETE", 10, 90), ("COMPLETE", 10, 90)], pid=[7, 9])
    p = measure_attribution(run(gpu=TWO, gpus=BOARDS, trials=two, processes=conform(seen, PROCESSES)))
    assert p.trials["gpu"].fillna("?").tolist() == ["1", "?"]
    assert p.trials["method"].tolist() == ["process", "unknown"]


def test_where_there_is_one_gpu_it_is_that() -> None:
    p = measure_attribution(run(gpu=gpu(range(100), "0", util_pct=60.0), trials=ONE))
    assert p.trials[["gpu", "method", "confidence"]].to_numpy().tolist() == [["0", "only GPU", "strong"]]


def test_the_only_active_gpu_is_a_guess_and_said_to_be() -> None:
    log = pd.concat([gpu(range(100), "0", util_pct=0.0), gpu(range(100), "1", util_pct=60.0)])
    p = measure_attribution(run(gpu=log, gpus=BOARDS, trials=ONE))
    assert p.trials[["gpu", "method", "confidence"]].to_numpy().tolist() == [["1", "only active GPU", "weak"]]
    assert p.n_inferred == 1
    apart = measure_attribution(run(joined=False, gpu=log, gpus=BOARDS, trials=ONE))
    assert apart.trials["method"].tolist() == ["unknown"]


def test_memory_that_falls_with_the_trial() -> None:
    t = np.arange(200)
    used = [np.where((t > 20) & (t < 90), 5000.0, 400.0), np.where((t > 40) & (t < 160), 7000.0, 400.0)]
    log = pd.concat([gpu(t, str(g), util_pct=60.0, mem_used_mib=used[g]) for g in (0, 1)])
    two = trials([("COMPLETE", 18, 90), ("PRUNED", 35, 160)])
    p = measure_attribution(run(gpu=log, gpus=BOARDS, trials=two))
    assert p.trials["gpu"].tolist() == ["0", "1"] and p.trials["method"].unique().tolist() == ["memory"]
    assert p.trials["confidence"].unique().tolist() == ["weak"] and p.n_inferred == 2


@pytest.mark.slow
def test_memory_is_right_about_those_that_it_names() -> None:
    named = right = total = 0
    for seed in range(12):
        made = simulate(
            seed=seed, gpus=(Gpu(), Gpu()), workers=4, n_trials=60, declares=(), assign="random", period_s=2.0
        )
        p = measure_attribution(made.run).trials.merge(
            made.truth.trials[["trial", "gpu"]], on="trial", suffixes=("", "_true")
        )
        known = p["method"] == "memory"
        total, named = total + len(p), named + int(known.sum())
        right += int((p["gpu"] == p["gpu_true"])[known].sum())
    assert named > 0.5 * total and right > 0.95 * named


def test_without_trials_there_is_nothing_to_attribute() -> None:
    with pytest.raises(NotMeasurable, match="There is no trials table"):
        measure_attribution(Run(gpu=TWO))
    assert T0.tzinfo is not None


def test_the_published_error_of_a_share_is_the_one_that_is_used(root: Path) -> None:
    """19, 23 and 26 % at two, three and four trials at once; more count as four, fractions as the next level."""
    at_once = np.array([np.nan, 1.0, 1.2, 2.0, 2.5, 3.0, 3.01, 4.0, 9.0])
    assert share_error_pct(at_once).tolist() == [0.0, 0.0, 19.0, 19.0, 23.0, 23.0, 26.0, 26.0, 26.0]
    methods = (root / "docs" / "methods.md").read_text(encoding="utf-8")
    assert "19 % at two, 23 % at three, 26 % at four trials" in methods
