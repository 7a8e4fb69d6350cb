"""Times of a Parquet column, however they are written, as microseconds since 1970."""

from __future__ import annotations

from datetime import tzinfo

import numpy as np
import polars as pl

from gpudiag.readers._shape.timestamp_forms import tell_form
from gpudiag.timezones import readings
from gpudiag.units import FIRST_YEAR, LAST_YEAR

_FIRST_US, _LAST_US = (int(np.datetime64(f"{year}-01-01", "us").astype(int)) for year in (FIRST_YEAR, LAST_YEAR))
_SAMPLE = 100


def microseconds_of(cells: pl.Series, zone: tzinfo) -> pl.Series:
    """Microseconds since 1970 (UTC), null where there is no date. Times without a zone are those of ``zone``; numbers
    count from 1970 in the unit that their size tells.
    """
    dtype = cells.dtype
    if not isinstance(dtype, pl.Datetime):
        text = cells.cast(pl.String, strict=False)
        form = tell_form(text.drop_nulls().head(_SAMPLE).to_list())
        if form is None or form.kind not in ("text", "epoch"):
            return pl.Series(cells.name, [None] * len(cells), pl.Int64)
        times, zoned = form.read(text), form.zoned
    else:
        times, zoned = cells.dt.cast_time_unit("us"), dtype.time_zone is not None
    if not zoned and not times.is_null().all():
        first = readings(times.dt.replace_time_zone(None).to_numpy(), zone)[0]
        times = pl.Series(cells.name, first).cast(pl.Datetime("us"))
    us = times.dt.timestamp("us")
    return (
        us.to_frame("us").select(pl.when(pl.col("us").is_between(_FIRST_US, _LAST_US)).then(pl.col("us"))).to_series()
    )
