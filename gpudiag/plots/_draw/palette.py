"""The colours of gpudiag's figures: the same thing has the same colour everywhere.

What a GPU did has Okabe and Ito's hues (https://jfly.uni-koeln.de/color/), some made lighter or darker, and one wine
red. What became of a trial has others, greens, purples and red: both stand on one time axis. A test simulates the
common colour deficiencies and demands a visible difference between any two, of a trial and a GPU as well. Because some
are close in grey print, a state also has a hatch and a marker, and a ledger cell a hatch.
"""

from __future__ import annotations

from gpudiag.schema import gpu_index

Dash = str | tuple[float, tuple[float, ...]]

INK = "#1a1a1a"
ON_LIGHT = "#111111"
"""Letters on a light bar, which must not turn light as INK does."""
MUTED = "#5f6368"
RULE = "#d9dce0"
CARD = "#ffffff"
ACCENT = "#d55e00"

STATE_COLORS: dict[str, str] = {
    "COMPLETE": "#0f7a48",
    "PRUNED": "#9e7dea",
    "FAIL": "#b72a18",
    "STOPPED": "#d277be",
    "RUNNING": "#58b87e",
    "ABANDONED": "#752d7f",
    "WAITING": "#bdcfbf",
}
"""Colour of what became of a trial, in the order of OUTCOMES: none is that of a ledger cell."""

STATE_HATCHES: dict[str, str] = {
    "COMPLETE": "", "PRUNED": "", "FAIL": "xxxx", "STOPPED": "----", "RUNNING": "////", "ABANDONED": "\\\\\\\\",
    "WAITING": "....",
}  # fmt: skip
"""Hatch of a trial state, so that states can be told apart in grey."""

STATE_MARKERS: dict[str, str] = {
    "COMPLETE": "o", "PRUNED": "v", "FAIL": "X", "STOPPED": "D", "RUNNING": ">", "ABANDONED": "P", "WAITING": "s",
}  # fmt: skip
"""Marker of a trial state, for points."""

CELL_COLORS: dict[str, str] = {
    "busy": "#0072b2",
    "busy_low": "#56b4e9",
    "stalled": "#d55e00",
    "waiting": "#ffe9a8",
    "startup_only": "#f0e442",
    "tail_only": "#e69f00",
    "foreign": "#882255",
    "idle_no_trial": "#868d96",
    "unobserved": "#e8eaed",
}
"""Colour of a cell of the GPU-time ledger: blues did work, warm hues waited, greys had nothing to do."""

CELL_HATCHES: dict[str, str] = {
    "busy": "",
    "busy_low": "",
    "stalled": "xxxx",
    "waiting": "oo",
    "startup_only": "",
    "tail_only": "\\\\\\\\",
    "foreign": "++++",
    "idle_no_trial": "",
    "unobserved": "....",
}
"""Hatch of a ledger cell, so that cells can be told apart in grey."""

GPU_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#1a1a1a", "#8a9099")
GPU_DASHES: tuple[Dash, ...] = ("solid", (0, (5, 1.5)), (0, (1.5, 1)), (0, (6, 1.5, 1.5, 1.5)))


def gpu_color(i: int) -> str:
    """Colour of GPU number i; colours come round after eight."""
    return GPU_COLORS[i % len(GPU_COLORS)]


def gpu_dash(i: int) -> Dash:
    """Dash of GPU number i's line, so that four can be told apart in grey."""
    return GPU_DASHES[i % len(GPU_DASHES)]


def gpu_number(gpu: str, position: int) -> int:
    """The number that picks a GPU's colour: its index where its name is one, else its position."""
    index = gpu_index(gpu)
    return position if index is None else index


def ink_on(color: str) -> str:
    """Colour of letters on a bar, which dark paper leaves as it is; only unobserved time turns with INK."""
    if color == CELL_COLORS["unobserved"]:
        return INK
    light = luminance(color)
    return "white" if 1.05 / (light + 0.05) > (light + 0.05) / (luminance(ON_LIGHT) + 0.05) else ON_LIGHT


def luminance(color: str) -> float:
    """Relative luminance, 0 to 1 (WCAG 2.2)."""
    from matplotlib.colors import to_rgb  # where something is drawn: pages need the colours alone

    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(color)]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def darker(color: str, keep: float = 0.6) -> tuple[float, float, float]:
    """The colour with ``keep`` of its light: for edges and hatches on a face of that colour."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(color)
    return red * keep, green * keep, blue * keep
