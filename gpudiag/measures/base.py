"""What a measure is: a pure function from a run to a small frozen profile.

A profile is a frozen dataclass. Its scalar fields carry their unit in the name; its DataFrames are
tidy. :func:`facts` turns the scalars, and the rows of ``per_gpu`` and ``by_state``, into the ``measures`` section
of the JSON.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from gpudiag.errors import NotMeasurable

if TYPE_CHECKING:
    import pandas as pd

    from gpudiag.run import Run

Profile = Any
Measure = Callable[["Run"], Profile]

UNITS = {
    "_pct": "%", "_mib_s": "MiB/s", "_mib": "MiB", "_gib": "GiB", "_w": "W", "_kwh": "kWh", "_c": "°C",
    "_mhz": "MHz", "_gpu_h": "GPU-h", "_gpu_s": "GPU-s", "_slot_s": "slot-s", "_slot_h": "slot-h",
    "_h": "h", "_s": "s", "_j": "J",
}  # fmt: skip

T = TypeVar("T")


def unit_of(name: str) -> str:
    """The unit that a name carries: ``mean_power_w`` is in W; '1' where it carries none."""
    for suffix in sorted(UNITS, key=len, reverse=True):
        if name.endswith(suffix):
            return UNITS[suffix]
    return "1"


def facts(profile: Profile) -> dict[str, dict[str, Any]]:
    """Scalars of a profile as ``{name: {value, unit}}``; rows of ``per_gpu`` as ``gpu.<gpu>.<column>``,
    of ``by_state`` as ``state.<state>.<column>``.

    Unknown (NaN) becomes None.
    """
    out: dict[str, dict[str, Any]] = {}
    for spec in dataclasses.fields(profile):
        value = getattr(profile, spec.name)
        if isinstance(value, bool | int | float | str) or value is None:
            out[spec.name] = _fact(spec.name, value)
    for kind, field in (("gpu", "per_gpu"), ("state", "by_state")):
        frame = getattr(profile, field, None)
        if frame is not None:
            for row in frame.reset_index(names=kind).to_dict("records"):
                key = row.pop(kind)
                for name, value in row.items():
                    out[f"{kind}.{key}.{name}"] = _fact(str(name), value)
    return out


def _fact(name: str, value: Any) -> dict[str, Any]:
    """A value and its unit: '' for text and yes or no, 'UTC' for a stamp."""
    plain = clean(value)
    unit = "" if isinstance(plain, bool | str) else unit_of(name)
    return {"value": plain, "unit": "UTC" if hasattr(value, "tzinfo") else unit}


def clean(value: Any) -> Any:
    """A value that JSON can hold: numpy scalars become Python's, NaN/NaT/infinity become None."""
    import numpy as np
    import pandas as pd

    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value is pd.NaT or value is pd.NA:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, pd.Timestamp):
        return value.isoformat()
    if isinstance(value, pd.Timedelta):
        return value.total_seconds()
    return value


def need_columns(frame: pd.DataFrame, columns: tuple[str, ...], what: str, remedy: str) -> None:
    """Raise NotMeasurable unless the frame has rows and a value in each of the columns."""
    if frame.empty:
        raise NotMeasurable(f"There is no {what}.", remedy)
    for column in columns:
        if column not in frame or not frame[column].notna().any():
            raise NotMeasurable(f"The {what} has no {column}.", remedy)


RECORD_GPU = (
    "Record it with: nvidia-smi --query-gpu=timestamp,index,name,utilization.gpu,memory.used,memory.total,"
    "power.draw,power.limit,temperature.gpu,clocks.sm --format=csv -l 1 > gpu.csv"
)
GIVE_TRIALS = "Give the study with --trials optuna.db, or a task log in the run folder."
