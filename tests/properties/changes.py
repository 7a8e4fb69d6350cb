"""What may be odd about a run: each change is a function from a run and a source of chance to another run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from gpudiag.manifest import Settings
from gpudiag.run import Run
from gpudiag.schema import STATES, TABLES

Chance = np.random.Generator
Change = Callable[[Run, Chance], Run]

ODD = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1.7976931348623157e308, 5e-324, -1.0, 0.0, 100.0, 101.0, 1e12)
HOSTILE = (
    "<img src=x onerror=alert(1)>", "|a|b|", "`c`", "*d*", "[e](javascript:f)", "", " ", "\x1b[31mred", "a\nb", "=1+1",
    "\u202eright", "n̈\u0301", "名前", "😀", "x" * 3000, "{n:trial}", "%s", "-1", "00", "0.0", "1e5", "$x$",
    "]]>", "&amp;", "\\frac", "a,b", "'", '"',
)  # fmt: skip
"""Names that want to be markup, numbers, templates, or a line of their own."""
PRUNERS = ("median()", "hyperband(min_resource=1,max_resource=81)", "patient(none(),patience=2)", "odd(", "threshold()")
DIRECTIONS = ("", "MINIMIZE", "MAXIMIZE", "MINIMIZE,MAXIMIZE", "SIDEWAYS")


def _tables(run: Run, change: Callable[[str, pd.DataFrame], pd.DataFrame]) -> Run:
    return run.map_tables(lambda name, table: change(name, table) if len(table) else table)


def _kind(table: pd.DataFrame, kind: str) -> list[str]:
    """Columns of a dtype whose name begins so."""
    return [name for name in table.columns if str(table[name].dtype).startswith(kind)]


def reordered(run: Run, chance: Chance) -> Run:
    return _tables(run, lambda _, table: table.sample(frac=1, random_state=chance, ignore_index=True))


def doubled(run: Run, chance: Chance) -> Run:
    return _tables(run, lambda _, table: pd.concat([table, table], ignore_index=True))


def odd_numbers(run: Run, chance: Chance) -> Run:
    """One number in ten is odd, in half of the columns."""

    def change(_: str, table: pd.DataFrame) -> pd.DataFrame:
        out = table.copy()
        for name in _kind(table, "float"):
            if chance.random() < 0.5:
                hit = chance.random(len(table)) < 0.1
                out[name] = table[name].mask(hit, chance.choice(ODD))
        return out

    return _tables(run, change)


def constant(run: Run, chance: Chance) -> Run:
    """A number that never changes, in half of the columns."""

    def change(_: str, table: pd.DataFrame) -> pd.DataFrame:
        names = [name for name in _kind(table, "float") if chance.random() < 0.5]
        return table.assign(**{name: float(chance.choice(ODD)) for name in names})

    return _tables(run, change)


def unknown_times(run: Run, chance: Chance) -> Run:
    def change(_: str, table: pd.DataFrame) -> pd.DataFrame:
        names = _kind(table, "datetime")
        return table.assign(**{name: table[name].mask(chance.random(len(table)) < 0.3) for name in names})

    return _tables(run, change)


def moved(run: Run, chance: Chance) -> Run:
    """Some tables lie elsewhere in time."""
    by = [pd.Timedelta(days=float(days)) for days in (-20_000, -400, -1, -0.01, 0.01, 1, 400, 60_000)]

    def change(_: str, table: pd.DataFrame) -> pd.DataFrame:
        if chance.random() < 0.5:
            return table
        shift = by[chance.integers(len(by))]
        return table.assign(
            **{name: (table[name] + shift).astype(table[name].dtype) for name in _kind(table, "datetime")}
        )

    return _tables(run, change)


def backwards(run: Run, chance: Chance) -> Run:
    """Some trials end before they start."""
    trials, hit = run.trials, chance.random(len(run.trials)) < 0.4
    return replace(
        run,
        trials=trials.assign(
            start=trials["start"].mask(hit, trials["end"]), end=trials["end"].mask(hit, trials["start"])
        ),
    )


def at_one_instant(run: Run, chance: Chance) -> Run:
    def change(_: str, table: pd.DataFrame) -> pd.DataFrame:
        return table.assign(**{name: table[name].iloc[0] for name in _kind(table, "datetime")})

    return _tables(run, change)


def _states(choose: Callable[[Chance, int], Sequence[str]]) -> Change:
    def change(run: Run, chance: Chance) -> Run:
        state = pd.Series(choose(chance, len(run.trials)), index=run.trials.index, dtype=run.trials["state"].dtype)
        return replace(run, trials=run.trials.assign(state=state))

    return change


def hostile_names(run: Run, chance: Chance) -> Run:
    """Some text of every column is another, and so is the name of the run; states and kinds stay."""

    def change(_: str, table: pd.DataFrame) -> pd.DataFrame:
        out = table.copy()
        for name in table.columns.difference(["state", "directions", "space", "clock"]):
            if isinstance(table[name].dtype, pd.StringDtype) or table[name].dtype == object:
                kept = table[name].drop_duplicates()
                other = {old: str(chance.choice(HOSTILE)) for old in kept if chance.random() < 0.5}
                out[name] = table[name].map(lambda old, other=other: other.get(old, old)).astype(table[name].dtype)
        return out

    return replace(_tables(run, change), info=replace(run.info, name=str(chance.choice(HOSTILE))))


def hostile_columns(run: Run, chance: Chance) -> Run:
    """Parameters and attributes of such names, numbers and text mixed."""
    n, columns = len(run.trials), {}
    for name in chance.choice(HOSTILE, 4):
        values = [float(chance.choice(ODD)) if chance.random() < 0.5 else str(chance.choice(HOSTILE)) for _ in range(n)]
        columns[f"{chance.choice(['params.', 'user_attrs.'])}{name}"] = pd.Series(values, dtype=object)
    return replace(run, trials=run.trials.assign(**columns))


def many_gpus(run: Run, chance: Chance) -> Run:
    """Each sample is of any of 40 GPUs."""
    return _tables(
        run,
        lambda name, table: (
            table.assign(gpu=pd.Series(chance.integers(0, 40, len(table))).astype(str).astype(table["gpu"].dtype))
            if name == "gpu"
            else table
        ),
    )


def many_workers(run: Run, chance: Chance) -> Run:
    workers = pd.Series(chance.integers(0, 50, len(run.trials))).astype(str)
    return replace(run, trials=run.trials.assign(worker=workers))


def several_studies(run: Run, chance: Chance) -> Run:
    """The trials are of either of two studies, of which the table of studies knows at most one."""
    studies = pd.Series(chance.choice(["s", "t"], len(run.trials))).astype(run.trials["study"].dtype)
    return replace(run, trials=run.trials.assign(study=studies))


def other_directions(run: Run, chance: Chance) -> Run:
    return replace(run, studies=run.studies.assign(directions=str(chance.choice(DIRECTIONS))))


def odd_settings(run: Run, chance: Chance) -> Run:
    settings = Settings(
        parallel=int(chance.choice([1, 2, 64, 10**9])),
        n_trials=int(chance.choice([1, 50, 10**9])),
        pruner=str(chance.choice(PRUNERS)),
        price_per_gpu_h=float(chance.choice([0, 2.5, 1e9])),
        max_steps=int(chance.choice([1, 10, 10**9])),
    )
    return replace(run, info=replace(run.info, settings=settings))


def unjoined(run: Run, chance: Chance) -> Run:
    return replace(run, info=replace(run.info, clock=replace(run.info.clock, joined=False)))


def huge_steps(run: Run, chance: Chance) -> Run:
    steps = chance.choice([-(2**63), -1, 0, 1, 2**31, 2**63 - 1], len(run.reports))
    return replace(run, reports=run.reports.assign(step=steps))


def unknown_columns(run: Run, chance: Chance) -> Run:
    """Optional columns that are there and hold nothing."""

    def change(name: str, table: pd.DataFrame) -> pd.DataFrame:
        optional = [c for c in table.columns if c not in TABLES[name].required and chance.random() < 0.5]
        return table.assign(**{c: table[c].mask(table[c].notna()) for c in optional})

    return _tables(run, change)


CHANGES: dict[str, Change] = {
    change.__name__: change
    for change in (
        reordered, doubled, odd_numbers, constant, unknown_times, moved, backwards, at_one_instant, hostile_names,
        hostile_columns, many_gpus, many_workers, several_studies, other_directions, odd_settings, unjoined, huge_steps,
        unknown_columns,
    )
} | {
    "unknown_states": _states(lambda chance, n: chance.choice([*STATES, "ABORTED", "", "complete"], n)),
    "any_state": _states(lambda chance, n: chance.choice(STATES, n)),
    "one_state": _states(lambda chance, n: [str(chance.choice(STATES))] * n),
}  # fmt: skip
