"""Tokens per second of one GPU while a training is in its steps, in bounds where the log leaves open whose they are."""

from __future__ import annotations

import math
from typing import NamedTuple

import pandas as pd

from gpudiag.measures._steps.courses import courses
from gpudiag.measures._steps.logs import training_logs
from gpudiag.measures._steps.ranks import by_log, in_lock_step, world_size
from gpudiag.measures._time.own_time import attempts
from gpudiag.measures._time.weighted import weighted_quantiles
from gpudiag.run import Run
from gpudiag.statement import NOTHING, Statement


class TokenRate(NamedTuple):
    """NaN is unknown. ``n_gpus``: GPUs of the training; ``why``: why nothing is known of one GPU."""

    low: float = math.nan
    high: float = math.nan
    n_gpus: float = math.nan
    why: Statement = NOTHING


def token_rate(run: Run, tokens_per_step: float, used: list[str]) -> TokenRate:
    """The median over the steps at their usual pace, weighted by steps: what their lines state, or ``tokens_per_step``
    over the time of a step where run.toml states it or no line states tokens per second. Of the trainings in one log it
    is that of the one with most steps.

    ``used``: the GPUs of the telemetry that worked; if nothing tells more, those of the training.
    """
    stated = run.info.training.tokens_per_step is not None
    told = courses(run)
    logged = [part[part["usual"] & part["tokens_s"].notna()] for part in told]
    logged = [part for part in logged if len(part)]
    by_step = stated or not logged
    if by_step:
        logged = [part[part["usual"]] for part in told if tokens_per_step > 0 and part["unit"].iloc[0] == "step"]
        logged = [part for part in logged if len(part)]
    if not logged:
        return TokenRate(why=Statement("No line of a log states tokens per second."))
    if not in_lock_step(logged):
        return TokenRate(why=Statement("There are logs of {n:training}, and MFU is that of one.", n=len(logged)))
    whole = pd.concat(max(parts, key=lambda part: part["n"].sum()) for parts in by_log(logged).values())
    n_gpus = _n_gpus(run, whole, used)
    (middle,) = weighted_quantiles(whole["each_s" if by_step else "tokens_s"], whole["n"], (0.5,))
    if not middle > 0:
        return TokenRate(why=Statement("The log's clock is too coarse to tell how long a step takes."))
    rate = tokens_per_step / middle if by_step else middle
    tokens_of = {"all"} if by_step else _tokens_of(run, whole)
    if tokens_of == {"gpu"}:
        return TokenRate(rate, rate, n_gpus)
    if math.isnan(n_gpus):
        return TokenRate(why=Statement("The tokens are those of all GPUs, and no telemetry shows how many there are."))
    return TokenRate(rate / n_gpus, rate / n_gpus if tokens_of == {"all"} else rate, n_gpus)


def _tokens_of(run: Run, whole: pd.DataFrame) -> set[str]:
    """Whose tokens the lines of these trainings count; '' is unknown."""
    lines = training_logs(run).lines
    lines = lines[lines["log"].isin(whole["path"]) & (lines["tokens_s"] > 0)]
    return set(lines["tokens_of"].fillna("")) if "tokens_of" in lines else {""}


def _n_gpus(run: Run, whole: pd.DataFrame, used: list[str]) -> float:
    """As run.toml or a trace says, else the GPUs of one attempt that worked, or more where lines name more ranks; NaN
    unknown.
    """
    known = float(run.info.training.gpus or world_size(run))
    ranks = float(whole["rank"].max() + 1) if whole["rank"].notna().any() else 0.0
    at_once = max(map(len, attempts(run).by_attempt(used)))
    return known if known > 0 else max(float(at_once), ranks) or math.nan
