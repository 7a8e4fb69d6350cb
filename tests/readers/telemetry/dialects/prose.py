"""Sentences with labelled values."""

from __future__ import annotations

from telemetry_sample import Sample

READER = "prose"


def pairs(k: int) -> str:
    return f"GPU_ID: 2,  Timestamp:  2023/04/05 17:32:{k:02d}.451 , Power consumption: {20 + k}.43 W\n"


def ratios(k: int) -> str:
    return (
        f"[2021-03-04 @ 13:32:{k:02d}] >  Temp: {50 + k}C  Power: {k}/250 W  Utilization: {k}%  Memory: {k}/11019 MiB\n"
    )


def block(k: int) -> str:
    rows = "".join(f"cuda:{g} NVIDIA A100 80GB PCIe: {100 + g} MiB free out of 81050 MiB total\n" for g in range(2))
    return f"===== 2024-11-19 19:40:{k:02d}.286596 =====\n{rows}"


def bare(k: int) -> str:
    return f"[2025-10-15 16:12:{k:02d}] GPU Status:\n0, {k}, {8442 + k}, 24576, 49\n"


FIRST = "[2025-10-15 16:12:00] GPU 0: NVIDIA GeForce RTX 3090 - Memory: 8595MB/ 24576MB - Utilization: 45%\n"


def names(k: int) -> str:
    return f"2026-03-01 10:00:{k:02d} INFO gpu_util={k} mem_used={2000 + k}MB power=100W\n"


def both(k: int) -> str:
    gpus = (f"GPU{g} utilization: {k + g}%, memory: {100 * g + k} MiB / 8192 MiB" for g in range(2))
    return f"2026-03-01 10:00:{k:02d},500 - root - INFO - {'; '.join(gpus)}\n"


SAMPLES = (
    Sample(
        READER,
        "names-and-values",
        "".join(map(names, range(20))),
        20,
        ("0",),
        first="2026-03-01T10:00:00Z gpu=0 util_pct=0 mem_used_mib=2000 power_w=100",
        last="2026-03-01T10:00:19Z gpu=0 util_pct=19 mem_used_mib=2019 power_w=100",
    ),
    Sample(
        READER,
        "logfmt",
        "".join(f"ts=2026-03-01T10:00:{k:02d}Z level=info gpu={k % 2} util={k} temp={60 + k}\n" for k in range(20)),
        20,
        ("0", "1"),
        first="2026-03-01T10:00:00Z gpu=0 util_pct=0 temp_c=60",
        last="2026-03-01T10:00:19Z gpu=1 util_pct=19 temp_c=79",
    ),
    Sample(
        READER,
        "several-gpus-a-line",
        "".join(map(both, range(10))),
        20,
        ("0", "1"),
        lost_by_cut=2,
        first="2026-03-01T10:00:00.5Z gpu=0 util_pct=0 mem_used_mib=0 mem_total_mib=8192",
        last="2026-03-01T10:00:09.5Z gpu=1 util_pct=10 mem_used_mib=109 mem_total_mib=8192",
    ),
    Sample(
        READER,
        "pairs",
        "".join(map(pairs, range(20))),
        20,
        ("2",),
        first="2023-04-05T17:32:00.451Z gpu=2 power_w=20.43",
        last="2023-04-05T17:32:19.451Z gpu=2 power_w=39.43",
    ),
    Sample(
        READER,
        "ratios",
        "".join(map(ratios, range(20))),
        20,
        ("0",),
        first="2021-03-04T13:32:00Z gpu=0 util_pct=0 mem_used_mib=0 mem_total_mib=11019 power_w=0 power_limit_w=250 temp_c=50",
        last="2021-03-04T13:32:19Z gpu=0 util_pct=19 mem_used_mib=19 mem_total_mib=11019 power_w=19 power_limit_w=250 temp_c=69",
    ),
    Sample(
        READER,
        "blocks-under-a-timestamp",
        "".join(map(block, range(8))),
        16,
        ("0", "1"),
        lost_by_cut=2,
        first="2024-11-19T19:40:00.286596Z gpu=0 mem_used_mib=80950 mem_total_mib=81050",
        last="2024-11-19T19:40:07.286596Z gpu=1 mem_used_mib=80949 mem_total_mib=81050",
    ),
    Sample(
        READER,
        "bare-rows-under-sentences",
        FIRST + "".join(map(bare, range(1, 20))),
        20,
        ("0",),
        first="2025-10-15T16:12:00Z gpu=0 util_pct=45 mem_used_mib=8595 mem_total_mib=24576",
        last="2025-10-15T16:12:19Z gpu=0 util_pct=19 mem_used_mib=8461 mem_total_mib=24576 temp_c=49",
    ),
)
