"""What logs and counters said about the hardware."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._gpu.event_gpus import gpus_of
from gpudiag.measures._gpu.losses import count_losses
from gpudiag.measures._gpu.vanished import vanished
from gpudiag.measures._gpu.xids import HARDWARE, LOST_XID, PROGRAM, UNCLEAR, xids
from gpudiag.measures._time.cells import cells
from gpudiag.measures._time.coverage import coverage_pct, least_pct
from gpudiag.measures.base import RECORD_GPU, Profile
from gpudiag.memo import memoized
from gpudiag.run import Run

_WORSE = r"\b(?:uncorrectable|uncorrected|double[- ]bit)\b"
_ECC = rf"(?i){_WORSE}.*\becc\b|\becc\b.*{_WORSE}"


class HardwareEvent(Row):
    """An event about hardware, each once, in order of time."""

    time: Column[pd.Timestamp] = column("instant", label="at")
    gpu: Column[str] = column("GPU, or its PCI address where nothing tells which GPU is at it", optional=True)
    kind: Column[str] = column("gpu_lost, xid, sxid (of a NVSwitch) or ecc")
    xid: Column[float] = column("number of the Xid, NaN where none")
    sxid: Column[float] = column("number of the SXid, NaN where none")
    origin: Column[str] = column("hardware, program or unclear, by NVIDIA's catalog; empty where it is no error")
    detail: Column[str] = column("the line", label="log line")


class EccCounter(Row):
    """A GPU with a counter of uncorrectable ECC errors. Only what exceeds all counted before is an error within the
    record: a counter that falls to 0 and comes back has been reset, or was not read.
    """

    n_ecc: Column[float] = column("errors counted within the record", label="uncorrectable ECC errors")
    n_ecc_before: Column[float] = column(
        "errors counted when the record began", label="uncorrectable ECC errors before the record"
    )
    first_ecc: Column[pd.Timestamp] = column("sample that shows the first error within the record; NaT where none")


class VanishedGpu(Row):
    """A GPU whose rows end for good, while those of others on its host go on."""

    last: Column[pd.Timestamp] = column("its last row", label="last listed")
    unlisted_s: Column[float] = column("time for which others were listed behind it", label="others listed for")
    error: Column[str] = column(
        "error of the driver or CUDA that a log tells of at that moment, '' where none or no one file lists others on",
        label="error",
    )


class EventsProfile(Profile, topic="events"):
    """What logs and counters say about the hardware."""

    events: Rows = table_of(HardwareEvent)
    counters: Rows = table_of(EccCounter)
    vanished: Rows = table_of(VanishedGpu)
    n_lost: Fact[int] = fact("losses of a GPU, at least: one that came back counts again", label="losses")
    n_lost_gpus: Fact[int] = fact("GPUs that were lost, at least", label="GPUs lost")
    n_vanished: Fact[int] = fact(
        "GPUs that are no longer listed behind an error, while others on their host are", label="GPUs no longer listed"
    )
    n_hardware: Fact[int] = fact(
        "ECC errors, fatal SXids and Xids of the hardware or its firmware", label="hardware errors"
    )
    n_application: Fact[int] = fact("Xids such as 13 and 31, which programs cause")
    n_ambiguous: Fact[int] = fact("other Xids and SXids, which may come from either", label="errors of unclear origin")
    has_kernel_log: Fact[bool] = fact("some event is a Xid or a SXid")
    coverage_pct: Fact[float] = fact("the telemetry's: a log of metrics tells of a lost GPU")


@memoized
def measure_events(run: Run) -> EventsProfile:
    """Hardware events. Needs telemetry or a log."""
    if run.events.empty and run.gpu.empty:
        raise NotMeasurable("There is no telemetry, and no log tells of a failure.", RECORD_GPU)
    wanted = _each_once(run.events)
    detail = wanted["detail"].astype("object").fillna("").astype(str)
    codes = xids(detail)
    ecc = detail.str.contains(_ECC, regex=True) | (wanted["kind"] == "ecc")
    kind = wanted["kind"].astype(object).where(wanted["kind"].isin(["gpu_lost", "xid", "sxid"]))
    kind = kind.mask(kind.isna() & ecc, "ecc").mask(kind.isna() & (codes["xid"] > 0), "xid")
    kind = kind.mask(codes["xid"] == LOST_XID, "gpu_lost")
    unread = kind.isin(["xid", "sxid"]) & codes[["xid", "sxid"]].isna().all(axis=1)
    origin = codes["origin"].mask(kind == "ecc", HARDWARE).mask(unread, UNCLEAR)
    parts = {"time": wanted["time"], "gpu": wanted.get("gpu"), "kind": kind}
    frame = pd.DataFrame({**parts, "xid": codes["xid"], "sxid": codes["sxid"], "origin": origin, "detail": detail})
    frame = frame[frame["kind"].notna()].sort_values(["time", "kind", "detail"], kind="stable", ignore_index=True)
    frame["gpu"] = gpus_of(frame, run)
    n_gpus, n_lost = count_losses(frame[frame["kind"] == "gpu_lost"], run)
    n = frame["origin"].value_counts()
    gone = vanished(run)
    return EventsProfile(
        events=frame,
        counters=_counters(run.gpu),
        vanished=gone,
        n_lost=n_lost,
        n_lost_gpus=n_gpus,
        n_vanished=int((gone["error"] != "").sum()),
        n_hardware=int(n.get(HARDWARE, 0)),
        n_application=int(n.get(PROGRAM, 0)),
        n_ambiguous=int(n.get(UNCLEAR, 0)),
        has_kernel_log=bool(frame[["xid", "sxid"]].notna().any(axis=None)),
        coverage_pct=_coverage(run),
    )


def _counters(gpu: pd.DataFrame) -> pd.DataFrame:
    """Uncorrectable ECC errors of each GPU that counts them."""
    rows: dict[str, tuple[float, float, pd.Timestamp]] = {}
    if "ecc_uncorrected" in gpu:
        known = gpu[gpu["ecc_uncorrected"].notna()].sort_values("time", kind="stable")
        for name, own in known.groupby("gpu", sort=True):
            most = np.maximum.accumulate(own["ecc_uncorrected"].to_numpy())
            rises = np.flatnonzero(np.diff(most) > 0)
            first = own["time"].iloc[rises[0] + 1] if len(rises) else pd.NaT
            rows[str(name)] = (most[-1] - most[0], most[0], first)
    table = pd.DataFrame(list(rows.values()), pd.Index(list(rows), name="gpu"), ["n_ecc", "n_ecc_before", "first_ecc"])
    first_ecc = pd.to_datetime(table["first_ecc"], utc=True)
    return table.astype({"n_ecc": float, "n_ecc_before": float}).assign(first_ecc=first_ecc)


def _each_once(events: pd.DataFrame) -> pd.DataFrame:
    """The events, each once: of two GPUs lost at one moment both, and of a line that two sources hold the one that
    names its GPU.
    """
    same = ["time", "kind", "detail"]
    if "gpu" not in events:
        return events.drop_duplicates(same)
    named_first = events.sort_values("gpu", kind="stable")
    again = named_first["gpu"].isna() & named_first.duplicated(same)
    return named_first[~again].drop_duplicates([*same, "gpu"])


def _coverage(run: Run) -> float:
    if not run.gpu["time"].notna().any():
        return float("nan")
    samples = cells(run)
    return least_pct(coverage_pct(run, samples).values())
