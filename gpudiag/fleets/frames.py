"""A fleet as pandas frames: a row a run, and what its figures draw."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from typing import TYPE_CHECKING

from gpudiag.fleets.groups import UNKNOWN, grouped
from gpudiag.fleets.row import to_plain
from gpudiag.fleets.totals import total_of
from gpudiag.fleets.weeks import week_of
from gpudiag.report.fleet.document import CELLS, ClusterDocument, RunRow, Total

if TYPE_CHECKING:
    import pandas as pd

MOST_OWNERS = 7
NOBODY = {"shared": "shared nodes", "unallocated": "unallocated"}
MOST_DAILY = 120
"""Days of a map; of more, each column is a week, since days become lines that nobody sees."""
MOST_DAYS = 800
"""A fleet over a longer time has no figure by day: one wrong clock would make it a wall of nothing."""


def frame_of(rows: Sequence[RunRow]) -> pd.DataFrame:
    """A row a run, columns of :class:`RunRow` and ``month``; times are UTC."""
    import pandas as pd

    names = [one.name for one in fields(RunRow)]
    out = pd.DataFrame([to_plain(row) for row in rows], columns=names)
    for name in ("start", "end"):
        out[name] = pd.to_datetime(out[name], utc=True, format="ISO8601").astype("datetime64[us, UTC]")
    number = [one.name for one in fields(RunRow) if one.type == "float | None"]
    out[number] = out[number].astype(float)
    whole = [one.name for one in fields(RunRow) if one.type == "int | None"]
    out[whole] = out[whole].astype("Int64")
    out.insert(0, "month", [(row.start or "")[:7] or UNKNOWN for row in rows])
    return out


def weeks_frame(rows: Iterable[RunRow], totals: Iterable[Total], short: Collection[str]) -> pd.DataFrame:
    """GPU-hours by category, a row a week, and ``util_pct``."""
    import pandas as pd

    held = [one for one in totals if one.gpu_s and one.name not in (UNKNOWN, *short)]
    cells = [{cell: s / 3600 for cell, s in one.cells.items()} | {"util_pct": one.util_pct} for one in held]
    out = pd.DataFrame(cells, index=[one.name for one in held], columns=[*CELLS, "util_pct"])
    shown = {one.name for one in held}
    starts = sorted(row.start for row in rows if row.start and row.gpu_s and week_of(row.start) in shown)
    # A week without a run has its place as well.
    if starts and (pd.Timestamp(starts[-1]) - pd.Timestamp(starts[0])).days <= MOST_DAYS:
        every = pd.date_range(starts[0][:10], pd.Timestamp(starts[-1][:10]) + pd.Timedelta(days=6), freq="7D")
        weeks = [week_of(day.isoformat()) for day in every]
        out = out.reindex(sorted({*weeks[: weeks.index(out.index[-1]) + 1], *out.index}))
        out[list(CELLS)] = out[list(CELLS)].fillna(0.0)
    return out


def owners_frame(rows: Sequence[RunRow], group: str) -> pd.DataFrame:
    """GPU-hours by category and ``util_pct``, a row a user where several are known and the first hold half of the time,
    else a part of the fleet; the last row is that of all further ones.
    """
    import pandas as pd

    timed = [row for row in rows if row.gpu_s]
    by = "user" if len({row.user for row in timed} - {""}) > 1 else group
    named, shown = _largest(timed, by)
    if 2 * sum(row.gpu_s or 0.0 for name in shown for row in named[name]) < sum(row.gpu_s or 0.0 for row in timed):
        named, shown = _largest(timed, by := group)  # so many users that none matters by itself
    order = list(named)
    totals = [total_of(name, named[name]) for name in shown]
    if rest := order[len(shown) :]:
        totals.append(total_of(f"{len(rest):,} others", [row for name in rest for row in named[name]]))
    held = [{cell: s / 3600 for cell, s in one.cells.items()} | {"util_pct": one.util_pct} for one in totals]
    index = pd.Index([NOBODY.get(one.name, one.name) for one in totals], name=by.replace("gpu-model", "GPU model"))
    return pd.DataFrame(held, index=index, columns=[*CELLS, "util_pct"], dtype=float)


def _largest(rows: Iterable[RunRow], by: str) -> tuple[dict[str, list[RunRow]], list[str]]:
    """The rows by their part of the fleet, the most GPU time first, and those parts that have a row of their own."""
    held = grouped(rows, by)
    order = sorted(held, key=lambda name: (-math.fsum(row.gpu_s or 0.0 for row in held[name]), name))
    shown = order if len(order) <= MOST_OWNERS else order[: MOST_OWNERS - 1]
    return {name: held[name] for name in order}, shown


def heat_frame(cluster: ClusterDocument | None) -> pd.DataFrame | None:
    """Mean utilization, a row a GPU, columns of time; None without telemetry of a cluster."""
    import pandas as pd

    if cluster is None or cluster.heat is None:
        return None
    heat = cluster.heat
    columns = pd.date_range(heat.start[0], periods=len(heat.start), freq=pd.Timedelta(hours=heat.width_h))
    return pd.DataFrame(list(heat.mean_pct), index=list(heat.gpus), columns=columns, dtype=float)


def hosts_frame(rows: Iterable[RunRow]) -> pd.DataFrame:
    """Mean utilization, a row a host, a column a day, or a week where there are many days; each run weighs by its time
    in it. Telemetry of a cluster has its own map: its rows are not there all the time from their start to their end.
    """
    import pandas as pd

    weight: dict[tuple[str, pd.Timestamp], float] = {}
    sums: dict[tuple[str, pd.Timestamp], float] = {}
    for row in rows:
        if row.status != "diagnosed" or row.util_pct is None or row.start is None or row.end is None:
            continue
        start, end = pd.Timestamp(row.start), pd.Timestamp(row.end)
        if (end - start).days > MOST_DAYS or end <= start:
            continue
        observed = ((row.gpu_s or 0.0) - (row.unobserved_gpu_s or 0.0)) / (end - start).total_seconds()
        for day in pd.date_range(start.normalize(), end, freq="D", unit="us"):
            part = (min(end, day + timedelta(days=1)) - max(start, day)).total_seconds() * observed
            key = row.host or UNKNOWN, day
            weight[key] = weight.get(key, 0.0) + part
            sums[key] = sums.get(key, 0.0) + part * row.util_pct
    if not weight or (max(day for _, day in weight) - min(day for _, day in weight)).days > MOST_DAYS:
        return pd.DataFrame()
    days = pd.date_range(min(day for _, day in weight), max(day for _, day in weight), freq="D", unit="us")
    if len(days) > MOST_DAILY:
        days = pd.date_range(days[0] - timedelta(days=days[0].weekday()), days[-1], freq="7D", unit="us")
        weight, sums = (_by_week(held) for held in (weight, sums))
    hosts = sorted({host for host, _ in weight})
    if hosts == [UNKNOWN]:
        return pd.DataFrame()
    mean = [[sums[at] / weight[at] if weight.get(at := (host, day)) else math.nan for day in days] for host in hosts]
    return pd.DataFrame(mean, index=hosts, columns=[f"{day:%Y-%m-%d}" for day in days])


def _by_week(by_day: Mapping[tuple[str, pd.Timestamp], float]) -> dict[tuple[str, pd.Timestamp], float]:
    """Sums of the days from Monday on."""
    out: dict[tuple[str, pd.Timestamp], float] = {}
    for (host, day), value in by_day.items():
        key = host, day - timedelta(days=day.weekday())
        out[key] = out.get(key, 0.0) + value
    return out
