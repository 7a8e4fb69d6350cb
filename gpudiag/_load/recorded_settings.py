"""What a recording states of the input pipeline and of its host, in place of run.toml."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
from pydantic import ValidationError

from gpudiag.manifest import DataLoader, Settings
from gpudiag.readers._io.record_format import SETTINGS_KIND
from gpudiag.units import MIB_PER_GIB


def with_recorded(stated: DataLoader, events: pd.DataFrame) -> DataLoader:
    """What run.toml states; else, setting by setting, what the last session that tells it was given."""
    known: dict[str, Any] = {}
    for detail in events.loc[events["kind"] == SETTINGS_KIND, "detail"].dropna():
        known |= _possible(detail)
    return DataLoader(**known | stated.model_dump(exclude_unset=True))


def with_host(stated: Settings, host: pd.DataFrame, gpus: pd.DataFrame) -> Settings:
    """What run.toml states; else the cores and the memory of the host, where the GPUs are in one and all its samples
    tell the same: those of one of several hosts are not what the run had.
    """
    if "host" in gpus and gpus["host"].nunique() > 1:
        return stated
    known: dict[str, float] = {}
    if stated.cpu_cores is None and (cores := _one(host, "cpu_cores")) is not None:
        known["cpu_cores"] = int(cores)
    if stated.ram_gib is None and (ram_mib := _one(host, "ram_total_mib")) is not None:
        known["ram_gib"] = ram_mib / MIB_PER_GIB
    return stated.model_copy(update=known)


def _one(host: pd.DataFrame, name: str) -> float | None:
    """The one value of a column; None where it has none or several, as hosts that differ have."""
    values = host[name].dropna().unique() if name in host else []
    return float(values[0]) if len(values) == 1 and values[0] > 0 else None


def _possible(detail: str) -> dict[str, Any]:
    """The settings of one event; what can be none of them is left out."""
    try:
        given = json.loads(detail)
    except ValueError:
        return {}
    out: dict[str, Any] = {}
    for name, value in given.items() if isinstance(given, dict) else ():
        try:
            out |= DataLoader.model_validate({name: value}).model_dump(exclude_unset=True)
        except ValidationError:
            continue
    return out
