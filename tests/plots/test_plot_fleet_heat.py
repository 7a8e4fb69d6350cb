"""The map of a cluster's GPUs over time."""

from __future__ import annotations

import pandas as pd
import pytest

from gpudiag.plots.fleet_heat import plot_heat


@pytest.mark.parametrize("hours", [1, 24])
def test_a_label_stands_where_its_column_begins(hours: int) -> None:
    """Columns are drawn one wide, the first from -0.5 on: at the center a label would stand half a column late."""
    columns = pd.date_range("2026-03-02", periods=8, freq=pd.Timedelta(hours=hours))
    (ax, *_) = plot_heat(pd.DataFrame([[50.0] * 8], index=["n1/0"], columns=columns)).axes
    left = ax.get_xlim()[0]
    form = "%m-%d" if hours == 24 else "%m-%d %H:%M"
    at = {label.get_text(): place for place, label in zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)}
    assert len(at) > 3
    for label, place in at.items():
        assert label == columns[round(place - left)].strftime(form) and (place - left).is_integer()
