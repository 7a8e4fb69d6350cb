from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from gpudiag.schema import GPU, REPORTS, TABLES, TRIALS, conform, empty, in_range

UNIT_SUFFIX = re.compile(r"_(pct|mib|mib_s|w|j|c|mhz|tflops|s)$")


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_names_are_unique_and_carry_their_unit(table) -> None:
    assert len(set(table.names)) == len(table.names)
    for column in table.columns:
        if column.unit:
            assert UNIT_SUFFIX.search(column.name), column.name
    assert set(table.key) <= set(table.names)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_empty_has_the_required_columns_and_survives_conform(table) -> None:
    frame = empty(table)
    assert list(frame.columns) == list(table.required)
    pd.testing.assert_frame_equal(conform(frame, table), frame)


def test_conform_orders_converts_and_drops() -> None:
    frame = pd.DataFrame(
        {"util_pct": [1, 2], "stranger": [0, 0], "gpu": ["0", "1"], "fan_pct": [np.nan, np.nan], "time": [0, 1]}
    )
    out = conform(frame, GPU)
    assert list(out.columns) == ["time", "gpu", "util_pct"]
    assert str(out["time"].dtype) == "datetime64[us, UTC]"
    assert out["util_pct"].dtype == np.float64


def test_conform_keeps_families_and_adds_unknown() -> None:
    frame = pd.DataFrame({"study": ["s"], "trial": [3], "state": ["RUNNING"], "params.lr": [0.1], "value_0": [1.0]})
    out = conform(frame, TRIALS)
    assert out["start"].isna().all()
    assert {"params.lr", "value_0"} <= set(out.columns)
    with pytest.raises(KeyError, match="needs column trial"):
        conform(frame.drop(columns="trial"), TRIALS)


def test_conform_never_invents_a_number() -> None:
    out = conform(pd.DataFrame({"study": ["s"], "trial": [0], "step": [1], "value": [None]}), REPORTS)
    assert np.isnan(out["value"].iloc[0])


def test_in_range_leaves_missing_values_alone() -> None:
    values = pd.Series([0.0, 100.0, 100.1, -0.1, np.nan])
    assert in_range(values, GPU["util_pct"]).tolist() == [True, True, False, False, True]
