"""Processor sharing, by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudiag.simulation.sharing import SharedGpu, busy_share, speed
from gpudiag.simulation.spec import Gpu

SATURATING = Gpu(sharing="saturating")
OVERLAPPING = Gpu(sharing="overlapping")
SHARES = st.lists(st.floats(0.05, 0.95), min_size=1, max_size=8)


def test_laws_of_the_busy_share() -> None:
    assert busy_share(SATURATING, [0.3] * 3) == pytest.approx(0.9)
    assert busy_share(SATURATING, [0.6] * 2) == 1.0
    assert busy_share(OVERLAPPING, [0.5] * 3) == pytest.approx(1 - 0.5**3)
    assert busy_share(Gpu(sharing="saturating", ceiling_pct=97.0), [0.6] * 2) == pytest.approx(0.97)


@pytest.mark.parametrize("k", [1, 2, 4, 7])
def test_equal_loads_run_at_the_speed_of_methods_10(k: int) -> None:
    for gpu, busy in ((SATURATING, min(1.0, 0.3 * k)), (OVERLAPPING, 1 - 0.7**k)):
        assert speed(gpu, [0.3] * k) == pytest.approx(busy / (k * 0.3))


def test_overhead_of_company_slows_but_keeps_the_gpu_busy() -> None:
    gpu = Gpu(sharing="saturating", overhead_pct=3.0)
    assert speed(gpu, [0.2] * 3) == pytest.approx(0.97**2)
    assert busy_share(gpu, [0.2] * 3) == pytest.approx(0.6)


@given(SHARES)
def test_a_load_alone_runs_at_full_speed_and_company_never_helps(shares: list[float]) -> None:
    for gpu in (SATURATING, OVERLAPPING):
        assert speed(gpu, shares[:1]) == pytest.approx(1.0)
        assert speed(gpu, shares) <= 1.0 + 1e-12
        assert busy_share(gpu, shares) >= max(shares) - 1e-12


def test_two_loads_share_and_the_second_speeds_up_when_the_first_is_done() -> None:
    gpu = SharedGpu(SATURATING)
    gpu.join(0.0, 1, 0.8, 40.0)
    gpu.join(0.0, 2, 0.8, 60.0)
    # Each runs at 1 / 1.6 = 0.625 of its solo speed until the first has done its 40 s at 64 s.
    assert gpu.next_end() == (pytest.approx(64.0), 1)
    assert gpu.leave(64.0, 1) == pytest.approx(0.0)
    assert gpu.next_end() == (pytest.approx(84.0), 2)
    assert gpu.trace == [(0.0, 0.8), (0.0, 1.0), (64.0, 0.8)]


def test_a_load_that_leaves_early_says_what_it_had_left() -> None:
    gpu = SharedGpu(SATURATING)
    gpu.join(0.0, 1, 0.5, 40.0)
    gpu.join(10.0, -1, 0.5, None)
    assert gpu.leave(30.0, 1) == pytest.approx(10.0)
    assert gpu.next_end() is None
    assert gpu.trace[-1] == (30.0, 0.5)
