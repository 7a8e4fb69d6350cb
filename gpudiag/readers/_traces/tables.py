"""What a profiler recorded, as tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from gpudiag.readers._io.problems import Problem


@dataclass(frozen=True, eq=False, repr=False)
class TraceTables:
    """Work of the GPUs and of the host, and steps. Times are microseconds since ``begin`` (UTC; NaT where no date
    is known).

    ``gpu``: gpu (index), stream, start_us, end_us, kind (compute, communication, copy), name, returned_us (when the
    call that launched it had returned: -inf before the trace, NaN where that is unknown). ``host``: thread, start_us,
    end_us, kind (data, pageable, sync, memory, setup, optimizer, operator), name, runtime (a call of CUDA), of the
    threads that launch kernels or count steps. ``steps``: step (number), start_us, end_us, which is
    when host and GPU are done with it.
    """

    path: Path
    gpu: pd.DataFrame
    host: pd.DataFrame
    steps: pd.DataFrame
    begin: pd.Timestamp
    gpu_names: dict[int, str] = field(default_factory=dict)
    rank: int | None = None
    world_size: int | None = None
    n_processes: int = 1
    problems: tuple[Problem, ...] = ()
    python_recorded: bool = False
