"""What became of one trial: the truth that telemetry and the trial record show only in part."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from gpudiag.plain_data import JsonObject


@dataclass(slots=True)
class Life:
    """Times are true seconds since the run's start.

    ``spans`` are the (start, end) of its GPU phases; ``memory`` (time, MiB) its own level from each
    time on; ``reports`` (step, value, time). ``end_s`` is when it truly ended: for an abandoned trial, which is
    recorded RUNNING for ever, when its worker was killed, and for a trial still running at the end of the record, NaN.
    """

    number: int
    worker: int
    gpu: int
    start_s: float
    params: JsonObject = field(default_factory=dict)
    share: float = 0.0
    end_s: float = math.nan
    state: str = "RUNNING"
    name: str = ""
    detail: str = ""
    value: float = math.nan
    work_s: float = 0.0
    peak_mib: float = 0.0
    spans: list[tuple[float, float]] = field(default_factory=list)
    memory: list[tuple[float, float]] = field(default_factory=list)
    reports: list[tuple[int, float, float]] = field(default_factory=list)
    user_attrs: JsonObject = field(default_factory=dict)
    system_attrs: JsonObject = field(default_factory=dict)

    @property
    def startup_end_s(self) -> float:
        """Start of its first GPU phase; its end where it had none."""
        return self.spans[0][0] if self.spans else self.end_s

    @property
    def tail_start_s(self) -> float:
        """End of its last GPU phase; its end where it had none; NaN while it runs."""
        return min(self.spans[-1][1], self.end_s) if self.spans and not math.isnan(self.end_s) else self.end_s

    @property
    def finished(self) -> bool:
        """True if the record holds its end."""
        return self.state in ("COMPLETE", "PRUNED", "FAIL")
