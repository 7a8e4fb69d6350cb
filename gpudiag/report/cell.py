"""What a recorded cell of a notebook is said to have done with the GPUs: a line for each that it used."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from gpudiag.errors import InputError, NotMeasurable
from gpudiag.load import load_run
from gpudiag.measures.memory import measure_memory
from gpudiag.measures.utilization import measure_utilization
from gpudiag.report.format import duration, memory, plural, share
from gpudiag.run import Run

LEAST = 5
"""Samples of a GPU from which a mean is said; one of two or three says little of what lay between."""
UNUSED_PCT = 1.0
"""A GPU that never rose above this did nothing, as the check gpu-unused has it."""


def cell_lines(recording: Path, began: datetime, took_s: float) -> list[str]:
    """Mean utilization, share of time idle and peak memory of each GPU that was used since ``began``.

    Args:
        recording: the file, which may hold earlier recordings as well.
        began: when the cell began, with its zone.
        took_s: how long the cell ran.
    """
    try:
        run = load_run(recording).between(began, None)
    except (InputError, NotMeasurable):  # not even one sample
        return [_too_few(0, took_s)]
    counted: Mapping[str, int] = run.gpu.dropna(subset="util_pct").groupby("gpu").size().to_dict()
    most = max(counted.values(), default=0)
    if most < LEAST:
        return [_too_few(most, took_s)]
    lines = _used(run, counted, took_s)
    return lines or [f"{duration(took_s)}: no GPU was used; {plural(len(counted), 'GPU')}, {plural(most, 'sample')}."]


def _used(run: Run, counted: Mapping[str, int], took_s: float) -> list[str]:
    use = measure_utilization(run).per_gpu
    try:
        peaks = measure_memory(run).per_gpu["max_mib"]
    except NotMeasurable:
        peaks = None
    lines = []
    for gpu, row in use.iterrows():
        if not row["max_pct"] > UNUSED_PCT:
            continue
        if counted[str(gpu)] < LEAST:
            lines.append(f"GPU {gpu}: {_too_few(counted[str(gpu)], took_s)}")
            continue
        held = f", {memory(peaks[gpu])} at most" if peaks is not None else ""
        lines.append(
            f"GPU {gpu}: {share(row['mean_pct'])} mean utilization, {share(row['idle_pct'])} of the time idle "
            f"(below 10 %){held}; {duration(took_s)}, {plural(counted[str(gpu)], 'sample')}"
        )
    return lines


def _too_few(n: int, took_s: float) -> str:
    return (
        f"{duration(took_s)}: utilization not assessed, {plural(n, 'sample')} where {LEAST} are needed; "
        "a smaller --interval takes more."
    )
