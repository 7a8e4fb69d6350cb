"""Profiles as blocks: any by its declared facts and the head of its table, the ledger by its cells."""

from __future__ import annotations

import dataclasses
import re

from gpudiag.measures.base import Profile, facts
from gpudiag.measures.ledger import LedgerProfile
from gpudiag.report._render.blocks import Block, Heading, Number, TableBlock, Tiles
from gpudiag.report._render.frames import pairs, summary, table
from gpudiag.report._render.shown import shown_as
from gpudiag.report.format import quantity, share


@shown_as.register
def profile(found: Profile) -> list[Block]:
    """What it found as a whole, and the head of its first table."""
    import pandas as pd

    scalars = {name: fact["value"] for name, fact in facts(found).items() if "." not in name}
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(found).__name__).lower().capitalize()
    shown: list[Block] = [Heading(words), *summary(pairs(scalars))]
    values = (getattr(found, spec.name) for spec in dataclasses.fields(found))
    return [*shown, table(found.to_frame())] if any(isinstance(v, pd.DataFrame) for v in values) else shown


@shown_as.register
def ledger(found: LedgerProfile) -> list[Block]:
    """The cells that hold time, for each GPU; what they add up to."""
    rows = tuple(
        (
            str(row["cell"]),
            str(row["gpu"]),
            Number(quantity(row["gpu_s"], "GPU-s", exact=True)),
            Number(share(row["share_pct"], exact=True)),
        )
        for row in found.cells.to_dict("records")
        if row["gpu_s"] > 0
    )
    known = (
        ("in the ledger", quantity(found.total_gpu_s, "GPU-s")),
        ("observed", share(found.coverage_pct)),
        ("mean utilization", share(found.mean_util_pct)),
    )
    caption = "Every second of every GPU once."
    return [Heading("GPU-time ledger"), Tiles(known), TableBlock(("Cell", "GPU", "Time", "Share"), rows, caption)]
