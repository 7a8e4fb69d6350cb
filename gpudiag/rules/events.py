"""Did the hardware report errors?"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.measures._gpu.xids import HARDWARE, UNCLEAR
from gpudiag.measures.events import EventsProfile, measure_events
from gpudiag.rules._engine.evidence import Evidence
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given, Sentence
from gpudiag.rules._engine.verdict import Severity
from gpudiag.values import Value

FIRST = Given("first", ", first at {first} UTC")
XIDS: Sentence = Given(
    "xids", (" (Xid {xids}", Given("sxids", "; SXid {sxids}"), ")"), Given("sxids", " (SXid {sxids})")
)
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
MAYBE_LOST = "A GPU was most likely lost"
UNCLEAR_ONES: Sentence = (
    "The logs hold {n_ambiguous:error} that may come from the hardware, the driver or a program",
    XIDS,
    FIRST,
    ".",
)


@rule(
    measure=measure_events,
    severity="critical",
    title="A GPU was lost",
    checks="Lost GPUs",
    says=(
        Given("named", "{gpus}", "A GPU"),
        Given("several", " were", " was"),
        Given(
            "error",
            " no longer listed from {first} UTC on, while others were. A log tells of an error then: {error}",
            (" lost", Given("again", " {n_lost:time}"), Given("once", " at {first} UTC", FIRST)),
        ),
        ".",
    ),
    remedy="Save the kernel log (journalctl -k) and power the machine off and on. Check power cable, riser and "
    "cooling; replace a card that is lost again.",
    refuted_by="Not a problem if the driver was reloaded on purpose.",
)
def gpu_lost(events: EventsProfile, *, max_events: float = 0.0) -> Evidence | None:
    """A GPU that has left the bus does not come back without a restart, and every trial on it fails.

    "GPU is lost" in the output of nvidia-smi, an unknown error in place of all numbers (three or more), or Xid 79 in
    the kernel log (METHODS 6). Many a line may tell of one
    loss: those of one PCI address or GPU are one, until it gives readings again. The GPU is known by its address, or as
    the one whose readings end at that moment.

    Some tools only leave it out from then on. Rows of one GPU that end while those of others in the same file go on,
    within 10 s of an error in a log, are most likely a loss (a default without a published source). It must be an error
    of the driver or CUDA, such as an unspecified launch failure. Otherwise the recording of that GPU may have ended:
    then it is not known, from a minute on.
    """
    if not events.n_lost > max_events:
        return _vanished(events, max_events)
    found = events.events[events.events["kind"] == "gpu_lost"]
    gpus = sorted(_gpus(found))
    return Evidence(
        values={"n_lost": events.n_lost, "detail": str(found["detail"].iloc[0])[:200]},
        where=_where([gpu for gpu in gpus if ":" not in gpu]),  # at a PCI address may be any of them
        margin=events.n_lost - max_events,
        extra={
            "first": found["time"].min(),
            "gpus": gpus,
            "named": bool(gpus),
            "several": events.n_lost_gpus > 1,
            "again": events.n_lost > events.n_lost_gpus,
            "once": found["time"].nunique() == 1,
            "error": "",
        },
    )


def _vanished(events: EventsProfile, max_events: float) -> Evidence | None:
    """The finding about GPUs that were no longer listed. Raises NotMeasurable where no log tells of an error then."""
    gone = events.vanished
    found = gone[gone["error"] != ""]
    if len(found) > max_events:
        return Evidence(
            values={"n_vanished": len(found), "detail": str(found["error"].iloc[0])[:200]},
            where=_where(found.index),
            margin=len(found) - max_events,
            title=MAYBE_LOST,
            extra={
                "named": True,
                "several": len(found) > 1,
                "first": found["last"].min(),
                "error": str(found["error"].iloc[0]),
            },
        )
    if len(gone) > max_events:
        raise NotMeasurable(
            "{gpus} " + ("was" if len(gone) == 1 else "were") + " no longer listed from {since} UTC on, while others "
            "were. Nothing says whether a GPU was lost or a recorder ended.",
            "Put the kernel log into the run folder: journalctl -k | grep -i xid > kernel.log. Xid 79: the GPU has "
            "fallen off the bus.",
            gpus=list(gone.index),
            since=gone["last"].min(),
        )
    return None


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
            Given("n_ecc_before", EARLIER, UNCLEAR_ONES),
        ),
    ),
    remedy="Reset the GPU (nvidia-smi --gpu-reset) or restart the machine, and run dcgmi diag -r 3. Look at the ECC "
    "counters (nvidia-smi -q -d ECC) and at NVLink or PCIe. Have a card with repeated uncorrectable errors replaced.",
    refuted_by="Not a problem if a program caused the Xids (13, 31); these are not counted here.",
    explained_by=("gpu-lost",),
)
def gpu_hardware_errors(events: EventsProfile, *, max_events: float = 0.0) -> Evidence | None:
    """A card with memory or bus errors gives wrong results before it gives none.

    An ECC error in a log, a fatal SXid of a NVSwitch, or a Xid of the hardware or its firmware (METHODS 6). Such are
    those for which NVIDIA's catalog asks for a reset of the GPU, a restart of the machine, or a look at memory, links
    or power (docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html). They are 46, 48, 54, 62-64, 74, 79, 92, 94,
    95, 109, 110, 119-121, 136, 140, 143-150, 154-158, 167, 168, 171 and 172. What programs cause is not counted: 11,
    13, 25, 31, 32, 37, 43, 45, 69 and 80. Any other Xid, and what its line calls non-fatal, is a note.

    A counter of uncorrectable ECC errors that rises within the record is found, too. One that was above zero from the
    start is a warning. It counts since the driver was loaded (nvidia-smi --help-query-gpu), and that of nvidia-smi dmon
    may count longer. Without a kernel log the absence of errors is not known: counters show none of the bus.
    """
    counters = events.counters
    counted, earlier = counters[counters["n_ecc"] > max_events], counters[counters["n_ecc_before"] > max_events]
    within = events.n_hardware > max_events or len(counted) > 0
    if within or len(earlier) or events.n_ambiguous > max_events:
        table = events.events
        is_unclear = not within and not len(earlier)
        found = table[table["origin"] == (UNCLEAR if is_unclear else HARDWARE)]
        numbers: dict[str, Value] = {
            "n_hardware": events.n_hardware,
            "n_ambiguous": events.n_ambiguous if is_unclear else 0,
            "xids": sorted({int(xid) for xid in found["xid"].dropna()}),
            "sxids": [str(sxid) for sxid in sorted({int(sxid) for sxid in found["sxid"].dropna()})],
            "n_ecc": int(counted["n_ecc"].sum()),
            "n_ecc_before": int(earlier["n_ecc_before"].sum()),
        }
        named = {*_gpus(found), *counted.index, *earlier.index}
        named = named - _gpus(table[table["kind"] == "gpu_lost"]) or named  # one that was lost is named by its own rule
        most = np.nanmax([events.n_hardware, *counters["n_ecc"], *counters["n_ecc_before"]])
        return Evidence(
            values={name: number for name, number in numbers.items() if number},
            where=_where(named),
            margin=float(events.n_ambiguous if is_unclear else most) - max_events,
            severity=None if within else Severity.NOTE if is_unclear else Severity.WARNING,
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


def _where(gpus: Iterable[str]) -> dict[str, str]:
    names = ", ".join(sorted(gpus))
    return {"gpu": names} if names else {}


def _gpus(found: pd.DataFrame) -> set[str]:
    return set(found["gpu"].dropna().astype(str)) if "gpu" in found else set()
