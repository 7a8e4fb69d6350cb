"""Scrapes of dcgm-exporter and nvidia_gpu_exporter."""

from __future__ import annotations

from datetime import datetime, timedelta

from telemetry_sample import Sample

START = datetime(2025, 3, 1, 10, 0, 0)
START_MS = 1740823200000
DCGM = {
    "GPU_UTIL": "{0}",
    "FB_USED": "4096",
    "FB_FREE": "20000",
    "POWER_USAGE": "71.2",
    "MEMORY_TEMP": "9223372036854775794",
}


def dcgm(
    scrapes: int, gpus: int, *, dates: bool = False, timestamps: bool = False, hosts: tuple[str, ...] = ("n1",)
) -> str:
    out = []
    for scrape in range(scrapes):
        if dates:
            out.append((START + timedelta(seconds=15 * scrape)).strftime("%a %b %d %H:%M:%S %Y"))
        for name, value in DCGM.items():
            out += [f"# HELP DCGM_FI_DEV_{name} text.", f"# TYPE DCGM_FI_DEV_{name} gauge"]
            for host in hosts:
                for gpu in range(gpus):
                    labels = (
                        f'gpu="{gpu}",UUID="GPU-604a-{gpu}",device="nvidia{gpu}",modelName="A100",Hostname="{host}"'
                    )
                    timestamp = f" {START_MS + 15000 * scrape}" if timestamps else ""
                    out.append(f"DCGM_FI_DEV_{name}{{{labels}}} {value.format(10 + scrape)}{timestamp}")
    return "\n".join(out) + "\n"


def smi(scrapes: int) -> str:
    out = []
    for scrape in range(scrapes):
        uuid = 'uuid="0000-01"'
        out += [f"nvidia_smi_utilization_gpu_ratio{{{uuid}}} 0.{10 + scrape}", f"nvidia_smi_index{{{uuid}}} 3"]
        out += [f'nvidia_smi_gpu_info{{driver_version="590.48.01",index="3",name="NVIDIA H200",{uuid}}} 1']
        out += [
            f"nvidia_smi_memory_used_bytes{{{uuid}}} 3.3934016512e+10",
            f"nvidia_smi_power_draw_watts{{{uuid}}} 627.4",
        ]
        out += [f'nvidia_smi_compute_app_used_memory_bytes{{pid="10291",process_name="gpu_burn",{uuid}}} 2.69e+09']
        out += ["nvidia_smi_failed_scrapes_total 0", "go_goroutines 7"]
    return "\n".join(out) + "\n"


SAMPLES = (
    Sample(
        "Prometheus text",
        "dcgm-two-gpus",
        dcgm(6, 2),
        12,
        ("0", "1"),
        stamped=False,
        lost_by_cut=2,
        first="1970-01-01T00:00:00Z gpu=0 util_pct=10 mem_used_mib=4096 mem_total_mib=24096 power_w=71.2",
        last="1970-01-01T00:00:05Z gpu=1 util_pct=15 mem_used_mib=4096 mem_total_mib=24096 power_w=71.2",
    ),
    Sample(
        "Prometheus text",
        "dcgm-date-lines",
        dcgm(6, 2, dates=True),
        12,
        ("0", "1"),
        lost_by_cut=2,
        first="2025-03-01T10:00:00Z gpu=0 util_pct=10 mem_used_mib=4096 mem_total_mib=24096 power_w=71.2",
        last="2025-03-01T10:01:15Z gpu=1 util_pct=15 mem_used_mib=4096 mem_total_mib=24096 power_w=71.2",
    ),
    Sample(
        "Prometheus text",
        "dcgm-stamped",
        dcgm(8, 1, timestamps=True),
        8,
        ("0",),
        first="2025-03-01T10:00:00Z gpu=0 util_pct=10 mem_used_mib=4096 mem_total_mib=24096 power_w=71.2",
        last="2025-03-01T10:01:45Z gpu=0 util_pct=17 mem_used_mib=4096 mem_total_mib=24096 power_w=71.2",
    ),
    Sample(
        "Prometheus text",
        "dcgm-two-hosts",
        dcgm(4, 1, hosts=("n1", "n2")),
        8,
        ("n1/0", "n2/0"),
        stamped=False,
        lost_by_cut=8,
        first="1970-01-01T00:00:00Z gpu=n1/0 util_pct=10 mem_used_mib=4096 mem_total_mib=24096 power_w=71.2",
        last="1970-01-01T00:00:03Z gpu=n2/0 util_pct=13 mem_used_mib=4096 mem_total_mib=24096 power_w=71.2",
    ),
    Sample(
        "Prometheus text",
        "nvidia-gpu-exporter",
        smi(6),
        6,
        ("3",),
        stamped=False,
        lost_by_cut=6,
        first="1970-01-01T00:00:00Z gpu=3 util_pct=10 mem_used_mib=32362 power_w=627.4",
        last="1970-01-01T00:00:05Z gpu=3 util_pct=15 mem_used_mib=32362 power_w=627.4",
    ),
)
