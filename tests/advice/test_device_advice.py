"""What is advised for a GPU without work, and for a board below its clocks."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pandas as pd
import pytest

from gpudiag.advice._engine.gains import GainBounds
from gpudiag.advice.devices import check_devices, idle_gpus, pin_gpu, train_on_all
from gpudiag.advice.hardware import power_limit
from gpudiag.measures.balance import BalanceProfile
from gpudiag.measures.throttle import ThrottleProfile
from gpudiag.rules._engine.verdict import Verdict
from tests.advice.situations import HALF, Told, checks, found, gain_of, situation, use
from tests.rules.small_profiles import profile


def gpus(n: int) -> dict[str, dict[str, float]]:
    return {str(i): {} for i in range(n)}


def unused(names: str) -> Verdict:
    return found("gpu-unused", {"gpu": names})


@pytest.mark.parametrize(
    ("n", "idle", "busy", "high"),
    [
        (2, "1", 95.0, 2.0),
        (3, "2", 95.0, 1.5),
        (4, "0, 3", 95.0, 2.0),
        (5, "1, 2", 95.0, 5 / 3),
        (2, "1", 20.0, 1.25),  # the GPU is idle for 80 % of the time, and that part no other GPU makes shorter
        (2, "1", 100.0, 2.0),
        (2, "1", math.nan, 2.0),
    ],
)
def test_an_idle_gpu_brings_the_busy_time_of_the_other_back_at_most(
    n: int, idle: str, busy: float, high: float
) -> None:
    bounds = GainBounds(busy_pct=busy, trial_gpu_h=10.0)
    made = pin_gpu.propose(situation(use(20.0, gpus(n)), rules=(unused(idle),), bounds=bounds))
    assert gain_of(made) == (1.0, pytest.approx(high), "x", "devices")
    names = [name for name in idle.split(", ") if name]
    assert checks(made) == [(f"utilization.gpu.{name}.mean_pct", ">", 10.0) for name in names]
    assert made is not None
    assert made.changes[0].present == "GPU " + ", ".join(str(i) for i in range(n) if str(i) not in names)
    assert f"str(i % {n})" in made.changes[0].code


def test_where_no_gpu_has_work_there_is_none_to_spread() -> None:
    now = situation(use(0.0, gpus(2)), rules=(unused("0, 1"),), bounds=GainBounds(busy_pct=0.0))
    assert pin_gpu.propose(now) is None and check_devices.propose(now) is not None


@pytest.mark.parametrize(
    ("means", "busy", "high"),
    [
        ((99.0, 12.0), 56.0, 99 / 55.5),
        ((40.0, 10.0), 25.0, 1.6),
        ((50.0, 1.0), 26.0, 50 / 25.5),
        ((40.0, 0.0, 0.0), 40.0, 1 / 0.6),  # the other 60 % of the time no GPU was waited for
        ((60.0, 20.0), 80.0, 1.5),
    ],
)
def test_an_even_load_takes_from_the_busiest_gpu_what_is_above_the_mean(
    means: tuple[float, ...], busy: float, high: float
) -> None:
    uneven = use(50.0, {str(i): {"mean_pct": mean} for i, mean in enumerate(means)})
    now = situation(uneven, rules=("gpu-imbalance",), bounds=GainBounds(busy_pct=busy))
    made = pin_gpu.propose(now)
    assert gain_of(made) == (1.0, pytest.approx(high), "x", "devices")
    assert made is not None and f"only the {max(*means, busy):.0f} % of the time" in made.assumption
    assert check_devices.propose(now) is None, "each GPU had work, so that it was seen"


def test_between_unlike_gpus_nothing_bounds_the_gain() -> None:
    models = {"0": {"model": "NVIDIA A100-SXM4-80GB"}, "1": {"model": "Tesla T4"}}
    uneven = use(50.0, {"0": {"mean_pct": 99.0}, "1": {"mean_pct": 12.0}})
    made = pin_gpu.propose(situation(uneven, profile(BalanceProfile, models), rules=("gpu-imbalance",), bounds=HALF))
    assert made is not None and made.gain is None and "different models" in made.assumption


def test_an_imbalance_is_mended_where_the_least_busy_gpu_comes_halfway_to_the_mean() -> None:
    uneven = use(50.0, {"0": {"mean_pct": 90.0}, "1": {"mean_pct": 10.0}, "2": {"mean_pct": 50.0}})
    made = pin_gpu.propose(situation(uneven, bounds=HALF))
    assert checks(made)[0] == ("utilization.gpu.1.mean_pct", ">", 30.0)


@pytest.mark.parametrize(("n", "given"), [(1, False), (2, True)])
def test_one_gpu_needs_no_pinning(n: int, given: bool) -> None:
    assert (pin_gpu.propose(situation(use(20.0, gpus(n)), bounds=HALF)) is not None) is given
    assert pin_gpu.propose(situation(bounds=HALF)) is None


@pytest.mark.parametrize(
    ("parallel", "workers", "few"),
    [(None, 3, ""), (3, 3, ""), (4, 4, ""), (1, 3, "Only 1 trial runs at once: start 3 workers.")],
)
def test_as_many_workers_as_gpus_at_least(parallel: int | None, workers: int, few: str) -> None:
    made = pin_gpu.propose(situation(use(20.0, gpus(3)), rules=(unused("1"),), bounds=HALF, parallel=parallel))
    assert made is not None and made.verify_first == few
    assert made.changes[0].code.startswith(f"for i in range({workers}):")


def test_idle_gpus_are_named_once_in_the_order_of_the_findings() -> None:
    beside = found("gpu-idle-beside-busy", {"gpu": "2, 1"})
    assert idle_gpus(situation(rules=(beside, unused("0, 2")))) == ["0", "2", "1"]
    assert idle_gpus(situation(rules=(beside,))) == ["2", "1"]
    assert idle_gpus(situation(rules=(found("gpu-unused"), found("gpu-imbalance", {"gpu": "3"})))) == []


@pytest.mark.parametrize(
    ("log", "code"),
    [
        ({"rank": [0, 1]}, "torchrun --standalone --nproc-per-node=8 train.py  # was: 2"),
        ({"series": ["mmengine", "mmengine"]}, "torchrun --standalone --nproc-per-node=8 train.py  # was: 2"),
        ({}, "# start the training on all 8 GPUs"),
    ],
)
def test_one_training_is_started_on_all_gpus(log: dict[str, list[object]], code: str) -> None:
    """It has no workers, and trees of LightGBM have no ranks."""
    told = Told(n_trials=0)
    told.run.info.inputs = (SimpleNamespace(reader="training-log"),)
    told.run.steps = pd.DataFrame({"series": ["steps", "steps"], "rank": [pd.NA, pd.NA], **log})
    bounds = GainBounds(busy_pct=86.0)
    now = situation(use(21.5, gpus(8)), rules=(unused("2, 3, 4, 5, 6, 7"),), bounds=bounds, analysis=told)
    made = train_on_all.propose(now)
    assert made is not None and gain_of(made) == (1.0, 4.0, "x", "devices") and pin_gpu.propose(now) is None
    assert made.changes[0].code.endswith("# or hold 2 of 8: sbatch --gpus=2, or a machine with fewer")
    assert made.changes[0].code.startswith(code) and "LightGBM" not in made.changes[0].code
    assert (made.changes[0].what, made.changes[0].present) == ("GPUs of the training", "GPU 0, 1")


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_check_expects_the_gpus_that_were_seen(n: int) -> None:
    for now in (situation(use(20.0, gpus(n))), *([situation()] if n == 1 else [])):
        made = check_devices.propose(now)
        assert made is not None and made.changes[0].proposed == f"{n} expected"
        assert made.changes[0].code.endswith(f"assert len(devices) == {n}, devices  # the list that hands out GPUs")
        assert gain_of(made) == (1.0, 1.0, "x", "none")


def test_a_lowered_power_limit_is_restored_to_the_boards_own() -> None:
    rows = {"0": {"limit_w": 400.0, "default_w": 400.0, "is_lowered": False},
            "1": {"limit_w": 250.4, "default_w": 400.0, "is_lowered": True},
            "node2/3": {"limit_w": 200.0, "default_w": 700.0, "is_lowered": True}}  # fmt: skip
    made = power_limit.propose(situation(profile(ThrottleProfile, rows)))
    assert made is not None and made.gain is None and made.verify_first.startswith("Ask whoever runs this machine")
    first, second = made.changes
    assert first.text == "power limit of GPU 1, W: 250 → 400" and first.code.endswith("sudo nvidia-smi -i 1 -pl 400")
    assert second.text == "power limit of GPU node2/3, W: 200 → 700" and second.code.endswith("-i 3 -pl 700")


def test_boards_of_one_lowered_limit_are_one_change_that_names_all() -> None:
    rows = {gpu: {"limit_w": 500.0, "default_w": 700.0, "is_lowered": True} for gpu in "0126"}
    rows["4"] = {"limit_w": 400.0, "default_w": 700.0, "is_lowered": True}
    made = power_limit.propose(situation(profile(ThrottleProfile, rows)))
    assert made is not None
    first, second = made.changes
    assert first.text == "power limit of GPUs 0, 1, 2, 6, W: 500 → 700"
    assert [line.split()[3] for line in first.code.splitlines()[1:]] == ["0", "1", "2", "6"]
    assert second.text == "power limit of GPU 4, W: 400 → 700"


def test_a_board_at_its_own_limit_has_none_to_restore() -> None:
    at_its_own = {"0": {"limit_w": 400.0, "default_w": 400.0, "is_lowered": False}}
    assert power_limit.propose(situation(profile(ThrottleProfile, at_its_own))) is None
    assert power_limit.propose(situation()) is None
    assert not set(power_limit.answers) & {"thermal-throttling", "temperature-high"}, "no higher limit cools"
