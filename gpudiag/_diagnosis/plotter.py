"""The figures of a diagnosis by name, as a notebook asks for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from gpudiag import plots
from gpudiag.errors import nearest
from gpudiag.plots import WIDTH_IN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gpudiag.plots import Picture


@dataclass(frozen=True, eq=False)
class Plotter:
    """Figures of one diagnosis by name. Each takes ``width_in``: inches, 3.4 for one of two columns of a paper.

    ``profiles``: by topic, those that the run allows. ``picture``: draws the figure of a name.
    """

    profiles: Mapping[str, Any]
    picture: Callable[..., Picture]

    def __getattr__(self, name: str) -> Callable[..., Figure]:
        if name not in plots.PLOTS:
            raise AttributeError(f"there is no plot '{name}'; {nearest(name, plots.PLOTS)}")
        return partial(self._figure, name)

    def __dir__(self) -> list[str]:
        return [name for name, plot in plots.PLOTS.items() if plot.allowed_by(self.profiles)]

    def _figure(self, name: str, *, width_in: float = WIDTH_IN) -> Figure:
        return self.picture(name, width_in=width_in).figure
