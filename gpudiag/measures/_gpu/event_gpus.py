"""Which GPU a line of a log speaks of: by its PCI address, or as the one whose readings end at that moment."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from gpudiag.measures._time.cells import rows_by_gpu
from gpudiag.measures._time.microseconds import SECOND_US, distinct, microseconds
from gpudiag.readers._shape.identity import short_bus_id
from gpudiag.run import Run
from gpudiag.schema import has_values

_ADDRESS = r"(?i)(?<![0-9a-f])([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})(?:\.[0-7])?(?![0-9a-f:])"
_HOST = r"(\S{1,64}) kernel: "
READINGS = ("util_pct", "mem_used_mib", "power_w", "sm_clock_mhz")
SILENT_PERIODS = 3
"""So many missing samples of one GPU, while others are sampled, are the end of its readings."""
NOTICED_S = 10.0
"""The driver notices a loss when it next speaks to the GPU (a default without a published source)."""


def gpus_of(events: pd.DataFrame, run: Run) -> pd.Series:
    """The GPU of each event: the one that it names, or is at the PCI address in its line. GPUs that were lost at
    addresses of which nothing is known are those whose readings end then, if there are as many: nvidia-smi numbers
    them by address. Else the address itself, and None without one.
    """
    lines = events["detail"]
    named = events["gpu"].astype(object) if "gpu" in events else pd.Series(None, events.index, dtype=object)
    address = _short(lines.str.extract(_ADDRESS)[0]).where(events["kind"] != "sxid")
    host = lines.str.extract(_HOST)[0]
    keys = pd.DataFrame({"address": address, "host": host})[named.isna() & address.notna()]
    known = {(str(at), on): _at(str(at), on, run.gpus) for at, on in keys.drop_duplicates().itertuples(index=False)}
    found = pd.Series({row: known[str(at), on] for row, at, on in keys.itertuples()}, events.index, dtype=object)
    several = host.nunique() > 1
    written = address.str.replace(r"^[^:]*", lambda match: match[0].zfill(4), regex=True)
    written = (host.fillna("") + "/" + written).where(host.notna() & several, written)
    gpu = named.where(named.notna(), found)
    lost = (events["kind"] == "gpu_lost") & gpu.isna()
    if lost.any() and len(run.gpu):
        gone = _whose_readings_end(events["time"][lost], written[lost].fillna(""), run)
        gpu = gpu.where(gpu.notna(), written.fillna("").where(written.notna() | lost).map(gone))
    return gpu.where(gpu.notna(), written).where(lambda name: name.notna(), None)


def _short(address: pd.Series) -> pd.Series:
    return address.map(short_bus_id, na_action="ignore").astype(address.dtype)


def _at(address: str, host: object, gpus: pd.DataFrame) -> str | None:
    """The GPU at a PCI address; None where there is none, or one on each of several hosts."""
    if "bus_id" not in gpus:
        return None
    here = gpus[_short(gpus["bus_id"].astype(object).str.replace(r"\.\d$", "", regex=True)) == address]
    if isinstance(host, str) and has_values(here, "host"):
        here = here[here["host"].astype(object).str.partition(".")[0] == host.partition(".")[0]]
    return str(here["gpu"].iloc[0]) if len(here) == 1 else None


class Silence(NamedTuple):
    """A stretch without a reading of one GPU, while others are sampled. ``period_s``: between its samples before."""

    gpu: str
    last: pd.Timestamp
    period_s: float


def _whose_readings_end(time: pd.Series, address: pd.Series, run: Run) -> dict[str, str]:
    """By address of lost GPUs, '' for unknown, the one whose readings end then, where there are as many of either."""
    gone = silences(run)
    ends = {
        str(at): tuple(sorted({one.gpu for one in gone if _is_at(moment, one)}, key=_in_order))
        for at, moment in time.groupby(address).min().items()
    }
    out: dict[str, str] = {}
    for gpus in set(ends.values()):
        places = sorted(at for at, others in ends.items() if others == gpus)
        if len(places) == len(gpus):
            out |= dict(zip(places, gpus, strict=True))
    return out


def _is_at(moment: pd.Timestamp, silence: Silence) -> bool:
    return bool(abs((moment - silence.last).total_seconds()) <= 2 * silence.period_s + NOTICED_S)


def _in_order(gpu: str) -> tuple[str, int, str]:
    host, _, index = gpu.rpartition("/")
    return host, int(index) if index.isdecimal() else 0, index


def readings(run: Run) -> dict[str, np.ndarray]:
    """Seconds at which each GPU told something, in order."""
    return seconds_by_gpu(run, run.gpu[[name for name in READINGS if name in run.gpu]].notna().any(axis=1).to_numpy())


def seconds_by_gpu(run: Run, told: np.ndarray) -> dict[str, np.ndarray]:
    """Seconds since 1970 at which each GPU has rows that are ``told``, in order, each once: clocks of whole seconds
    repeat them.
    """
    time_us, told = microseconds(run.gpu["time"]), told & run.gpu["time"].notna().to_numpy()
    times = {gpu: time_us[rows][told[rows]] for gpu, rows in sorted(rows_by_gpu(run).items())}
    return {gpu: distinct(own) / SECOND_US for gpu, own in times.items() if len(own)}


def silences(run: Run) -> list[Silence]:
    """Where the readings of single GPUs end, for good or for a while."""
    told = readings(run)
    every = np.sort(np.concatenate(list(told.values()) or [np.empty(0)]))
    out: list[Silence] = []
    for name, own in told.items():
        period_s = period_of(own)
        until = np.append(own[1:], every[-1] + 1)
        long = np.flatnonzero(until - own > SILENT_PERIODS * period_s)
        low, high = own[long] + period_s, until[long]
        beside = np.searchsorted(every, high) - np.searchsorted(every, low)
        beside -= np.searchsorted(own, high) - np.searchsorted(own, low)
        out += [
            Silence(name, pd.Timestamp(own[at], unit="s", tz="UTC"), period_s) for at in long[beside >= SILENT_PERIODS]
        ]
    return out


def period_of(at_s: np.ndarray) -> float:
    """Median seconds between readings; 0 of a single one."""
    return float(np.median(np.diff(at_s))) if len(at_s) > 1 else 0.0
