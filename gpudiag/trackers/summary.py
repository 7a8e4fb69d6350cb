"""What a tracker shows of a run in its tables: six numbers under names that stay, and the verdict."""

from __future__ import annotations

from gpudiag.measures.memory import MemoryProfile
from gpudiag.report._sections.key_numbers import idle_s, mean_util_pct
from gpudiag.report.document import Document

PREFIX = "gpudiag."


def summary(document: Document) -> dict[str, float]:
    """``gpudiag.utilization_pct``, ``idle_pct`` (share of the GPU time below 10 %), ``gpu_h``, ``memory_peak_pct`` (of
    the total), ``n_critical`` and ``n_warning`` (findings). What the run does not determine is absent.
    """
    held, counts = document.ledger, document.headline.counts
    total_s = held.total_gpu_s if held is not None else None
    found: dict[str, float | None] = {
        "utilization_pct": mean_util_pct(document),
        "idle_pct": 100 * idle_s(held) / total_s if held is not None and total_s else None,
        "gpu_h": total_s / 3600 if total_s else None,
        "memory_peak_pct": document.values(MemoryProfile).get(MemoryProfile.max_used_pct),
        "n_critical": counts.critical,
        "n_warning": counts.warning,
    }
    return {PREFIX + name: float(value) for name, value in found.items() if value is not None}


def labels(document: Document) -> dict[str, str]:
    """``gpudiag.verdict`` (critical, warning, note, ok or unknown), ``headline`` and ``version``."""
    head = document.headline
    found = {"verdict": head.level, "headline": head.sentences[0], "version": document.version}
    return {PREFIX + name: value for name, value in found.items()}
