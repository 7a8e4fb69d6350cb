"""Profiled steps: when the host was in each, and when the GPU had done what it launched."""

from __future__ import annotations

import numpy as np
import polars as pl

from gpudiag.readers._traces import kinds

ROUNDING_US = 2.0
"""Times of older traces are whole microseconds, so that the end of a step may lie behind the start of the next."""


def profiled_steps(said: pl.DataFrame, on_gpu: pl.DataFrame, gpu: pl.DataFrame) -> pl.DataFrame:
    """step, start_us and end_us in the order of time.

    A step begins when the host is in it and the work launched before is done. It ends when the host has left it and the
    work launched in it is done: where the host runs ahead, these are the steps of the GPU. ``said`` and ``on_gpu``: the
    steps as host and GPU have them; ``gpu``: its work with when that was launched.
    """
    steps = _outermost(said)
    start, end = (steps[name].to_numpy() for name in ("start_us", "end_us"))
    launched = pl.concat([_kernels(gpu), _named(on_gpu, steps)]).sort("launched_us")
    at, reach = launched["launched_us"].to_numpy(), np.append(-np.inf, launched["end_us"].cum_max().to_numpy())
    done_before, done = (reach[np.searchsorted(at, edge, "left")] for edge in (start, end))
    return steps.select(
        pl.Series("start_us", np.maximum(start, done_before)), pl.Series("end_us", np.maximum(end, done)), "step"
    )


def _outermost(said: pl.DataFrame) -> pl.DataFrame:
    """Steps of the host; one that begins within another, as of an inner loop, is part of that."""
    steps = said.filter(pl.col("dur") > 0).sort("start_us", "end_us", descending=[False, True])
    reach = pl.col("end_us").cum_max().shift(1, fill_value=float("-inf"))
    return steps.filter(pl.col("start_us") >= reach - ROUNDING_US).select("start_us", "end_us", step=_number())


def _number() -> pl.Expr:
    return pl.col("name").str.extract(kinds.STEP_NAME.pattern).cast(pl.Int64, strict=False)


def _kernels(gpu: pl.DataFrame) -> pl.DataFrame:
    """When each kernel was launched, and its end. A copy may lie beside many steps, as that of a checkpoint does."""
    return gpu.filter(pl.col("kind") != kinds.COPY).select("launched_us", "end_us").drop_nulls()


def _named(on_gpu: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """The span of kernels to which Kineto gives the name of a step, as if it were one launched as the step began."""
    joined = on_gpu.select("end_us", step=_number()).join(steps.select("step", launched_us="start_us"), "step")
    return joined.select("launched_us", "end_us")
