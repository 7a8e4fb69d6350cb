"""``nvidia-smi --query-compute-apps``: a row per process and tick, a name with a comma, with and without header."""

from __future__ import annotations

from datetime import datetime, timedelta

from telemetry_sample import Sample

START = datetime(2026, 3, 1, 10, 0, 0, 378_000)
UUIDS = ("GPU-27b94a00-ed54-5c24-b1fd-000000000000", "GPU-27b94a00-ed54-5c24-b1fd-000000000001")
PROCESSES = ((0, 4711, "/opt/venv,v2/bin/python3"), (1, 4711, "/opt/venv,v2/bin/python3"), (1, 4712, "gpu_burn"))


def apps(ticks: int, columns: str, *, header: bool = True, units: bool = True) -> str:
    """The process without a reading comes last; its memory is unknown in the last tick."""
    units_of = {"used_gpu_memory": " [MiB]", "used_memory": " [MiB]"}
    names = columns.split()
    out = [", ".join(name + units_of.get(name, "") for name in names)] if header else []
    for tick in range(ticks):
        now = (START + timedelta(seconds=tick)).strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
        for gpu, pid, name in PROCESSES:
            used = "[N/A]" if (tick, pid) == (ticks - 1, 4712) else f"{1000 + tick}" + " MiB" * units
            cell = {"timestamp": now, "gpu_uuid": UUIDS[gpu], "gpu_bus_id": f"00000000:0{gpu}:00.0", "pid": f"{pid}"}
            cell |= {"gpu_name": "NVIDIA H100 80GB HBM3", "process_name": name, "name": name}
            out.append(", ".join(cell.get(column, used) for column in names))
    return "\n".join(out) + "\n"


FULL = apps(8, "timestamp gpu_uuid pid process_name used_gpu_memory")
SAMPLES = (
    Sample("nvidia-smi-compute-apps", "apps-uuid", FULL, 24, ("0", "1"), table="processes", first="2026-03-01T10:00:00.378Z gpu=0 pid=4711 name=/opt/venv,v2/bin/python3 mem_used_mib=1000", last="2026-03-01T10:00:07.378Z gpu=1 pid=4712 name=gpu_burn",),
    Sample("nvidia-smi-compute-apps", "apps-bus-id-nounits", apps(4, "timestamp gpu_name gpu_bus_id pid name used_memory", units=False), 12, ("0", "1"), table="processes", first="2026-03-01T10:00:00.378Z gpu=0 pid=4711 name=/opt/venv,v2/bin/python3 mem_used_mib=1000", last="2026-03-01T10:00:03.378Z gpu=1 pid=4712 name=gpu_burn",),
    Sample("nvidia-smi-compute-apps", "apps-noheader", apps(4, "timestamp gpu_uuid pid process_name used_gpu_memory", header=False), 12, ("0", "1"), table="processes", first="2026-03-01T10:00:00.378Z gpu=0 pid=4711 name=/opt/venv,v2/bin/python3 mem_used_mib=1000", last="2026-03-01T10:00:03.378Z gpu=1 pid=4712 name=gpu_burn",),
    Sample("nvidia-smi-compute-apps", "apps-no-time", apps(4, "gpu_uuid pid used_memory"), 12, ("0", "1"), stamped=False, table="processes", first="1970-01-01T00:00:00Z gpu=0 pid=4711 mem_used_mib=1000", last="1970-01-01T00:00:03Z gpu=1 pid=4712",),
)  # fmt: skip
