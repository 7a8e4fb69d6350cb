"""Draw every figure from the samples: docs/gallery.md and docs/gallery/*.png. Run it with ``make gallery``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache
from io import BytesIO
from pathlib import Path

from PIL import Image

import gpudiag as gd
from gpudiag.plots import PLOTS
from gpudiag.plots._draw.picture import Picture
from gpudiag.plots.forecast import THROUGHPUT
from gpudiag.plots.memory_capacity import MEMORY_CAPACITY
from gpudiag.plots.replay import learning_curves

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "data" / "samples"
DPI = 110
COLOURS, MAX_BYTES = (160, 64, 24), 140_000
SEARCH, CROWDED, TWO = "hpo-aggressive-pruning", "memory-exhaustion", "idle-second-gpu"
STARVED, LAPTOP = "starved-input-pipeline/before", "tiny-batch-laptop"
RUN = {
    "timeline": SEARCH, "ledger": f"{TWO}/baseline", "waterfall": STARVED, "utilization": f"{TWO}/baseline",
    "utilization_map": f"{TWO}/experiment", "memory": CROWDED,
    "overview_memory": CROWDED, "memory_by_trial": CROWDED, "concurrency": SEARCH,
    "gaps": SEARCH, "durations": SEARCH, "duration_ecdf": SEARCH, "parallel_coordinates": CROWDED,
    "prune_steps": SEARCH, "learning_curves": SEARCH, "power": LAPTOP, "power_use": SEARCH, "progress": SEARCH,
    "clock": SEARCH, "step_time": STARVED, "ranks": "slow-rank",
}  # fmt: skip
"""By figure of one run the sample that shows most in it; the search where none is named."""
COMPARED = ("durations", "ledger_change", "distributions", "timelines")
PRUNER = "median(n_startup_trials=5,n_warmup_steps=5)"
HEAD = """# Gallery

Every figure, drawn from the samples in `data/samples` by `make gallery`. A state, a cell of the ledger and a GPU have
the same color in all of them; hatches, dashes and markers tell them apart in gray and to color-blind eyes.

A figure is a matplotlib `Figure`, 9 inches wide for a page or a slide, and never shown by itself:
`figure.savefig("timeline.pdf")` writes it. `diagnosis.plot.timeline(width_in=3.4)` lays it out anew for one of two
columns of a paper, with letters of 6 to 7 points, and `diagnosis.picture("timeline", width_in=3.4)` brings the words
for its caption along. `dir(diagnosis.plot)` lists what a run allows.
"""
Drawn = tuple[str, str, str, Picture]
"""File name without suffix, title, the call that makes it, the picture."""


@cache
def diagnosis(sample: str) -> gd.Diagnosis:
    return gd.diagnose(gd.load_run(SAMPLES / sample))


def of_a_run() -> Iterator[Drawn]:
    for name in PLOTS:
        sample = RUN.get(name, SEARCH)
        call = f'gd.diagnose(gd.load_run("data/samples/{sample}")).plot.{name}()'
        yield name, name, call, diagnosis(sample).picture(name)


def of_two_runs() -> Iterator[Drawn]:
    sides = f"{TWO}/baseline", f"{TWO}/experiment"
    compared = gd.compare(*(diagnosis(side) for side in sides))
    for name in COMPARED:
        call = 'gd.compare("{}", "{}").picture("{}")'.format(*(f"data/samples/{side}" for side in sides), name)
        yield f"compare-{name}", name, call, compared.picture(name)


def of_a_forecast() -> Iterator[Drawn]:
    run, start = diagnosis(CROWDED).run, f'run = gd.load_run("data/samples/{CROWDED}")'
    forecast = gd.what_if(run)
    picture = THROUGHPUT.picture("throughput", {"forecast": forecast})
    yield "whatif-throughput", "throughput", f"{start}; gd.what_if(run)", picture
    picture = MEMORY_CAPACITY.picture("memory_capacity", {"memory_capacity": forecast.capacity})
    yield "whatif-memory_capacity", "memory_capacity", f"{start}; gd.memory_capacity(run)", picture
    replay = gd.replay_pruner(diagnosis(SEARCH).run, PRUNER)
    call = f'gd.replay_pruner(gd.load_run("data/samples/{SEARCH}"), "{PRUNER}")'
    yield "whatif-learning_curves", "learning_curves", call, learning_curves(replay)


PARTS: tuple[tuple[str, Callable[[], Iterator[Drawn]]], ...] = (
    ("Of a run", of_a_run),
    ("Of two runs", of_two_runs),
    ("Of a forecast", of_a_forecast),
)


def small_png(picture: Picture) -> bytes:
    """The picture as a PNG with a palette, a third of the size."""
    image = Image.open(BytesIO(picture.png(DPI))).convert("RGB")
    for colours in COLOURS:
        out = BytesIO()
        image.quantize(colours, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(
            out, "PNG", optimize=True
        )
        if out.tell() <= MAX_BYTES:
            break
    return out.getvalue()


def main(folder: Path) -> None:
    """Write gallery.md and gallery/*.png into that folder."""
    pictures = folder / "gallery"
    pictures.mkdir(exist_ok=True)
    for old in pictures.glob("*.png"):
        old.unlink()
    page = [HEAD]
    for heading, part in PARTS:
        page.append(f"## {heading}\n")
        for file, title, call, picture in part():
            (pictures / f"{file}.png").write_bytes(small_png(picture))
            alt = picture.alt.replace("[", "(").replace("]", ")")
            page.append(f"### {title}\n\n{picture.caption}\n\n![{alt}](gallery/{file}.png)\n\n    {call}\n")
    (folder / "gallery.md").write_text("\n".join(page), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs")
