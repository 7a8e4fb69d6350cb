"""Words that several rules share."""

from __future__ import annotations

from collections.abc import Iterable

from gpudiag.display.format import duration, gpus, hours, plural
from gpudiag.errors import NotMeasurable

span, count, gpu_hours = duration, plural, hours
__all__ = ["count", "gpu_hours", "gpus", "need_fast_samples", "span", "worst_gpu"]


def worst_gpu(worst: object, names: Iterable[object]) -> str:
    """``GPU 4``, of several ``GPU 4 (the worst of GPUs 4, 5)``: the sentence gives its figures, the cost is of all."""
    listed = list(names)
    return f"GPU {worst} (the worst of {gpus(listed)})" if len(listed) > 1 else f"GPU {worst}"


def need_fast_samples(period_s: float, most_s: float) -> None:
    """Raise NotMeasurable where samples lie too far apart to see the waits of a GPU; an unknown period is no reason."""
    if period_s > most_s:
        raise NotMeasurable(
            f"A sample every {duration(period_s)} cannot show waits of seconds or minutes; one every "
            f"{duration(most_s)} or faster is needed.",
            "Sample every 1 to 5 s (nvidia-smi -l 1).",
        )
