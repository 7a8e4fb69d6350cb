"""CSV of nvitop's ResourceMetricCollector, from the keys its documentation names."""

from __future__ import annotations

from telemetry_sample import Sample

START_S = 1655909466.9981883
METRICS = ("memory_used (MiB)", "memory_total (MiB)", "gpu_utilization (%)", "temperature (C)", "power_usage (W)")


def log(ticks: int, devices: tuple[str, ...], *, index: bool = False) -> str:
    keys = [f"run/host/{key}/{kind}" for key in ("cpu_percent (%)", "memory_used (GiB)") for kind in ("mean", "max")]
    keys += [f"run/{gpu}/{key}/{kind}" for gpu in devices for key in METRICS for kind in ("mean", "min", "max", "last")]
    keys += ["run/pid:12345/host/cpu_percent (%)/mean", f"run/pid:12345/{devices[0]}/gpu_memory (MiB)/mean"]
    keys += ["run/duration (s)", "run/timestamp"]
    out = [",".join(["", *keys] if index else keys)]
    for tick in range(ticks):
        cells = [str(20.5 + tick) for _ in keys[:-2]] + [str(5.0 + tick), str(START_S + 5 * tick)]
        out.append(",".join([str(tick), *cells] if index else cells))
    return "\n".join(out) + "\n"


SAMPLES = (
    Sample(
        "nvitop CSV",
        "cuda-order",
        log(8, ("cuda:0 (gpu:3)", "cuda:1 (gpu:2)")),
        16,
        ("2", "3"),
        lost_by_cut=2,
        first="2022-06-22T14:51:06.998188Z gpu=2 util_pct=20.5 mem_used_mib=20.5 mem_total_mib=20.5 power_w=20.5 temp_c=20.5",
        last="2022-06-22T14:51:41.998188Z gpu=3 util_pct=27.5 mem_used_mib=27.5 mem_total_mib=27.5 power_w=27.5 temp_c=27.5",
    ),
    Sample(
        "nvitop CSV",
        "index-column",
        log(8, ("gpu:0",), index=True),
        8,
        ("0",),
        first="2022-06-22T14:51:06.998188Z gpu=0 util_pct=20.5 mem_used_mib=20.5 mem_total_mib=20.5 power_w=20.5 temp_c=20.5",
        last="2022-06-22T14:51:41.998188Z gpu=0 util_pct=27.5 mem_used_mib=27.5 mem_total_mib=27.5 power_w=27.5 temp_c=27.5",
    ),
)
