"""Figures on a dark page: paper and ink change, what they show does not."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from handmade import Size, toy_profiles

from gpudiag.plots import draw
from gpudiag.plots._draw.dark import COLORS, LINES, PAPER, darkened
from gpudiag.plots._draw.palette import CELL_COLORS, GPU_COLORS, INK, STATE_COLORS, ink_on

MEDIA = "(prefers-color-scheme: dark)"


@pytest.mark.slow
def test_a_figure_gets_one_style_sheet_and_keeps_all_else() -> None:
    svg = draw("timeline", toy_profiles(Size(trials=20))).svg()
    dark = darkened(svg, MEDIA)
    ElementTree.fromstring(dark)
    added = re.search(r"@media \(prefers-color-scheme: dark\) \{.*\}(?=</style>)", dark)
    assert added and dark.replace(added[0], "") == svg


def test_states_keep_their_colours() -> None:
    assert not set(COLORS) & (set(STATE_COLORS.values()) | set(CELL_COLORS.values()) - {CELL_COLORS["unobserved"]})


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_ink_can_be_read_on_the_dark_paper() -> None:
    assert (luminance(COLORS[INK]) + 0.05) / (luminance(PAPER) + 0.05) >= 7


def test_lines_can_be_seen_on_the_dark_paper() -> None:
    dark = [LINES.get(color, COLORS.get(color, color)) for color in GPU_COLORS]
    assert all((luminance(color) + 0.05) / (luminance(PAPER) + 0.05) >= 4 for color in dark)
    assert len(set(dark)) == len(GPU_COLORS)


def test_numbers_on_bars_can_be_read_on_either_paper() -> None:
    for cell, color in CELL_COLORS.items():
        for dark in (False, True):
            face, ink = color, ink_on(color).replace("white", "#ffffff")
            if dark:
                face, ink = COLORS.get(face, face), COLORS.get(ink, ink)
            dim, bright = sorted((luminance(face), luminance(ink)))
            assert (bright + 0.05) / (dim + 0.05) >= 4.5, (cell, dark)
