"""``gpustat`` in a loop: plain, with fan, codec, power and pids, coloured, of Windows, of several hosts."""

from __future__ import annotations

from datetime import datetime, timedelta

from telemetry_sample import Sample

START = datetime(2022, 12, 19, 18, 33, 32)


def log(
    ticks: int, gpus: int, *, hosts: tuple[str, ...] = ("compute3",), date: str = "%a %b %d %H:%M:%S %Y",
    degree: str = "'C", middle: str = " {util:>3} %", owner: str = "root(3709M) anna(?M)", head: bool = True,
) -> str:  # fmt: skip
    out = []
    for tick in range(ticks):
        for host in hosts:
            if head:
                out.append(f"{host:<32}  {(START + timedelta(minutes=tick)).strftime(date)}  465.19.01")
            for gpu in range(gpus):
                told = middle.format(util=(7 * tick + 13 * gpu) % 100)
                row = (
                    f"[{gpu}] NVIDIA GeForce RTX 2070 SUPER | {60 + gpu}{degree}, {told} | {3712 + tick:>5} /  7982 MB"
                )
                out.append(f"{row} | {owner}" if owner else row)
    return "\n".join(out) + "\n"


def coloured(text: str) -> str:
    """The colours of --color around index, temperature and memory."""
    return (
        text.replace("[0]", "\x1b[36m[0]\x1b[0m").replace("'C", "'C\x1b(B\x1b[m").replace(" MB", "\x1b[33m\x1b[0m MB")
    )


FULL = " 30 %,  {util:>3} % (E:   0 %  D:   1 %),   85 / 250 W"
SAMPLES = (
    Sample(
        "gpustat",
        "plain",
        log(18, 1),
        18,
        ("0",),
        first="2022-12-19T18:33:32Z gpu=0 util_pct=0 mem_used_mib=3712 mem_total_mib=7982 temp_c=60",
        last="2022-12-19T18:50:32Z gpu=0 util_pct=19 mem_used_mib=3729 mem_total_mib=7982 temp_c=60",
    ),
    Sample(
        "gpustat",
        "two-gpus-all-options",
        log(8, 2, middle=FULL, owner="root:python/711(3709M)"),
        16,
        ("0", "1"),
        first="2022-12-19T18:33:32Z gpu=0 util_pct=0 mem_used_mib=3712 mem_total_mib=7982 power_w=85 power_limit_w=250 temp_c=60 fan_pct=30 enc_pct=0 dec_pct=1",
        last="2022-12-19T18:40:32Z gpu=1 util_pct=62 mem_used_mib=3719 mem_total_mib=7982 power_w=85 power_limit_w=250 temp_c=61 fan_pct=30 enc_pct=0 dec_pct=1",
    ),
    Sample(
        "gpustat",
        "coloured",
        coloured(log(9, 1)),
        9,
        ("0",),
        first="2022-12-19T18:33:32Z gpu=0 util_pct=0 mem_used_mib=3712 mem_total_mib=7982 temp_c=60",
        last="2022-12-19T18:41:32Z gpu=0 util_pct=56 mem_used_mib=3720 mem_total_mib=7982 temp_c=60",
    ),
    Sample(
        "gpustat",
        "windows-date-and-degree",
        log(9, 1, date="%Y-%m-%d %H:%M:%S", degree="\N{DEGREE SIGN}C"),
        9,
        ("0",),
        first="2022-12-19T18:33:32Z gpu=0 util_pct=0 mem_used_mib=3712 mem_total_mib=7982 temp_c=60",
        last="2022-12-19T18:41:32Z gpu=0 util_pct=56 mem_used_mib=3720 mem_total_mib=7982 temp_c=60",
    ),
    Sample(
        "gpustat",
        "degree-lost",
        log(9, 1, degree="\N{REPLACEMENT CHARACTER}C", owner=""),
        9,
        ("0",),
        first="2022-12-19T18:33:32Z gpu=0 util_pct=0 mem_used_mib=3712 mem_total_mib=7982 temp_c=60",
        last="2022-12-19T18:41:32Z gpu=0 util_pct=56 mem_used_mib=3720 mem_total_mib=7982 temp_c=60",
    ),
    Sample(
        "gpustat",
        "two-hosts",
        log(6, 2, hosts=("n1", "n2")),
        24,
        ("n1/0", "n1/1", "n2/0", "n2/1"),
        lost_by_cut=24,
        first="2022-12-19T18:33:32Z gpu=n1/0 util_pct=0 mem_used_mib=3712 mem_total_mib=7982 temp_c=60",
        last="2022-12-19T18:38:32.5Z gpu=n2/1 util_pct=48 mem_used_mib=3717 mem_total_mib=7982 temp_c=61",
    ),
    Sample(
        "gpustat",
        "without-header",
        log(9, 2, head=False),
        18,
        ("0", "1"),
        stamped=False,
        first="1970-01-01T00:00:00Z gpu=0 util_pct=0 mem_used_mib=3712 mem_total_mib=7982 temp_c=60",
        last="1970-01-01T00:00:08Z gpu=1 util_pct=69 mem_used_mib=3720 mem_total_mib=7982 temp_c=61",
    ),
)
