"""Series of single pods that share a board become readings of the board.

dcgm-exporter, told that pods share GPUs, repeats a reading of the board for each pod. From 2026 on it gives, for
utilization and used memory, what the processes of each pod take, with the pod's uid, beside the series of the whole
board, which names no pod. So the series with the fewest labels of a pod is the board's. Where a query left that out,
readings of several uids that differ are parts of the board; those that are equal are repeats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd

from gpudiag.readers._fields.dcgm_fields import without_blanks

_NAMES = ("pod", "container", "namespace", "pod_name", "container_name", "pod_namespace", "pod_uid", "vgpu")
LABELS = frozenset((*_NAMES, *(f"exported_{name}" for name in _NAMES)))
"""Old names, new ones, and what Prometheus makes of them where it has such labels for the exporter itself."""
_EXPORTER = "exporter"
KEY = ["gpu", "time", "column", "rank"]


def depth(labels: Mapping[str, str]) -> int:
    """How many labels of a pod a series has."""
    return sum(bool(labels.get(name)) for name in LABELS)


def uid(labels: Mapping[str, str]) -> str:
    """The pod that a series is of; empty where it does not say, and the reading is no part of a board."""
    return labels.get("exported_pod_uid") or labels.get("pod_uid") or ""


def tenant_of(labels: Mapping[str, str]) -> str:
    """The job or the pod that had the GPU; empty where none is named, or only the pod of the exporter itself."""
    if job := labels.get("hpc_job"):
        return f"job {job}"
    for prefix, pod in (("exported_", "exported_pod"), ("", "pod"), ("pod_", "pod_name")):
        if name := labels.get(pod):
            own = f"{name} {labels.get('container', '')}".lower()
            if pod == "pod" and _EXPORTER in own:
                continue
            space = labels.get(f"{prefix}namespace", "")
            return f"{space}/{name}" if space else name
    return ""


def tenants(rows: pd.DataFrame) -> pd.DataFrame:
    """gpu, time and tenant of each instant at which a reading of the GPU names one; several are one text."""
    named = rows.loc[rows["tenant"] != "", ["gpu", "time", "tenant"]].drop_duplicates().sort_values("tenant")
    beside = named.duplicated(["gpu", "time"], keep=False)
    joined = named[beside].groupby(["gpu", "time"], as_index=False)["tenant"].agg(", ".join)
    return pd.concat([named[~beside], joined], ignore_index=True)


def total(by_pod: Mapping[str, float], most: float) -> tuple[float, bool]:
    """The board's reading from the last one of each pod, at most ``most``; and whether it is a sum of parts."""
    parts = [value for pod, value in by_pod.items() if pod and value == value]
    if most == most and len(set(parts)) > 1:
        return min(sum(parts), most), True
    return (list(by_pod.values()) or [float("nan")])[-1], False


def boards(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Readings of boards, and the columns that are sums of parts.

    ``rows`` has ``KEY``, ``value``, ``depth``, ``pod`` (:func:`uid`), and ``most``: the most that parts add up to,
    NaN for columns that are the board's whichever pod they name.
    """
    if rows["depth"].any():
        rows = rows[rows["depth"] == rows.groupby(KEY, sort=False)["depth"].transform("min")]
        repeated = (rows["depth"] > 0) & (rows["pod"] == "") & rows.duplicated([*KEY, "value"])
        rows = rows[~repeated]
    pods = rows["pod"] != ""
    several = pods & rows[pods].duplicated(KEY, keep=False).reindex(rows.index, fill_value=False)
    if not several.any():
        return rows[[*KEY, "value"]], []
    last = rows[several].drop_duplicates([*KEY, "pod"], keep="last")
    last["value"] = without_blanks(last["value"].to_numpy(float))
    found = last.groupby(KEY, sort=False).agg(
        n=("value", "nunique"), total=("value", "sum"), last=("value", "last"), most=("most", "first")
    )
    is_sum = (found["n"] > 1) & found["most"].notna()
    found["value"] = found["last"].where(~is_sum, found[["total", "most"]].min(axis=1))
    summed = found.index[is_sum].get_level_values("column").unique()
    made = found["value"].reset_index()
    return pd.concat([rows.loc[~several, [*KEY, "value"]], made], ignore_index=True), sorted(map(str, summed))


def note(columns: Iterable[str]) -> list[str]:
    """A sentence where a column is a sum of parts."""
    listed = " and ".join(columns)
    return [f"No series of {listed} is of a whole board: the sum over its pods stands for it."] if listed else []
