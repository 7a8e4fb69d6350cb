"""Tables with a reading a row: of ``pandas.melt``, of Grafana over Prometheus, and of InfluxDB."""

from __future__ import annotations

from telemetry_sample import Sample

READER = "table-long"


def iso(k: int) -> str:
    return f"2026-03-01T10:00:{k:02d}Z"


def melted() -> str:
    lines = ["timestamp,gpu,variable,value"]
    for name, base in (("utilization.gpu [%]", 30), ("power.draw [W]", 200), ("memory.used [MiB]", 4000)):
        lines += [f"{iso(k)},{gpu},{name},{base + k + 10 * gpu}" for k in range(10) for gpu in (0, 1)]
    return "\n".join(lines) + "\n"


def grafana() -> str:
    lines = ['"Time","__name__","Hostname","UUID","gpu","instance","Value"']
    for k in range(10):
        for host in ("a", "b"):
            for name, base in (("DCGM_FI_DEV_GPU_UTIL", 30), ("DCGM_FI_DEV_FB_USED", 4000)):
                value = base + k + 10 * (host == "b")
                lines.append(f'"{iso(k)}","{name}","{host}","GPU-{host}0","0","10.0.0.{host}:9400",{value}')
    return "\n".join(lines) + "\n"


def influx() -> str:
    top = [
        "#group,false,false,false,false,true,true,true,true",
        "#datatype,string,long,dateTime:RFC3339,double,string,string,string,string",
        "#default,_result,,,,,,,",
        ",result,table,_time,_value,_field,_measurement,host,index",
    ]
    tables = (("utilization_gpu", 30), ("memory_used", 4000), ("power_draw", 200))
    rows = [
        f",,{at},{iso(k)},{base + k},{name},nvidia_smi,node1,0"
        for at, (name, base) in enumerate(tables)
        for k in range(10)
    ]
    return "\n".join(top + rows) + "\n"


SAMPLES = (
    Sample(
        READER,
        "melted-two-gpus-metric-by-metric",
        melted(),
        20,
        ("0", "1"),
        lost_by_cut=20,
        first="2026-03-01T10:00:00Z gpu=0 util_pct=30 mem_used_mib=4000 power_w=200",
        last="2026-03-01T10:00:09Z gpu=1 util_pct=49 mem_used_mib=4019 power_w=219",
    ),
    Sample(
        READER,
        "grafana-two-hosts-in-quotes",
        grafana(),
        20,
        ("a/0", "b/0"),
        first="2026-03-01T10:00:00Z gpu=a/0 util_pct=30 mem_used_mib=4000",
        last="2026-03-01T10:00:09Z gpu=b/0 util_pct=49 mem_used_mib=4019",
    ),
    Sample(
        READER,
        "influx-annotated",
        influx(),
        10,
        ("0",),
        lost_by_cut=10,
        first="2026-03-01T10:00:00Z gpu=0 util_pct=30 mem_used_mib=4000 power_w=200",
        last="2026-03-01T10:00:09Z gpu=0 util_pct=39 mem_used_mib=4009 power_w=209",
    ),
)
