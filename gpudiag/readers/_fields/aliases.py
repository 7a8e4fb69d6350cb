"""What the column names of home-made logs mean, whatever their spelling.

A name is cut into words; words for units and fillers are set aside, and what is left must be exactly one of the
combinations listed here. So ``Inst_%_GPU_Utilization``, ``gpu_util(%)`` and ``GPU%`` all mean ``util_pct``, while a
word that is not known (``n1_watts``, ``val_loss``) means that the column is not ours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache

from gpudiag.readers._fields.dcgm_fields import BY_EXPORTER_NAME, FB_FREE, XID, Metric

_SYNONYMS = {
    "util": "util utils utilization utilisation utilized",
    "mem": "mem memory vram framebuffer fb dram",
    "temp": "temp temperature tmp",
    "used": "used use usage alloc allocated consumed consumption occupied",
    "total": "total capacity size",
    "max": "max maximum",
    "limit": "limit cap enforced tdp",
    "free": "free available avail",
    "clock": "clock clocks clk freq frequency",
    "graphics": "graphics gr gfx core",
    "power": "power pwr",
    "index": "index idx id num ordinal",
    "device": "device dev card",
    "time": "time timestamp timestamps datetime ts walltime",
    "elapsed": "elapsed relative since runtime uptime",
    "enc": "enc encoder",
    "dec": "dec decoder",
    "pstate": "pstate perf performance",
    "ram": "ram",
    "system": "system sys",
    "machine": "machine host hostname node nodename nodeid server computer fqdn",
    "cpu": "cpu",
    "uncorrected": "uncorrected uncorrectable dbe",
    "event": "event events context message msg note notes comment label phase",
}
_UNITS = {
    "%": "% percent percentage pct perc",
    "mib": "mb mib megabytes mebibytes mbytes",
    "gib": "gb gib gigabytes gibibytes",
    "kib": "kb kib kilobytes",
    "bytes": "bytes byte b",
    "w": "w watts watt",
    "mw": "mw milliwatts milliwatt",
    "c": "c celsius degc degree degrees deg",
    "mhz": "mhz",
    "ghz": "ghz",
    "hz": "hz",
    "s": "s sec secs second seconds",
    "ms": "ms msec millisecond milliseconds millis",
    "us": "us usec microsecond microseconds",
    "ns": "ns nsec nanosecond nanoseconds",
    "minute": "minutes minute mins",
    "hour": "hours hour hrs",
    "j": "j joule joules",
    "mj": "mj millijoules",
    "wh": "wh",
    "kwh": "kwh",
}
_OF_TIME = frozenset(["s", "ms", "us", "ns", "minute", "hour"])
_SHORT = {"min": "minute", "h": "hour"}
"""Units of time, and of nothing else: ``util_min`` is the least."""
_GPU_WORDS = frozenset(["gpu", "gpus", "nvidia", "cuda", "nvml", "vram", "sm"])
_FILLER_WORDS = """
    gpu gpus nvidia cuda nvml smi inst instant instantaneous current curr cur now avg average mean value reading board
    stamp unix the of in rate
"""
_FILLERS = frozenset(_FILLER_WORDS.split())
_OF_A_SPAN = frozenset(["avg", "average", "mean"])
_WORD_OF = {word: main for main, words in _SYNONYMS.items() for word in words.split()}
_UNIT_OF = {word: main for main, words in _UNITS.items() for word in words.split()}

_MEANINGS = {
    "util_pct": "util; load; busy; activity; used; sm util; sm; graphics util; compute util; graphics used; util used",
    "mem_util_pct": "mem controller util; mem bandwidth util; mem copy util; mem bw util; mem controller",
    "mem_used_mib": "mem; mem used",
    "mem_total_mib": "mem total; mem limit; total",
    "mem_max_mib": "mem max",
    "mem_free_mib": "mem free; free",
    "mem_reserved_mib": "mem reserved",
    "mem_pct": "mem util; mem util used; mem load",
    "power_w": "power; power draw; power used; draw",
    "power_limit_w": "power limit; limit; power limit max",
    "power_max_w": "power max",
    "energy_j": "energy; energy used; energy total; energy used total",
    "temp_c": "temp; graphics temp",
    "mem_temp_c": "mem temp",
    "fan_pct": "fan; fan speed",
    "sm_clock_mhz": "clock; sm clock; graphics clock; graphics; clock speed; clock graphics; clock sm",
    "mem_clock_mhz": "mem clock; clock mem",
    "pstate": "pstate; pstate state; p state",
    "enc_pct": "enc; enc util; util enc",
    "dec_pct": "dec; dec util; util dec",
    "pcie_rx_mib_s": "pcie rx; pcie rx throughput; pci rx",
    "pcie_tx_mib_s": "pcie tx; pcie tx throughput; pci tx",
    "index": "; index; device; device index",
    "uuid": "uuid; device uuid",
    "bus_id": "bus; bus index; pci bus; pci bus index; pci; pci index",
    "name": "name; model; product name; device name; model name; product; type",
    "driver": "driver; driver version; version driver",
    "time": "time; epoch time; wall time",
    "elapsed": "elapsed; elapsed time",
    "date": "date",
    "ecc_uncorrected": "ecc uncorrected; ecc uncorrected total; ecc uncorrected errors; ecc uncorrected errors total; "
    "ecc uncorrected volatile; ecc uncorrected volatile total; ecc uncorrected errors volatile; "
    "ecc uncorrected errors volatile total",
    "event": "event",
    "host": "machine; machine name; machine index; ip; machine ip; ip address; machine ip address",
    "host.cpu_pct": "cpu; cpu util; cpu used; cpu load",
    "host.ram_used_mib": "ram; ram used; ram mem; ram mem used; cpu mem; cpu mem used; "
    "system used; system mem; system mem used; system ram; system ram used; "
    "machine used; machine mem; machine mem used; machine ram; machine ram used",
    "host.ram_total_mib": "ram total; ram mem total; cpu mem total; system total; system mem total; system ram total; "
    "machine total; machine mem total; machine ram total",
    "host.ram_free_mib": "ram free; ram mem free; system free; system mem free; system ram free; "
    "machine free; machine mem free; machine ram free",
    "known": "pid; index process; name process; process; user; command; epoch; step; iteration",
}
_TARGET_OF = {frozenset(words.split()): target for target, lists in _MEANINGS.items() for words in lists.split(";")}

_SCALES = {
    "mib": {"": 1.0, "mib": 1.0, "gib": 1024.0, "kib": 1 / 1024, "bytes": 1 / 2**20},
    "w": {"": 1.0, "w": 1.0, "mw": 0.001},
    "pct": {"": 1.0, "%": 1.0},
    "c": {"": 1.0, "c": 1.0},
    "mhz": {"": 1.0, "mhz": 1.0, "ghz": 1000.0, "hz": 1e-6},
    "j": {"j": 1.0, "mj": 0.001, "wh": 3600.0, "kwh": 3.6e6},
    "uncorrected": {"": 1.0},
    "s": {"mib": 1.0, "gib": 1024.0, "kib": 1 / 1024, "bytes": 1 / 2**20},
}
"""For the unit that ends a target's name: what each unit a log may write is worth."""

SERIES = re.compile(r"(?P<name>[A-Za-z_:][\w:]*)\{(?P<labels>.*)\}")
"""The name of a series of Prometheus with its labels, as Grafana writes it above a column."""

_SMALL_UNIT = re.compile(r"(?<![A-Za-z])[mk](?:Wh?|J)(?![a-z])")
"""mW, kWh and mJ are words, though a capital letter stands within them."""

_NEEDS_GPU = ("load", "busy", "activity", "used", "limit", "graphics", "clock", "free", "total", "")
"""Words that alone mean a GPU's metric only if the name says GPU."""


@dataclass(frozen=True)
class Meaning:
    """What one column name means. ``target`` is empty if unknown, ``known`` if known and of no use here.

    ``device`` is the number of the GPU in the name of a wide table's column; ``gpu`` tells that the name says GPU, and
    ``mean`` that it says average.
    """

    target: str = ""
    unit: str = ""
    scale: float = 1.0
    device: str = ""
    gpu: bool = False
    mean: bool = False

    @property
    def metric(self) -> bool:
        """True for a measurement of a GPU."""
        plain = ("", "known", "index", "uuid", "bus_id", "name", "driver", "time", "elapsed", "date", "event", "host")
        return self.target not in plain and not self.target.startswith("host.")


def words_of(name: str) -> list[str]:
    """The words of a name in lower case; digits and per cent signs are words of their own."""
    text = re.sub(r"([KMG])iB", r"\1B", name.replace("µ", "u").replace("μ", "u"))
    text = _SMALL_UNIT.sub(lambda unit: unit[0].lower(), text)
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    return re.findall(r"[a-z]+|\d+|%", re.sub(r"(?i)gpuid", "gpu id", text).lower())


@cache
def meaning_of(name: str) -> Meaning:
    """What a column name of a home-made log means."""
    if metric := BY_EXPORTER_NAME.get(name.strip()):
        return _of_dcgm(metric)
    if name.strip().lower() == "utilization.memory":  # nvidia-smi's own name is not ambiguous
        return Meaning("mem_util_pct", "%")
    if series := SERIES.fullmatch(name.strip()):
        return _of_series(series)
    words, device = _without_device(words_of(name))
    gpu = any(word in _GPU_WORDS for word in words)
    units = [_UNIT_OF[word] for word in words if word in _UNIT_OF]
    core = frozenset(_WORD_OF.get(w, w) for w in words if w not in _UNIT_OF and (w not in _FILLERS or w == "sm"))
    unit = units[0] if units else ""
    if short := core & _SHORT.keys() if core - _SHORT.keys() in ({"elapsed"}, {"time"}) else frozenset():
        core, unit = core - short, _SHORT[min(short)]
    target = _target(core, unit, gpu, "gpus" in words)
    scale = _scale(target, unit)
    if scale is None or (target == "host" and device):  # node_1: what is measured there does not say
        return Meaning(device=device, gpu=gpu)
    if target.startswith("host.") and device:  # cpu2_pct: the number is of no GPU
        return Meaning("known", gpu=gpu)
    return Meaning(target, unit, scale, device, gpu, mean=not _OF_A_SPAN.isdisjoint(words))


def _of_series(series: re.Match[str]) -> Meaning:
    """What a series of dcgm-exporter means, where it is of a whole GPU."""
    metric, labels = BY_EXPORTER_NAME.get(series["name"]), dict(re.findall(r"(\w+)=([^;,]*)", series["labels"]))
    gpu = labels.get("gpu", "")
    if metric is None or not gpu.isdecimal() or (metric.instance and "GPU_I_ID" in labels):
        return Meaning(gpu=metric is not None)
    return replace(_of_dcgm(metric), device=gpu)


def _of_dcgm(metric: Metric) -> Meaning:
    """What a field means under the name that dcgm-exporter gives it, in DCGM's units."""
    if metric.column == XID:
        return Meaning("known", gpu=True)
    target = "mem_free_mib" if metric.column == FB_FREE else metric.column
    ending = target.rsplit("_", 1)[1] if "_" in target else ""
    return Meaning(target, {"pct": "%"}.get(ending, ending), metric.factor, gpu=True)


def _without_device(words: list[str]) -> tuple[list[str], str]:
    """The words less the number of a GPU: one after the word GPU, or one at the very end, but for a unit of no time."""
    for at, word in enumerate(words[:-1]):
        if word in ("gpu", "cuda", "nvidia", "card", "device") and words[at + 1].isdecimal():
            return [*words[: at + 1], *words[at + 2 :]], words[at + 1]
    at = len(words) - 1
    while at > 0 and _UNIT_OF.get(words[at], "s") not in _OF_TIME:  # mem0_mb; util_60s is of a minute
        at -= 1
    return ([*words[:at], *words[at + 1 :]], words[at]) if at > 0 and words[at].isdecimal() else (words, "")


def _target(core: frozenset[str], unit: str, gpu: bool, several: bool) -> str:
    if several and core <= {"index"} and not unit:  # so many there are
        return "known"
    if not core and (gpu or unit == "w") and unit:
        return {"%": "util_pct", "w": "power_w", "mw": "power_w", "mib": "mem_used_mib", "c": "temp_c"}.get(unit, "")
    if core == {"mem"} | (core & {"used"}) and unit == "%":
        return "mem_pct"
    if not gpu and " ".join(core) in _NEEDS_GPU:
        return ""
    if core in ({"system"}, {"machine"}) and unit:
        return "host.ram_used_mib"
    if core in ({"total"}, {"free"}) and unit not in ("mib", "gib", "bytes"):
        return ""
    if core in ({"sm"}, {"graphics"}) and unit in ("mhz", "ghz", ""):
        return "sm_clock_mhz" if unit else ""
    return _TARGET_OF.get(core, "")


def scale_in(target: str, unit: str) -> float | None:
    """What a number with this unit behind it is worth in the target's unit; None for a unit that is not known."""
    if target.endswith("_mib") and unit.strip() in ("K", "M", "G"):
        unit = f"{unit.strip()}iB"
    known = [_UNIT_OF[word] for word in words_of(unit) if word in _UNIT_OF]
    return _scale(target, known[0]) if known else None


def _scale(target: str, unit: str) -> float | None:
    """What a number in that unit is worth in the target's unit; None if the unit cannot be the target's."""
    if "_" not in target or target in ("bus_id",):
        return 1.0
    ending = target.rsplit("_", 1)[1]
    return _SCALES[ending].get(unit)
