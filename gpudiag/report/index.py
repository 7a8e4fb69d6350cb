"""Many reports on one page: a row a run, the worst first."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from gpudiag import __version__
from gpudiag.errors import InputError
from gpudiag.files import write_all
from gpudiag.measures.ledger import LedgerProfile
from gpudiag.measures.utilization import UtilizationProfile
from gpudiag.plots._draw.palette import CELL_COLORS
from gpudiag.report._notebook.html import TEMPLATES, page_style
from gpudiag.report._notebook.runner import COMPARISON, DOCUMENT
from gpudiag.report._render import fragments
from gpudiag.report._render.blocks import Block, Chip, Number, TableBlock, TableCell
from gpudiag.report._render.markdown import inline
from gpudiag.report._render.shown import shown_as
from gpudiag.report._sections.key_numbers import idle_s
from gpudiag.report._sections.ledger import ALONE, CELLS
from gpudiag.report.document import Document, LedgerEntry, Measured
from gpudiag.report.format import alike, listed, plural, safe, share
from gpudiag.rules._engine.verdict import Status
from gpudiag.shown import Shown

if TYPE_CHECKING:
    from pydantic import TypeAdapter

ORDER = ("failed", "critical", "warning", "unknown", "note", "ok")
ORDERED = (
    "Worst first: without a report, critical, warning, not assessed, note, ok; of equals the most idle GPU time first, "
    "unknown last."
)
FORMER = {"clear": "ok", "info": "note"}
"""Levels of older documents, and their names today."""
WORDS = {**CELLS, **ALONE}
"""Names of categories where runs without trials may be among them."""
COLUMNS = ("Run", "Worst", "GPU use", "GPU time", "Idle (below 10 %)", "Top finding")


@dataclass(frozen=True)
class IndexEntry:
    """One run. ``folder`` holds its report, relative to the index; ``error`` says why there is none.

    ``util_pct`` is the mean utilization, ``gpu_h`` all GPU time, ``lost_gpu_h`` the part of it in which a GPU had no
    work; None where it is unknown. ``cells``: percent of it in each category of the ledger that holds time, and
    ``went`` the same in words.
    """

    name: str
    folder: str
    level: str
    verdict: str = ""
    util_pct: float | None = None
    gpu_h: float | None = None
    lost_gpu_h: float | None = None
    finding: str = ""
    error: str = ""
    cells: Mapping[str, float] = field(default_factory=dict)
    went: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Index(Shown):
    """Reports side by side; rows are in the order that :data:`ORDERED` says."""

    rows: tuple[IndexEntry, ...]

    @classmethod
    def of(cls, rows: Iterable[IndexEntry]) -> Index:
        """An index in its order."""
        return cls(tuple(sorted(rows, key=_place)))

    @classmethod
    def read(cls, folder: str | Path) -> Index:
        """The reports found below a folder, by their diagnosis.json. Raises InputError where there is none."""
        folder = Path(folder)
        found = sorted(path.parent for path in folder.rglob(DOCUMENT) if _is_diagnosis(path))
        if not found:
            raise InputError(f"{folder}: holds no {DOCUMENT}; make the reports with: gpudiag report RUN... -o {folder}")
        return cls.of(read_row(path, path.relative_to(folder).as_posix()) for path in found)

    @property
    def level(self) -> str:
        """The worst level of all."""
        return self.rows[0].level if self.rows else "unknown"

    def markdown(self, comparisons: Iterable[ComparisonLink] = ()) -> str:
        """The table with links to the reports, and to comparisons."""
        lines = [f"# {plural(len(self.rows), 'run')}", "", ORDERED, ""]
        lines += [f"| {' | '.join(COLUMNS)} |", "|---|---|--:|--:|--:|---|"]
        hours = _hours(self.rows)
        for row in self.rows:
            where = quote(row.folder)
            name = inline(row.name) if row.error else f"[{inline(row.name)}]({where}/report.md)"
            cells = (
                name,
                _chip(row).words,
                share(row.util_pct),
                hours[row.gpu_h],
                hours[row.lost_gpu_h],
                inline(row.error or row.finding),
            )
            lines.append(f"| {' | '.join(cells)} |")
        links = [f"- [{inline(one.name)}]({quote(one.folder)}/report.md)" for one in comparisons]
        return "\n".join([*lines, *(["", "Comparisons:", "", *links] if links else [])]) + "\n"

    def html(self, comparisons: Iterable[ComparisonLink] = ()) -> str:
        """One page that loads nothing; its columns can be sorted."""
        import jinja2

        script = (TEMPLATES / "batch" / "sort.js").read_text(encoding="utf-8")
        held = {cell for row in self.rows for cell in row.cells}
        environment = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES / "batch"), autoescape=True)
        return environment.get_template("index.html.j2").render(
            rows=[(row, _chip(row), quote(row.folder)) for row in self.rows],
            comparisons=[(one.name, quote(one.folder)) for one in comparisons],
            columns=COLUMNS,
            order=ORDER,
            ordered=ORDERED,
            title=plural(len(self.rows), "run"),
            version=__version__,
            style=page_style(),
            script=script,
            script_hash=b64encode(sha256(script.encode()).digest()).decode(),
            hours=_hours(self.rows).__getitem__,
            colors=CELL_COLORS,
            legend=[(CELL_COLORS[cell], words[0]) for cell, words in WORDS.items() if cell in held],
            share=share,
            chip=fragments.chip,
            inline=fragments.inline,
        )

    def write(self, folder: Path) -> list[Path]:
        """Write index.html and index.md into ``folder``."""
        compared = comparisons_below(folder)
        pages = {"index.md": self.markdown(compared), "index.html": self.html(compared)}
        write_all(folder, [(folder / name, text) for name, text in pages.items()])
        return [folder / "index.html", folder / "index.md"]


@dataclass(frozen=True)
class ComparisonLink:
    """A comparison in the batch: its runs, and the folder of its report relative to the index."""

    name: str
    folder: str


def comparisons_below(folder: Path) -> list[ComparisonLink]:
    """Comparisons whose reports lie below the folder; another tool's file of that name is none."""
    found = []
    for path in sorted(folder.rglob(COMPARISON)):
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            sides = [str(document[side]["name"]) for side in ("baseline", "experiment")]
            ours = str(document["schema"]).startswith("gpudiag.comparison/")
        except (OSError, ValueError, TypeError, KeyError):
            continue
        if ours and (path.parent / "report.html").is_file():
            named = " → ".join(map(safe, sides))
            found.append(ComparisonLink(named, path.parent.relative_to(folder).as_posix()))
    return found


@dataclass(frozen=True)
class KeptRun:
    """What a run is called in its diagnosis.json."""

    name: str


@dataclass(frozen=True)
class KeptHeadline:
    """Level and line of a diagnosis."""

    level: str
    verdict: str


@dataclass(frozen=True)
class KeptVerdict:
    """What became of one check."""

    status: Status
    title: str


@dataclass(frozen=True)
class KeptDiagnosis:
    """As much of a diagnosis.json as the index shows: it may be of an older gpudiag."""

    schema: str
    run: KeptRun
    headline: KeptHeadline
    measures: Mapping[str, Mapping[str, Measured]]
    ledger: LedgerEntry | None
    verdicts: tuple[KeptVerdict, ...]


@cache
def _adapter() -> TypeAdapter[KeptDiagnosis]:
    from pydantic import TypeAdapter

    return TypeAdapter(KeptDiagnosis)


def _is_diagnosis(path: Path) -> bool:
    """Ours, and not another tool's file of that name."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(document, dict) and str(document.get("schema", "")).startswith("gpudiag.diagnosis/")


def read_row(folder: Path, link: str) -> IndexEntry:
    """The row of one report from its diagnosis.json. Raises InputError where that is damaged."""
    path = folder / DOCUMENT
    try:
        document = _adapter().validate_json(path.read_bytes())
    except ValueError as error:
        raise InputError(f"{path}: is no diagnosis as gpudiag writes it; make the report again.") from error
    return row_of(document, link)


def row_of(document: Document | KeptDiagnosis, folder: str) -> IndexEntry:
    """The row of one diagnosis."""
    head, ledger = document.headline, document.ledger
    seconds = ledger.seconds() if ledger else {}
    cells = {cell: 100 * seconds[cell] / ledger.total_gpu_s for cell in CELLS if seconds.get(cell)} if ledger else {}
    has_trials = document.measures.get(LedgerProfile.topic, {}).get(LedgerProfile.has_trials.name)
    words = CELLS if has_trials is None or has_trials.value else WORDS
    return IndexEntry(
        name=safe(document.run.name),
        folder=folder,
        level=FORMER.get(head.level, head.level),
        verdict=safe(head.verdict),
        util_pct=_util_pct(document.measures),
        gpu_h=ledger.total_gpu_s / 3600 if ledger else None,
        lost_gpu_h=idle_s(ledger) / 3600 if ledger else None,
        finding=safe(next((v.title for v in document.verdicts if v.status is Status.FOUND), "")),
        cells=cells,
        went=listed(f"{words[cell][0]} {share(pct)}" for cell, pct in cells.items()),
    )


def _util_pct(measures: Mapping[str, Mapping[str, Measured]]) -> float | None:
    """The mean utilization that the report speaks of: that of the ledger, else that of the whole record."""
    for profile, fact in (
        (LedgerProfile, LedgerProfile.mean_util_pct),
        (UtilizationProfile, UtilizationProfile.mean_pct),
    ):
        value = measures.get(profile.topic, {}).get(fact.name)
        if value is not None and isinstance(value.value, int | float):
            return float(value.value)
    return None


@shown_as.register
def index(shown: Index) -> list[Block]:
    """A table, a row a run."""
    hours = _hours(shown.rows)
    rows: list[tuple[TableCell, ...]] = [
        (
            row.name,
            _chip(row),
            Number(share(row.util_pct)),
            Number(hours[row.gpu_h]),
            Number(hours[row.lost_gpu_h]),
            row.error or row.finding,
        )
        for row in shown.rows
    ]
    return [TableBlock(COLUMNS, tuple(rows), f"{plural(len(rows), 'run')}. {ORDERED}")]


def failed(name: str, folder: str, error: str) -> IndexEntry:
    """The row of a run of which there is no report, and why."""
    return IndexEntry(name=safe(name), folder=folder, level="failed", error=safe(error))


def _place(row: IndexEntry) -> tuple[int, bool, float, str]:
    return ORDER.index(row.level), row.lost_gpu_h is None, -(row.lost_gpu_h or 0.0), row.name


def _chip(row: IndexEntry) -> Chip:
    return Chip("critical", "no report") if row.level == "failed" else Chip(row.level)


def _hours(rows: Iterable[IndexEntry]) -> dict[float | None, str]:
    """GPU time of all rows in one unit."""
    values = list(dict.fromkeys(value for row in rows for value in (row.gpu_h, row.lost_gpu_h)))
    return dict(zip(values, alike("GPU-h", *values), strict=True))
