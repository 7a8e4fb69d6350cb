"""``GPUtil.showUtilization()`` in a loop, short and with ``all=True``."""

from __future__ import annotations

from datetime import datetime, timedelta

from telemetry_sample import Sample

START = datetime(2023, 3, 7, 14, 37, 23)
SHORT = "| ID | GPU | MEM |"
ALL = (
    "| ID | Name            | Serial | UUID     || GPU temp. | GPU util. | Memory util. "
    "|| Memory total | Memory used | Memory free || Display mode | Display active |"
)


def short(ticks: int, gpus: int, *, dates: bool = False) -> str:
    out = []
    for tick in range(ticks):
        if dates:
            out.append((START + timedelta(seconds=5 * tick)).strftime("%Y-%m-%d %H:%M:%S"))
        out += [SHORT, "-" * 18, *(f"| {gpu:>2} | {(7 * tick + 13 * gpu) % 100:>2}% |  4% |" for gpu in range(gpus))]
    return "\n".join(out) + "\n"


def everything(ticks: int) -> str:
    row = (
        "|  0 | GeForce GTX 970 | None   | GPU-1a2b ||       42C |       {util}% |           9% "
        "||       4096MB |       {used}MB |      3700MB || Enabled      | Enabled        |"
    )
    out = []
    for tick in range(ticks):
        out += [ALL, "-" * len(ALL), row.format(util=10 + tick, used=390 + tick)]
    return "\n".join(out) + "\n"


SAMPLES = (
    Sample(
        "GPUtil",
        "short-two-gpus",
        short(12, 2),
        24,
        ("0", "1"),
        stamped=False,
        first="1970-01-01T00:00:00Z gpu=0 util_pct=0",
        last="1970-01-01T00:00:11Z gpu=1 util_pct=90",
    ),
    Sample(
        "GPUtil",
        "with-dates",
        short(12, 1, dates=True),
        12,
        ("0",),
        first="2023-03-07T14:37:23Z gpu=0 util_pct=0",
        last="2023-03-07T14:38:18Z gpu=0 util_pct=77",
    ),
    Sample(
        "GPUtil",
        "all-columns",
        everything(12),
        12,
        ("0",),
        stamped=False,
        first="1970-01-01T00:00:00Z gpu=0 util_pct=10 mem_used_mib=390 mem_total_mib=4096 temp_c=42",
        last="1970-01-01T00:00:11Z gpu=0 util_pct=21 mem_used_mib=401 mem_total_mib=4096 temp_c=42",
    ),
)
