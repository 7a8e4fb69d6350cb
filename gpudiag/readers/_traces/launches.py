"""When work of the GPU was launched, by the correlation id that it has in common with the call."""

from __future__ import annotations

import polars as pl


def with_launches(gpu: pl.DataFrame, host: pl.DataFrame) -> pl.DataFrame:
    """``gpu`` with when the call that launched each work began and returned, null where it was not recorded.

    CUPTI numbers calls in their order: work with a lower number than all calls was launched before the trace (-inf).
    """
    calls = host.filter(pl.col("runtime") & (pl.col("correlation") > 0))
    calls = calls.group_by("correlation").agg(launched_us=pl.col("start_us").min(), returned_us=pl.col("end_us").max())
    before = (pl.col("correlation") > 0) & (pl.col("correlation") < pl.lit(calls["correlation"].min(), pl.Int64))
    return gpu.join(calls, "correlation", how="left").with_columns(
        pl.when(before).then(float("-inf")).otherwise(name).alias(name) for name in ("launched_us", "returned_us")
    )
