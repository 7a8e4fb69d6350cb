"""The timeline of a run as an object that shows itself in a notebook and can be saved as a page."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from gpudiag.analysis import Analysis
from gpudiag.errors import ConfigError, NotMeasurable
from gpudiag.files import write
from gpudiag.measures.ledger import measure_ledger
from gpudiag.measures.memory import measure_memory
from gpudiag.measures.parallelism import measure_parallelism
from gpudiag.measures.utilization import measure_utilization
from gpudiag.plots import draw
from gpudiag.report.format import safe
from gpudiag.report.timeline import page
from gpudiag.report.timeline.lanes import Lanes
from gpudiag.report.timeline.packed import packed
from gpudiag.rules._engine.verdict import Verdict

FRAME_PX = {"around": 140, "lane": 26, "chart": 92, "most": 900}
"""Heights that a frame in a notebook needs; beyond ``most`` it scrolls."""
STILL_FROM = (measure_parallelism, measure_utilization, measure_memory, measure_ledger)
UNTRUSTED = "The timeline is shown once this notebook is trusted."


@dataclass(frozen=True, eq=False)
class TimelineView:
    """Lanes of a run, ``packed`` for a page. ``analysis``: what the figure is drawn from that stands in for them."""

    lanes: Lanes
    packed: str
    analysis: Analysis

    @property
    def html(self) -> str:
        """A page of its own that loads nothing."""
        return page.document(self.packed, f"{safe(self.lanes.name)}: timeline")

    def save(self, path: str | Path) -> Path:
        """Write that page."""
        write(Path(path), self.html)
        return Path(path)

    def widget(self) -> Any:
        """The same as an anywidget, whose zoom gets the samples of what it shows from the kernel, at full resolution.

        Raises ConfigError where anywidget is not installed.
        """
        try:
            from gpudiag.report.timeline.widget import TimelineWidget
        except ImportError as error:
            raise ConfigError("widget() needs anywidget; install it with: pip install 'gpudiag[widget]'") from error
        return TimelineWidget(self.lanes, self.packed, self._repr_mimebundle_())

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        # No browser shows what stands within a frame; where an untrusted notebook drops the frame, it is what is left.
        frame = (
            f'<iframe title="{escape(self.lanes.label)}" sandbox="allow-scripts" srcdoc="{escape(self.html)}" '
            f'style="width: 100%; height: {self._height_px()}px; border: 0">{self._still()}</iframe>'
        )
        return {"text/html": frame, "text/plain": repr(self)}

    def _still(self) -> str:
        """The figure as an image; words where there is none."""
        profiles, _ = self.analysis.profiles(STILL_FROM)
        try:
            picture = draw("timeline", profiles, timezone=self.lanes.timezone)
        except NotMeasurable:
            return UNTRUSTED
        return f'<img alt="{escape(picture.alt)}" src="data:image/png;base64,{b64encode(picture.png(100)).decode()}">'

    def _height_px(self) -> int:
        lanes = self.lanes
        rows = [len(lanes.bars.workers) * 18] if lanes.bars else []
        rows += [max(len(lanes.courses) * 18, 36)] if lanes.courses else []
        rows += [len(lanes.ribbons) * 14] if lanes.ribbons else []
        rows += [32] if lanes.events or lanes.findings else []
        heights = FRAME_PX["around"] + sum(FRAME_PX["lane"] + min(row, 250) for row in rows)
        return min(heights + FRAME_PX["chart"] * len(lanes.channels), FRAME_PX["most"])

    def __repr__(self) -> str:
        return self.lanes.label


def timeline_view(analysis: Analysis, findings: Iterable[Verdict] = ()) -> TimelineView:
    """The timeline of what an analysis knows. Raises NotMeasurable without trials that began and without telemetry."""
    return TimelineView(*packed(analysis, findings), analysis)
