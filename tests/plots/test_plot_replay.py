"""Learning curves with the candidate's cuts: read back from the artists."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection

from gpudiag.errors import NotMeasurable
from gpudiag.forecast.pruning.replay import replay_pruner
from gpudiag.forecast.pruning.result import PrunerReplay
from gpudiag.plots.replay import learning_curves, plot_learning_curves
from gpudiag.run import Run
from gpudiag.schema import REPORTS, STUDIES, TRIALS, conform

CURVES = {0: [0.5, 0.4, 0.3], 1: [0.9, 0.8, 0.7], 2: [0.6, 0.5], 3: [0.4, math.nan, 0.2]}


def replay(curves: dict[int, list[float]] = CURVES) -> PrunerReplay:
    rows = [(n, "PRUNED" if len(v) < 3 else "COMPLETE", v[-1]) for n, v in curves.items()]
    told = [(n, k + 1, value) for n, values in curves.items() for k, value in enumerate(values)]
    run = Run(
        trials=conform(pd.DataFrame(rows, columns=["trial", "state", "value"]).assign(study="s"), TRIALS),
        reports=conform(pd.DataFrame(told, columns=["trial", "step", "value"]).assign(study="s"), REPORTS),
        studies=conform(pd.DataFrame({"study": ["s"], "directions": ["MINIMIZE"]}), STUDIES),
    )
    return replay_pruner(run, "threshold(upper=0.85)")


def test_every_curve_is_drawn_and_cuts_are_marked() -> None:
    ax = plot_learning_curves(replay()).axes[0]
    lines = [line for c in ax.collections if isinstance(c, LineCollection) for line in c.get_segments()]
    assert sorted(len(line) for line in lines) == [2, 2, 3, 3]  # NaN is left out
    points = np.vstack([c.get_offsets() for c in ax.collections if not isinstance(c, LineCollection)])
    assert {tuple(p) for p in points.tolist()} == {(1.0, 0.9), (2.0, 0.5)}
    assert ax.get_xlabel() == "step"


@pytest.mark.slow
def test_the_words_count_the_same() -> None:
    picture = learning_curves(replay())
    # NaN is out of every limit, so that trial 3 is pruned as well.
    assert picture.alt.startswith("Learning curves of 4 trials with threshold(upper=0.85): 2 pruned, 1 kept")
    assert "of 1 the record ends" in picture.alt
    assert picture.svg() == learning_curves(replay()).svg()


def test_single_points_are_no_curves() -> None:
    with pytest.raises(NotMeasurable, match="no curve to draw"):
        plot_learning_curves(replay({0: [0.5], 1: [0.4]}))
