"""nvidia-smi --query-gpu --format=csv: with and without units, header, index and time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from telemetry_sample import Sample

READER = "nvidia-smi-query-csv"
NAME = "NVIDIA A100-SXM4-40GB"


def timestamp(tick: int, gpu: int = 0) -> str:
    return f"2026/02/15 06:{12 + tick // 60:02d}:{tick % 60:02d}.{100 + 2 * gpu:03d}"


def table(header: Sequence[str], row: Callable[[int, int], Sequence[str]], ticks: int, gpus: int = 1) -> str:
    lines = [", ".join(header)] if header else []
    lines += [", ".join(row(tick, gpu)) for tick in range(ticks) for gpu in range(gpus)]
    return "\n".join(lines) + "\n"


def rich(tick: int, gpu: int) -> list[str]:
    return [
        timestamp(tick, gpu), str(gpu), f"GPU-{gpu:08x}-1111-2222-3333-444444444444", f"00000000:{gpu + 1:02X}:00.0", NAME,
        f"{(7 * tick + gpu) % 101} %", "[N/A]", f"{1000 + tick} MiB", "40960 MiB", f"{60 + tick}.{gpu}5 W", "N/A", "P0",
        f"{40 + gpu}", "0x0000000000000004" if tick % 2 else "0x0000000000000001", "1410 MHz",
    ]  # fmt: skip


RICH = [
    "timestamp", "index", "uuid", "pci.bus_id", "name", "utilization.gpu [%]", "utilization.memory [%]",
    "memory.used [MiB]", "memory.total [MiB]", "power.draw [W]", "temperature.memory", "pstate", "temperature.gpu",
    "clocks_event_reasons.active", "clocks.current.sm [MHz]",
]  # fmt: skip


def nounits(tick: int, gpu: int) -> list[str]:
    return [timestamp(tick), f"{tick}.50", "210", f"{tick % 101}", f"{1000 + tick}", "[Not Supported]"]


NOUNITS = [
    "timestamp",
    "power.draw [W]",
    "clocks.sm [MHz]",
    "utilization.gpu [%]",
    "memory.used [MiB]",
    "fan.speed [%]",
]


def plain(tick: int, gpu: int) -> list[str]:
    return [
        timestamp(tick),
        f"{tick % 101} %",
        f"{tick % 50} %",
        f"{tick + 2} MiB",
        "20146 MiB",
        f"{27 + tick % 3}",
        "11.64 W",
    ]


def flags(tick: int, gpu: int) -> list[str]:
    return [timestamp(tick), str(gpu), "Active" if tick % 3 == 0 else "Not Active", "Not Active", f"{tick}"]


REASONS = "clocks_throttle_reasons"
FLAGS = ["timestamp", "index", f"{REASONS}.sw_power_cap", f"{REASONS}.hw_slowdown", "temperature.gpu"]


def dated() -> str:
    """Date lines with their blocks of rows, no index, no header."""
    blocks = [f"Tue Jun  9 09:00:{tick:02d} UTC 2020\n0 %, {tick} MiB\n{tick} %, 4 MiB\n" for tick in range(12)]
    return "".join(blocks)


def repeated() -> str:
    """A header before every row, as a shell loop of one-shot queries writes it."""
    head = ", ".join(NOUNITS)
    return "".join(f"{head}\n{', '.join(nounits(tick, 0))}\n" for tick in range(15))


def power(tick: int, gpu: int) -> list[str]:
    return [timestamp(tick + 9), str(gpu), "70.00 W"]


def changed() -> str:
    """A restart with other columns."""
    return table(RICH, rich, 5, 2) + table(["timestamp", "index", "power.draw [W]"], power, 5, 2)


def unstamped(tick: int, gpu: int) -> list[str]:
    return [str(gpu), f"{tick} %"]


def unnamed(tick: int, gpu: int) -> list[str]:
    return [timestamp(tick, gpu), f"{gpu} %"]


GIVEN = ("timestamp", "power.draw", "clocks.sm", "utilization.gpu", "memory.used", "fan.speed")
UTIL = "utilization.gpu [%]"

SAMPLES = (
    Sample(
        READER,
        "two-gpus-all-kinds-of-columns",
        table(RICH, rich, 12, 2),
        24,
        ("0", "1"),
        first="2026-02-15T06:12:00.1Z gpu=0 util_pct=0 mem_used_mib=1000 mem_total_mib=40960 power_w=60.05 temp_c=40 sm_clock_mhz=1410 throttle_reasons=1 pstate=0",
        last="2026-02-15T06:12:11.102Z gpu=1 util_pct=78 mem_used_mib=1011 mem_total_mib=40960 power_w=71.15 temp_c=41 sm_clock_mhz=1410 throttle_reasons=4 pstate=0",
    ),
    Sample(
        READER,
        "nounits-no-index",
        table(NOUNITS, nounits, 30),
        30,
        ("0",),
        first="2026-02-15T06:12:00.1Z gpu=0 util_pct=0 mem_used_mib=1000 power_w=0.5 sm_clock_mhz=210",
        last="2026-02-15T06:12:29.1Z gpu=0 util_pct=29 mem_used_mib=1029 power_w=29.5 sm_clock_mhz=210",
    ),
    Sample(
        READER,
        "no-header-units-tell",
        table([], plain, 30),
        30,
        ("0",),
        first="2026-02-15T06:12:00.1Z gpu=0 util_pct=0 mem_util_pct=0 mem_used_mib=2 mem_total_mib=20146 power_w=11.64 temp_c=27",
        last="2026-02-15T06:12:29.1Z gpu=0 util_pct=29 mem_util_pct=29 mem_used_mib=31 mem_total_mib=20146 power_w=11.64 temp_c=29",
    ),
    Sample(
        READER,
        "reasons-as-flags",
        table(FLAGS, flags, 20),
        20,
        ("0",),
        first="2026-02-15T06:12:00.1Z gpu=0 temp_c=0 throttle_reasons=4 throttle_known=12",
        last="2026-02-15T06:12:19.1Z gpu=0 temp_c=19 throttle_reasons=0 throttle_known=12",
    ),
    Sample(
        READER,
        "date-lines",
        dated(),
        24,
        ("0", "1"),
        lost_by_cut=24,
        first="2020-06-09T09:00:00Z gpu=0 util_pct=0 mem_used_mib=0",
        last="2020-06-09T09:00:11Z gpu=1 util_pct=11 mem_used_mib=4",
    ),
    Sample(
        READER,
        "header-before-every-row",
        repeated(),
        15,
        ("0",),
        first="2026-02-15T06:12:00.1Z gpu=0 util_pct=0 mem_used_mib=1000 power_w=0.5 sm_clock_mhz=210",
        last="2026-02-15T06:12:14.1Z gpu=0 util_pct=14 mem_used_mib=1014 power_w=14.5 sm_clock_mhz=210",
    ),
    Sample(
        READER,
        "restart-with-other-columns",
        changed(),
        20,
        ("0", "1"),
        first="2026-02-15T06:12:00.1Z gpu=0 util_pct=0 mem_used_mib=1000 mem_total_mib=40960 power_w=60.05 temp_c=40 sm_clock_mhz=1410 throttle_reasons=1 pstate=0",
        last="2026-02-15T06:12:13.1Z gpu=1 power_w=70",
    ),
    Sample(
        READER,
        "no-time",
        table(["index", UTIL], unstamped, 10, 2),
        20,
        ("0", "1"),
        stamped=False,
        first="1970-01-01T00:00:00Z gpu=0 util_pct=0",
        last="1970-01-01T00:00:09Z gpu=1 util_pct=9",
    ),
    Sample(
        READER,
        "no-header-named-by-user",
        table([], nounits, 20),
        20,
        ("0",),
        options={"columns": GIVEN},
        first="2026-02-15T06:12:00.1Z gpu=0 util_pct=0 mem_used_mib=1000 power_w=0.5 sm_clock_mhz=210",
        last="2026-02-15T06:12:19.1Z gpu=0 util_pct=19 mem_used_mib=1019 power_w=19.5 sm_clock_mhz=210",
    ),
    Sample(
        READER,
        "no-index",
        table(["timestamp", UTIL], unnamed, 8, 4),
        32,
        ("0", "1", "2", "3"),
        lost_by_cut=4,
        first="2026-02-15T06:12:00.1Z gpu=0 util_pct=0",
        last="2026-02-15T06:12:07.106Z gpu=3 util_pct=3",
    ),
)
