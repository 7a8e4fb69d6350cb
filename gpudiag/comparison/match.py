"""Which items of two runs are the same item, and whether one run is a part of the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.comparison.side import Side
from gpudiag.measures._time.microseconds import SECOND_US, microseconds

SAME_SET = 0.95
"""Jaccard index from which two item sets count as the same (METHODS 7, check 2)."""


@dataclass(frozen=True)
class Subset:
    """Items of the ``inner`` run found in the ``outer`` one, among others.

    There, from the first start to the last end of the shared items (``span_s``), ``n_between`` other items came to
    their end; the shared items themselves were at work for ``busy_s`` worker-seconds.
    """

    inner: str
    outer: str
    n_shared: int
    n_outer: int
    span_s: float
    busy_s: float
    n_between: int


@dataclass(frozen=True, eq=False)
class Match:
    """``pairs``: name, baseline_s, experiment_s, baseline_state, experiment_state, one row a shared item with a name.

    ``same_timestamps``: trials with equal start and end in both; ``moved_s``: the constant by which all shared trials
    lie apart, with equal durations (NaN where they do not).
    """

    pairs: pd.DataFrame
    named: bool
    n_baseline: int
    n_experiment: int
    jaccard: float
    same_timestamps: int
    moved_s: float
    subset: Subset | None

    @property
    def n_shared(self) -> int:
        return len(self.pairs)

    @property
    def same_set(self) -> bool:
        return self.named and self.jaccard >= SAME_SET

    @property
    def both_complete(self) -> pd.DataFrame:
        """Pairs that succeeded in both runs with known durations: failed items are short (METHODS 7, check 8)."""
        rows = self.pairs
        ok = (rows["baseline_state"] == "COMPLETE") & (rows["experiment_state"] == "COMPLETE")
        return rows[ok & (rows["baseline_s"] > 0) & (rows["experiment_s"] > 0)]


def match(baseline: Side, experiment: Side) -> Match:
    """Pair the items by name, and look for trials that are the same trials."""
    named = baseline.named and experiment.named
    a, b = (_one_each(side.items) for side in (baseline, experiment))
    pairs = (
        a.merge(b, on="name", suffixes=("_a", "_b")) if named else a.merge(b, on="name", suffixes=("_a", "_b")).head(0)
    )
    frame = pd.DataFrame(
        {
            "name": pairs["name"],
            "baseline_s": pairs["duration_s_a"],
            "experiment_s": pairs["duration_s_b"],
            "baseline_state": pairs["state_a"],
            "experiment_state": pairs["state_b"],
        }
    ).reset_index(drop=True)
    union = len(a) + len(b) - len(frame)
    return Match(
        pairs=frame,
        named=named,
        n_baseline=len(a),
        n_experiment=len(b),
        jaccard=len(frame) / union if named and union else float("nan"),
        same_timestamps=_same_timestamps(baseline.items, experiment.items),
        moved_s=_moved_s(baseline.items, experiment.items),
        subset=_subset(baseline, experiment, a, b) if named else None,
    )


def unmatched(baseline: Side, experiment: Side) -> Match:
    """Nothing is known of which items are the same: for a match that failed."""
    columns = ["name", "baseline_s", "experiment_s", "baseline_state", "experiment_state"]
    n = len(baseline.items), len(experiment.items)
    return Match(pd.DataFrame(columns=columns), False, *n, float("nan"), 0, float("nan"), None)


def _one_each(items: pd.DataFrame) -> pd.DataFrame:
    """One row a name: of several attempts at an item the first that succeeded, else the last."""
    order = items.assign(failed=items["state"] != "COMPLETE", place=np.arange(len(items)))
    order["place"] = order["place"].where(~order["failed"], -order["place"])
    return order.sort_values(["failed", "place"], kind="stable").drop_duplicates("name").sort_index()


def _same_timestamps(a: pd.DataFrame, b: pd.DataFrame) -> int:
    both = a.dropna(subset=["start", "end"]).merge(b.dropna(subset=["start", "end"]), on=["start", "end"])
    return int(both[["start", "end"]].drop_duplicates().shape[0])


def _moved_s(a: pd.DataFrame, b: pd.DataFrame) -> float:
    both = a.merge(b, on=["study", "trial"], suffixes=("_a", "_b")).dropna(subset=["duration_s_a", "duration_s_b"])
    both = both.dropna(subset=["start_a", "start_b"])
    if len(both) < 3 or not np.allclose(both["duration_s_a"], both["duration_s_b"], atol=1e-3):
        return float("nan")
    apart = (both["start_b"] - both["start_a"]).dt.total_seconds()
    return float(apart.iloc[0]) if apart.max() - apart.min() < 1e-3 else float("nan")


def _subset(baseline: Side, experiment: Side, a: pd.DataFrame, b: pd.DataFrame) -> Subset | None:
    """The smaller run as a part of the larger, where other items of that ended among its own."""
    inner, outer = (experiment, baseline) if len(b) <= len(a) else (baseline, experiment)
    few, many = (b, a) if len(b) <= len(a) else (a, b)
    shared = many["name"].isin(few["name"])
    n_shared = int(shared.sum())
    if not n_shared or n_shared < 0.95 * len(few) or n_shared >= 0.95 * len(many):
        return None
    own, others = many[shared], many[~shared]
    first = own["start"].min() if own["start"].notna().any() else own["end"].min()
    last = own["end"].max()
    if pd.isna(first) or pd.isna(last):
        return None
    between = int(((others["end"] >= first) & (others["end"] <= last)).sum())
    span_us = microseconds(pd.Series([last]))[0] - microseconds(pd.Series([first]))[0]
    return Subset(
        inner.name, outer.name, n_shared, len(many), float(span_us / SECOND_US), float(own["duration_s"].sum()), between
    )
