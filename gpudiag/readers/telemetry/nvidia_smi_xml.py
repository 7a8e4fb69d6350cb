"""``nvidia-smi -q -x``: one XML document per snapshot; in a loop they follow one another in one file.

Only the text between ``<nvidia_smi_log>`` and its end is parsed, so that no document type definition and no
entity of the file reaches the parser; a file that declares entities is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from gpudiag.errors import InputError
from gpudiag.readers._fields.nvidia_fields import REASON_BITS
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.identity import short_bus_id
from gpudiag.readers._shape.moments import read_moment
from gpudiag.readers._shape.snapshots import Snapshots, quantity
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "nvidia-smi XML"

_ROOT, _END = "<nvidia_smi_log>", "</nvidia_smi_log>"
_PROLOG = re.compile(r"<\?xml[^>]*\?>|<!DOCTYPE[^>\[]*>|<!--.*?-->", re.DOTALL)
_KIB_IN_MIB = 1 / 1024

_FIELDS: dict[str, tuple[str, float, tuple[str, ...]]] = {
    "util_pct": ("%", 1, ("utilization/gpu_util",)),
    "mem_util_pct": ("%", 1, ("utilization/memory_util",)),
    "enc_pct": ("%", 1, ("utilization/encoder_util",)),
    "dec_pct": ("%", 1, ("utilization/decoder_util",)),
    "mem_used_mib": ("MiB", 1, ("fb_memory_usage/used",)),
    "mem_total_mib": ("MiB", 1, ("fb_memory_usage/total",)),
    "mem_reserved_mib": ("MiB", 1, ("fb_memory_usage/reserved",)),
    "temp_c": ("C", 1, ("temperature/gpu_temp",)),
    "mem_temp_c": ("C", 1, ("temperature/memory_temp",)),
    "power_w": (
        "W",
        1,
        tuple(
            f"{readings}/{name}"
            for name in ("power_draw", "average_power_draw", "instant_power_draw")
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
    "sm_clock_mhz": ("MHz", 1, ("clocks/sm_clock",)),
    "mem_clock_mhz": ("MHz", 1, ("clocks/mem_clock",)),
    "fan_pct": ("%", 1, ("fan_speed",)),
    "pcie_rx_mib_s": ("KB/s", _KIB_IN_MIB, ("pci/rx_util",)),
    "pcie_tx_mib_s": ("KB/s", _KIB_IN_MIB, ("pci/tx_util",)),
}
"""Column: unit, factor and the places where drivers have put it, the first one known counts."""


def recognises(source: Source) -> bool:
    return _ROOT in source.text


def read(source: Source, options: ReadOptions) -> Telemetry:
    log = ProblemLog()
    snapshots = Snapshots()
    cards: dict[str, str] = {}
    for line, text in _documents(source, source.read_text().replace("\0", ""), log):
        try:
            root = ET.fromstring(text)
        except ET.ParseError as error:
            log.add("damaged document", line=line, example=str(error), lost=True)
            continue
        _document(root, line, snapshots, cards)
    return snapshots.finish(source, NAME, options, log)


def _documents(source: Source, text: str, log: ProblemLog) -> Iterator[tuple[int, str]]:
    """Line and text of each complete document. What stands between is counted unless it is a prolog."""
    line, at = 1, 0
    while True:
        start = text.find(_ROOT, at)
        between = text[at:start] if start >= 0 else text[at:]
        if "<!ENTITY" in between:
            raise InputError(f"{source.path}: declares XML entities, which nvidia-smi never does; it was not parsed.")
        if rest := _PROLOG.sub("", between).strip():
            log.add("text between documents", line=line, example=rest)
        if start < 0:
            return
        line += between.count("\n")
        end = text.find(_END, start)
        again = text.find(_ROOT, start + 1)
        if end < 0 or 0 <= again < end:
            log.add("document without an end", line=line, lost=True)
            stop = again if again >= 0 else len(text)
        else:
            stop = end + len(_END)
            yield line, text[start:stop]
        line += text.count("\n", start, stop)
        at = stop


def _document(root: ET.Element, line: int, snapshots: Snapshots, cards: dict[str, str]) -> None:
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
            label, uuid=gpu.findtext("uuid"), bus_id=bus_id, name=gpu.findtext("product_name"), driver=driver
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
    return values


def _reasons(gpu: ET.Element) -> float | None:
    """The reason bits, whose elements were renamed from throttle to event reasons; None if none is stated."""
    known, mask = False, 0
    for block in (*gpu.iterfind("clocks_event_reasons"), *gpu.iterfind("clocks_throttle_reasons")):
        for element in block:
            name = re.sub(r"^clocks_(?:event|throttle)_reasons?_", "", element.tag)
            state = (element.text or "").strip()
            if name in REASON_BITS and state in ("Active", "Not Active"):
                known = True
                mask |= REASON_BITS[name] * (state == "Active")
    return float(mask) if known else None


READER = Reader(NAME, recognises, read)
