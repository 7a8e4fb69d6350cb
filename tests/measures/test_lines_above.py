"""The last line above each of many errors, as one look at each would find it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.measures._steps.lines_above import last_above


def test_each_error_has_the_last_line_above_it_in_its_own_file() -> None:
    rng = np.random.default_rng(7)
    lines = pd.DataFrame({"path": np.array(["a", "b", None])[rng.integers(0, 3, 300)], "line": rng.permutation(300)})
    events = pd.DataFrame(
        {"path": np.array(["a", "b", "c", None])[rng.integers(0, 4, 60)], "line": rng.integers(0, 300, 60)}
    )
    lines, events = lines.astype({"line": "Int64"}), events.astype({"line": "Int64"})
    events.loc[::9, "line"] = pd.NA
    expected = []
    for path, number in zip(events["path"], events["line"], strict=True):
        above = [
            (own, place)
            for place, (file, own) in enumerate(zip(lines["path"], lines["line"], strict=True))
            if pd.notna(number) and pd.notna(path) and file == path and own < number
        ]
        expected.append(max(above, default=(0, -1))[1])
    assert last_above(lines, events).tolist() == expected
    assert last_above(lines.iloc[:0], events).tolist() == [-1] * len(events)
    assert not len(last_above(lines, events.iloc[:0]))
