"""Remedies for a GPU that waits for its input."""

from __future__ import annotations

import math
from dataclasses import replace

from gpudiag.advice._engine.gains import IDLE, fill_gain, gpus_at_work, in_step_gain, without_causes, without_open
from gpudiag.advice._engine.loader_waits import (
    alike,
    epochs_told,
    likely_copies,
    long_waits,
    no_starts,
    no_wait,
    pauses_between_epochs,
    source,
    waits_pct,
)
from gpudiag.advice._engine.proposal import Change, Gain, Proposal, Value
from gpudiag.advice._engine.remedy import remedy
from gpudiag.advice._engine.situation import INPUT_WAITS, Situation
from gpudiag.measures.ledger import LedgerProfile
from gpudiag.measures.loader import LoaderProfile
from gpudiag.measures.utilization import UtilizationProfile
from gpudiag.report.format import quantity, share
from gpudiag.rules._engine.verdict import Severity

WAITS = (
    "gpu-low-utilization", "gpu-fluctuating", "cpu-bound-input", "loader-slow", "stalls-aperiodic", "steps-data",
)  # fmt: skip
LOADER = "The GPU waits for the loader"
TIME_IT = "Time 100 steps with one batch kept on the GPU. If that is no faster, the loader is not the cause."
RESTORE = "Restore the present value and restart."
NO_PARALLEL = "How many trials or ranks load at once is not stated (parallel in run.toml)."
NO_CORES = "The number of CPU cores is not stated (cpu_cores in run.toml)."
UNSHOWN_STARTS = "Nothing recorded shows that the GPU waits at the start of epochs."
TOGETHER = (
    "Each GPU waits for the one whose batch comes last, and counts as busy meanwhile. So neither utilization nor the "
    "log of one rank bounds what goes at best."
)
DISK = "The disk is what steps wait for: it reads no faster for more workers or a longer queue."
MAX_PREFETCH = 16
MANY_WORKERS = 8
"""To begin with where nobody states a number (a default without a published source)."""
STEADY_PCT = 20.0
FEW_QUEUES = 4
"""Times as many batches as the loader holds ready: waits that are alike over so few leave no time in which it was ahead
(a default without a published source)."""
MIN_COPY = 1.05
"""Idle states below 5 % of the time are no reason for advice (METHODS 9)."""


@remedy(
    title="Match the loader workers to the CPU cores",
    answers=(*WAITS, "loader-workers-cores"),
    tier=1,
    effort="minutes",
    apply="next study",
    pros=("one argument", "the same values come out, in the same order where the sampler is seeded"),
    cons=("each worker takes host memory", "more workers than cores make loading slower"),
    refute=TIME_IT,
    rollback=RESTORE,
    fills_idle=True,
)
def loader_workers(now: Situation) -> Proposal | None:
    """More workers load faster only while the loader is the constraint and cores are free.

    Twice the present number, so that workers x trials at once stays within the cores, and no fewer than check
    loader-workers-cores asks for; as many as fit where there are more than two a core (SageMaker's Dataloader rule:
    70-200 %). The gain is at most the ratio of workers, at most 1/u, and at most what the run would bring without the
    wait for the loader, where a log states it: with the pauses of which it names no cause, and without the waits at the
    start of epochs, which more workers make longer. GPUs of one training wait for each other and count as busy: there
    the ratio bounds it, and the idle time of all of them one after another. Not proposed where the log states that
    steps do not wait for the loader, nor more of them where PyTorch warned that there are more workers than cores.
    """
    present, cores, parallel = _now(now), _cores(now), now.parallel or 1
    if present is None or _feeds(now):
        return None
    proposed = _workers(present, parallel, cores, _asked_pct(now))
    if proposed == present or (proposed > present and now.fact(LoaderProfile.n_warned) > 0):
        return None
    ratio = proposed / present if proposed > present > 0 else math.inf
    gain = _without_waits(now, ratio, within=True)
    budget = (
        f"{proposed} x {parallel} trials at once = {proposed * parallel} of {cores or 'an unknown number of'} cores"
    )
    checks, predictions = now.fills(gain.high if gain else math.nan)
    return Proposal(
        (_loader("num_workers", present, proposed, budget),),
        gain,
        now.unless_unknown(f"{_shown(now)} Workers are bounded by {budget}."),
        checks,
        predictions,
        " ".join(filter(None, (_unshown(now), _unbounded(now, cores), DISK if now.has("io-wait") else ""))),
    )


@remedy(
    title="Load batches ahead, in more processes",
    answers=("loader-slow",),
    tier=1,
    effort="minutes",
    apply="next study",
    pros=("four arguments", "the same values come out, in the same order where the sampler is seeded"),
    cons=("each worker takes host memory", "more workers than cores make loading slower"),
    refute=TIME_IT,
    rollback=RESTORE,
)
def load_ahead(now: Situation) -> Proposal | None:
    """Where steps are stated to wait for the loader, and nobody says with how many workers: else that number is what to
    change. At best all of the wait goes, and the GPU is never idle.
    """
    if _now(now) is not None or not now.torch or not waits_pct(now, within=True) > 0:
        return None
    cores = _cores(now)
    workers = MANY_WORKERS if cores is None else max(min(MANY_WORKERS, cores // (now.parallel or 1)), 1)
    code = (
        f"DataLoader(..., num_workers={workers}, prefetch_factor=4, persistent_workers=True, pin_memory=True)\n"
        "# time half and twice as many: all of a host's together within its cores"
    )
    gain = _without_waits(now, within=True)
    checks, predictions = now.fills(gain.high if gain else math.nan)
    assumption = now.unless_unknown(_shown(now))
    doubt = DISK if now.has("io-wait") else ""
    return Proposal((Change("num_workers", None, workers, code),), gain, assumption, checks, predictions, doubt)


@remedy(
    title="Keep loader workers between epochs",
    answers=(*WAITS, "stalls-periodic", "steps-paused"),
    tier=1,
    effort="minutes",
    apply="next study",
    pros=("one argument", "removes a start of all workers at each epoch"),
    cons=("workers hold their memory throughout", "a dataset object changed between epochs is not seen by them"),
    refute="Compare the first 10 s of the second epoch with its middle: equal speed means nothing is to be had.",
    rollback=RESTORE,
    fills_idle=True,
)
def persistent_workers(now: Situation) -> Proposal | None:
    """It removes the start of workers at each epoch, and nothing else (METHODS 9).

    What a recording says that loops waited for the first batch bounds the gain; else the time that a log leaves for it
    where epochs change, and idle time that is surely of no other cause, as an evaluation or a checkpoint is; with one
    trial at a time the share of idle time, as the GPU is idle meanwhile. Not proposed where a recording tells of no
    such wait, or where steps do not wait by the log and no long waits come at intervals or where epochs change.
    """
    data, starts_pct = now.dataloader, now.fact(LoaderProfile.starts_pct)
    if data.persistent_workers is not False or not data.num_workers or starts_pct == 0:
        return None
    shown = starts_pct > 0 or long_waits(now) or pauses_between_epochs(now)
    if _feeds(now) and not shown:
        return None
    assumption = "The GPU waits for new workers at the start of epochs, at most all of its idle time."
    if 0 < starts_pct < 100:
        most = 100 / (100 - starts_pct)
        assumption = f"Epochs wait {share(starts_pct)} of their time for the first batch; at best all of that goes."
    else:
        most = no_starts(now)
    gain = fill_gain(now.bounds, most, "loader" if starts_pct > 0 or epochs_told(now) else IDLE)
    checks, predictions = now.fills(gain.high if gain else math.nan)
    change = _loader("persistent_workers", False, True)
    leaves = () if pauses_between_epochs(now) else ("steps-paused",)
    doubt = "" if shown else UNSHOWN_STARTS
    return Proposal((change,), gain, now.unless_unknown(assumption), checks, predictions, doubt, leaves)


@remedy(
    title="Prefetch more batches",
    answers=WAITS,
    tier=1,
    effort="minutes",
    apply="next study",
    pros=("one argument", "hides single slow batches"),
    cons=("host memory for workers x prefetch batches", "does not load faster on average"),
    refute=TIME_IT,
    rollback=RESTORE,
    fills_idle=True,
)
def prefetch_more(now: Situation) -> Proposal | None:
    """A longer queue hides jitter, not a lack of throughput (METHODS 9), nor the start of an epoch. Not proposed where
    steps do not wait, nor where they wait alike in every few queues of batches: then the queue is always empty.
    """
    present, workers = now.dataloader.prefetch_factor, now.dataloader.num_workers
    if present is None or not workers or present >= MAX_PREFETCH or _feeds(now):
        return None
    if alike(now) and now.fact(LoaderProfile.line_batches) <= FEW_QUEUES * workers * present:
        return None
    proposed = min(2 * present, MAX_PREFETCH)
    gain = _without_waits(now, within=True)
    checks, predictions = now.fills(gain.high if gain else math.nan)
    return Proposal(
        (_loader("prefetch_factor", present, proposed, f"queue {workers * present} -> {workers * proposed}"),),
        gain,
        now.unless_unknown("The loader is fast enough on average and only single batches are late."),
        checks,
        predictions,
        DISK if now.has("io-wait") else _steady(now) or _unshown(now),
    )


@remedy(
    title="Copy batches from pinned memory",
    answers=("gpu-low-utilization", "gpu-fluctuating", "stalls-aperiodic", "steps-copies"),
    tier=1,
    effort="minutes",
    apply="next study",
    pros=("copies overlap with computing",),
    cons=("pinned host memory can't be swapped", "needs non_blocking=True at the copy"),
    refute="Time 100 steps with and without; the copy of a small batch takes no time worth saving.",
    rollback=RESTORE,
    fills_idle=True,
)
def pin_memory(now: Situation) -> Proposal | None:
    """Copies from pinned memory are faster and can run beside kernels; it matters where batches are large.

    A copy waits neither for the loader nor for an evaluation: idle time that is surely of these bounds the gain, and so
    does the wait of steps for the loader. Not proposed where other causes likely leave less than 5 % of the time or are
    found (the CPU, the disk or the loader), nor, for idle time alone, where nobody stated that memory is not pinned.
    """
    present, seen = now.dataloader.pin_memory, now.has("steps-copies")
    if present or (now.dataloader.num_workers is None and not (now.torch and seen)):
        return None
    if not seen and (
        likely_copies(now) < MIN_COPY or now.has(*INPUT_WAITS) or (present is None and not now.has(*WAITS))
    ):
        return None
    copy = Change("copy to the GPU", None, "non_blocking", "batch = batch.to(device, non_blocking=True)")
    waits = now.fact(LoaderProfile.of_step_pct)
    most = min(without_causes(now.profiles, "copy"), without_open(now.profiles, "copy"))
    gain = fill_gain(now.bounds, min(most, 100 / waits if waits > 0 else math.inf), "copy")
    checks, predictions = now.fills(gain.high if gain else math.nan)
    assumption = "Copies to the GPU are a large part of its waiting."
    changes = (_loader("pin_memory", present, True), copy)
    doubt = "" if seen else "Nothing recorded shows that copies take time worth saving."
    return Proposal(changes, gain, now.unless_unknown(assumption), checks, predictions, doubt)


@remedy(
    title="Keep the data in memory",
    answers=("io-wait", "cpu-bound-input", "loader-slow", "gpu-low-utilization"),
    tier=1,
    effort="an hour",
    apply="next study",
    pros=("no disk in the way of an epoch", "decode and resize once, not every epoch"),
    cons=("host memory for the whole data set, once a process unless shared", "stale copies after the data change"),
    refute="Run two epochs: if the second, from the page cache, is no faster, the disk is not it.",
    rollback="Point the loader at the disk again and remove the copy.",
)
def cache_input(now: Situation) -> Proposal | None:
    """A RAM disk or an array of decoded samples takes disk and decoding out of every epoch after the first. Not
    proposed where steps do not wait.
    """
    waits = now.has("io-wait") and now.found["io-wait"].severity is not Severity.NOTE
    if (now.dataloader.num_workers is None or _feeds(now)) and not waits:
        return None
    ram = now.settings.ram_gib
    copy = "du -sh DATA; df -h /dev/shm   # does it fit?\nmkdir -p /dev/shm/data && cp -r DATA/. /dev/shm/data/"
    gain = _without_waits(now)
    checks, predictions = now.fills(gain.high if gain else math.nan)
    proposal = Proposal(
        (Change("place of the data", None, "/dev/shm/data", copy),),
        gain,
        now.unless_unknown("Disk or decoding is what the GPU waits for, and the data fit into free host memory."),
        checks,
        predictions,
        f"Whether the data fit into the host's {quantity(ram, 'GiB')} is not known."
        if ram
        else "The host's memory is not known.",
    )
    return replace(proposal, verify_first="") if waits and ram else proposal


def _without_waits(now: Situation, most: float = math.inf, *, within: bool = False) -> Gain | None:
    """Between nothing and no wait for the loader, at most ``most`` times; ``within``: but at the start of epochs."""
    if (n_gpus := _n_in_step(now)) > 1:
        return in_step_gain(now.bounds, n_gpus, most)
    return fill_gain(now.bounds, min(no_wait(now, within=within), most), source(now))


def _n_in_step(now: Situation) -> int:
    """GPUs of one training: a log tells what one rank waits for, and each waits for the last of them; 1 for trials."""
    ledger = now.profile(LedgerProfile)
    return 1 if now.has_trials or ledger is None else len(gpus_at_work(ledger))


def _unbounded(now: Situation, cores: int | None) -> str:
    """Why nobody knows whether so many workers fit; empty where it is known. Several GPUs without a word on how many
    trials or ranks load at once may be as many ranks.
    """
    use = now.profile(UtilizationProfile)
    if cores is not None and now.parallel is None and use is not None and len(use.per_gpu) > 1:
        return NO_PARALLEL
    return NO_CORES if cores is None else ""


def _workers(present: int, parallel: int, cores: int | None, asked_pct: float) -> int:
    """Loader workers a trial: twice the present number within the cores, at least so many percent of them; as many as
    fit where they are too many.
    """
    if cores is None:
        return max(2 * present, 2)
    fit = max(cores // parallel, 1)
    if present * parallel > 2 * cores:
        return fit
    asked = math.ceil(asked_pct / 100 * cores / parallel)
    return max(present, min(max(2 * present, 2), fit), asked)


def _asked_pct(now: Situation) -> float:
    """Loader workers in percent of the cores below which the check finds too few; 0 where it found nothing."""
    found = now.found.get("loader-workers-cores")
    return found.thresholds.get("min_cores_pct", 0.0) if found else 0.0


def _now(now: Situation) -> int | None:
    """Loader workers of a trial, as stated or as the log has them."""
    seen = now.fact(LoaderProfile.workers_per_trial)
    return int(seen) if now.dataloader.num_workers is None and seen >= 0 else now.dataloader.num_workers


def _cores(now: Situation) -> int | None:
    """CPU cores, as stated or as the log has them; None unknown."""
    seen = now.fact(LoaderProfile.cores)
    return int(seen) if now.settings.cpu_cores is None and seen >= 1 else now.settings.cpu_cores


def _feeds(now: Situation) -> bool:
    """True where the log shows that the loader is not waited for."""
    return "loader-slow" in now.passed and now.fact(LoaderProfile.avg_ms) >= 0


def _unshown(now: Situation) -> str:
    """Why a change of the loader must be verified first; empty where something recorded speaks for it."""
    if now.fact(LoaderProfile.of_step_pct) > 0 or now.has(*INPUT_WAITS):
        return ""
    return "Nothing recorded shows that the GPU waits for the loader."


def _shown(now: Situation) -> str:
    """What is known about the loader as the constraint."""
    if _n_in_step(now) > 1:
        return TOGETHER
    waits = waits_pct(now, within=True)
    if waits > 0:
        within = "Within epochs steps" if now.fact(LoaderProfile.starts_pct) > 0 else "Steps"
        return f"{within} wait {share(waits)} of their time for the loader; at best all of that goes."
    return f"{LOADER}; nothing recorded shows or refutes it."


def _steady(now: Situation) -> str:
    """Why late single batches are not what the GPU waits for; empty where they may be."""
    if now.has("gpu-fluctuating", "stalls-aperiodic"):
        return ""
    if alike(now):
        mean, least = (quantity(now.fact(fact), "ms") for fact in (LoaderProfile.avg_ms, LoaderProfile.least_ms))
        return f"Reports state about the same wait ({mean}, 95 % of them {least} or more): nothing shows late batches."
    use = now.profile(UtilizationProfile)
    if use is None:
        return ""
    low, high = use.per_gpu.sort_values("mean_pct")[["p5_pct", "p95_pct"]].iloc[-1]
    if high - low < STEADY_PCT:
        return (
            f"Utilization was steady (p5 {share(low)}, p95 {share(high)}): nothing shows that single batches were late."
        )
    return ""


def _loader(name: str, present: Value | None, proposed: Value, note: str = "") -> Change:
    comment = "; ".join(filter(None, ("" if present is None else f"was {present}", note)))
    code = f"DataLoader(..., {name}={proposed})" + (f"  # {comment}" if comment else "")
    return Change(name, present, proposed, code)
