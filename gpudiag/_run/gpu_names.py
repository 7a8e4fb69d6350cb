"""The GPU that a trial's own record names, in any of the ways people write it."""

from __future__ import annotations

import re
from collections.abc import Container

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
_SHARED = re.compile(r"(\d+)[b-z]|.*/(\d+)[b-z]?")
"""What GPUs are called beside others of one index, as the readers name them: 0b, node1/0."""
_OPEN = "?"
_EVENT = r"(?i)\btrial\s*#?\s*(?P<trial>\d+)\b.*?\b(?:gpu|cuda)\s*[:#]?\s*(?P<gpu>\d+)\b"


def declared_gpus(run: RunTables) -> dict[int, tuple[str, ...]]:
    """GPUs by row of ``run.trials``, for the trials whose record names some that can be told.

    The column ``gpu`` comes first, then attributes and parameters called gpu_id, device, CUDA_VISIBLE_DEVICES
    and the like. Values may be an index, ``cuda:1``, a list of these, a UUID or a bus id. Where both a
    mask and a device are given, the device counts within the mask, as CUDA counts it. An index that two GPUs have,
    as those of two machines, names the one of them that was sampled while the trial ran; none where both were.
    """
    names = GpuNames.of(run)
    masks = _by_row(run.trials, VISIBLE, names)
    devices = _by_row(run.trials, NAMED, names)
    found = dict(masks)
    for row, chosen in devices.items():
        mask = masks.get(row)
        if mask:
            inner = [gpu_index(gpu.removesuffix(_OPEN)) for gpu in chosen]
            inside = [mask[index] for index in inner if index is not None and index < len(mask)]
            chosen = tuple(inside) or mask
        found[row] = chosen
    if "gpu" in run.trials:
        found |= _column(run.trials["gpu"], names)
    found = _settled(run, found)
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
    shared = _shared(run)
    return {key: names for key, names in out.items() if not shared.keys() & set(names)}


def _shared(run: RunTables) -> dict[str, list[str]]:
    """The GPUs of each index that several have: two machines, or a board in the place of another one."""
    out: dict[str, list[str]] = {}
    for gpu in sorted({*run.gpus["gpu"].dropna().astype(str), *run.info.left_out_gpus}):
        if twin := _SHARED.fullmatch(gpu):
            out.setdefault(twin[1] or twin[2], [twin[1]] if twin[1] else []).append(gpu)
    return out


def _settled(run: RunTables, found: dict[int, tuple[str, ...]]) -> dict[int, tuple[str, ...]]:
    """``found`` with GPUs in place of indices that several have; without the trials of which that is not known."""
    shared = {f"{index}{_OPEN}": gpus for index, gpus in _shared(run).items()}
    if not any(gpu in shared for gpus in found.values() for gpu in gpus):
        return found
    times = run.gpu.groupby("gpu", observed=True)["time"].agg(["min", "max"])
    hosts = [str(host) for host in run.trials["host"]] if "host" in run.trials else [""] * len(run.trials)
    start, end = (run.trials[name].reset_index(drop=True) for name in ("start", "end"))

    def one(row: int, gpu: str) -> str:
        if gpu not in shared:
            return gpu
        twins = [twin for twin in shared[gpu] if hosts[row] and twin.startswith(f"{hosts[row]}/")] or shared[gpu]
        seen = times[times.index.isin(twins)]
        beside = seen[~(seen["min"] > end[row]) & ~(seen["max"] < start[row])]  # an unknown end is later than any
        left_out = any(twin in run.info.left_out_gpus for twin in twins)  # of which no sample is there
        return str(beside.index[0]) if len(beside) == 1 and not left_out else ""

    settled = {row: tuple(one(row, gpu) for gpu in gpus) for row, gpus in found.items()}
    return {row: gpus for row, gpus in settled.items() if all(gpus)}


class GpuNames:
    """Turns what people write into the names of GPUs that the telemetry uses."""

    def __init__(self, uuids: dict[str, str], buses: dict[str, str], shared: Container[str] = ()) -> None:
        self._uuids = uuids
        self._buses = buses
        self._shared = shared

    @classmethod
    def of(cls, run: RunTables) -> GpuNames:
        return cls(_lookup(run.gpus, "uuid"), _lookup(run.gpus, "bus_id"), _shared(run))

    def parse(self, value: object) -> tuple[str, ...]:
        """GPU names in a value; empty where it names none (``cuda``, ``cpu``, ``auto``, -1) or an unknown one. An index
        that several GPUs have comes with a question mark.
        """
        if isinstance(value, bool) or value is None:
            return ()
        parts = [part for part in re.split(r"[,;\s]*[,;][,;\s]*", str(value).strip().strip("[](){}\"' ")) if part]
        found = [self._one(part.strip("\"' ")) for part in parts]
        return tuple(dict.fromkeys(name for name in found if name)) if all(found) else ()

    def _one(self, text: str) -> str:
        match = _INDEX.fullmatch(text)
        if match:
            index = str(int(match[1]))
            return index + _OPEN if index in self._shared else index
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
