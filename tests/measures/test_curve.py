"""The rise of a curve within spans, against a look-up of every start and end."""

from __future__ import annotations

import numpy as np
import pytest

from gpudiag.measures._time.curve import rise

X, Y = np.array([0.0, 10.0, 30.0]), np.array([0.0, 5.0, 6.0])


@pytest.mark.parametrize(
    "borders", [[], [(2, 9)], [(0, 5), (5, 20), (20, 30)], [(0, 5), (7, 7), (7, 40)], [(-5, 3), (1, 2), (2, 12)]]
)
def test_rise_is_that_of_two_look_ups(borders: list[tuple[float, float]]) -> None:
    start, end = np.array(borders, float).reshape(-1, 2).T
    assert rise(start, end, X, Y).tolist() == (np.interp(end, X, Y) - np.interp(start, X, Y)).tolist()


def test_a_border_that_two_spans_share_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    interp = np.interp
    monkeypatch.setattr(np, "interp", lambda at, x, y: asked.append(len(at)) or interp(at, x, y))
    rise(np.array([0.0, 5, 8]), np.array([5.0, 8, 9]), X, Y)
    assert asked == [3, 1]
