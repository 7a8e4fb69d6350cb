"""Did the hardware report errors?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.measures.events import HARDWARE_XIDS, LOST_XID, EventsProfile, measure_events
from gpudiag.rules._engine.evidence import Evidence, gpu_names
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given, Sentence
from gpudiag.rules._engine.verdict import Severity
from gpudiag.values import Value

FIRST = Given("first", ", first at {first} UTC")
XIDS = Given("xids", " (Xid {xids})")
COUNTED: Sentence = (
    "{counting}",
    Given("counting_together", " together"),
    " counted {n_ecc:uncorrectable ECC error}, first seen at {first_ecc} UTC.",
)
EARLIER: Sentence = (
    "{earlier}",
    Given("earlier_together", " together"),
    " had counted {n_ecc_before:uncorrectable ECC error} when the record began: since the driver was loaded, "
    "at an unknown time.",
)


@rule(
    measure=measure_events,
    severity="critical",
    title="A GPU was lost",
    checks="Lost GPUs",
    says=(Given("all_named", "{gpus}", "A GPU"), Given("several", " were", " was"), " lost {n_lost:time}", FIRST, "."),
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
        extra={
            "first": found["time"].min(),
            "all_named": "gpu" in found and bool(found["gpu"].notna().all()),
            "several": "gpu" in found and found["gpu"].nunique() > 1 and bool(found["gpu"].notna().all()),
        },
    )


@rule(
    measure=measure_events,
    severity="critical",
    title="The logs show hardware errors of a GPU",
    checks="Hardware errors",
    says=(
        Given(
            "told",
            (
                Given("n_hardware", ("The logs hold {n_hardware:hardware error} of a GPU", XIDS, FIRST, ".")),
                Given("n_ecc", (Given("n_hardware", " "), COUNTED)),
                Given("n_ecc_before", (" ", EARLIER)),
            ),
            EARLIER,
        ),
    ),
    remedy="Run dcgmi diag -r 3, and look at the ECC counters (nvidia-smi -q -d ECC) and at NVLink or PCIe. Have a "
    "card with repeated uncorrectable errors replaced.",
    refuted_by="Not a problem if a program caused the Xids (13, 31); these are not counted here.",
    explained_by=("gpu-lost",),
)
def gpu_hardware_errors(events: EventsProfile, *, max_events: float = 0.0) -> Evidence | None:
    """A card with memory or bus errors gives wrong results before it gives none.

    Xid 48, 63, 64, 74, 79, 94 or 95, an ECC error in a log, or a counter of uncorrectable ECC errors that rises within
    the record (METHODS 6). A counter that was above zero from the start is a warning. It counts since the driver was
    loaded (nvidia-smi --help-query-gpu), and that of nvidia-smi dmon may count longer. Without a kernel log the absence
    of errors is not known: counters show none of the bus.
    """
    table, counters = events.events, events.counters
    counted, earlier = counters[counters["n_ecc"] > max_events], counters[counters["n_ecc_before"] > max_events]
    if events.n_hardware > max_events or len(counted) or len(earlier):
        found = table[table["xid"].isin(HARDWARE_XIDS) | (table["kind"] == "ecc")]
        numbers: dict[str, Value] = {
            "n_hardware": events.n_hardware,
            "xids": sorted({int(xid) for xid in found["xid"].dropna()}),
            "n_ecc": int(counted["n_ecc"].sum()),
            "n_ecc_before": int(earlier["n_ecc_before"].sum()),
        }
        others = {*gpu_names(_where(found[found["xid"] != LOST_XID]).get("gpu", "")), *counted.index, *earlier.index}
        named = others or gpu_names(_where(found).get("gpu", ""))  # a GPU that was lost is named by the rule for that
        within = events.n_hardware > max_events or len(counted) > 0
        return Evidence(
            values={name: number for name, number in numbers.items() if number},
            where={"gpu": ", ".join(sorted(named))} if named else {},
            margin=float(np.nanmax([events.n_hardware, *counters["n_ecc"], *counters["n_ecc_before"]])) - max_events,
            severity=None if within else Severity.WARNING,
            extra={
                **numbers,
                "first": found["time"].min(),
                "counting": [f"GPU {name}" for name in counted.index],
                "first_ecc": counted["first_ecc"].min() if len(counted) else None,
                "earlier": [f"GPU {name}" for name in earlier.index],
                "counting_together": len(counted) > 1,
                "earlier_together": len(earlier) > 1,
                "told": events.n_hardware > 0 or len(counted) > 0,
            },
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
