"""How much work a step is in each of two trainings: tokens or samples, as run.toml and the logs state them."""

from __future__ import annotations

import math
from typing import NamedTuple

import pandas as pd

from gpudiag.comparison.differences import command_params, requested_params
from gpudiag.comparison.side import Side
from gpudiag.measures._steps.ranks import world_size
from gpudiag.measures._steps.stated_model import stated_model
from gpudiag.schema import IDLE_PCT

BATCH = ("global_batch_size", "train_batch_size", "batch_size")
"""Names under which a command line or a note gives the samples of a step."""


class Stated(NamedTuple):
    """Tokens or samples of a step; ``of``: of all GPUs, of one ('gpu'), or '' unknown; ``source``: what states it."""

    amount: float
    of: str
    source: str


class StepWork(NamedTuple):
    """What a step holds of ``unit`` (token or sample) in baseline and experiment, of as many GPUs in both or of all."""

    unit: str
    baseline: float
    experiment: float

    @property
    def ratio(self) -> float:
        return self.experiment / self.baseline


def step_work(sides: tuple[Side, Side], lines: tuple[pd.DataFrame, pd.DataFrame]) -> StepWork | None:
    """Tokens where both state them, since sequences may differ in length; else samples. None where either is unknown.

    What is stated of an unknown number of GPUs counts where both runs use as many and state it in the same way.
    """
    gpus = [n_gpus(side) for side in sides]
    for unit, stated in (("token", _tokens), ("sample", _samples)):
        a, b = ([*stated(side, part)] for side, part in zip(sides, lines, strict=True))
        pairs = (_of_the_same(x, y, gpus) for x in a for y in b)
        both = next((pair for pair in pairs if not math.isnan(sum(pair))), None)
        if both:
            return StepWork(unit, *both)
    return None


def n_gpus(side: Side) -> float:
    """GPUs of the training: as run.toml or a trace says, else those that worked; NaN unknown."""
    known = float(side.run.info.training.gpus or world_size(side.run))
    use = side.get("utilization")
    worked = int((use.per_gpu["max_pct"] >= IDLE_PCT).sum()) if use is not None else 0
    return known if known > 0 else float(worked or len(side.run.gpus)) or math.nan


def _of_the_same(a: Stated, b: Stated, gpus: list[float]) -> tuple[float, float]:
    """Both as those of all GPUs, or of one or of unknown ones where both runs have as many; else NaN."""
    whole = [_of_all(one, n) for one, n in zip((a, b), gpus, strict=True)]
    if not math.isnan(sum(whole)):
        return whole[0], whole[1]
    same_number = gpus[0] == gpus[1] or all(map(math.isnan, gpus))
    alike = same_number and (a.of, a.source) == (b.of, b.source)
    return (a.amount, b.amount) if alike else (math.nan, math.nan)


def _of_all(stated: Stated, gpus: float) -> float:
    """That of all GPUs together; NaN unknown."""
    if stated.of == "all" or gpus == 1:
        return stated.amount
    return stated.amount * gpus if stated.of == "gpu" else math.nan


def _tokens(side: Side, lines: pd.DataFrame) -> list[Stated]:
    stated = stated_model(side.run).tokens_per_step if _counts_steps(lines) else math.nan
    found = [Stated(stated, "all", "stated")]
    rows = _rows(side, lines)
    known = lines[lines["tokens_s"].notna()]
    if len(known):
        amount = float((known["tokens_s"] * known["each_s"]).median())
        found.append(Stated(amount, _whose(rows, "tokens_s", "tokens_of"), "rate"))
    return [one for one in found if one.amount > 0]


def _samples(side: Side, lines: pd.DataFrame) -> list[Stated]:
    rows = _rows(side, lines)
    found = []
    if _counts_steps(lines):
        batches = rows["batch"].dropna()
        if len(batches):
            found.append(Stated(float(batches.median()), _whose(rows, "batch", "batch_of"), "batch"))
        asked = command_params(side) | requested_params(side)
        named = next((asked[name] for name in BATCH if isinstance(asked.get(name), int)), None)
        found.append(Stated(float(side.run.info.dataloader.batch_size or named or math.nan), "", "batch"))
    rate = rows["samples_s"].dropna()
    if len(rate):
        found.append(Stated(float(rate.median() * lines["each_s"].median()), "", "rate"))
    return [one for one in found if one.amount > 0]


def _counts_steps(lines: pd.DataFrame) -> bool:
    return bool((lines["unit"] == "step").all())


def _whose(rows: pd.DataFrame, number: str, of: str) -> str:
    """Whose the numbers of a column are, as the column ``of`` says where all agree; '' unknown."""
    said = rows.loc[rows[number].notna(), of]
    return str(said.iloc[0]) if said.notna().all() and said.nunique() == 1 else ""


def _rows(side: Side, lines: pd.DataFrame) -> pd.DataFrame:
    """The lines of the log behind these intervals."""
    columns = ["path", "unit", "tokens_s", "tokens_of", "samples_s", "batch", "batch_of"]
    steps = side.run.steps.reindex(columns=columns)
    return steps[steps["path"].isin(lines["path"]) & steps["unit"].isin(lines["unit"])]
