"""Home-made tables: names, delimiters, timestamps and shapes as people invent them."""

from __future__ import annotations

from collections.abc import Callable

from telemetry_sample import Sample

READER = "table-csv"
EPOCH_S = 1_736_203_508


def table(header: str, row: Callable[[int], str], rows: int = 20) -> str:
    return "\n".join([header, *(row(k) for k in range(rows))]) + "\n"


def iso(k: int, gpu: int = 0) -> str:
    return f"2025-09-24T03:{41 + k // 60:02d}:{k % 60:02d}.{487 + gpu}Z"


def one(name: str, header: str, row: Callable[[int], str], **more: object) -> Sample:
    return Sample(READER, name, table(header, row), 20, ("0",), **more)  # type: ignore[arg-type]


def eight(k: int) -> str:
    return f"{iso(k // 8)},{k % 8}, {20 + k % 8}, {k % 101}, {70 + k % 8}.41"


SAMPLES = (
    Sample(
        READER,
        "eight-gpus-iso-with-zone",
        table("timestamp,gpu_index,temperature_C,utilization_gpu_percent,power_W", eight, 80),
        80,
        tuple(str(k) for k in range(8)),
        first="2025-09-24T03:41:00.487Z gpu=0 util_pct=0 power_w=70.41 temp_c=20",
        last="2025-09-24T03:41:09.487Z gpu=7 util_pct=79 power_w=77.41 temp_c=27",
    ),
    Sample(
        READER,
        "wide-watts-without-a-metric-name",
        table("timestamp,GPU0,GPU1", lambda k: f"{EPOCH_S + k}.215,{199.9 + k:.3f},{256.5 + k:.3f}"),
        40,
        ("0", "1"),
        lost_by_cut=20,
        first="2025-01-06T22:45:08.215Z gpu=0 power_w=199.9",
        last="2025-01-06T22:45:27.215Z gpu=1 power_w=275.5",
    ),
    Sample(
        READER,
        "wide-by-names",
        table("time,gpu0_util,gpu0_mem_mb,gpu1_util,gpu1_mem_mb", lambda k: f"{EPOCH_S + k},{k},100,{k + 1},200"),
        40,
        ("0", "1"),
        lost_by_cut=2,
        first="2025-01-06T22:45:08Z gpu=0 util_pct=0 mem_used_mib=100",
        last="2025-01-06T22:45:27Z gpu=1 util_pct=20 mem_used_mib=200",
    ),
    one(
        "date-and-time-apart",
        "Date,Time,Utilization,Power Used",
        lambda k: f"25-03-2021,13:32:{k:02d},{k},{k + 1}",
        first="2021-03-25T13:32:00Z gpu=0 util_pct=0 power_w=1",
        last="2021-03-25T13:32:19Z gpu=0 util_pct=19 power_w=20",
    ),
    one(
        "epoch-ms",
        "timestamp_ms,GPU Util (%)",
        lambda k: f"{(EPOCH_S + k) * 1000},{k}",
        first="2025-01-06T22:45:08Z gpu=0 util_pct=0",
        last="2025-01-06T22:45:27Z gpu=0 util_pct=19",
    ),
    one(
        "epoch-ns",
        "Timestamp (ns),Power Draw (W)",
        lambda k: f"{EPOCH_S + k}809690966,13.{k:02d}",
        first="2025-01-06T22:45:08.80969Z gpu=0 power_w=13",
        last="2025-01-06T22:45:27.80969Z gpu=0 power_w=13.19",
    ),
    one(
        "semicolons-and-decimal-commas",
        "Time;GPU Power (W);GPU Temp (°C)",
        lambda k: f"{iso(k)};{k},25;4{k % 10}",
        first="2025-09-24T03:41:00.487Z gpu=0 power_w=0.25 temp_c=40",
        last="2025-09-24T03:41:19.487Z gpu=0 power_w=19.25 temp_c=49",
    ),
    one(
        "unquoted-decimal-commas",
        "Timestamp,Power (W)",
        lambda k: f"2025-02-21 14:13:{k:02d},36{k},5",
        first="2025-02-21T14:13:00Z gpu=0 power_w=360.5",
        last="2025-02-21T14:13:19Z gpu=0 power_w=3619.5",
    ),
    one(
        "quoted",
        '"time","gpu","gpu_util"',
        lambda k: f'"{iso(k)}","0","{k}"',
        first="2025-09-24T03:41:00.487Z gpu=0 util_pct=0",
        last="2025-09-24T03:41:19.487Z gpu=0 util_pct=19",
    ),
    one(
        "row-numbers-without-a-name",
        ",timestamp,gpu_util",
        lambda k: f"{k},{iso(k)},{k}",
        first="2025-09-24T03:41:00.487Z gpu=0 util_pct=0",
        last="2025-09-24T03:41:19.487Z gpu=0 util_pct=19",
    ),
    one(
        "times-without-a-name",
        ",util,vram_used_mb",
        lambda k: f"{iso(k)},{k},{k + 100}",
        first="2025-09-24T03:41:00.487Z gpu=0 util_pct=0 mem_used_mib=100",
        last="2025-09-24T03:41:19.487Z gpu=0 util_pct=19 mem_used_mib=119",
    ),
    one(
        "times-named-as-an-index",
        "Unnamed: 0,index,elapsed_s,gpu_util,mem_used_mb",
        lambda k: f"{k},2025-09-24 03:41:{k:02d},{k}.5,{k},{k + 100}",
        first="2025-09-24T03:41:00Z gpu=0 util_pct=0 mem_used_mib=100",
        last="2025-09-24T03:41:19Z gpu=0 util_pct=19 mem_used_mib=119",
    ),
    one(
        "times-since-1970-in-an-index",
        "index,gpu_util",
        lambda k: f"{EPOCH_S + 2 * k}.5,{k}",
        first="2025-01-06T22:45:08.5Z gpu=0 util_pct=0",
        last="2025-01-06T22:45:46.5Z gpu=0 util_pct=19",
    ),
    one(
        "seconds-that-rise",
        "seconds,gpu_util,wait_s",
        lambda k: f"{2.5 * k},{k},{7 - k % 3}",
        first="1970-01-01T00:00:00Z gpu=0 util_pct=0",
        last="1970-01-01T00:00:47.5Z gpu=0 util_pct=19",
    ),
    Sample(
        READER,
        "columns-of-two-levels",
        ",gpu0,gpu0,gpu1,gpu1\n"
        + table(",gpu_util,mem_used_mb,gpu_util,mem_used_mb", lambda k: f"{iso(k)},{k},100,{k + 1},200"),
        40,
        ("0", "1"),
        lost_by_cut=2,
        first="2025-09-24T03:41:00.487Z gpu=0 util_pct=0 mem_used_mib=100",
        last="2025-09-24T03:41:19.487Z gpu=1 util_pct=20 mem_used_mib=200",
    ),
    one(
        "header-behind-a-hash",
        "# time,gpu_util,mem_used_mb",
        lambda k: f"{EPOCH_S + k},{k},100",
        first="2025-01-06T22:45:08Z gpu=0 util_pct=0 mem_used_mib=100",
        last="2025-01-06T22:45:27Z gpu=0 util_pct=19 mem_used_mib=100",
    ),
    one(
        "header-one-name-short",
        "timestamp,gpu_util",
        lambda k: f"{k},{iso(k)},{k}",
        first="2025-09-24T03:41:00.487Z gpu=0 util_pct=0",
        last="2025-09-24T03:41:19.487Z gpu=0 util_pct=19",
    ),
    one(
        "units-in-cells",
        "time,gpu_util,vram_used",
        lambda k: f"{iso(k)},{k} %,{k}.5 GiB",
        first="2025-09-24T03:41:00.487Z gpu=0 util_pct=0 mem_used_mib=512",
        last="2025-09-24T03:41:19.487Z gpu=0 util_pct=19 mem_used_mib=19968",
    ),
    one(
        "device-names",
        "time,device,gpu_util",
        lambda k: f"{iso(k)},cuda:0,{k}",
        first="2025-09-24T03:41:00.487Z gpu=0 util_pct=0",
        last="2025-09-24T03:41:19.487Z gpu=0 util_pct=19",
    ),
    one(
        "elapsed",
        "elapsed_sec,gpu_util_pct",
        lambda k: f"{k}.25,{k}",
        first="1970-01-01T00:00:00.25Z gpu=0 util_pct=0",
        last="1970-01-01T00:00:19.25Z gpu=0 util_pct=19",
    ),
    one(
        "time-of-day",
        "time,gpu_util",
        lambda k: f"23:59:{40 + k},{k}" if k < 15 else f"00:00:{k - 15:02d},{k}",
        stamped=False,
        first="1970-01-01T23:59:40Z gpu=0 util_pct=0",
        last="1970-01-02T00:00:04Z gpu=0 util_pct=19",
    ),
    one(
        "aligned-with-blanks",
        "Time     GPU%   Mem Used   Temp",
        lambda k: f"  {k}.5   {k}.0   1361   45.0",
        first="1970-01-01T00:00:00.5Z gpu=0 util_pct=0 mem_used_mib=1361 temp_c=45",
        last="1970-01-01T00:00:19.5Z gpu=0 util_pct=19 mem_used_mib=1361 temp_c=45",
    ),
    Sample(
        READER,
        "no-header-named-by-user",
        table("22.50, 41", lambda k: f"{k}.50, 41"),
        21,
        ("0",),
        options={"columns": ("power_w", "temp_c")},
        stamped=False,
        first="1970-01-01T00:00:00Z gpu=0 power_w=22.5 temp_c=41",
        last="1970-01-01T00:00:20Z gpu=0 power_w=19.5 temp_c=41",
    ),
)
