"""Planted faults of profiled steps: shares of one trace, and ranks that wait for each other."""

from __future__ import annotations

import pandas as pd

from gpudiag.run import Run
from gpudiag.schema import PROFILED, conform
from planted.base import START, Edge, fault, run

STEP_S = 0.25


def _traces(*ranks: dict[str, float]) -> Run:
    """A trace of ten steps a rank; what is not named is computing."""
    rows = []
    for rank, shares in enumerate(ranks):
        states = {name: 0.0 for name in PROFILED.names if name.endswith("_pct")} | shares
        idle = sum(value for name, value in shares.items() if name not in ("copy_pct", "communication_pct"))
        states |= {"idle_pct": idle, "compute_pct": 100 - sum(shares.values())}
        states["communication_total_pct"] = shares.get("communication_pct", 0.0)
        about = {"path": f"rank{rank}.json", "gpu": str(rank), "rank": rank, "world_size": len(ranks), "time": START}
        about |= {"n_steps": 10, "window_s": 10 * STEP_S, "step_s": STEP_S}
        rows.append(about | states)
    return run(profiled=conform(pd.DataFrame(rows), PROFILED))


@fault(
    "steps-launch",
    edges={"max_launch_pct": Edge({"launch_pct": 9.9}, {"launch_pct": 10.1})},
    bigger=({"launch_pct": 20.0}, {"launch_pct": 60.0}),
)
def launch(*, launch_pct: float = 15.0) -> Run:
    """The GPU is idle for ``launch_pct`` of the steps while operators and the optimizer are prepared."""
    return _traces({"operator_pct": 0.7 * launch_pct, "optimizer_pct": 0.3 * launch_pct})


@fault(
    "steps-blocked",
    edges={"max_sync_pct": Edge({"sync_pct": 4.9}, {"sync_pct": 5.1})},
    bigger=({"sync_pct": 10.0}, {"sync_pct": 50.0}),
)
def blocked(*, sync_pct: float = 8.0) -> Run:
    """The GPU is idle for ``sync_pct`` of the steps while the host is in a blocking call."""
    return _traces({"sync_pct": sync_pct})


@fault(
    "steps-copies",
    edges={"max_copy_pct": Edge({"copy_pct": 9.9}, {"copy_pct": 10.1})},
    bigger=({"copy_pct": 20.0}, {"copy_pct": 60.0}),
)
def copies(*, copy_pct: float = 15.0) -> Run:
    """Copies take ``copy_pct`` of the steps with nothing computed beside them, 0.4 of it on the host's side."""
    return _traces({"copy_pct": 0.6 * copy_pct, "pageable_pct": 0.4 * copy_pct})


@fault(
    "steps-allocation",
    edges={"max_memory_pct": Edge({"memory_pct": 4.9}, {"memory_pct": 5.1})},
    bigger=({"memory_pct": 10.0}, {"memory_pct": 50.0}),
)
def allocation(*, memory_pct: float = 8.0) -> Run:
    """The GPU is idle for ``memory_pct`` of the steps, 1 % while CUDA is set up and the rest while memory is taken."""
    return _traces({"memory_pct": memory_pct - 1.0, "setup_pct": 1.0})


@fault(
    "steps-data",
    edges={"max_data_pct": Edge({"data_pct": 4.9}, {"data_pct": 5.1})},
    bigger=({"data_pct": 10.0}, {"data_pct": 80.0}),
)
def data(*, data_pct: float = 8.0) -> Run:
    """The GPU is idle for ``data_pct`` of the steps while the host waits for a batch."""
    return _traces({"data_pct": data_pct})


@fault(
    "steps-communication",
    edges={"max_communication_pct": Edge({"communication_pct": 9.9}, {"communication_pct": 10.1})},
    bigger=({"communication_pct": 20.0}, {"communication_pct": 60.0}),
)
def communication(*, communication_pct: float = 15.0) -> Run:
    """Two ranks communicate for ``communication_pct`` of their steps with nothing computed beside it."""
    return _traces({"communication_pct": communication_pct}, {"communication_pct": communication_pct})


@fault(
    "rank-behind",
    edges={"min_difference_pct": Edge({"late_pct": 20.1}, {"late_pct": 19.9})},
    bigger=({"late_pct": 15.0}, {"late_pct": 2.0}),
)
def behind(*, late_pct: float = 18.0) -> Run:
    """Three ranks spend 30 % of their steps in collectives, and one spends ``late_pct``."""
    usual = {"communication_pct": 30.0}
    return _traces(usual, usual, {"communication_pct": late_pct}, usual)
