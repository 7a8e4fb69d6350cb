"""Which columns of a Parquet file are what: those of ``gpudiag convert``, or of others by their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpudiag.readers._fields.aliases import meaning_of

OURS = ("table", "time", "gpu", "util_pct")
"""Columns of a file that ``gpudiag convert`` wrote: ``table`` says of which table a row is."""
IDENTITY = ("index", "uuid", "bus_id")


@dataclass(frozen=True)
class TelemetryColumns:
    """Names of the columns: ``time`` and ``util``, and by kind (index, uuid, bus_id, name) those that tell the GPU.

    ``ours``: rows of several tables lie in the file, and the identity of a GPU stands in those of table ``gpus``.
    ``in_percent``: the name of the utilization says so.
    """

    time: str
    util: str
    of_gpu: Mapping[str, str]
    ours: bool = False
    in_percent: bool = True

    @property
    def names(self) -> list[str]:
        """All of them."""
        return [*(["table"] if self.ours else []), self.time, self.util, *self.of_gpu.values()]


def known_columns(schema: Mapping[str, Any]) -> TelemetryColumns | None:
    """The columns of a file with this schema; None where it lacks a time, a utilization or what tells its GPUs."""
    if set(OURS) <= set(schema):
        own = {"index": "gpu", **{name: name for name in ("uuid", "bus_id", "name") if name in schema}}
        return TelemetryColumns("time", "util_pct", own, ours=True)
    found: dict[str, str] = {}
    for name in schema:
        meaning = meaning_of(name)
        if not meaning.device:
            found.setdefault(meaning.target, name)
    found |= {"util_pct": "util_pct"} if "util_pct" in schema else {}
    of_gpu = {kind: found[kind] for kind in (*IDENTITY, "name") if kind in found}
    if not {"time", "util_pct"} <= set(found) or not set(IDENTITY) & set(of_gpu):
        return None
    in_percent = found["util_pct"] == "util_pct" or meaning_of(found["util_pct"]).unit == "%"
    return TelemetryColumns(found["time"], found["util_pct"], of_gpu, in_percent=in_percent)
