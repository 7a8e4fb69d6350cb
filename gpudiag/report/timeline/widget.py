"""The timeline as an anywidget. Only what shows one imports this module: anywidget is an extra."""

from __future__ import annotations

from typing import Any

import anywidget
import traitlets

from gpudiag.report.timeline import page
from gpudiag.report.timeline.finer import finer
from gpudiag.report.timeline.lanes import Lanes
from gpudiag.report.timeline.sealed import sealed


class TimelineWidget(anywidget.AnyWidget):
    """``packed`` is what the page draws at first. A message ``{"a": …, "b": …}`` from it, in seconds on its axis, is
    answered with the samples between the two; what names no stretch is not answered.
    """

    _esm = page.widget_script()
    _css = page.widget_style()
    packed = traitlets.Unicode().tag(sync=True)

    def __init__(self, lanes: Lanes, packed: str, otherwise: dict[str, str]) -> None:
        """``otherwise``: what front ends show that have no widgets, by MIME type."""
        super().__init__(packed=packed)
        self._lanes, self._otherwise = lanes, otherwise
        self.on_msg(self._answer)

    def _answer(self, _: object, message: object, __: object) -> None:
        asked = message if isinstance(message, dict) else {}
        found = finer(self._lanes, asked.get("a"), asked.get("b"))
        if found is not None:
            self.send({"packed": sealed(found)})

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        return {**data, **self._otherwise}, metadata

    def __repr__(self) -> str:
        return self._lanes.label
