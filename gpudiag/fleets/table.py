"""All rows of a fleet: what they add up to, by whom, and for which reasons."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpudiag import __version__
from gpudiag.errors import ConfigError, NotMeasurable, nearest
from gpudiag.fleets.row import counted_already, to_plain, without_gpu_time
from gpudiag.plain_data import JsonObject, json_text, plain_object
from gpudiag.plots import WIDTH_IN, Picture
from gpudiag.plots.fleet import FLEET_PLOTS
from gpudiag.report._notebook import pages
from gpudiag.report._render.show import Show
from gpudiag.report.fleet.document import CELLS, CauseTotal, FleetDocument, RunRow, Total
from gpudiag.report.fleet.headline import headline
from gpudiag.report.fleet.sections import SECTIONS

if TYPE_CHECKING:
    import pandas as pd
    from nbformat import NotebookNode

UNKNOWN = "unknown"
MOST_DAYS = 800
"""A fleet over a longer time has no figure by day: one wrong clock would make it a wall of nothing."""
GROUPS: dict[str, Callable[[RunRow], str]] = {
    "user": lambda row: row.user,
    "project": lambda row: row.project,
    "host": lambda row: row.host,
    "gpu-model": lambda row: row.gpu_model,
    "week": lambda row: week_of(row.start),
    "month": lambda row: (row.start or "")[:7],
}
"""What a fleet can be divided by."""


@dataclass(frozen=True, eq=False, repr=False)
class FleetTable:
    """Rows, each run once: one whose inputs are another's is marked and not counted. ``group``: what the report divides
    the fleet by.
    """

    rows: tuple[RunRow, ...]
    name: str = "Fleet"
    group: str = "project"

    @classmethod
    def of(cls, rows: Iterable[RunRow], name: str = "Fleet") -> FleetTable:
        """The rows, with those marked that were counted already."""
        first: dict[str, RunRow] = {}
        seen: dict[tuple[str, ...], list[RunRow]] = {}
        out = []
        for row in rows:
            if row.status == "diagnosed" and row.inputs:
                other = first.setdefault(row.inputs, row)
                row = row if other is row else counted_already(row, other)
            if row.status == "diagnosed" and row.telemetry and row.gpu_s:
                beside = seen.setdefault(row.telemetry, [])
                twice = next((one for one in beside if _overlap(one, row)), None)
                if twice is None:
                    beside.append(row)
                else:
                    row = without_gpu_time(row, twice)
            out.append(row)
        return cls(tuple(out), name)

    @property
    def counted(self) -> tuple[RunRow, ...]:
        """The rows that count."""
        return tuple(row for row in self.rows if row.status == "diagnosed")

    @cached_property
    def total(self) -> Total:
        """Everything."""
        return total_of("", self.counted)

    def by(self, group: str) -> list[Total]:
        """Totals by user, project, host, gpu-model, week or month, the most GPU time first (times in their order).

        Raises ConfigError for anything else.
        """
        if group not in GROUPS:
            raise ConfigError(f"a fleet cannot be divided by {group!r}; {nearest(group, GROUPS)}")
        held: dict[str, list[RunRow]] = {}
        for row in self.counted:
            held.setdefault(GROUPS[group](row) or UNKNOWN, []).append(row)
        out = [total_of(name, rows) for name, rows in held.items()]
        timed = group in ("week", "month")
        return sorted(out, key=lambda one: one.name if timed else (-one.gpu_s, one.name))

    @cached_property
    def causes(self) -> list[CauseTotal]:
        """What was found, by the GPU-hours it lost in runs where it was the costliest, then by runs."""
        titles: dict[str, str] = {}
        runs: Counter[str] = Counter()
        unpriced: Counter[str] = Counter()
        top: dict[str, list[RunRow]] = {}
        users: dict[str, Counter[str]] = {}
        for row in self.counted:
            for cause in row.causes:
                titles[cause.rule] = cause.title
                runs[cause.rule] += 1
                unpriced[cause.rule] += cause.lost_gpu_h is None
                users.setdefault(cause.rule, Counter())[row.user or UNKNOWN] += 1
            if row.top_cause:
                top.setdefault(row.top_cause, []).append(row)
        out = []
        for rule, n in runs.items():
            mine = sorted(top.get(rule, []), key=lambda row: -(row.recoverable_gpu_h or 0.0))
            lost = math.fsum(row.recoverable_gpu_h or 0.0 for row in mine)
            worst = mine[0].run if mine else ""
            repeated = tuple((who, k) for who, k in users[rule].most_common(3) if k > 1)
            out.append(CauseTotal(rule, titles[rule], n, len(mine), lost, unpriced[rule], worst, repeated))
        return sorted(out, key=lambda one: (-one.lost_gpu_h, -one.n_runs, one.rule))

    def frame(self) -> pd.DataFrame:
        """A row a run, columns of :class:`RunRow` and ``month``; times are UTC."""
        import pandas as pd

        names = [one.name for one in fields(RunRow)]
        out = pd.DataFrame([to_plain(row) for row in self.rows], columns=names)
        for name in ("start", "end"):
            out[name] = pd.to_datetime(out[name], utc=True, format="ISO8601").astype("datetime64[us, UTC]")
        number = [one.name for one in fields(RunRow) if one.type == "float | None"]
        out[number] = out[number].astype(float)
        whole = [one.name for one in fields(RunRow) if one.type == "int | None"]
        out[whole] = out[whole].astype("Int64")
        out.insert(0, "month", [(row.start or "")[:7] or UNKNOWN for row in self.rows])
        return out

    @cached_property
    def document(self) -> FleetDocument:
        """All that is said of the fleet, typed."""
        return FleetDocument(
            schema="gpudiag.fleet/1",
            version=__version__,
            name=self.name,
            by=self.group,
            headline=headline(self.total, self.causes, self.rows),
            total=self.total,
            groups=tuple(self.by(self.group)),
            weeks=tuple(self.by("week")),
            causes=tuple(self.causes),
            runs=self.rows,
        )

    @property
    def show(self) -> Show[FleetDocument]:
        """Sections for a notebook: ``show.causes``, ``show.groups`` ..."""
        return Show(self.document, self._draw, SECTIONS)

    def divided_by(self, group: str) -> FleetTable:
        """The same, divided by user, project, host, gpu-model, week or month. Raises ConfigError."""
        self.by(group)
        return replace(self, group=group)

    def anonymous(self) -> FleetTable:
        """The table with users, hosts, projects and runs as numbers, and without paths and texts of the runs."""
        kinds = ("user", "project", "host", "run")
        held = {kind: sorted({getattr(row, kind) for row in self.rows} - {""}) for kind in kinds}
        number = {kind: {name: f"{kind} {at}" for at, name in enumerate(names, 1)} for kind, names in held.items()}
        out = []
        for row in self.rows:
            hidden: dict[str, Any] = {kind: number[kind].get(getattr(row, kind), "") for kind in kinds}
            out.append(replace(row, source="", reason="", headline="", inputs="", telemetry=(), **hidden))
        return replace(self, rows=tuple(out), name="Fleet")

    def to_dict(self) -> JsonObject:
        """The JSON document, schema ``gpudiag.fleet/1``."""
        return plain_object(self.document)

    def to_json(self) -> str:
        """The document as JSON text."""
        return json_text(self.document)

    def to_markdown(self) -> str:
        """The report as Markdown without its pictures."""
        return pages.markdown_page(self._notebook(pictures=False)).text

    def save(self, path: str | Path) -> Path:
        """Write the report where ``path`` says: .html (self-contained), .md (pictures beside it) or .json.

        Raises ConfigError for any other suffix.
        """
        return pages.save(Path(path), self._notebook, self.to_json)

    def _repr_html_(self) -> str:
        return "\n".join(getattr(self.show, name)._repr_html_() for name in ("masthead", "verdict", "causes"))

    def _repr_markdown_(self) -> str:
        return "\n\n".join(getattr(self.show, name)._repr_markdown_() for name in ("masthead", "verdict", "causes"))

    def __repr__(self) -> str:
        return f"<{' '.join(one for one in self.document.headline.sentences if one)}>"

    def _draw(self, name: str, width_in: float = WIDTH_IN) -> Picture | None:
        try:
            return FLEET_PLOTS[name].picture(name, {"weeks": self._weeks, "hosts": self._hosts}, width_in=width_in)
        except NotMeasurable:
            return None

    @cached_property
    def _weeks(self) -> pd.DataFrame:
        """GPU-hours by category, a row a week, and ``util_pct``."""
        import pandas as pd

        held = [one for one in self.by("week") if one.gpu_s and one.name != UNKNOWN]
        rows = [{cell: s / 3600 for cell, s in one.cells.items()} | {"util_pct": one.util_pct} for one in held]
        out = pd.DataFrame(rows, index=[one.name for one in held], columns=[*CELLS, "util_pct"])
        starts = sorted(row.start for row in self.counted if row.start and row.gpu_s)
        if (
            starts and (pd.Timestamp(starts[-1]) - pd.Timestamp(starts[0])).days <= MOST_DAYS
        ):  # a week without a run has its place as well
            every = pd.date_range(starts[0][:10], pd.Timestamp(starts[-1][:10]) + pd.Timedelta(days=6), freq="7D")
            weeks = [week_of(day.isoformat()) for day in every]
            out = out.reindex(sorted({*weeks[: weeks.index(out.index[-1]) + 1], *out.index}))
            out[list(CELLS)] = out[list(CELLS)].fillna(0.0)
        return out

    @cached_property
    def _hosts(self) -> pd.DataFrame:
        """Mean utilization, a row a host, a column a day; each run weighs by its time on that day."""
        import pandas as pd

        weight: dict[tuple[str, pd.Timestamp], float] = {}
        sums: dict[tuple[str, pd.Timestamp], float] = {}
        for row in self.counted:
            if row.util_pct is None or row.start is None or row.end is None:
                continue
            start, end = pd.Timestamp(row.start), pd.Timestamp(row.end)
            if (end - start).days > MOST_DAYS or end <= start:
                continue
            observed = ((row.gpu_s or 0.0) - (row.unobserved_gpu_s or 0.0)) / (end - start).total_seconds()
            for day in pd.date_range(start.normalize(), end, freq="D"):
                part = (min(end, day + pd.Timedelta(days=1)) - max(start, day)).total_seconds() * observed
                key = row.host or UNKNOWN, day
                weight[key] = weight.get(key, 0.0) + part
                sums[key] = sums.get(key, 0.0) + part * row.util_pct
        if not weight or (max(day for _, day in weight) - min(day for _, day in weight)).days > MOST_DAYS:
            return pd.DataFrame()
        days = pd.date_range(min(day for _, day in weight), max(day for _, day in weight), freq="D")
        hosts = sorted({host for host, _ in weight})
        mean = [
            [sums[at] / weight[at] if weight.get(at := (host, day)) else math.nan for day in days] for host in hosts
        ]
        return pd.DataFrame(mean, index=hosts, columns=[f"{day:%Y-%m-%d}" for day in days])

    def _notebook(self, *, pictures: bool = True) -> NotebookNode:
        """fleet_report as if executed, without a kernel."""
        show = self.show if pictures else Show(self.document, lambda name: None, SECTIONS)
        return pages.filled("fleet_report", show)


def _overlap(a: RunRow, b: RunRow) -> bool:
    """Whether two runs with the same telemetry account for some of the same time."""
    if not (a.start and a.end and b.start and b.end):
        return True
    return a.start < b.end and b.start < a.end


def total_of(name: str, rows: Iterable[RunRow]) -> Total:
    """These runs added up."""
    rows = list(rows)
    known = [row for row in rows if row.gpu_s is not None]
    cells = {cell: math.fsum(getattr(row, f"{cell}_gpu_s") or 0.0 for row in known) for cell in CELLS}
    seen = [((row.gpu_s or 0.0) - (row.unobserved_gpu_s or 0.0), row.util_pct) for row in known]
    weighed = [(weight, pct) for weight, pct in seen if pct is not None and weight > 0]
    weight = math.fsum(weight for weight, _ in weighed)
    return Total(
        name,
        n_runs=len(rows),
        n_without_telemetry=len(rows) - len(known),
        gpu_s=math.fsum(cells.values()),
        cells=cells,
        util_pct=math.fsum(w * pct for w, pct in weighed) / weight if weight else math.nan,
        failed_gpu_s=math.fsum(row.failed_gpu_s or 0.0 for row in rows),
        pruned_gpu_s=math.fsum(row.pruned_gpu_s or 0.0 for row in rows),
        energy_kwh=math.fsum(row.energy_kwh or 0.0 for row in rows),
        n_trials=sum(row.n_trials or 0 for row in rows),
        n_failed=sum(row.n_failed or 0 for row in rows),
        recoverable_gpu_h=math.fsum(row.recoverable_gpu_h or 0.0 for row in rows),
    )


def week_of(start: str | None) -> str:
    """``2026-W07`` of a time in ISO 8601; '' of None."""
    from datetime import datetime

    return "{}-W{:02d}".format(*datetime.fromisoformat(start).isocalendar()[:2]) if start else ""
