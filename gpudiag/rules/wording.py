"""Words that several rules share."""

from __future__ import annotations

from collections.abc import Iterable

from gpudiag.errors import NotMeasurable


def span(seconds: float) -> str:
    """A length of time in the unit that a person would use: 45 s, 6.5 min, 2.3 h, 3.1 days."""
    if seconds < 90:
        return f"{seconds:.3g} s"
    if seconds < 5400:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h" if seconds <= 48 * 3600 else f"{seconds / 86400:.1f} days"


def gpus(names: Iterable[object]) -> str:
    """``GPU 0`` or ``GPUs 0, 2``."""
    listed = [str(name) for name in names]
    return f"GPU{'s' if len(listed) > 1 else ''} {', '.join(listed)}"


def worst_gpu(worst: object, names: Iterable[object]) -> str:
    """``GPU 4``, of several ``GPU 4 (the worst of GPUs 4, 5)``: the sentence gives its figures, the cost is of all."""
    listed = list(names)
    return f"GPU {worst} (the worst of {gpus(listed)})" if len(listed) > 1 else f"GPU {worst}"


def need_fast_samples(period_s: float, most_s: float) -> None:
    """Raise NotMeasurable where samples lie too far apart to see the waits of a GPU; an unknown period is no reason."""
    if period_s > most_s:
        raise NotMeasurable(
            f"A sample every {span(period_s)} cannot show waits of seconds or minutes; one every {span(most_s)} or "
            "faster is needed.",
            "Sample every 1 to 5 s (nvidia-smi -l 1).",
        )


def count(n: float, noun: str) -> str:
    """``1 trial``, ``3 trials``."""
    return f"{n:.0f} {noun}{'' if n == 1 else 's'}"


def gpu_hours(hours: float) -> str:
    """``0.12 GPU-h``; below a hundredth of an hour ``20 GPU-s``."""
    return f"{hours:.2f} GPU-h" if hours >= 0.01 else f"{hours * 3600:.0f} GPU-s"
