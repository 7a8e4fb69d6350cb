"""Tables of plain ``nvidia-smi`` in a loop, in the layouts of drivers 470, 535 and 590."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from telemetry_sample import Sample

START = datetime(2024, 10, 29, 19, 0, 23)
WIDTHS = {"470.103.01": (31, 22, 22), "535.154.05": (41, 22, 22), "590.48.01": (41, 24, 22)}
VERSIONS = "| NVIDIA-SMI {driver}             Driver Version: {driver}     CUDA Version: 12.8     |"
VERSIONS_610 = "| NVIDIA-SMI 610.57.04              KMD Version: 610.57.04     CUDA UMD Version: 13.3     |"
NAMES = ("NVIDIA GeForce RTX 2080 ...", "Tesla V100-PCIE-32GB", "NVIDIA A40", "NVIDIA A40")


def cells(widths: tuple[int, int, int], *texts: str) -> str:
    return "|" + "|".join(f"{text:<{width}}" for text, width in zip(texts, widths, strict=True)) + "|"


def gpu_rows(widths: tuple[int, int, int], gpu: int, tick: int, *, mig: bool = False, gone: bool = False) -> list[str]:
    bus = f" 0000000{gpu}:01:00.0 Off " if not gone else f" 0000000{gpu}:01:00.0ERR! "
    head = cells(widths, f"   {gpu}  {NAMES[gpu]:<25}  On ", bus, "                  N/A ")
    memory, util = f"   {4000 + tick}MiB / 24576MiB ", f"     {(7 * tick + 13 * gpu) % 100:>2}%      Default "
    power = f"{100 + tick}W / 250W "
    left = f" 30%   {40 + gpu}C    P2  "
    if mig:
        util = "     N/A      Default "
    if gone:
        left, power, memory, util = (
            "ERR!  ERR! ERR! ",
            "ERR! / ERR! ",
            "  GPU is lost          ",
            "    ERR!         ERR! ",
        )
    values = cells(widths, left + f"{power:>{widths[0] - len(left)}}", memory, util)
    return [head, values, cells(widths, "", "", "                  N/A "), "+" + "-" * (sum(widths) + 2) + "+"]


def table(
    now: datetime, tick: int, gpus: Iterable[int], driver: str = "535.154.05", *, mig: bool = False,
    gone: tuple[int, ...] = (), date: str = "%a %b %d %H:%M:%S %Y       ", versions: str = VERSIONS,
) -> list[str]:  # fmt: skip
    """One snapshot; the first GPU runs a process, the MIG table of driver 590 follows where asked for."""
    widths = WIDTHS[driver]
    rule = "+" + "-" * (sum(widths) + 2) + "+"
    out = [now.strftime(date), rule, versions.format(driver=driver), rule]
    out.append(
        cells(widths, " GPU  Name                 Persistence-M ", " Bus-Id        Disp.A ", " Volatile Uncorr. ECC ")
    )
    out.append(cells(widths, " Fan  Temp   Perf   Pwr:Usage/Cap ", "         Memory-Usage ", " GPU-Util  Compute M. "))
    out.append("|" + "+".join("=" * width for width in widths) + "|")
    gpus = list(gpus)
    for gpu in gpus:
        out += gpu_rows(widths, gpu, tick, mig=mig, gone=gpu in gone)
    if mig:
        out += ["", rule, "| MIG devices:                                  |", rule]
        out += ["| GPU  GI  CI  MIG |              Shared Memory-Usage |        Vol|        Shared         |"]
        out += ["|==================+==================================+===========+=======================|"]
        out += ["|  0    2   0   0  |              22MiB / 71424MiB    | 16      0 |  3   0    3    0    3 |"]
        out += ["|                  |               0MiB / 59237MiB    |           |                       |", rule]
    out += [
        "",
        rule,
        "| Processes:                                       |",
        "|  GPU   GI   CI        PID   Type   Process name  GPU Memory |",
    ]
    out += ["|====================================================|"]
    if gpus and gpus[0] not in gone:
        out.append(f"|    {gpus[0]}   N/A  N/A     55691      C   ...envs/my env/bin/python     {1000 + tick}MiB |")
    else:
        out.append("|  No running processes found                        |")
    return [*out, rule]


def loop(
    ticks: int, gpus: int, driver: str = "535.154.05", *, per_second: int = 1, prefix: str = "", **how: object
) -> str:
    out: list[str] = []
    for tick in range(ticks):
        out += table(START + timedelta(seconds=tick // per_second), tick, range(gpus), driver, **how)  # type: ignore[arg-type]
    return "".join(f"{prefix}{line}\n" for line in out)


NAME = "nvidia-smi table"
TWELVE_HOURS = "%a %b %d %I:%M:%S %p EST %Y"
SAMPLES = (
    Sample(
        NAME,
        "driver-470-four-gpus",
        loop(6, 4, "470.103.01"),
        24,
        ("0", "1", "2", "3"),
        lost_by_cut=4,
        first="2024-10-29T19:00:23Z gpu=0 util_pct=0 mem_used_mib=4000 mem_total_mib=24576 power_w=100 power_limit_w=250 temp_c=40 pstate=2 fan_pct=30",
        last="2024-10-29T19:00:28Z gpu=3 util_pct=74 mem_used_mib=4005 mem_total_mib=24576 power_w=105 power_limit_w=250 temp_c=43 pstate=2 fan_pct=30",
    ),
    Sample(
        NAME,
        "driver-535-two-gpus",
        loop(6, 2),
        12,
        ("0", "1"),
        lost_by_cut=2,
        first="2024-10-29T19:00:23Z gpu=0 util_pct=0 mem_used_mib=4000 mem_total_mib=24576 power_w=100 power_limit_w=250 temp_c=40 pstate=2 fan_pct=30",
        last="2024-10-29T19:00:28Z gpu=1 util_pct=48 mem_used_mib=4005 mem_total_mib=24576 power_w=105 power_limit_w=250 temp_c=41 pstate=2 fan_pct=30",
    ),
    Sample(
        NAME,
        "driver-590",
        loop(8, 1, "590.48.01"),
        8,
        ("0",),
        first="2024-10-29T19:00:23Z gpu=0 util_pct=0 mem_used_mib=4000 mem_total_mib=24576 power_w=100 power_limit_w=250 temp_c=40 pstate=2 fan_pct=30",
        last="2024-10-29T19:00:30Z gpu=0 util_pct=49 mem_used_mib=4007 mem_total_mib=24576 power_w=107 power_limit_w=250 temp_c=40 pstate=2 fan_pct=30",
    ),
    Sample(
        NAME,
        "driver-610-says-kmd-version",
        loop(6, 1, "590.48.01", versions=VERSIONS_610),
        6,
        ("0",),
        first="2024-10-29T19:00:23Z gpu=0 util_pct=0 mem_used_mib=4000 mem_total_mib=24576 power_w=100 power_limit_w=250 temp_c=40 pstate=2 fan_pct=30",
        last="2024-10-29T19:00:28Z gpu=0 util_pct=35 mem_used_mib=4005 mem_total_mib=24576 power_w=105 power_limit_w=250 temp_c=40 pstate=2 fan_pct=30",
    ),
    Sample(
        NAME,
        "mig",
        loop(6, 1, "590.48.01", mig=True),
        6,
        ("0",),
        first="2024-10-29T19:00:23Z gpu=0 mem_used_mib=4000 mem_total_mib=24576 power_w=100 power_limit_w=250 temp_c=40 pstate=2 fan_pct=30",
        last="2024-10-29T19:00:28Z gpu=0 mem_used_mib=4005 mem_total_mib=24576 power_w=105 power_limit_w=250 temp_c=40 pstate=2 fan_pct=30",
    ),
    Sample(
        NAME,
        "twelve-hours-and-zone-name",
        loop(6, 1, date=TWELVE_HOURS),
        6,
        ("0",),
        first="2024-10-30T00:00:23Z gpu=0 util_pct=0 mem_used_mib=4000 mem_total_mib=24576 power_w=100 power_limit_w=250 temp_c=40 pstate=2 fan_pct=30",
        last="2024-10-30T00:00:28Z gpu=0 util_pct=35 mem_used_mib=4005 mem_total_mib=24576 power_w=105 power_limit_w=250 temp_c=40 pstate=2 fan_pct=30",
    ),
    Sample(
        NAME,
        "three-in-one-second",
        loop(9, 2, per_second=3),
        18,
        ("0", "1"),
        lost_by_cut=6,
        first="2024-10-29T19:00:23Z gpu=0 util_pct=0 mem_used_mib=4000 mem_total_mib=24576 power_w=100 power_limit_w=250 temp_c=40 pstate=2 fan_pct=30",
        last="2024-10-29T19:00:25.666666Z gpu=1 util_pct=69 mem_used_mib=4008 mem_total_mib=24576 power_w=108 power_limit_w=250 temp_c=41 pstate=2 fan_pct=30",
    ),
    Sample(
        NAME,
        "one-gpu-lost",
        loop(6, 2, gone=(1,)),
        6,
        ("0", "1"),
        lost_by_cut=2,
        first="2024-10-29T19:00:23Z gpu=0 util_pct=0 mem_used_mib=4000 mem_total_mib=24576 power_w=100 power_limit_w=250 temp_c=40 pstate=2 fan_pct=30",
        last="2024-10-29T19:00:28Z gpu=0 util_pct=35 mem_used_mib=4005 mem_total_mib=24576 power_w=105 power_limit_w=250 temp_c=40 pstate=2 fan_pct=30",
    ),
    Sample(
        NAME,
        "srun-prefix",
        loop(6, 1, prefix="nid005113 out: "),
        6,
        ("0",),
        first="2024-10-29T19:00:23Z gpu=0 util_pct=0 mem_used_mib=4000 mem_total_mib=24576 power_w=100 power_limit_w=250 temp_c=40 pstate=2 fan_pct=30",
        last="2024-10-29T19:00:28Z gpu=0 util_pct=35 mem_used_mib=4005 mem_total_mib=24576 power_w=105 power_limit_w=250 temp_c=40 pstate=2 fan_pct=30",
    ),
)
