"""A figure for a dark page: its paper, ink and rules in other colours, what they show in the same."""

from __future__ import annotations

from gpudiag.plots._draw.palette import CARD, CELL_COLORS, GPU_COLORS, INK, MUTED, RULE, STATE_COLORS

COLORS = {INK: "#e6e9ee", MUTED: "#a3acb8", RULE: "#363d48", CELL_COLORS["unobserved"]: "#3a404a"}
"""Colours that carry no state, and what they are on dark paper."""
LINES = {GPU_COLORS[0]: "#3f9be0", STATE_COLORS["COMPLETE"]: "#2c9c63"}
"""Colours of lines that are too dim on dark paper, and what they are there; areas keep theirs."""
PAPER = "#1b1f26"
_PLACE = "</style>"


def darkened(svg: str, media: str) -> str:
    """The SVG of a figure with a style sheet for dark paper, in force where ``media`` (such as
    ``(prefers-color-scheme: dark)``) holds. White letters within a bar stay white.
    """
    rules = [f'path[style*="fill: {CARD}"] {{ fill: {PAPER} !important }}']
    for light, dark in COLORS.items():
        rules += [f'[style*="{name}: {light}"] {{ {name}: {dark} !important }}' for name in ("fill", "stroke")]
    for light, dark in LINES.items():
        rules += [f'[style*="fill: none"][style*="stroke: {light}"] {{ stroke: {dark} !important }}']
    return svg.replace(_PLACE, f"@media {media} {{ {' '.join(rules)} }}{_PLACE}", 1)
