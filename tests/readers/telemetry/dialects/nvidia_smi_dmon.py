"""``nvidia-smi dmon``: header pairs and rows as drivers of 2016 to now print them."""

from __future__ import annotations

from datetime import datetime, timedelta

from telemetry_sample import Sample

UNITS = {
    "pwr": "W", "gtemp": "C", "temp": "C", "mtemp": "C", "sm": "%", "mem": "%", "enc": "%", "dec": "%", "jpg": "%",
    "ofa": "%", "mclk": "MHz", "pclk": "MHz", "pviol": "%", "tviol": "bool", "fb": "MB", "bar1": "MB", "ccpm": "MB",
    "sbecc": "errs", "dbecc": "errs", "pci": "errs", "rxpci": "MB/s", "txpci": "MB/s",
}  # fmt: skip
START = datetime(2025, 3, 1, 23, 59, 50)


def value(name: str, tick: int, gpu: int) -> str:
    """A plausible reading; memory temperature is missing, as on GeForce cards."""
    if name in ("mtemp", "sbecc", "dbecc"):
        return "-"
    if name in ("sm", "mem", "gtemp", "temp"):
        return str(20 + (7 * tick + 11 * gpu) % 60)
    return str(
        {"pwr": 150, "fb": 4096, "mclk": 6250, "pclk": 1695}.get(name, 0) + (tick if name in ("pwr", "fb") else 0)
    )


def dmon(
    columns: str,
    ticks: int,
    gpus: int,
    *,
    timestamp: str = "",
    header_every: int = 10,
    comma: bool = False,
    blank: bool = False,
) -> str:
    """Text as dmon prints it; ``timestamp`` holds the letters of ``-o``."""
    names = columns.split()
    before = [word for letter, word in (("D", "Date"), ("T", "Time")) if letter in timestamp]
    forms = {"Date": "YYYYMMDD", "Time": "HH:MM:SS"}

    def line(cells: list[str]) -> str:
        return ", ".join(cells) if comma else "".join(f"{cell:>{max(7, len(cell) + 2)}}" for cell in cells) + " "

    out = []
    for tick in range(ticks):
        if tick % header_every == 0:
            mark = "#" if before or comma else "# "
            out.append(mark + line([*before, "gpu", *names]).strip())
            out.append(
                mark + line([*(forms[word] for word in before), "Idx", *(UNITS[name] for name in names)]).strip()
            )
        for gpu in range(gpus):
            now = START + timedelta(seconds=tick)
            timestamps = [now.strftime({"Date": "%Y%m%d", "Time": "%H:%M:%S"}[word]) for word in before]
            out.append(line([*timestamps, str(gpu), *(value(name, tick, gpu) for name in names)]))
            if blank:
                out.append("")
    return "\n".join(out) + "\n"


NOW = "pwr gtemp mtemp sm mem enc dec jpg ofa mclk pclk"
ALL = "pwr gtemp mtemp sm mem enc dec mclk pclk pviol tviol fb bar1 sbecc dbecc pci rxpci txpci"
OLD = "pwr temp sm mem enc dec mclk pclk pviol tviol fb bar1 sbecc dbecc pci rxpci txpci"

CHANGING = dmon("sm mem", 6, 2, timestamp="DT") + dmon("pwr fb", 6, 2, timestamp="DT").replace("2025", "2026")

SAMPLES = (
    Sample("nvidia-smi dmon", "default-columns", dmon(NOW, 24, 1), 24, ("0",), stamped=False, first="1970-01-01T00:00:00Z gpu=0 util_pct=20 mem_util_pct=20 power_w=150 temp_c=20 sm_clock_mhz=1695 mem_clock_mhz=6250 enc_pct=0 dec_pct=0", last="1970-01-01T00:00:23Z gpu=0 util_pct=61 mem_util_pct=61 power_w=173 temp_c=61 sm_clock_mhz=1695 mem_clock_mhz=6250 enc_pct=0 dec_pct=0",),
    Sample("nvidia-smi dmon", "four-gpus", dmon(NOW + " fb bar1", 6, 4), 24, ("0", "1", "2", "3"), stamped=False, first="1970-01-01T00:00:00Z gpu=0 util_pct=20 mem_util_pct=20 mem_used_mib=4096 power_w=150 temp_c=20 sm_clock_mhz=1695 mem_clock_mhz=6250 enc_pct=0 dec_pct=0", last="1970-01-01T00:00:05Z gpu=3 util_pct=28 mem_util_pct=28 mem_used_mib=4101 power_w=155 temp_c=28 sm_clock_mhz=1695 mem_clock_mhz=6250 enc_pct=0 dec_pct=0",),
    Sample("nvidia-smi dmon", "eleven-gpus", dmon("sm mem", 2, 11), 22, tuple(map(str, range(11))), stamped=False, first="1970-01-01T00:00:00Z gpu=0 util_pct=20 mem_util_pct=20", last="1970-01-01T00:00:01Z gpu=10 util_pct=77 mem_util_pct=77",),
    Sample("nvidia-smi dmon", "all-groups-date-and-time", dmon(ALL, 20, 2, timestamp="DT"), 40, ("0", "1"), first="2025-03-01T23:59:50Z gpu=0 util_pct=20 mem_util_pct=20 mem_used_mib=4096 power_w=150 temp_c=20 sm_clock_mhz=1695 mem_clock_mhz=6250 throttle_reasons=0 throttle_known=100 pcie_rx_mib_s=0 pcie_tx_mib_s=0 enc_pct=0 dec_pct=0", last="2025-03-02T00:00:09Z gpu=1 util_pct=44 mem_util_pct=44 mem_used_mib=4115 power_w=169 temp_c=44 sm_clock_mhz=1695 mem_clock_mhz=6250 throttle_reasons=0 throttle_known=100 pcie_rx_mib_s=0 pcie_tx_mib_s=0 enc_pct=0 dec_pct=0",),
    Sample("nvidia-smi dmon", "date-and-time-blank-lines", dmon(NOW, 12, 1, timestamp="DT", blank=True), 12, ("0",), first="2025-03-01T23:59:50Z gpu=0 util_pct=20 mem_util_pct=20 power_w=150 temp_c=20 sm_clock_mhz=1695 mem_clock_mhz=6250 enc_pct=0 dec_pct=0", last="2025-03-02T00:00:01Z gpu=0 util_pct=37 mem_util_pct=37 power_w=161 temp_c=37 sm_clock_mhz=1695 mem_clock_mhz=6250 enc_pct=0 dec_pct=0",),
    Sample("nvidia-smi dmon", "time-past-midnight", dmon(NOW, 20, 2, timestamp="T"), 40, ("0", "1"), stamped=False, first="1970-01-01T23:59:50Z gpu=0 util_pct=20 mem_util_pct=20 power_w=150 temp_c=20 sm_clock_mhz=1695 mem_clock_mhz=6250 enc_pct=0 dec_pct=0", last="1970-01-02T00:00:09Z gpu=1 util_pct=44 mem_util_pct=44 power_w=169 temp_c=44 sm_clock_mhz=1695 mem_clock_mhz=6250 enc_pct=0 dec_pct=0",),
    Sample("nvidia-smi dmon", "driver-of-2016", dmon(OLD, 15, 1), 15, ("0",), stamped=False, first="1970-01-01T00:00:00Z gpu=0 util_pct=20 mem_util_pct=20 mem_used_mib=4096 power_w=150 temp_c=20 sm_clock_mhz=1695 mem_clock_mhz=6250 throttle_reasons=0 throttle_known=100 pcie_rx_mib_s=0 pcie_tx_mib_s=0 enc_pct=0 dec_pct=0", last="1970-01-01T00:00:14Z gpu=0 util_pct=58 mem_util_pct=58 mem_used_mib=4110 power_w=164 temp_c=58 sm_clock_mhz=1695 mem_clock_mhz=6250 throttle_reasons=0 throttle_known=100 pcie_rx_mib_s=0 pcie_tx_mib_s=0 enc_pct=0 dec_pct=0",),
    Sample("nvidia-smi dmon", "csv-date-and-time", dmon(NOW, 12, 2, timestamp="DT", comma=True), 24, ("0", "1"), first="2025-03-01T23:59:50Z gpu=0 util_pct=20 mem_util_pct=20 power_w=150 temp_c=20 sm_clock_mhz=1695 mem_clock_mhz=6250 enc_pct=0 dec_pct=0", last="2025-03-02T00:00:01Z gpu=1 util_pct=48 mem_util_pct=48 power_w=161 temp_c=48 sm_clock_mhz=1695 mem_clock_mhz=6250 enc_pct=0 dec_pct=0",),
    Sample("nvidia-smi dmon", "columns-change", CHANGING, 24, ("0", "1"), first="2025-03-01T23:59:50Z gpu=0 util_pct=20 mem_util_pct=20", last="2026-03-01T23:59:55Z gpu=1 mem_used_mib=4101 power_w=155",),
)  # fmt: skip
