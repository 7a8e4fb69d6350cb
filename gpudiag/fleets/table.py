"""All rows of a fleet: what they add up to, by whom, and for which reasons."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from gpudiag import __version__
from gpudiag.errors import NotMeasurable
from gpudiag.fleets.anonymous import anonymous_row, numbers_of
from gpudiag.fleets.causes import causes_of, failures_of
from gpudiag.fleets.changes import changes_of
from gpudiag.fleets.cluster.anonymous import anonymous_cluster
from gpudiag.fleets.counted import counted_once
from gpudiag.fleets.frames import frame_of, heat_frame, hosts_frame, owners_frame, weeks_frame
from gpudiag.fleets.totals import total_of, totals_by
from gpudiag.fleets.weeks import week_of
from gpudiag.plain_data import JsonObject, json_text, plain_object
from gpudiag.plots import WIDTH_IN, Picture
from gpudiag.plots.fleet import FLEET_PLOTS
from gpudiag.report._notebook import pages
from gpudiag.report._render.show import Show
from gpudiag.report.fleet.document import (
    COUNTED,
    CauseTotal,
    ClusterDocument,
    FailureTotal,
    FleetDocument,
    Recording,
    RunRow,
    Total,
    short_weeks,
)
from gpudiag.report.fleet.headline import headline
from gpudiag.report.fleet.sections import SECTIONS

if TYPE_CHECKING:
    import pandas as pd
    from nbformat import NotebookNode

MORE = "*Figures and all tables: fleet.html.*"
"""How the Markdown report ends."""


@dataclass(frozen=True, eq=False, repr=False)
class FleetTable:
    """Rows, each run once: one whose inputs are another's is marked and not counted. ``group``: what the report divides
    the fleet by; ``unread``: folders that hold files and no run; ``cluster``: what telemetry of a whole cluster
    says of it.
    """

    rows: tuple[RunRow, ...]
    name: str = "Fleet"
    group: str = "project"
    unread: tuple[str, ...] = ()
    cluster: ClusterDocument | None = None

    @classmethod
    def of(
        cls,
        rows: Iterable[RunRow],
        name: str = "Fleet",
        unread: tuple[str, ...] = (),
        of_cluster: Iterable[Recording] = (),
    ) -> FleetTable:
        """The rows, with those marked that were counted already, with others or with telemetry of a cluster."""
        return cls(counted_once(rows, of_cluster), name, unread=unread)

    @property
    def counted(self) -> tuple[RunRow, ...]:
        """The rows that count."""
        return tuple(row for row in self.rows if row.status in COUNTED)

    @cached_property
    def total(self) -> Total:
        """Everything."""
        return total_of("", self.counted)

    def by(self, group: str) -> list[Total]:
        """Totals by user, project, host, gpu-model, week or month, the most GPU time first (times in their order).

        Raises ConfigError for anything else.
        """
        return totals_by(self.counted, group)

    @cached_property
    def causes(self) -> list[CauseTotal]:
        """What was found, by the GPU-hours it lost in runs where it was the costliest, then by runs."""
        return causes_of(self.counted)

    @cached_property
    def failures(self) -> list[FailureTotal]:
        """Failed trials by kind, the most GPU time first, then the most trials; with the parts of the fleet that had
        most of them.
        """
        return failures_of(self.counted, self.group)

    def frame(self) -> pd.DataFrame:
        """A row a run, columns of :class:`RunRow` and ``month``; times are UTC."""
        return frame_of(self.rows)

    @cached_property
    def document(self) -> FleetDocument:
        """All that is said of the fleet, typed."""
        changes = changes_of((row for row in self.counted if week_of(row.start) not in self._short), week_of)
        return FleetDocument(
            schema="gpudiag.fleet/1",
            version=__version__,
            name=self.name,
            by=self.group,
            headline=headline(self.total, self.causes, self.rows, self.cluster, changes),
            total=self.total,
            groups=tuple(self.by(self.group)),
            weeks=tuple(self.by("week")),
            changes=changes,
            causes=tuple(self.causes),
            failures=tuple(self.failures),
            runs=self.rows,
            unread=self.unread,
            cluster=self.cluster,
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
        """The table with users, hosts, projects, runs, commits and images as numbers, and without paths and texts of
        the runs.
        """
        numbers = numbers_of(self.rows)
        folders = tuple(f"folder {at}" for at in range(1, len(self.unread) + 1))
        about = self.cluster and anonymous_cluster(self.cluster, numbers["host"])
        rows = tuple(anonymous_row(row, numbers) for row in self.rows)
        return replace(self, rows=rows, name="Fleet", unread=folders, cluster=about)

    def to_dict(self) -> JsonObject:
        """The JSON document, schema ``gpudiag.fleet/1``."""
        return plain_object(self.document)

    def to_json(self) -> str:
        """The document as JSON text."""
        return json_text(self.document)

    def to_markdown(self) -> str:
        """The report as Markdown without its pictures."""
        return pages.markdown_page(self._notebook(pictures=False), more=MORE, opened=0).text

    def save(self, path: str | Path) -> Path:
        """Write the report where ``path`` says: .html (self-contained), .md (pictures beside it) or .json.

        Raises ConfigError for any other suffix.
        """
        return pages.save(Path(path), self._notebook, self.to_json, MORE, opened=0)

    def _repr_html_(self) -> str:
        return "\n".join(getattr(self.show, name)._repr_html_() for name in ("masthead", "verdict", "causes"))

    def _repr_markdown_(self) -> str:
        return "\n\n".join(getattr(self.show, name)._repr_markdown_() for name in ("masthead", "verdict", "causes"))

    def __repr__(self) -> str:
        head = self.document.headline
        return f"<{' '.join(one for one in dict.fromkeys((head.verdict, *head.sentences)) if one)}>"

    def _draw(self, name: str, width_in: float = WIDTH_IN) -> Picture | None:
        try:
            return FLEET_PLOTS[name].picture(name, self._drawn, width_in=width_in)
        except NotMeasurable:
            return None

    @cached_property
    def _short(self) -> frozenset[str]:
        """Weeks with next to no observed time: all of the totals, and no point of a course."""
        return short_weeks(self.by("week"))

    @cached_property
    def _drawn(self) -> dict[str, pd.DataFrame | None]:
        """What the figures draw."""
        return {
            "owners": owners_frame(self.counted, self.group),
            "weeks": weeks_frame(self.counted, self.by("week"), self._short),
            "hosts": hosts_frame(self.counted),
            "heat": heat_frame(self.cluster),
        }

    def _notebook(self, *, pictures: bool = True) -> NotebookNode:
        """fleet_report as if executed, without a kernel."""
        show = self.show if pictures else Show(self.document, lambda name: None, SECTIONS)
        return pages.filled("fleet_report", show)
