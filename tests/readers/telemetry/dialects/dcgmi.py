"""``dcgmi dmon`` text and the CSV forms made of it."""

from __future__ import annotations

from telemetry_sample import Sample

START_US = 1718783836956328


def text(
    ticks: int, gpus: int, tags: str = "SMACT SMOCC TENSO DRAMA GPUTL POWER FBUSD FBFRE TOTEC", instances: int = 0
) -> str:
    out = []
    for tick in range(ticks):
        if tick % 10 == 0:
            out += ["#Entity         " + "".join(f"{tag:<13}" for tag in tags.split()), "ID" + " " * 40]
        for gpu in range(gpus):
            fraction = f"{(7 * tick + 13 * gpu) % 100 / 100:.3f}"
            cells = {
                "GPUTL": str(tick % 100),
                "POWER": "71.200",
                "FBUSD": "4096",
                "FBFRE": "N/A",
                "TOTEC": "5000000000",
            }
            out.append(f"GPU {gpu}           " + "".join(f"{cells.get(tag, fraction):<13}" for tag in tags.split()))
        for instance in range(instances):
            out.append(f"GPU-I {instance}         " + "".join(f"{0.5:<13}" for _ in tags.split()))
    return "\n".join(out) + "\n"


def long(ticks: int) -> str:
    out = ["GPUId,TimeStampUs,Field,Values"]
    for field, shift, value in (("power_usage_instant", 0, "71.20"), ("current_clock_throttle_reasons", -20472, "4")):
        out += [f"0,{START_US + 300_000 * tick + shift},{field},{value}" for tick in range(ticks)]
    return "\n".join(out) + "\n"


def by_field_number(ticks: int) -> str:
    rows = [f"{gpu},{tick + 0.180242},0.{tick:02},0.189,0.0,0.028" for gpu in (0, 1) for tick in range(ticks)]
    return "\n".join(["gpu_id,time_s,1002,1003,1004,1005", *rows]) + "\n"


WATTS = "".join(f"0,{START_US + 47_000 * tick},71.{tick:02}\n" for tick in range(20))
SAMPLES = (
    Sample(
        "dcgmi dmon",
        "two-gpus",
        text(12, 2),
        24,
        ("0", "1"),
        stamped=False,
        first="1970-01-01T00:00:00Z gpu=0 util_pct=0 mem_used_mib=4096 power_w=71.2 energy_j=5000000 sm_active_pct=0 sm_occupancy_pct=0 tensor_active_pct=0 dram_active_pct=0",
        last="1970-01-01T00:00:11Z gpu=1 util_pct=11 mem_used_mib=4096 power_w=71.2 energy_j=5000000 sm_active_pct=90 sm_occupancy_pct=90 tensor_active_pct=90 dram_active_pct=90",
    ),
    Sample(
        "dcgmi dmon",
        "beside-mig-instances",
        text(12, 1, "SMACT POWER", instances=3),
        12,
        ("0",),
        stamped=False,
        first="1970-01-01T00:00:00Z gpu=0 power_w=71.2 sm_active_pct=0",
        last="1970-01-01T00:00:11Z gpu=0 power_w=71.2 sm_active_pct=77",
    ),
    Sample(
        "dcgmi dmon",
        "one-field-a-row",
        long(20),
        20,
        ("0",),
        lost_by_cut=20,
        first="2024-06-19T07:57:16.956328Z gpu=0 power_w=71.2 throttle_reasons=4",
        last="2024-06-19T07:57:22.656328Z gpu=0 power_w=71.2 throttle_reasons=4",
    ),
    Sample(
        "dcgmi dmon",
        "columns-by-field-number",
        by_field_number(10),
        20,
        ("0", "1"),
        first="1970-01-01T00:00:00.180242Z gpu=0 sm_active_pct=0 sm_occupancy_pct=18.9 tensor_active_pct=0 dram_active_pct=2.8",
        last="1970-01-01T00:00:09.180242Z gpu=1 sm_active_pct=9 sm_occupancy_pct=18.9 tensor_active_pct=0 dram_active_pct=2.8",
    ),
    Sample(
        "dcgmi dmon",
        "watts",
        "GPUId,TimeStampUs,Watts\n" + WATTS,
        20,
        ("0",),
        first="2024-06-19T07:57:16.956328Z gpu=0 power_w=71",
        last="2024-06-19T07:57:17.849328Z gpu=0 power_w=71.19",
    ),
)
