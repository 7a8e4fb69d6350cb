"""``nvidia-smi pmon``: processes by GPU and tick, idle GPUs, commands with blanks."""

from __future__ import annotations

from datetime import datetime, timedelta

from telemetry_sample import Sample

START = datetime(2025, 3, 1, 10, 0, 0)
PROCESSES = ((0, 4711, "C", "python3.9"), (0, 4712, "C+G", "NVIDIA Overlay."), (2, 4713, "M+C", "gpu_burn"))


def pmon(ticks: int, columns: str = "sm mem enc dec", *, timestamp: bool = False, comma: bool = False) -> str:
    """Three processes on GPUs 0 and 2; GPU 1 is idle. The last tick shows one process without a reading."""
    names = columns.split()

    def line(cells: list[str]) -> str:
        return ", ".join(cells) if comma else "".join(f"{cell:>{max(7, len(cell) + 2)}}" for cell in cells)

    before, forms = (["Date", "Time"], ["YYYYMMDD", "HH:MM:SS"]) if timestamp else ([], [])
    mark = "#" if timestamp else "# "
    out = []
    for tick in range(ticks):
        if tick % 8 == 0:
            out.append(mark + line([*before, "gpu", "pid", "type", *names, "command"]).strip())
            units = ["MB" if name in ("fb", "ccpm") else "%" for name in names]
            out.append(mark + line([*forms, "Idx", "#", "C/G", *units, "name"]).strip())
        now = START + timedelta(seconds=tick)
        timestamps = [now.strftime("%Y%m%d"), now.strftime("%H:%M:%S")] if timestamp else []
        for gpu, pid, kind, command in PROCESSES:
            if gpu == 2:
                out.append(line([*timestamps, "1", "-", "-", *("-" for _ in names), "-"]))
            cells = ["-" if tick == ticks - 1 else str(30 + tick if name in ("sm", "fb") else 0) for name in names]
            out.append(line([*timestamps, str(gpu), str(pid), kind, *cells, command]))
    return "\n".join(out) + "\n"


MEMORY = pmon(10, "sm mem enc dec jpg ofa fb ccpm", timestamp=True)
SAMPLES = (
    Sample("nvidia-smi pmon", "default-columns", pmon(8), 24, (), stamped=False, table="processes", first="1970-01-01T00:00:00Z gpu=0 pid=4711 name=python3.9 sm_pct=30", last="1970-01-01T00:00:07Z gpu=2 pid=4713 name=gpu_burn",),
    Sample("nvidia-smi pmon", "memory-date-and-time", MEMORY, 30, (), table="processes", first="2025-03-01T10:00:00Z gpu=0 pid=4711 name=python3.9 mem_used_mib=30 sm_pct=30", last="2025-03-01T10:00:09Z gpu=2 pid=4713 name=gpu_burn",),
    Sample("nvidia-smi pmon", "csv", pmon(10, "fb sm mem enc dec", timestamp=True, comma=True), 30, (), table="processes", first="2025-03-01T10:00:00Z gpu=0 pid=4711 name=python3.9 mem_used_mib=30 sm_pct=30", last="2025-03-01T10:00:09Z gpu=2 pid=4713 name=gpu_burn",),
)  # fmt: skip
