"""What a document of ``nvidia-smi -q`` states, of its XML and of its text under the same kind of names."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import numpy as np

from gpudiag.readers._fields.ecc_counters import PART, TOTAL, add_up
from gpudiag.readers._fields.nvidia_fields import REASON_BITS
from gpudiag.readers._shape.identity import short_bus_id
from gpudiag.readers._shape.moments import read_moment
from gpudiag.readers._shape.snapshots import Snapshots, quantity

_KIB_IN_MIB = 1 / 1024

_ECC: dict[str, tuple[str, ...]] = {
    TOTAL: ("double_bit/total",),
    f"{PART}dram": ("dram_uncorrectable",),
    f"{PART}sram": ("sram_uncorrectable",),
    f"{PART}sram_parity": ("sram_uncorrectable_parity",),
    f"{PART}sram_secded": ("sram_uncorrectable_secded", "sram_uncorrectable_sec_ded"),
}
"""Of the volatile ECC errors: the total of old drivers, the parts of newer ones."""
_FIELDS: dict[str, tuple[str, float, tuple[str, ...]]] = {
    "util_pct": ("%", 1, ("utilization/gpu_util", "utilization/gpu")),
    "mem_util_pct": ("%", 1, ("utilization/memory_util", "utilization/memory")),
    "enc_pct": ("%", 1, ("utilization/encoder_util", "utilization/encoder")),
    "dec_pct": ("%", 1, ("utilization/decoder_util", "utilization/decoder")),
    "mem_used_mib": ("MiB", 1, ("fb_memory_usage/used",)),
    "mem_total_mib": ("MiB", 1, ("fb_memory_usage/total",)),
    "mem_reserved_mib": ("MiB", 1, ("fb_memory_usage/reserved",)),
    "temp_c": ("C", 1, ("temperature/gpu_temp", "temperature/gpu_current_temp")),
    "mem_temp_c": ("C", 1, ("temperature/memory_temp", "temperature/memory_current_temp")),
    "power_w": (
        "W",
        1,
        tuple(
            f"{readings}/{name}"
            for name in ("power_draw", "average_power_draw", "instant_power_draw", "instantaneous_power_draw")
            for readings in ("power_readings", "gpu_power_readings")
        ),
    ),
    "power_limit_w": (
        "W",
        1,
        (
            "power_readings/enforced_power_limit",
            "gpu_power_readings/enforced_power_limit",
            "gpu_power_readings/current_power_limit",
            "gpu_power_readings/gpu_ceiling_power_limit/current_power_limit",
            "power_readings/power_limit",
        ),
    ),
    "power_default_w": (
        "W",
        1,
        (
            "power_readings/default_power_limit",
            "gpu_power_readings/default_power_limit",
            "gpu_power_readings/gpu_ceiling_power_limit/default_power_limit",
        ),
    ),
    "sm_clock_max_mhz": ("MHz", 1, ("max_clocks/sm_clock", "max_clocks/sm")),
    "sm_clock_mhz": ("MHz", 1, ("clocks/sm_clock", "clocks/sm")),
    "mem_clock_mhz": ("MHz", 1, ("clocks/mem_clock", "clocks/memory")),
    "fan_pct": ("%", 1, ("fan_speed",)),
    "pcie_rx_mib_s": ("KB/s", _KIB_IN_MIB, ("pci/rx_util", "pci/rx_throughput")),
    "pcie_tx_mib_s": ("KB/s", _KIB_IN_MIB, ("pci/tx_util", "pci/tx_throughput")),
    **{column: ("", 1, tuple(f"ecc_errors/volatile/{place}" for place in places)) for column, places in _ECC.items()},
}
"""Column: unit, factor and the places where XML and text of some driver have it, the first one known counts."""


def take_document(root: ET.Element, line: int, snapshots: Snapshots, cards: dict[str, str]) -> None:
    """One snapshot. GPUs keep the index they had when first seen: a GPU that is lost leaves the list."""
    snapshots.begin(read_moment(root.findtext("timestamp") or ""))
    driver = root.findtext("driver_version")
    attached = quantity(root.findtext("attached_gpus"))
    listed = root.findall("gpu")
    for place, gpu in enumerate(listed):
        # With -i only some of the attached GPUs are listed; then the minor number is the best index there is.
        index = str(place) if attached is None or attached <= len(listed) else gpu.findtext("minor_number", str(place))
        bus_id = gpu.get("id") or gpu.findtext("pci/pci_bus_id") or ""
        label = cards.setdefault(short_bus_id(bus_id) or index, index)
        snapshots.describe(
            label,
            uuid=gpu.findtext("uuid") or gpu.findtext("gpu_uuid"),
            bus_id=bus_id,
            name=gpu.findtext("product_name"),
            driver=driver,
        )
        snapshots.sample(label, line, **_values(gpu))
        for process in gpu.iterfind("processes/process_info"):
            pid = quantity(process.findtext("pid"))
            if pid is not None:
                used = quantity(process.findtext("used_memory"), "MiB")
                snapshots.process(label, line, int(pid), name=process.findtext("process_name"), mem_used_mib=used)


def _values(gpu: ET.Element) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    for column, (unit, factor, places) in _FIELDS.items():
        found = (quantity(gpu.findtext(place), unit) for place in places)
        value = next((number for number in found if number is not None), None)
        values[column] = None if value is None else value * factor
    values["pstate"] = quantity((gpu.findtext("performance_state") or "").removeprefix("P"))
    values["throttle_reasons"] = _reasons(gpu)
    counts = {name: np.array([values.pop(name)], dtype=float) for name in _ECC}
    add_up(counts)
    values[TOTAL] = float(counts[TOTAL][0])
    return values


def _reasons(gpu: ET.Element) -> float | None:
    """The reason bits, whose elements were renamed from throttle to event reasons; None if none is stated."""
    known, mask = False, 0
    for block in (*gpu.iterfind("clocks_event_reasons"), *gpu.iterfind("clocks_throttle_reasons")):
        for element in block.iter():
            name = re.sub(r"^clocks_(?:event|throttle)_reasons?_", "", element.tag)
            name = "gpu_idle" if name == "idle" else name
            state = (element.text or "").strip()
            if name in REASON_BITS and state in ("Active", "Not Active"):
                known = True
                mask |= REASON_BITS[name] * (state == "Active")
    return float(mask) if known else None
