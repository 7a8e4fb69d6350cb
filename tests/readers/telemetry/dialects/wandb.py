"""W&B run files as 0.16 (one record a tick) and 0.18 (several, milliseconds apart) write them, and 2020's events."""

from __future__ import annotations

import json

from telemetry_sample import Sample
from wandb_bytes import exit_record, run_file, stats

START_S = 1732344056.548438


def gpu(index: int, tick: int) -> dict[str, float]:
    name = f"gpu.{index}."
    return {
        f"{name}gpu": 60.5 + tick + index,
        f"{name}memory": 30.0 + tick,
        f"{name}memoryAllocated": 25.0,
        f"{name}memoryAllocatedBytes": 6 * 2**30,
        f"{name}temp": 61.0,
        f"{name}powerWatts": 210.5,
        f"{name}powerPercent": 70.17,
    }


def host(tick: int) -> dict[str, float]:
    cores = {f"cpu.{core}.cpu_percent": 10.0 * core + tick for core in range(8)}
    return {"cpu": 12.5, "memory": 40.0, "proc.memory.availableMB": 38400.0, **cores}


def one_record(ticks: int, gpus: int) -> bytes:
    """Long enough to cross several blocks."""
    out = []
    for tick in range(ticks):
        values = {key: value for index in range(gpus) for key, value in gpu(index, tick).items()}
        padding = {f"disk.{n}.usageGB": 1.0 for n in range(60)}
        out.append(stats(START_S + 30 * tick, {**host(tick), **values, **padding}))
    return run_file([*out, exit_record(0, 30 * ticks)])


def several_records(ticks: int) -> bytes:
    out = []
    for tick in range(ticks):
        at = START_S + 10 * tick
        out += [stats(at, {"network.sent": 1}), stats(at + 0.0004, host(tick)), stats(at + 0.003, gpu(0, tick))]
    return run_file(out)


def host_only(ticks: int) -> bytes:
    return run_file([stats(START_S + 30 * tick, host(tick)) for tick in range(ticks)])


def events(ticks: int) -> str:
    lines = []
    for tick in range(ticks):
        values = {f"system.{key}": value for key, value in {**gpu(0, tick), "cpu": 65.27}.items()}
        lines.append(json.dumps({**values, "_wandb": True, "_timestamp": 1582070941 + 30 * tick, "_runtime": 28}))
    return "\n".join(lines) + "\n"


def frame(ticks: int) -> str:
    """``run.history(stream="events").to_csv()``: a tick's metrics may stand in rows of their own."""
    names = [f"system.gpu.{index}.{key}" for index in range(2) for key in ("gpu", "powerWatts", "temp")]
    lines = [",".join(["", "_runtime", "_timestamp", "_wandb", *names, "system.cpu"])]
    for tick in range(ticks):
        cells = [f"{70.5 + tick},210.25,61.0", "12.0,80.5,"]
        lines.append(f"{tick},{15 * tick},{1773133200 + 15 * tick}.25,True,{','.join(cells)},33.5")
    return "\n".join(lines) + "\n"


def chart(ticks: int) -> str:
    names = [f"fine-tune - 2 - system/gpu.0.powerWatts{bound}" for bound in ("", "__MIN", "__MAX")]
    lines = [",".join(f'"{name}"' for name in ("Relative Time (Process)", *names))]
    lines += [f"{15 * tick + 0.5},{200 + tick},{190 + tick},{210 + tick}" for tick in range(ticks)]
    return "\n".join(lines) + "\n"


SAMPLES = (
    Sample(
        "W&B run file",
        "one-record-a-tick",
        one_record(24, 2),
        48,
        ("0", "1"),
        lost_by_cut=2,
        first="2024-11-23T06:40:56.548438Z gpu=0 util_pct=60.5 mem_util_pct=30 mem_used_mib=6144 mem_total_mib=24576 power_w=210.5 power_limit_w=300 temp_c=61",
        last="2024-11-23T06:52:26.548438Z gpu=1 util_pct=84.5 mem_util_pct=53 mem_used_mib=6144 mem_total_mib=24576 power_w=210.5 power_limit_w=300 temp_c=61",
    ),
    Sample(
        "W&B run file",
        "several-records-a-tick",
        several_records(24),
        24,
        ("0",),
        first="2024-11-23T06:40:56.548438Z gpu=0 util_pct=60.5 mem_util_pct=30 mem_used_mib=6144 mem_total_mib=24576 power_w=210.5 power_limit_w=300 temp_c=61",
        last="2024-11-23T06:44:46.548438Z gpu=0 util_pct=83.5 mem_util_pct=53 mem_used_mib=6144 mem_total_mib=24576 power_w=210.5 power_limit_w=300 temp_c=61",
    ),
    Sample(
        "W&B run file",
        "no-gpu",
        run_file([stats(START_S + 30 * n, host(n)) for n in range(9)]),
        9,
        (),
        table="host",
        first="2024-11-23T06:40:56.548438Z cpu_pct=35 cpu_max_core_pct=70 process_cpu_max_pct=100 ram_used_mib=25600 ram_total_mib=64000",
        last="2024-11-23T06:44:56.548438Z cpu_pct=43 cpu_max_core_pct=78 process_cpu_max_pct=100 ram_used_mib=25600 ram_total_mib=64000",
    ),
    Sample(
        "W&B events",
        "one-gpu",
        events(20),
        20,
        ("0",),
        first="2020-02-19T00:09:01Z gpu=0 util_pct=60.5 mem_util_pct=30 mem_used_mib=6144 mem_total_mib=24576 power_w=210.5 power_limit_w=300 temp_c=61",
        last="2020-02-19T00:18:31Z gpu=0 util_pct=79.5 mem_util_pct=49 mem_used_mib=6144 mem_total_mib=24576 power_w=210.5 power_limit_w=300 temp_c=61",
    ),
    Sample(
        "W&B metrics CSV",
        "frame-of-events",
        frame(20),
        40,
        ("0", "1"),
        lost_by_cut=2,
        first="2026-03-10T09:00:00.25Z gpu=0 util_pct=70.5 power_w=210.25 temp_c=61",
        last="2026-03-10T09:04:45.25Z gpu=1 util_pct=12 power_w=80.5",
    ),
    Sample(
        "W&B metrics CSV",
        "chart-of-the-app",
        chart(20),
        20,
        ("0",),
        first="1970-01-01T00:00:00.5Z gpu=0 power_w=200",
        last="1970-01-01T00:04:45.5Z gpu=0 power_w=219",
    ),
)
