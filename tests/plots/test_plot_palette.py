"""Colours can be told apart with the common colour deficiencies, and states and cells in grey print too."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from gpudiag.plots._draw.palette import (
    CELL_COLORS,
    CELL_HATCHES,
    GPU_COLORS,
    STATE_COLORS,
    STATE_HATCHES,
    STATE_MARKERS,
    gpu_color,
    gpu_dash,
    gpu_number,
)
from gpudiag.schema import OUTCOMES

# Machado, Oliveira, Fernandes 2009, severity 1.0, on linear RGB.
DEFICIENCY = {
    "none": np.eye(3),
    "protanopia": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "deuteranopia": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(color: str) -> np.ndarray:
    rgb = np.array(to_rgb(color))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(color: str, deficiency: str) -> np.ndarray:
    x, y, z = (XYZ @ np.clip(DEFICIENCY[deficiency] @ linear(color), 0, 1)) / np.array([0.9505, 1.0, 1.089])
    f = [v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, y, z)]
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("deficiency", list(DEFICIENCY))
@pytest.mark.parametrize("colors", [STATE_COLORS, CELL_COLORS, dict(enumerate(GPU_COLORS[:4]))], ids=["s", "c", "g"])
def test_colours_differ_to_every_eye(colors: dict[object, str], deficiency: str) -> None:
    for one, other in combinations(colors, 2):
        distance = np.linalg.norm(lab(colors[one], deficiency) - lab(colors[other], deficiency))
        assert distance > 15, (one, other, distance)


@pytest.mark.parametrize("deficiency", list(DEFICIENCY))
def test_no_colour_of_a_trial_is_one_of_what_a_gpu_did(deficiency: str) -> None:
    """They stand beside each other on one time axis."""
    for state, cell in product(STATE_COLORS, CELL_COLORS):
        distance = np.linalg.norm(lab(STATE_COLORS[state], deficiency) - lab(CELL_COLORS[cell], deficiency))
        assert distance > 13, (state, cell, distance)


@pytest.mark.parametrize(("colors", "hatches"), [(STATE_COLORS, STATE_HATCHES), (CELL_COLORS, CELL_HATCHES)])
def test_faces_differ_in_grey_by_light_or_hatch(colors: dict[str, str], hatches: dict[str, str]) -> None:
    for one, other in combinations(colors, 2):
        light = abs(lab(colors[one], "none")[0] - lab(colors[other], "none")[0])
        assert light > 10 or hatches[one] != hatches[other], (one, other, light)


def test_every_state_has_colour_hatch_and_marker() -> None:
    assert tuple(STATE_COLORS) == tuple(STATE_HATCHES) == tuple(STATE_MARKERS) == OUTCOMES
    assert len(set(STATE_MARKERS.values())) == len(OUTCOMES)
    assert set(CELL_COLORS) == set(CELL_HATCHES)


def test_a_gpu_keeps_its_colour_when_others_are_missing() -> None:
    assert gpu_color(gpu_number("1", 0)) == gpu_color(1) != gpu_color(0)
    assert gpu_number("MIG-a", 3) == 3
    assert len({gpu_dash(i) for i in range(4)}) == 4
