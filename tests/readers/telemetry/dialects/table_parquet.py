"""Home-made tables as Parquet: the names, times and indexes that pandas leaves."""

from __future__ import annotations

import io

import pandas as pd
from telemetry_sample import Sample

READER = "table-parquet"
TIMES = pd.date_range("2026-03-01 10:00:00.25", periods=20, freq="1s", tz="Europe/Berlin")
ONE = pd.DataFrame({"gpu_util": range(20), "mem_used_mb": 900.0, "power [W]": [None, *range(101, 120)]})
TWO = pd.DataFrame(
    {"when": [time for time in TIMES[:10] for _ in "ab"], "gpu": ["0", "1"] * 10, "util_pct": range(20)}
).assign(losses=[[0.5, 0.25]] * 20, waited=pd.Timedelta("2s"))


def saved(frame: pd.DataFrame) -> bytes:
    out = io.BytesIO()
    frame.to_parquet(out)
    return out.getvalue()


FIRST = "gpu=0 util_pct=0 mem_used_mib=900"
LAST = "gpu=0 util_pct=19 mem_used_mib=900 power_w=119"
SAMPLES = (
    Sample(
        READER,
        "index-with-zone",
        saved(ONE.set_index(TIMES)),
        20,
        ("0",),
        first=f"2026-03-01T09:00:00.25Z {FIRST}",
        last=f"2026-03-01T09:00:19.25Z {LAST}",
    ),
    Sample(
        READER,
        "column-of-times",
        saved(ONE.assign(timestamp=TIMES.tz_localize(None))),
        20,
        ("0",),
        first=f"2026-03-01T10:00:00.25Z {FIRST}",
        last=f"2026-03-01T10:00:19.25Z {LAST}",
    ),
    Sample(
        READER,
        "two-gpus-beside-lists",
        saved(TWO),
        20,
        ("0", "1"),
        first="2026-03-01T09:00:00.25Z gpu=0 util_pct=0",
        last="2026-03-01T09:00:09.25Z gpu=1 util_pct=19",
    ),
)
