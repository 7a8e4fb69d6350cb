"""What limits the run: the time of the trials split into classes, and a label only where one class is clear."""

from __future__ import annotations

import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._gpu.signatures import CLASSES, signatures
from gpudiag.measures._time.work import work_by_gpu, work_coverage_pct
from gpudiag.measures.base import RECORD_GPU, Profile, need_gpu, need_two_samples
from gpudiag.memo import memoized
from gpudiag.run import Run

MIN_LABEL_PCT = 50.0
"""A label needs this share of the time (SageMaker's default share) ..."""
MIN_RATIO = 2.0
"""... and twice the next class (METHODS 9)."""


class BottleneckClass(Row):
    """A class, in the order of ``signatures.CLASSES``; all add up to ``trial_gpu_s``."""

    class_: Column[str] = column("what limited the GPU")
    gpu_s: Column[float] = column("time limited by it")
    share_pct: Column[float] = column("its share")


class BottleneckProfile(Profile, topic="bottleneck"):
    """What limited the GPUs while a trial ran (without trials: from first to last activity). METHODS 9 has signatures
    and sources of the classes; a scalar ``<class>_pct`` is the share of each.
    """

    classes: Rows = table_of(BottleneckClass)
    label: Fact[str] = fact(
        "the class that holds at least half of that time and twice as much as the next; '' where none does, so that "
        "the shares are the answer"
    )
    trial_gpu_s: Fact[float] = fact("time that is shared out")
    unused_pct: Fact[float] = fact("a GPU that was never used")
    startup_pct: Fact[float] = fact("start-ups and ends of trials")
    io_wait_pct: Fact[float] = fact("beside I/O wait on the host, whosever it is")
    cpu_bound_pct: Fact[float] = fact("bound by the CPU")
    launch_bound_pct: Fact[float] = fact("bound by one thread that launches kernels")
    limited_pct: Fact[float] = fact("held back by power or heat")
    bandwidth_bound_pct: Fact[float] = fact("bound by memory bandwidth")
    compute_bound_pct: Fact[float] = fact("bound by computing")
    light_pct: Fact[float] = fact("busy with light kernels")
    busy_pct: Fact[float] = fact("busy, the record does not show with what")
    small_work_pct: Fact[float] = fact("too little work in a step")
    stalled_pct: Fact[float] = fact("stalls")
    undetermined_pct: Fact[float] = fact("shows no signature; never the label")
    has_trials: Fact[bool] = fact("the time is that of trials")
    has_host: Fact[bool] = fact("CPU per core or I/O wait lay beside the telemetry")
    has_power: Fact[bool] = fact("power and its limit did")
    coverage_pct: Fact[float] = fact("observed part of the run, the least of all GPUs")


@memoized
def measure_bottleneck(run: Run) -> BottleneckProfile:
    """Classify the time of the trials. Needs gpu.util_pct; every other column is used where it was recorded."""
    need_gpu(run, "util_pct")
    works = work_by_gpu(run)
    need_two_samples(bool(works))
    found = signatures(run)
    weights = [(one, one.work.weight_s) for one in found.values()]
    seconds = {name: sum(float(weight[one.of_class(name)].sum()) for one, weight in weights) for name in CLASSES}
    total = sum(seconds.values())
    if not total:
        raise NotMeasurable("No sample of a GPU lies within a trial.", RECORD_GPU)
    shares = {name: 100 * value / total for name, value in seconds.items()}
    table = pd.DataFrame({"class": list(CLASSES), "gpu_s": list(seconds.values()), "share_pct": list(shares.values())})
    return BottleneckProfile(
        classes=table,
        label=_label(shares),
        trial_gpu_s=total,
        **{f"{name}_pct": value for name, value in shares.items()},
        has_trials=any(work.from_trials for work in works.values()),
        has_host=any(one.has_host for one in found.values()),
        has_power=any(one.has_power for one in found.values()),
        coverage_pct=work_coverage_pct(run, works),
    )


def _label(shares: dict[str, float]) -> str:
    """The class that is clear; what nobody can tell counts against it, for it may be any other class."""
    top, following = sorted(shares, key=lambda name: -shares[name])[:2]
    clear = shares[top] >= MIN_LABEL_PCT and shares[top] >= MIN_RATIO * shares[following]
    return top if clear and top != "undetermined" else ""
