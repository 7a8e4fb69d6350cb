"""Another process on the GPU of a training: whose it may be, and what it did to the steps."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from smallruns import at, gpu, run

from gpudiag.measures._steps.beside import Beside, process_beside
from gpudiag.schema import PROCESSES, STEPS, conform

OWN = "/opt/a/python"
LINES, EACH = 120, 10


def beside(
    name: str | None, spans: list[tuple[int, int]], times: float = 1.0, grows: float = 0.0, sampled: float = 1.0
) -> Beside:
    """A training of a line each ten steps of a second, ``times`` as long while another process is there; steps are
    ``grows`` longer in the end. ``sampled``: the part of it in which processes were.
    """
    line = np.arange(LINES)
    there = np.zeros(LINES, bool)
    for first, last in spans:
        there |= (line >= first) & (line < last)
    noise = np.random.default_rng(5).uniform(0.97, 1.03, LINES)
    took = EACH * np.where(there, times, 1.0) * (1 + grows * line / LINES) * noise
    done_s = np.append(0.0, took.cumsum())
    step = EACH * np.arange(1, LINES + 2)
    frame = pd.DataFrame({"time": at(done_s), "step": step, "line": step})
    steps = conform(frame.assign(unit="step", series="steps", meant="", path="train.log"), STEPS)
    ticks = np.arange(0.0, sampled * done_s[-1], 5.0)
    rows = [pd.DataFrame({"time": at(ticks), "gpu": "0", "pid": 7, "name": OWN})]
    for number, (first, last) in enumerate(spans):
        when = ticks[(ticks > done_s[first]) & (ticks < done_s[last])]
        rows.append(pd.DataFrame({"time": at(when), "gpu": "0", "pid": 8 + number, "name": name}))
    processes = conform(pd.concat(rows, ignore_index=True).assign(mem_used_mib=900.0), PROCESSES)
    return process_beside(
        run(gpu=gpu(np.arange(0.0, done_s[-1], 5.0), util_pct=95.0), steps=steps, processes=processes)
    )


@pytest.mark.parametrize("spans", [[(40, 80)], [(60, LINES)], [(20, 40), (70, 90)]])
def test_steps_take_longer_while_another_is_there(spans: list[tuple[int, int]]) -> None:
    found = beside("/home/b/python", spans, 1.6)
    assert found.ratio == pytest.approx(1.6, rel=0.04) and found.p < 0.01
    assert (found.name, found.gpus, found.mib, found.n_gpus) == ("/home/b/python", ("0",), 900.0, 1)
    lines = sum(last - first for first, last in spans)
    assert found.seconds == pytest.approx(1.6 * EACH * lines, rel=0.05)
    assert found.lost_gpu_h == pytest.approx(0.6 * EACH * lines / 3600, rel=0.1)


@pytest.mark.parametrize(("grows", "most"), [(0.0, 1.04), (1.0, 1.1)])
def test_steps_that_grow_by_themselves_are_not_laid_to_it(grows: float, most: float) -> None:
    assert beside("/home/b/python", [(60, LINES)], grows=grows).ratio < most


@pytest.mark.parametrize("name", [OWN, None, "[Not Found]", "-"])
def test_of_its_own_command_or_without_a_name_nobody_knows_whose_it_is(name: str | None) -> None:
    assert math.isnan(beside(name, [(40, 80)], 1.6).ratio)


def test_that_none_was_there_is_said_of_what_was_sampled_alone() -> None:
    assert beside(None, []).ratio == 1
    assert math.isnan(beside(None, [], sampled=0.5).ratio)


def test_of_several_commands_that_are_there_throughout_nobody_knows_which_are_its_own() -> None:
    found = beside("/home/b/gmx", [(0, LINES)], 1.6)
    assert math.isnan(found.ratio) and set(found.throughout) == {OWN, "/home/b/gmx"}
    assert beside(None, []).throughout == ()
