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

SAMPLES = (
    Sample(READER, "pairs", "".join(map(pairs, range(20))), 20, ("2",)),
    Sample(READER, "ratios", "".join(map(ratios, range(20))), 20, ("0",)),
    Sample(READER, "blocks-under-a-stamp", "".join(map(block, range(8))), 16, ("0", "1"), lost_by_cut=2),
    Sample(READER, "bare-rows-under-sentences", FIRST + "".join(map(bare, range(1, 20))), 20, ("0",)),
)
