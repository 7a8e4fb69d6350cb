"""Did the hardware report errors?"""

from __future__ import annotations

import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.measures.events import EventsProfile, measure_events
from gpudiag.rules._engine.evidence import Evidence
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given

FIRST = Given("first", ", first at {first} UTC")


@rule(
    measure=measure_events,
    severity="critical",
    title="A GPU was lost",
    checks="Lost GPUs",
    says=("A GPU was lost {n_lost:time}", FIRST, "."),
    remedy="Save the kernel log (journalctl -k) and power the machine off and on. Check power cable, riser and "
    "cooling; replace a card that is lost again.",
    refuted_by="Not a problem if the driver was reloaded on purpose.",
)
def gpu_lost(events: EventsProfile, *, max_events: float = 0.0) -> Evidence | None:
    """A GPU that has left the bus does not come back without a restart, and every trial on it fails.

    "GPU is lost" in the output of nvidia-smi, or Xid 79 in the kernel log (METHODS 6).
    """
    if not events.n_lost > max_events:
        return None
    found = events.events[events.events["kind"] == "gpu_lost"]
    return Evidence(
        values={"n_lost": len(found), "detail": str(found["detail"].iloc[0])[:200]},
        where=_where(found),
        margin=events.n_lost - max_events,
        extra={"first": found["time"].min()},
    )


@rule(
    measure=measure_events,
    severity="critical",
    title="The logs show hardware errors of a GPU",
    checks="Hardware errors in the kernel log",
    says=("The logs hold {n_hardware:hardware error} of a GPU", Given("xids", " (Xid {xids})"), FIRST, "."),
    remedy="Run dcgmi diag -r 3, and look at the ECC counters (nvidia-smi -q -d ECC) and at NVLink or PCIe. Have a "
    "card with repeated uncorrectable errors replaced.",
    refuted_by="Not a problem if a program caused the Xids (13, 31); these are not counted here.",
    explained_by=("gpu-lost",),
)
def gpu_hardware_errors(events: EventsProfile, *, max_events: float = 0.0) -> Evidence | None:
    """A card with memory or bus errors gives wrong results before it gives none.

    Xid 48, 63, 64, 74, 79, 94 or 95, or uncorrectable ECC errors (METHODS 6). Without a kernel log their absence is not
    known.
    """
    if events.n_hardware > max_events:
        table = events.events
        found = table[(table["kind"] == "ecc") | ((table["xid"] > 0) & ~table["xid"].isin([13, 31]))]
        numbers = sorted({int(xid) for xid in found["xid"].dropna()})
        return Evidence(
            values={"n_hardware": events.n_hardware, "xids": numbers},
            where=_where(found),
            margin=events.n_hardware - max_events,
            extra={"first": found["time"].min()},
        )
    if not events.has_kernel_log:
        raise NotMeasurable(
            "No kernel log is among the inputs.",
            "Put it into the run folder (or give it with --artifacts): journalctl -k | grep -i xid > kernel.log.",
        )
    return None


def _where(found: pd.DataFrame) -> dict[str, str]:
    names = sorted(set(found["gpu"].dropna().astype(str))) if "gpu" in found else []
    return {"gpu": ", ".join(names)} if names else {}
