"""The columns of a home-made table: where its header is, what each column holds, how timestamps are written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import gt, lt

from gpudiag.patterns import late
from gpudiag.readers._delimited.gpu_columns import NUMBER, differ_at_once, field_of_gpu, with_boards, without_processes
from gpudiag.readers._delimited.grid import Field, Layout, is_missing
from gpudiag.readers._delimited.unnamed_cells import MOST_GPUS, aligned
from gpudiag.readers._fields.aliases import SERIES, Meaning, meaning_of, scale_in
from gpudiag.readers._shape.exported import exported_table
from gpudiag.readers._shape.gpu_text import is_identity
from gpudiag.readers._shape.moments import read_moment
from gpudiag.readers._shape.timestamp_forms import TimestampForm, tell_form

BLANKS = " "
"""Separator of aligned columns, after they have been squeezed."""

_SEPARATORS = (",", ";", "\t", BLANKS)
OF_OTHERS = late(r"(?i)gfx|TimeStampUs|^\s*#\s*(?:gpu|date|time)\b(?!\w*,)")
"""In headers of amd-smi, dcgmi and nvidia-smi dmon, which have readers of their own."""
_MEASURED = late(r"(-?\d+(?:[.,]\d+)?)( ?[A-Za-z%°].*)")
_NO_NAME = late(r": \S|\d\d:\d\d|[|+={}]|.{60}")
_LIMITS = {"power_limit_w", "power_max_w", "mem_total_mib", "mem_max_mib"}
_MOST_COLUMNS = 24
UNNAMED = late(r"Unnamed: \d+|__index_level_\d+__")
"""What pandas calls a column without a name, and an index without one in Parquet."""
_SINCE_1970 = late(rf"(?i)|index|t|epoch|unix|utc|{UNNAMED.pattern}")
_SECONDS = late(r"(?i)s|secs?|seconds?|minutes|mins|hours|hrs")
"""Names of times only where the numbers below are such: since 1970, or rising."""
_STATISTICS = frozenset(["min", "max", "mean", "avg", "average", "median", "std", "count", "sum"])
_NO_WORD = late(rf"|index|{UNNAMED.pattern}")
_OF_RUNS = late(r"(?i)(?<![a-z])(?:trial|run|job|task|experiment|study|number|status|state|loss)(?![a-z])")
_OF_A_SPAN = late(
    r"(?i)(?<![a-z])(?:start|begin|began|end|finish|stop|deadline|due|create|update|modifie|last|first|expire|release)"
    r"(?:e?d|s)?(?![a-z])"
)
_RANK = {"text": 0, "epoch": 0, "clock": 1, "relative": 2}


@dataclass(frozen=True)
class TableHeader:
    """The header line of a table: its 1-based number, the separator, and the names. ``levels``: so many lines name
    columns together, as pandas saves columns of several levels.
    """

    line: int
    separator: str
    names: tuple[str, ...]
    levels: int = 1


def split(line: str, separator: str) -> list[str]:
    """The cells of a line, stripped; aligned columns of a header are two blanks apart or more."""
    cells = line.split() if separator == BLANKS else line.split(separator)
    return [cell.strip() for cell in cells]


def find_header(lines: Sequence[str]) -> TableHeader | None:
    """The first line that names columns of ours."""
    for number, line in enumerate(lines, 1):
        for separator in _SEPARATORS if not OF_OTHERS.search(line) else ():
            names = split(line.lstrip("#"), separator) if separator != BLANKS else _aligned_names(line, lines[number:])
            lower = _level_below(names, lines[number : number + 1], separator)
            if both := _of_two_levels(names, lower):
                return TableHeader(number + 1, separator, both, levels=2)
            if lower and any(meaning_of(name).metric for name in (*names, *lower)):
                return None  # names above names: what they mean together is not known
            if len(names) >= 2 and (names_columns(names) or _named_but_for_times(names, lines[number:], separator)):
                return TableHeader(number, separator, tuple(name.strip() for name in names))
    return None


def _aligned_names(line: str, below: Sequence[str]) -> list[str]:
    """The names that two blanks or more set apart; or one, where all are understood and a row below has as many cells,
    or one more: a date.
    """
    words = line.split()
    if len(words) < 2 or "  " in line.strip() or not all(meaning_of(word).target for word in words):
        return re.split(r"\s{2,}", line.strip())
    rows = (row.split() for row in below)
    return words if any(len(row) - len(words) in (0, 1) and row[-1][:1].isdigit() for row in rows) else [line.strip()]


def _named_but_for_times(names: Sequence[str], lines: Sequence[str], separator: str) -> bool:
    """Whether these name columns where rows below have times under a name that does not say so."""
    if not any(meaning_of(name).metric for name in names):
        return False
    columns = list(zip(*rows_under(lines, separator, len(names)), strict=True))
    timed = times_unnamed(names, columns) if len(columns) == len(names) else None
    return timed is not None and names_columns(names, timed=timed)


def _level_below(names: Sequence[str], below: Sequence[str], separator: str) -> list[str]:
    """The cells of the line below, where several names are alike and these are names too, or numbers of GPUs."""
    told = [*filter(None, names)]
    lower = split(below[0], separator) if below and len({*told}) < len(told) else []
    if len(lower) != len(names) or (lower[0] and not re.match(r"[A-Za-z]", lower[0])):
        return []
    filled = [*filter(None, lower)]
    numbers = [cell for cell in filled if re.fullmatch(r"\d{1,2}", cell)]
    words = [cell for cell in filled if re.match(r"[A-Za-z]", cell) and not _is_no_name(cell)]
    return lower if filled and len(filled) in (len(words), len(numbers) + (lower[0] != "")) else []


def _of_two_levels(names: Sequence[str], lower: Sequence[str]) -> tuple[str, ...]:
    """The names together with those below them, where no pair of both is alike; none where those are statistics."""
    if not lower or {cell.lower() for cell in lower} & _STATISTICS:
        return ()
    both = tuple("_".join(filter(None, pair)) for pair in zip(names, lower, strict=True))
    return both if len({*both}) == len(both) and names_columns(both, timed=0) else ()


def names_columns(names: Sequence[str], *, timed: int | None = None) -> bool:
    """True if these are names of a GPU log: mostly known, with a time, and with evidence that it is of GPUs.

    ``timed``: the place of one that says nothing and has times below it.
    """
    names = ["" if UNNAMED.fullmatch(name) else name for name in names]
    if any(_is_no_name(name) for name in names) or exported_table(names):
        return False
    meanings = [meaning_of(name) for name in names]
    series = [(m.target, m.device) for name, m in zip(names, meanings, strict=True) if SERIES.fullmatch(name)]
    if len(set(series)) < len(series):  # of several hosts or instances, which one column per GPU cannot hold
        return False
    metrics = {m.target for m in meanings if m.metric} | {"wide" for m in meanings if _bare_device(m)}
    gpu = any(m.gpu for m in meanings)
    known = sum(bool(m.target) or place == timed for place, m in enumerate(meanings))
    named = sum(bool(name) for name in names)
    sure = gpu or metrics & {"util_pct", "power_w"} or len(metrics) > 2
    has_times = timed is not None or any(m.target in ("time", "elapsed", "date") for m in meanings)
    untimed = gpu and len(metrics - _LIMITS) > 1  # power and its maximum alone may be of whole runs
    return bool(metrics and sure and 2 * known >= named and (has_times or untimed))


def _is_no_name(name: str) -> bool:
    return bool(NUMBER.fullmatch(name) or (_NO_NAME.search(name) and not SERIES.fullmatch(name)))


def _bare_device(meaning: Meaning) -> bool:
    return meaning.target == "index" and bool(meaning.device)


def headless(lines: Sequence[str]) -> str | None:
    """The separator of a table of numbers that begins without a header; None if these lines are none."""
    filled = [line for line in lines if line.strip() and not read_moment(line)]
    for separator in _SEPARATORS if filled else ():
        rows = [split(line, separator) for line in filled]
        width = len(rows[0])
        good = [row for row in rows if len(row) == width and _numeric(row)]
        if 2 <= width <= _MOST_COLUMNS and rows[0] in good and 5 * len(good) >= 4 * len(rows):
            return separator
    return None


def _numeric(row: Sequence[str]) -> bool:
    """True for a row of numbers, of which the first may be a timestamp, or the first two a date and a time of day."""
    if len(row) > 2 and ":" in row[1]:
        first, rest = tell_form([f"{row[0]} {row[1]}"]) is not None, row[2:]
    else:
        first, rest = NUMBER.fullmatch(row[0]) is not None or tell_form([row[0]]) is not None, row[1:]
    return first and all(NUMBER.fullmatch(cell) or is_missing(cell) for cell in rest)


def rows_under(lines: Sequence[str], separator: str, width: int) -> list[list[str]]:
    """The cells of the rows below a header: those with the commonest number of cells not below its own."""
    rows = [split(line, separator) for line in lines]
    rows = [row for row in rows if len(row) >= width and any(cell[:1].isdigit() for cell in row)]
    common = Counter(map(len, rows)).most_common(1)
    return [row for row in rows if len(row) == common[0][0]]


def layout_of(names: Sequence[str], rows: Sequence[Sequence[str]], separator: str) -> Layout:
    """The layout of columns with these names; some rows tell units, timestamps and which column names the GPU."""
    names = aligned(names, [_meaning(name) for name in names], rows)
    columns = [[row[place] for row in rows] for place in range(len(names))]
    known = [[cell for cell in column if not is_missing(cell)] for column in columns]
    meanings = _hosts_apart([meaning_of(name) for name in names])
    unnamed = times_unnamed(names, known)
    if unnamed is None:
        timestamp, places = _timestamp(meanings, known)
    else:
        timestamp, places = tell_form(known[unnamed], _unit_of(meanings[unnamed])), [unnamed]
    timestamps = columns[places[0]] if places else [""] * len(rows)
    fields = [
        _field(name, m, cells, shared=m.gpu and differ_at_once(timestamps, column))
        for name, m, cells, column in zip(names, meanings, known, columns, strict=True)
    ]
    if places:
        fields[places[0]] = Field(names[places[0]], "time", "time")
    fields = without_processes(_once(fields, meanings, places), rows, places)
    comma = separator != "," and any(re.fullmatch(r"-?\d+,\d+", cell) for cells in known for cell in cells)
    loose = separator in (";", "\t") or any(cell != cell.strip() for row in rows for cell in row)
    return Layout(
        tuple(with_boards(fields, meanings, known)),
        separator,
        timestamp or TimestampForm("relative"),
        tolerant=loose or separator == ",",
        decimal_comma=comma,
        clock_place=places[1] if len(places) > 1 else None,
    )


def _meaning(name: str) -> str:
    """What the cells below a name must be like: those of one column per GPU hold whatever they measure."""
    meaning = meaning_of(name)
    return "" if meaning.target == "index" and meaning.device else meaning.target


def _hosts_apart(meanings: Sequence[Meaning]) -> list[Meaning]:
    """Where some columns say that memory is the GPU's, memory that does not is the host's (in a log that has one)."""
    sizes = ("mem_used_mib", "mem_total_mib", "mem_free_mib")
    own = {m.target for m in meanings if m.gpu and m.target in sizes}
    others = [m for m in meanings if not m.gpu and m.target in sizes]
    doubled = any(m.target in own for m in others) or any(m.target.startswith("host.") for m in meanings)
    if not own or not doubled:
        return list(meanings)
    names = dict(zip(sizes, ("host.ram_used_mib", "host.ram_total_mib", "host.ram_free_mib"), strict=True))
    return [replace(m, target=names[m.target]) if m in others else m for m in meanings]


def _timestamp(meanings: Sequence[Meaning], known: Sequence[Sequence[str]]) -> tuple[TimestampForm | None, list[int]]:
    """How timestamps are written, and the column that holds them (two: a date and a time of day)."""
    timed = [(place, m) for place, m in enumerate(meanings) if m.target in ("time", "elapsed", "date")]
    dates = [place for place, m in timed if m.target == "date"]
    clocks = [place for place, m in timed if m.target == "time" and all(":" in cell for cell in known[place])]
    if dates and clocks and len(known[dates[0]]) == len(known[clocks[0]]):
        pairs = [f"{day} {clock}" for day, clock in zip(known[dates[0]], known[clocks[0]], strict=True)]
        if form := tell_form(pairs):
            return form, [dates[0], clocks[0]]
    forms = [(tell_form(known[p], _unit_of(m), elapsed=m.target == "elapsed"), p) for p, m in timed]
    found = sorted(((form, p) for form, p in forms if form), key=lambda pair: _RANK[pair[0].kind])
    return (found[0][0], [found[0][1]]) if found else (None, [])


def _unit_of(time: Meaning) -> str:
    return time.unit if time.unit in ("s", "ms", "us", "ns", "minute", "hour") else ""


def times_unnamed(names: Sequence[str], known: Sequence[Sequence[str]]) -> int | None:
    """The column of times where none is called so, as the index of a frame that pandas saved: dates or numbers (seconds
    or since 1970) that rise, without a name or under one that may mean them. None where several may be it.

    When something began, ended or was changed is no time of a sample, and a table of runs or trials has none.

    ``known``: the cells of each column that hold something.
    """
    meanings = [meaning_of(name) for name in names]
    elapsed = any(m.target == "elapsed" for m in meanings)
    if any(m.target in ("time", "date") for m in meanings):
        return None
    unnamed_only = elapsed or any(map(_OF_RUNS.search, names))
    found = [
        place
        for place, (name, m, cells) in enumerate(zip(names, meanings, known, strict=True))
        if not m.metric and not (unnamed_only and not _NO_WORD.fullmatch(name.strip())) and _are_times(name, cells)
    ]
    first = [place for place in found if _NO_WORD.fullmatch(names[place].strip())]
    return first[0] if len(first) == 1 else found[0] if len(found) == 1 else None


def _are_times(name: str, cells: Sequence[str]) -> bool:
    form = tell_form(cells)
    if form is None or _OF_A_SPAN.search(name):
        return False
    if form.kind == "text":
        return len(set(cells)) > max(1, len(cells) // MOST_GPUS)
    fits = _SINCE_1970 if form.kind == "epoch" else _SECONDS if form.kind == "relative" else None
    if fits is None or not fits.fullmatch(name.strip()) or not all(map(NUMBER.fullmatch, cells)):
        return False
    numbers = [float(cell.replace(",", ".")) for cell in cells]
    rises, falls = (sum(step(before, after) for before, after in pairwise(numbers)) for step in (lt, gt))
    return rises > 10 * falls


def _field(name: str, meaning: Meaning, cells: Sequence[str], *, shared: bool) -> Field:
    """The field of one column; time and choices between columns come later."""
    if meaning.target == "name" and cells and all(map(is_identity, cells)):
        return Field(name, "index", "text")
    if meaning.target in ("uuid", "bus_id", "name", "driver", "event"):
        return Field(name, meaning.target, "text")
    if meaning.target == "index" and not meaning.device:
        return field_of_gpu(name, cells, of_gpu=meaning.gpu, shared=shared)
    if meaning.target == "host" and not any("." in cell and NUMBER.fullmatch(cell) for cell in cells):
        return Field(name, "host", "text")
    if meaning.target in ("", "known", "time", "elapsed", "date", "index", "host"):
        return Field(name)
    target = f"{meaning.target}@{meaning.device}" if meaning.device else meaning.target
    shown = [match for cell in cells if not NUMBER.fullmatch(cell) and (match := _MEASURED.fullmatch(cell))]
    if shown and len(shown) == len(cells):  # cells carry their unit, which outweighs the name
        scale = scale_in(meaning.target, shown[0][2])
        return Field(name, target, "number", shown[0][2], scale=meaning.scale if scale is None else scale)
    whole = bool(cells) and all(cell.isdecimal() for cell in cells)
    return Field(name, target, "number", prefix=_common_prefix(meaning, cells), scale=meaning.scale, whole=whole)


def _common_prefix(meaning: Meaning, cells: Sequence[str]) -> str:
    return "P" if meaning.target == "pstate" and cells and cells[0].startswith("P") else ""


def _once(fields: Sequence[Field], meanings: Sequence[Meaning], times: Sequence[int]) -> list[Field]:
    """Each target once: the column whose name says GPU before one that does not, then the first that is no mean."""
    best: dict[str, int] = {}
    for place in sorted(range(len(fields)), key=lambda p: (p not in times, not meanings[p].gpu, meanings[p].mean, p)):
        if fields[place].target:
            best.setdefault(fields[place].target, place)
    return [f if best.get(f.target) == place else Field(f.name) for place, f in enumerate(fields)]


def unitless(layout: Layout) -> set[str]:
    """The measurements for which neither the name nor the cells tell a unit."""
    numbers = [field for _, field in layout.used if field.kind == "number" and not field.unit]
    return {field.target.split("@")[0] for field in numbers if not meaning_of(field.name).unit}
