"""The GPU that a trial's own record names, in any of the ways people write it."""

from __future__ import annotations

import re

import pandas as pd

from gpudiag._run.tables import RunTables
from gpudiag.readers._batches.log_lines import FAILURES
from gpudiag.schema import gpu_index

VISIBLE = frozenset({"cuda_visible_devices", "nvidia_visible_devices", "hip_visible_devices", "visible_devices"})
NAMED = frozenset(
    {
        *("gpu", "gpu_id", "gpu_ids", "gpu_index", "gpu_idx", "gpu_uuid", "uuid", "gpu_device", "gpu_device_id"),
        *("cuda_device", "cuda_device_id", "device", "device_id", "device_ids", "device_index"),
    }
)
_PREFIXES = ("user_attrs.", "params.", "system_attrs.")
_INDEX = re.compile(r"(?:(?:cuda|gpu|gpus|hip|nvidia)[\s:#_-]*)?(\d+)(?:\.0+)?", re.IGNORECASE)
_EVENT = r"(?i)\btrial\s*#?\s*(?P<trial>\d+)\b.*?\b(?:gpu|cuda)\s*[:#]?\s*(?P<gpu>\d+)\b"


def declared_gpus(run: RunTables) -> dict[int, tuple[str, ...]]:
    """GPUs by row of ``run.trials``, for the trials whose record names some that can be told.

    The column ``gpu`` comes first, then attributes and parameters called gpu_id, device, CUDA_VISIBLE_DEVICES
    and the like. Values may be an index, ``cuda:1``, a list of these, a UUID or a bus id. Where both a
    mask and a device are given, the device counts within the mask, as CUDA counts it.
    """
    names = GpuNames.of(run)
    masks = _by_row(run.trials, VISIBLE, names)
    devices = _by_row(run.trials, NAMED, names)
    found = dict(masks)
    for row, chosen in devices.items():
        mask = masks.get(row)
        if mask:
            inside = [mask[index] for gpu in chosen if (index := gpu_index(gpu)) is not None and index < len(mask)]
            chosen = tuple(inside) or mask
        found[row] = chosen
    if "gpu" in run.trials:
        found |= _column(run.trials["gpu"], names)
    # A container may number its GPUs anew: names of which the telemetry knows none say nothing.
    sampled = pd.Series(run.gpu["gpu"].unique()).dropna()
    known = {*sampled, *run.gpus["gpu"].dropna(), *run.info.left_out_gpus}
    return found if not known or any(gpu in known for gpus in found.values() for gpu in gpus) else {}


def gpus_of_events(run: RunTables) -> dict[tuple[str, int], tuple[str, ...]]:
    """GPUs by study and trial from log lines such as "Trial 3 using GPU 3", where only one study has that trial.

    The text of a failure says nothing: an error message counts GPUs within its process.
    """
    events, trials = run.events[~run.events["kind"].isin(FAILURES)], run.trials
    if events.empty or trials.empty:
        return {}
    parsed = events["detail"].str.extract(_EVENT)
    number = pd.to_numeric(parsed["trial"])
    gpu = parsed["gpu"].astype(object)
    if "trial" in events and "gpu" in events:
        stated = events["trial"].notna() & events["gpu"].notna()
        number = number.where(~stated, events["trial"].astype("float64"))
        gpu = gpu.where(~stated, events["gpu"].astype(object))
    studies = trials.groupby("trial")["study"].agg(["nunique", "first"])
    known = number.notna() & gpu.notna()
    out: dict[tuple[str, int], tuple[str, ...]] = {}
    for trial, name in zip(number[known].astype(int), gpu[known], strict=True):
        if trial in studies.index and studies.loc[trial, "nunique"] == 1:
            out[(str(studies.loc[trial, "first"]), trial)] = (str(name),)
    return out


class GpuNames:
    """Turns what people write into the names of GPUs that the telemetry uses."""

    def __init__(self, uuids: dict[str, str], buses: dict[str, str]) -> None:
        self._uuids = uuids
        self._buses = buses

    @classmethod
    def of(cls, run: RunTables) -> GpuNames:
        return cls(_lookup(run.gpus, "uuid"), _lookup(run.gpus, "bus_id"))

    def parse(self, value: object) -> tuple[str, ...]:
        """GPU names in a value; empty where it names none (``cuda``, ``cpu``, ``auto``, -1) or an unknown one."""
        if isinstance(value, bool) or value is None:
            return ()
        parts = [part for part in re.split(r"[,;\s]*[,;][,;\s]*", str(value).strip().strip("[](){}\"' ")) if part]
        found = [self._one(part.strip("\"' ")) for part in parts]
        return tuple(dict.fromkeys(name for name in found if name)) if all(found) else ()

    def _one(self, text: str) -> str:
        match = _INDEX.fullmatch(text)
        if match:
            return str(int(match[1]))
        key = text.lower()
        if key.startswith("gpu-") and len(key) >= 8:
            hits = {gpu for uuid, gpu in self._uuids.items() if uuid.startswith(key)}
            return hits.pop() if len(hits) == 1 else ""
        return next((gpu for bus, gpu in self._buses.items() if bus.endswith(key)), "") if ":" in key else ""


def _lookup(gpus: pd.DataFrame, column: str) -> dict[str, str]:
    if column not in gpus:
        return {}
    known = gpus[gpus[column].notna()]
    return {str(value).lower(): str(gpu) for value, gpu in zip(known[column], known["gpu"], strict=True)}


def _by_row(trials: pd.DataFrame, wanted: frozenset[str], names: GpuNames) -> dict[int, tuple[str, ...]]:
    """GPUs by row from every column whose last part is one of the names; the first that tells counts."""
    found: dict[int, tuple[str, ...]] = {}
    for column in trials.columns:
        prefix = next((p for p in _PREFIXES if str(column).startswith(p)), "")
        if prefix and str(column).removeprefix(prefix).strip().lower().replace("-", "_") in wanted:
            found = _column(trials[column], names) | found
    return found


def _column(values: pd.Series, names: GpuNames) -> dict[int, tuple[str, ...]]:
    known = values.reset_index(drop=True).dropna()
    if known.dtype == object:
        known = known[known.map(lambda value: isinstance(value, str | int | float | bool))]
    parsed = {value: names.parse(value) for value in known.unique()}
    return {
        row: parsed[value] for row, value in zip(known.index.tolist(), known.tolist(), strict=True) if parsed[value]
    }
