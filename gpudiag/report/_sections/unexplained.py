"""What neither a source nor a finding explains: GPU time without a kernel, or a small part of the peak."""

from __future__ import annotations

from gpudiag.measures.causes import CausesProfile
from gpudiag.measures.feed import FeedProfile
from gpudiag.measures.ledger import LedgerProfile
from gpudiag.measures.mfu import MfuProfile
from gpudiag.measures.steps import StepsProfile
from gpudiag.measures.utilization import GpuUtilization, UtilizationProfile
from gpudiag.report.document import Document
from gpudiag.report.format import gpus, share
from gpudiag.rules._engine.judging import MIN_EXPLAINED, RECORD_COMMAND
from gpudiag.rules._engine.verdict import Severity

EXPLAIN = (
    "gpu-low-utilization", "gpu-fluctuating", "gpu-imbalance", "cpu-bound-input", "io-wait", "launch-bound",
    "batch-or-kernels-small", "stalls-periodic", "stalls-aperiodic",
)  # fmt: skip
"""Notes that tell of time within the work, which the causes do not hold already."""
STATE_WAITS = "Let the log state how long each step waits for its batch: loop over rec.timed(loader) of gd.Recorder"
PROFILE = "A profile of ten steps (torch.profiler) shows the rest"
PROFILE_TEN = "Profile ten steps (torch.profiler), which shows what the GPU waits for"
PROFILE_KERNELS = (
    "Profile ten steps (torch.profiler) and give the trace as well: it shows short kernels, their number formats and "
    "collectives that wait for other ranks"
)


def unexplained(document: Document, least_pct: float) -> tuple[str, str]:
    """That no kernel ran for so much of the GPU time or more, and the steps that would tell why; where nothing was
    found, half of what is missing is enough. '' and '' where it is less, or a finding tells.
    """
    facts, ledger = document.values(CausesProfile), document.values(LedgerProfile)
    if (ledger.get(LedgerProfile.coverage_pct) or 100) < 100 * MIN_EXPLAINED:  # most is not observed: that comes first
        return "", ""
    unused_pct, unknown_pct = facts.get(CausesProfile.unused_pct), facts.get(CausesProfile.unknown_pct)
    if unused_pct is None or unknown_pct is None or any(v.severity is not Severity.NOTE for v in document.findings):
        return "", ""
    left_pct = unused_pct * unknown_pct / 100
    enough_gpu_h = MIN_EXPLAINED * left_pct / 100 * facts[CausesProfile.observed_gpu_s] / 3600
    told = any(v.rule in EXPLAIN and not (v.lost_gpu_h or enough_gpu_h) < enough_gpu_h for v in document.findings)
    most = unknown_pct >= 100 * MIN_EXPLAINED and not document.findings
    if told or not (left_pct >= least_pct or most):
        return "", ""
    has_cores = document.values(FeedProfile).get(FeedProfile.has_cores)
    record = f"Record the CPU beside the GPU: {RECORD_COMMAND}"
    if document.values(StepsProfile).get(StepsProfile.logged_s):
        todo = f"{STATE_WAITS}{'' if has_cores else f', and r{record[1:]}'}. {PROFILE}"
    else:  # what runs may be no training, or have no loader
        todo = PROFILE_TEN if has_cores else f"{record}. {PROFILE}"
    if document.run.n_trials:
        todo += ". How many trials fit at once: gpudiag whatif"
    said = f"No kernel ran in {share(left_pct)} of the GPU time{_mostly(document, least_pct)}"
    return f"{said}, and the record does not show what it waited for", todo


def far_from_peak(document: Document, least_pct: float) -> tuple[str, str]:
    """That the model did less than that part of the FLOPs that GPUs can do, and what would tell why; '' and '' where
    it did more, that is unknown, or something was found.
    """
    high_pct = document.values(MfuProfile).get(MfuProfile.mfu_high_pct)
    if high_pct is None or high_pct >= least_pct or document.findings:
        return "", ""
    did = f"The model did {share(high_pct)} of the FLOPs that the GPU can do (MFU) at most"
    return f"{did}, and the record does not show why", PROFILE_KERNELS


def _mostly(document: Document, least_pct: float) -> str:
    """', mostly on GPUs 1 and 2' where no such part is missing on the others; '' elsewhere."""
    rows = document.values(UtilizationProfile).by_row(GpuUtilization)
    known = {gpu: mean for gpu, cells in rows.items() if isinstance(mean := cells["mean_pct"], float)}
    low = [gpu for gpu, mean in known.items() if 100 - mean >= least_pct]
    return f", mostly on {gpus(low)}" if 0 < len(low) < len(known) else ""
