"""Planted faults of the feed: a CPU or a disk that is too slow, work that is too small, a loader that is waited for."""

from __future__ import annotations

import numpy as np

from gpudiag.manifest import DataLoader, Settings
from gpudiag.rules._engine.verdict import Severity, Status
from gpudiag.run import Run, RunInfo
from planted.base import IDLE_W, LIMIT_W, TOTAL_MIB, Edge, events, fault, host, idle_before, log, run, ticks, trials

SECONDS = 1000.0


def _share(n: int, share: float, yes: float, no: float) -> np.ndarray:
    """Values spread so that a share of them is ``yes``."""
    at = np.arange(n)
    return np.where(np.floor((at + 1) * share + 1e-9) > np.floor(at * share + 1e-9), yes, no)


def _beside(util: np.ndarray, at: np.ndarray, **columns: np.ndarray | float) -> Run:
    return run(
        log(at, util_pct=util),
        host=host(at, **columns),
        trials=trials([("COMPLETE", 0.0, float(at[-1]) + 2.5)], gpu="0"),
    )


@fault(
    "cpu-bound-input",
    edges={
        "min_starved_pct": Edge({"share": 0.495}, {"share": 0.5}, Severity.NOTE, Severity.WARNING),
        "min_soft_pct": Edge(
            {"share": 0.495, "util_pct": 49.0, "rest_pct": 95.0}, {"share": 0.5, "util_pct": 49.0, "rest_pct": 95.0},
            Status.OK, Severity.NOTE,
        ),
        "min_host_s": Edge({"host_s": 55.0}, {"host_s": 60.0}, Status.NOT_ASSESSED),
    },
    bigger=({"share": 0.7}, {"share": 1.0}, {"share": 1.0, "util_pct": 0.0}),
)  # fmt: skip
def cpu_bound(*, share: float = 0.6, util_pct: float = 5.0, rest_pct: float = 40.0, host_s: float = SECONDS) -> Run:
    """A core is hot throughout, and the GPU is at ``util_pct`` for ``share`` of the time, else at ``rest_pct``."""
    at = ticks(SECONDS)
    starved = _share(len(at), share, util_pct, rest_pct)
    seen = at[at < host_s]
    if host_s < SECONDS:
        # Host samples count for the work within 15 s of them.
        seen = seen[: max(1, round(host_s / 5) - 3)]
    made = _beside(starved, at, cpu_max_core_pct=99.0, cpu_pct=20.0)
    return run(log(at, util_pct=starved), host=host(seen, cpu_max_core_pct=99.0), trials=made.trials)


@fault(
    "io-wait",
    edges={
        "min_starved_pct": Edge({"share": 0.495}, {"share": 0.5}),
        "min_host_s": Edge({"host_s": 55.0}, {"host_s": 60.0}, Status.NOT_ASSESSED),
        "min_step_pct": Edge({"share": 0.0, "avg_ms": 24.9}, {"share": 0.0, "avg_ms": 25.0}),
    },
    bigger=({"share": 0.7}, {"share": 1.0}, {"share": 1.0, "wait_pct": 99.0}),
)
def storage(*, share: float = 0.6, wait_pct: float = 60.0, host_s: float = SECONDS, avg_ms: float | None = None) -> Run:
    """I/O wait is at ``wait_pct`` throughout, and the GPU at 3 % for ``share`` of the time, else at 80 %."""
    # With avg_ms a log states that each step of 100 ms waits so long for the loader.
    at = ticks(SECONDS)
    seen = at if host_s >= SECONDS else at[: max(1, round(host_s / 5) - 3)]
    util = _share(len(at), share, 3.0, 80.0)
    return run(
        log(at, util_pct=util),
        host=host(seen, io_wait_pct=wait_pct),
        trials=trials([("COMPLETE", 0.0, SECONDS)], gpu="0"),
        events=events(_lines(avg_ms, 10) if avg_ms else []),
    )


@fault(
    "batch-or-kernels-small",
    edges={
        "max_p_util_pct": Edge({"util_pct": 70.0}, {"util_pct": 69.0}),
        "max_p_memory_pct": Edge({"used_pct": 70.0}, {"used_pct": 69.9}),
        "max_p_cpu_pct": Edge({"cpu_pct": 70.0}, {"cpu_pct": 69.0}),
        "max_power_ratio": Edge({"power_ratio": 0.35}, {"power_ratio": 0.34}),
        "max_cv_ratio": Edge({"util_pct": 30.0, "swing_pct": 15.5}, {"util_pct": 30.0, "swing_pct": 14.5}),
    },
    bigger=({"util_pct": 30.0}, {"util_pct": 15.0, "used_pct": 5.0}),
)
def small(
    *, util_pct: float = 40.0, used_pct: float = 20.0, cpu_pct: float = 30.0, power_ratio: float = 0.2,
    swing_pct: float = 0.0,
) -> Run:  # fmt: skip
    """Use is steady and low: ``util_pct`` of the GPU, ``used_pct`` of its memory, ``power_ratio`` of its power limit
    and ``cpu_pct`` of a core.
    """
    at = ticks(SECONDS)
    util = util_pct + swing_pct * np.where(np.arange(len(at)) % 2, 1.0, -1.0)
    # never idle, so that its idle power is taken for 0 W
    figures = {"mem_used_mib": used_pct / 100 * TOTAL_MIB, "power_w": power_ratio * LIMIT_W}
    return run(
        log(at, util_pct=util, **figures), host=host(at, cpu_max_core_pct=cpu_pct, cpu_pct=cpu_pct / 2),
        trials=trials([("COMPLETE", 0.0, SECONDS)], gpu="0"),
    )  # fmt: skip


@fault(
    "launch-bound",
    edges={
        "min_util_pct": Edge({"util_pct": 29.0}, {"util_pct": 30.0}),
        "max_util_pct": Edge({"util_pct": 90.0}, {"util_pct": 89.0}),
        "min_hot_pct": Edge({"hot": 0.795}, {"hot": 0.8}),
        "max_power_ratio": Edge({"power_ratio": 0.35}, {"power_ratio": 0.34}),
        "max_cv_ratio": Edge({"swing_pct": 18.5}, {"swing_pct": 17.5}),
        "min_host_s": Edge({"host_s": 55.0}, {"host_s": 60.0}, Status.NOT_ASSESSED),
    },
    bigger=({"hot": 1.0}, {"hot": 1.0, "power_ratio": 0.1}),
)
def launch(
    *, util_pct: float = 60.0, hot: float = 0.9, power_ratio: float = 0.2, swing_pct: float = 0.0,
    host_s: float = SECONDS,
) -> Run:  # fmt: skip
    """The GPU is steadily at ``util_pct`` and ``power_ratio`` of its power range, beside a core that is hot for ``hot``
    of the time.
    """
    at = ticks(SECONDS)
    seen = at if host_s >= SECONDS else at[: max(1, round(host_s / 5) - 3)]
    util = util_pct + swing_pct * np.where(np.arange(len(at)) % 2, 1.0, -1.0)
    cores = _share(len(seen), hot, 99.0, 60.0) if host_s >= SECONDS else np.full(len(seen), 99.0)
    return run(
        idle_before(log(at, util_pct=util, power_w=IDLE_W + power_ratio * (LIMIT_W - IDLE_W))),
        host=host(seen, cpu_max_core_pct=cores), trials=trials([("COMPLETE", 0.0, SECONDS)], gpu="0"),
    )  # fmt: skip


@fault(
    "gpu-busy-but-light",
    edges={
        "max_power_ratio": Edge({"power_ratio": 0.35}, {"power_ratio": 0.34}),
        "min_busy_s": Edge({"seconds": 295.0}, {"seconds": 300.0}, Status.NOT_APPLICABLE),
        "max_sm_pct": Edge({"sm_pct": 50.0}, {"sm_pct": 49.0}),
    },
    bigger=({"power_ratio": 0.2}, {"power_ratio": 0.1, "sm_pct": 10.0}),
)
def light(*, power_ratio: float = 0.3, seconds: float = 600.0, sm_pct: float | None = None) -> Run:
    """The GPU is at 98 % and draws ``power_ratio`` of its power range."""
    at = ticks(seconds)
    extra = {} if sm_pct is None else {"sm_active_pct": sm_pct}
    made = log(at, util_pct=98.0, power_w=IDLE_W + power_ratio * (LIMIT_W - IDLE_W), **extra)
    return run(idle_before(made), trials=trials([("COMPLETE", 0.0, seconds)]))


def _active(seconds: float, **columns: float) -> Run:
    """A GPU at 98 % whose parts are active for these shares of the cycles."""
    return run(log(ticks(seconds), util_pct=98.0, **columns), trials=trials([("COMPLETE", 0.0, seconds)]))


@fault(
    "sm-activity-low",
    edges={
        "max_sm_pct": Edge({"sm_pct": 50.0}, {"sm_pct": 49.0}),
        "min_busy_s": Edge({"seconds": 295.0}, {"seconds": 300.0}, Status.NOT_APPLICABLE),
    },
    bigger=({"sm_pct": 20.0}, {"sm_pct": 1.0}),
)
def few_sms(*, sm_pct: float = 30.0, seconds: float = 600.0) -> Run:
    """Kernels that are too small for the GPU run one after the other, and its SMs are active for ``sm_pct`` of the
    cycles.
    """
    return _active(seconds, sm_active_pct=sm_pct, tensor_active_pct=10.0)


@fault(
    "tensor-cores-unused",
    edges={
        "max_tensor_pct": Edge({"tensor_pct": 1.0}, {"tensor_pct": 0.9}),
        "min_sm_pct": Edge({"sm_pct": 49.0}, {"sm_pct": 50.0}),
        "min_busy_s": Edge({"seconds": 295.0}, {"seconds": 300.0}, Status.NOT_APPLICABLE),
    },
    bigger=({"tensor_pct": 0.0}, {"tensor_pct": 0.0, "sm_pct": 99.0}),
)
def no_tensor(*, tensor_pct: float = 0.5, sm_pct: float = 80.0, seconds: float = 600.0) -> Run:
    """Work in float32 leaves the tensor cores idle but for ``tensor_pct`` of the cycles."""
    return _active(seconds, sm_active_pct=sm_pct, tensor_active_pct=tensor_pct)


def _lines(avg_ms: float, rate: float | None) -> list[tuple[str, str]]:
    told = [("loader", f"[TRAIN PROFILE] DataLoader avg: {avg_ms}ms, max: {3 * avg_ms}ms")]
    return told + ([("progress", f"epoch 1, {rate} batch/s")] if rate else [])


@fault(
    "loader-slow",
    edges={
        "max_avg_ms": Edge({"avg_ms": 30.0}, {"avg_ms": 30.1}),
        "max_step_pct": Edge({"avg_ms": 5.0, "rate": 10}, {"avg_ms": 5.1, "rate": 10}, Status.OK, Severity.NOTE),
        "severe_step_pct": Edge(
            {"avg_ms": 24.9, "rate": 10}, {"avg_ms": 25.0, "rate": 10}, Severity.NOTE, Severity.WARNING
        ),
    },
    bigger=({"avg_ms": 80.0}, {"avg_ms": 200.0}, {"avg_ms": 90.0, "rate": 10}),
)
def loader(*, avg_ms: float = 50.0, rate: float | None = None) -> Run:
    """A training log states that the loader is waited for ``avg_ms`` on average."""
    # a rate of 10 batch/s is 100 ms a step
    return run(log(ticks(SECONDS)), events=events(_lines(avg_ms, rate)))


@fault(
    "loader-workers-cores",
    edges={
        "min_cores_pct": Edge({"workers": 35}, {"workers": 34}),
        "max_cores_ratio": Edge({"workers": 100}, {"workers": 101}),
    },
    bigger=({"workers": 10}, {"workers": 0}, {"workers": 200}),
)
def workers(*, workers: int = 20) -> Run:
    """Two trials with ``workers`` loader workers each run on 100 cores."""
    info = RunInfo(settings=Settings(parallel=2, cpu_cores=100), dataloader=DataLoader(num_workers=workers))
    return run(log(ticks(SECONDS)), info=info)
