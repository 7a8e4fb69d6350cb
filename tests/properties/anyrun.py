"""Runs that nobody thought of: parts of the samples and of simulations, put together and changed at random.

What hypothesis draws is a `Recipe`, short enough to read and to repeat: ``made(Recipe(...))`` is the run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from changes import CHANGES
from hypothesis import strategies as st
from writtendumps import Call, Dump, calls

from gpudiag._run.sound import sound
from gpudiag.alignment import apply_clock, establish_clock
from gpudiag.load import load_run
from gpudiag.run import Run, RunInfo
from gpudiag.schema import TABLES
from gpudiag.simulation import simulate

SAMPLES = Path(__file__).resolve().parent.parent.parent / "data" / "samples"
BASES = (*sorted(str(path.parent.relative_to(SAMPLES)) for path in SAMPLES.rglob("run.toml")), "simulated", "hung")
MOST_ROWS = 300
"""Of a table: enough for every measure, few enough for many examples."""
LENGTHS = (MOST_ROWS, 40, 7, 2, 1, 0)


@dataclass(frozen=True)
class Part:
    """A table: of which base, from which share of its rows on, how many rows, how many of its columns in 16."""

    base: str
    first: float = 0.0
    rows: int = MOST_ROWS
    columns: int = 16


@dataclass(frozen=True)
class Recipe:
    """What a run is made of: settings of one base, tables of any, changes by name one after another.

    ``clocked``: an offset between trials and telemetry is looked for, as when files are read.
    """

    base: str
    parts: tuple[tuple[str, Part], ...]
    changes: tuple[str, ...] = ()
    seed: int = 0
    clocked: bool = True


@cache
def base(name: str) -> Run:
    if name == "hung":
        return _hung()
    return simulate(seed=3, n_trials=30, startup_s=(5.0, 9.0)).run if name == "simulated" else load_run(SAMPLES / name)


def _hung() -> Run:
    """Flight recorders of four ranks: one did not come in one group, and another called something else in another."""
    with TemporaryDirectory() as folder:
        for rank in range(4):
            last = [] if rank == 2 else [Call(41, 41.0, None)]
            other = Call(3, 20.0, name="broadcast" if rank == 1 else "all_reduce", group="1")
            members = {"0": range(4), "1": range(4)}
            Dump(rank, [*calls(40), other, *last], members).write(Path(folder), written_s=900.0)
        return load_run(folder)


def made(recipe: Recipe) -> Run:
    """The run of a recipe; nothing that the bases share is changed."""
    rng = np.random.default_rng(recipe.seed)
    tables = {name: taken(name, part, rng) for name, part in recipe.parts}
    run = Run(info=_info(recipe.base), **tables)
    for name in recipe.changes:
        run = CHANGES[name](run, rng)
    if not recipe.clocked:
        return run
    kept = sound(run)
    return apply_clock(kept, establish_clock(kept))


def _info(name: str) -> RunInfo:
    """What is known of a base beside its tables and its files."""
    info = base(name).info
    return RunInfo(name="any", settings=info.settings, dataloader=info.dataloader, stated=info.stated)


def taken(name: str, part: Part, rng: np.random.Generator) -> pd.DataFrame:
    """Rows one after another, so that what hangs together stays together, and a choice of the optional columns."""
    whole = getattr(base(part.base), name)
    first = int(part.first * max(len(whole) - part.rows, 0))
    optional = [column for column in whole.columns if column not in TABLES[name].required]
    dropped = [column for column in optional if rng.integers(16) >= part.columns]
    return whole.iloc[first : first + part.rows].drop(columns=dropped).reset_index(drop=True)


@st.composite
def recipes(draw: st.DrawFn, most_changes: int = 3) -> Recipe:
    """Mostly one base; now and then every table of another."""
    one = draw(st.sampled_from(BASES))
    bases = st.just(one) if draw(st.booleans()) else st.sampled_from(BASES)
    shares = st.sampled_from((0.0, 0.5, 1.0))
    parts = st.builds(Part, bases, shares, st.sampled_from(LENGTHS), st.sampled_from((16, 16, 12, 6, 0)))
    whole = st.builds(Part, bases)
    chosen = [(name, draw(whole if draw(st.booleans()) else parts)) for name in TABLES if draw(st.integers(0, 7))]
    changes = draw(st.lists(st.sampled_from(sorted(CHANGES)), max_size=most_changes))
    return Recipe(one, tuple(chosen), tuple(changes), draw(st.integers(0, 999)), draw(st.booleans()))


def whole(name: str, **info: object) -> Run:
    """A base with at most MOST_ROWS of each table."""
    run = made(Recipe(name, tuple((table, Part(name)) for table in TABLES)))
    return replace(run, info=replace(run.info, **info))
