"""``rocm-smi``: JSON, CSV, lines ``GPU[0] : name: value`` and the concise table. None of them has a time.

Names moved between releases: all spellings of 4.3 to 6.2 are known. ``GPU memory use (%)`` is how busy the memory
controller was; how full memory is stands in bytes. The odd die of an MI250 has no power of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from gpudiag.readers._io.csv_records import cells_of
from gpudiag.readers._io.json_documents import documents
from gpudiag.readers._io.lines import numbered_lines
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.moments import Moment, read_moment
from gpudiag.readers._shape.snapshots import Snapshots, quantity
from gpudiag.readers.base import Reader, ReadOptions, Telemetry
from gpudiag.units import MIB_PER_BYTE

NAME = "rocm-smi"

_COLUMNS: dict[str, tuple[tuple[str, float], ...]] = {
    "util_pct": (("GPU use (%)", 1), ("GPU%", 1)),
    "mem_util_pct": (("GPU Memory Read/Write Activity (%)", 1), ("GPU memory use (%)", 1)),
    "mem_used_mib": (("VRAM Total Used Memory (B)", MIB_PER_BYTE),),
    "mem_total_mib": (("VRAM Total Memory (B)", MIB_PER_BYTE),),
    "power_w": (
        ("Average Graphics Package Power (W)", 1),
        ("Current Socket Graphics Package Power (W)", 1),
        ("AvgPwr", 1),
        ("Power", 1),
    ),
    "power_limit_w": (("Max Graphics Package Power (W)", 1), ("PwrCap", 1)),
    "energy_j": (("Accumulated Energy (uJ)", 1e-6),),
    "temp_c": (("Temperature (Sensor edge) (C)", 1), ("Temperature (Sensor junction) (C)", 1), ("Temp", 1)),
    "mem_temp_c": (("Temperature (Sensor memory) (C)", 1),),
    "sm_clock_mhz": (("sclk clock speed:", 1), ("SCLK", 1)),
    "mem_clock_mhz": (("mclk clock speed:", 1), ("MCLK", 1)),
    "fan_pct": (("Fan speed (%)", 1), ("Fan", 1)),
}
"""Column: names in the order of preference, and the factor to its unit."""
_KNOWN = {name for names in _COLUMNS.values() for name, _ in names}

_CARD = re.compile(r"(?:card|gpu)?(\d+)", re.IGNORECASE)
_LINE = re.compile(r"GPU\[(\d+)\]\s*:\s*(.+?):\s+(\S.*?)\s*")
_CELL = re.compile(r"\(?(-?\d+(?:\.\d+)?)\s*(?:%|W|Mhz|°?[cC])?\)?")
_RULE = re.compile(r"={8,}[^=]*={8,}|={16,}|-{16,}")
_PREFIX = re.compile(r"^\S{1,40}?(?: out| err)?: (?=GPU|\d|=|Device|\s)")


def recognises(source: Source) -> bool:
    return _is_json(source) or any(_kind(_bare(line)) for line in source.lines)


def _is_json(source: Source) -> bool:
    text = source.text
    first = next((line for line in source.lines if line.strip()), "").lstrip("\ufeff ")
    begins = first[:1] in ("{", "[") or read_moment(first) is not None
    return begins and '"card' in text and any(f'"{name}":' in text for name in _KNOWN)


def _kind(line: str) -> str:
    """``csv`` or ``table`` for their headers, ``line`` for a line of one value, else empty."""
    if not line.startswith(("GPU", "device,", "Device")):
        return ""
    if line.startswith("device,") and not _KNOWN.isdisjoint(name.strip() for name in line.split(",")):
        return "csv"
    words = line.split()
    if words[:1] in (["GPU"], ["Device"]) and {"SCLK", "MCLK", "GPU%"} <= set(words):
        return "table"
    match = _LINE.fullmatch(line)
    return "line" if match and match[2] in _KNOWN else ""


def _bare(line: str) -> str:
    """The line without the task that ``srun -l`` writes before it."""
    return _PREFIX.sub("", line).strip() if ": " in line[:46] and not line.startswith("GPU[") else line.strip()


def read(source: Source, options: ReadOptions) -> Telemetry:
    log = ProblemLog()
    snapshots = Snapshots()
    if _is_json(source):
        _documents(source, snapshots, log)
    else:
        _Lines(snapshots, log).read(numbered_lines(source, log))
    return snapshots.finish(source, NAME, options, log, _notes(snapshots))


def _documents(source: Source, snapshots: Snapshots, log: ProblemLog) -> None:
    """JSON: one document is one snapshot; a date line before it is its time."""
    moment: Moment | None = None
    for line, item in documents(source.read_text(), log):
        if isinstance(item, Moment):
            moment = item
            continue
        cards = {name: card for name, card in item.items() if _CARD.fullmatch(name) and isinstance(card, dict)}
        system = item.get("system")
        if cards:
            snapshots.begin(moment)
            moment = None
        for name, card in cards.items():
            driver = system.get("Driver version") if isinstance(system, dict) else None
            _card(name, {str(key): str(value) for key, value in card.items()}, line, snapshots, driver)


def _notes(snapshots: Snapshots) -> list[str]:
    if any(row["mem_used_mib"] is not None for row in snapshots.gpu):
        return []
    return ["It states no memory in bytes; rocm-smi --showmeminfo vram would."]


def _card(name: str, values: Mapping[str, str], line: int, snapshots: Snapshots, driver: str | None = None) -> None:
    """One GPU of a snapshot."""
    match = _CARD.fullmatch(name)
    if match is None:
        return
    snapshots.sample(match[1], line, **{column: _value(values, names) for column, names in _COLUMNS.items()})
    model = next((values[key] for key in ("Device Name", "Card Series", "Card series") if key in values), None)
    known = model if model and not model.startswith("0x") else None
    bus_id, uuid = values.get("PCI Bus"), values.get("Unique ID")
    snapshots.describe(match[1], name=known, bus_id=bus_id, uuid=uuid if uuid != "N/A" else None, driver=driver)


def _value(values: Mapping[str, str], names: Sequence[tuple[str, float]]) -> float | None:
    """The first known number under these names; ``N/A (Secondary die)`` and the like are unknown."""
    for name, factor in names:
        match = _CELL.fullmatch(values.get(name, "").strip())
        number = quantity(match[1]) if match else None
        if number is not None:
            return number * factor
    return None


class _Lines:
    """Reads the text forms line by line; a GPU that comes again begins a snapshot."""

    def __init__(self, snapshots: Snapshots, log: ProblemLog) -> None:
        self._snapshots, self._log = snapshots, log
        self._names: list[str] = []
        self._form = ""
        self._seen: set[tuple[str, str]] = set()
        self._moment: Moment | None = None
        self._pending: dict[str, tuple[int, dict[str, str]]] = {}

    def read(self, lines: Iterator[tuple[int, str]]) -> None:
        for number, raw in lines:
            line = _bare(raw)
            kind = _kind(line)
            if kind in ("csv", "table"):
                self._flush()
                self._form = kind
                self._names = [name.strip() for name in line.split(",")] if kind == "csv" else line.split()
            elif match := _LINE.fullmatch(line):
                self._one_value(number, match[1], match[2], match[3])
            elif (moment := read_moment(line)) and moment.day and moment.clock:
                self._flush()
                self._moment = moment
            elif (self._form and line[:1].isdigit()) or line.startswith("card"):
                self._row(number, line)
            elif line and not _RULE.fullmatch(line) and not line.startswith("(DID"):
                self._log.add("line that is no sample", line=number, example=raw)
        self._flush()

    def _one_value(self, number: int, gpu: str, name: str, value: str) -> None:
        if (gpu, name) in self._seen:
            self._flush()
        self._seen.add((gpu, name))
        self._pending.setdefault(gpu, (number, {}))[1][name] = value

    def _row(self, number: int, line: str) -> None:
        cells = cells_of(line) if self._form == "csv" else re.sub(r", +", ",", line).split()
        if len(cells) != len(self._names):
            self._log.add("torn row", line=number, example=line, lost=True)
            return
        if cells[0] in self._pending:
            self._flush()
        values = dict(zip(self._names, cells, strict=True))
        if self._form == "table" and values.get("PwrCap") == "0.0W":
            values["PwrCap"] = "N/A"  # the odd die shares its even die's cap
        self._pending[cells[0]] = (number, values)

    def _flush(self) -> None:
        if self._pending:
            self._snapshots.begin(self._moment)
            for name, (number, values) in self._pending.items():
                _card(name, values, number, self._snapshots)
            self._moment = None
        self._pending, self._seen = {}, set()


READER = Reader(NAME, recognises, read)
