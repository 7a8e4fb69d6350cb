"""Wide tables, with a column per GPU, made long: one row per GPU and instant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpudiag.errors import InputError
from gpudiag.readers._delimited.grid import Field, Layout
from gpudiag.readers._delimited.pieces import BlockRows
from gpudiag.readers._fields.aliases import meaning_of
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.identity import GpuIdentity

_MOST_W = 1500.0
_LEAST_SURE_W = 100.0


def is_wide(layout: Layout) -> bool:
    """True if column names carry the number of a GPU."""
    return any("@" in target for target in layout.targets)


def long(piece: BlockRows) -> BlockRows:
    """The rows of a piece once for each GPU of their host; what is no GPU's own (time, host) stands in all."""
    devices = sorted({name.split("@")[1] for name in piece.columns if "@" in name}, key=int)
    metrics = list(dict.fromkeys(name.split("@")[0] for name in piece.columns if "@" in name))
    shared = [name for name in piece.columns if name == "time" or name.startswith("host.")]
    size = len(piece)
    blank = np.full(size, np.nan)
    columns = {name: np.tile(piece.columns[name], len(devices)) for name in shared}
    for metric in metrics:
        columns[metric] = np.concatenate([piece.columns.get(f"{metric}@{device}", blank) for device in devices])
    hosts = list(dict.fromkeys(identity.host for identity in piece.identities)) or [""]
    of_row = np.zeros(size, dtype=np.int16)
    if piece.code is not None:
        of_row = np.array([hosts.index(identity.host) for identity in piece.identities], dtype=np.int16)[piece.code]
    code = np.concatenate([of_row + at * len(hosts) for at in range(len(devices))]).astype(np.int16)
    identities = tuple(GpuIdentity(index=device, host=host) for device in devices for host in hosts)
    return replace(piece, columns=columns, lines=np.tile(piece.lines, len(devices)), code=code, identities=identities)


def with_bare_columns(
    source: Source, names: Sequence[str], layout: Layout, rows: Sequence[Sequence[str]]
) -> tuple[Layout, tuple[str, ...]]:
    """The layout with columns called GPU0, GPU1, ... given the metric that their numbers show, and what is to be said
    of it. Raises InputError where they show none.
    """
    meanings = [meaning_of(name) for name in names]
    places = [place for place, m in enumerate(meanings) if m.target == "index" and m.device]
    if not places:
        return layout, ()
    told = ", ".join(names[place] for place in places)
    try:
        metric = metric_of_numbers([[row[place] for row in rows if row[place]] for place in places])
    except ValueError:
        metric = ""
    if not metric:
        raise InputError(
            f"{source.path}: columns {told} do not say what they measure, and their numbers do not show it; name them "
            "with --columns, or as columns in run.toml: timestamp,gpu0_power_w,gpu1_power_w."
        )
    layout = with_metric(layout, places, [meanings[place].device for place in places], metric)
    return layout, (f"Columns {told} do not say what they measure; by their numbers they were taken as {metric}.",)


def metric_of_numbers(columns: Sequence[Sequence[str]]) -> str:
    """What columns named GPU0, GPU1, ... hold, told from their numbers; empty if they do not decide.

    Fractions above 100 and below what a board can draw are watts; whole numbers from 0 to 100 that come
    near both ends are per cent of utilization; whole numbers above that are MiB.
    """
    values = np.array([float(cell) for cells in columns for cell in cells])
    whole = bool(np.all(values == np.round(values)))
    if not len(values) or not np.isfinite(values).all() or values.min() < 0:
        return ""
    if not whole and _LEAST_SURE_W < values.max() <= _MOST_W:
        return "power_w"
    if whole and 90 <= values.max() <= 100 and values.min() <= 10:
        return "util_pct"
    return "mem_used_mib" if whole and values.max() > _MOST_W else ""


def with_metric(layout: Layout, places: Sequence[int], devices: Sequence[str], metric: str) -> Layout:
    """The layout with the bare columns of GPUs holding that metric."""
    fields = list(layout.fields)
    for device, place in {device: place for place, device in reversed([*zip(places, devices, strict=True)])}.items():
        fields[place] = Field(fields[place].name, f"{metric}@{device}", "number")
    return replace(layout, fields=tuple(fields))
