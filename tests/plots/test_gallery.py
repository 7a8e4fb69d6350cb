"""The gallery shows every figure, small enough to load, with the words that the figures have now."""

from __future__ import annotations

import re
import struct
from pathlib import Path

from gpudiag.plots import PLOTS
from gpudiag.plots.comparison import COMPARISON_PLOTS
from gpudiag.plots.forecast import THROUGHPUT
from gpudiag.plots.memory_capacity import MEMORY_CAPACITY
from gpudiag.plots.replay import LEARNING_CURVES

DOCS = Path(__file__).parents[2] / "docs"
EVERY = (
    PLOTS
    | {f"compare-{name}": plot for name, plot in COMPARISON_PLOTS.items()}
    | {
        "whatif-throughput": THROUGHPUT,
        "whatif-memory_capacity": MEMORY_CAPACITY,
        "whatif-learning_curves": LEARNING_CURVES,
    }
)


def test_every_figure_is_in_the_gallery_with_its_caption() -> None:
    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    entries = re.findall(r"### (.+)\n\n(.+)\n\n!\[(.+)\]\(gallery/(.+)\.png\)\n\n    (.+)\n", text)
    assert {file for *_, file, _ in entries} == set(EVERY), "docs/gallery.md lacks a figure: make gallery"
    for title, caption, alt, file, call in entries:
        assert caption == EVERY[file].caption, f"{title} has another caption now: make gallery"
        assert re.search(r"\d", alt) and "gd." in call


def test_pictures_are_there_whole_and_small() -> None:
    files = sorted((DOCS / "gallery").iterdir())
    assert [file.name for file in files] == sorted(f"{name}.png" for name in EVERY), "make gallery"
    sizes = [file.stat().st_size for file in files]
    assert max(sizes) < 150_000 and sum(sizes) < 2_500_000
    for file in files:
        head = file.read_bytes()[:24]
        assert head[:8] == b"\x89PNG\r\n\x1a\n"
        assert struct.unpack(">I", head[16:20])[0] >= 900, "too narrow to read on a slide"
