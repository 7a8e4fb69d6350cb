"""What a test may ask of the GPU, and whether a recording keeps to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields

from gpudiag.errors import ConfigError, NotMeasurable, nearest
from gpudiag.pytest_plugin.judged_run import JudgedRun
from gpudiag.report.format import duration, listed, named, plural
from gpudiag.values import is_number

SHORTEST_S = 2.0
"""A GPU tells its utilization as the mean of up to the last second (NVML, nvmlUtilization_t): in a shorter test much of
what it tells is about the time before.
"""
FEWEST_SAMPLES = 10
LEAST_OBSERVED = 0.8
"""Of the time of a test, below which a recording with gaps says too little about it."""


@dataclass(frozen=True)
class Limit:
    """One number of a budget; ``proven``: even part of a recording proves that it was exceeded, since it is a peak."""

    words: str
    of: Callable[[JudgedRun], float]
    most: bool
    proven: bool = False


LIMITS = {
    "utilization_pct": Limit("utilization", lambda run: run.gpu.utilization_pct, most=False),
    "idle_pct": Limit("idle", lambda run: run.gpu.idle_pct, most=True),
    "memory_mib": Limit("memory peak", lambda run: run.memory.peak_mib, most=True, proven=True),
}


@dataclass(frozen=True)
class Budget:
    """``utilization_pct`` is the least mean utilization, ``idle_pct`` the most time below 10 %, ``memory_mib`` the most
    memory in use; None is no limit. ``gpus``: indices or uuids to record, () for those that the test sees.
    """

    utilization_pct: float | None = None
    idle_pct: float | None = None
    memory_mib: float | None = None
    gpus: tuple[str, ...] = ()
    interval_s: float = 0.2

    @classmethod
    def of(cls, given: Mapping[str, object]) -> Budget:
        """The budget that the arguments of a marker state. Raises ConfigError."""
        legal = {one.name for one in fields(cls)}
        for name in given:
            if name not in legal:
                raise ConfigError(f"a GPU budget has no '{name}'; {nearest(name, legal)}")
        held = {name: _amount(name, value) for name, value in given.items() if name != "gpus"}
        gpus = given.get("gpus", ())
        several = [gpus] if isinstance(gpus, str | int) else gpus
        if not isinstance(several, list | tuple):
            raise ConfigError(f"gpus must be indices or uuids such as ('0', '1'), but got {gpus!r}.")
        return cls(**held, gpus=tuple(str(gpu) for gpu in several))

    def limits(self) -> Iterator[tuple[Limit, str, float]]:
        """The limits stated, each with its name and amount."""
        for name, limit in LIMITS.items():
            amount: float | None = getattr(self, name)
            if amount is not None:
                yield limit, name, amount


def _amount(name: str, value: object) -> float:
    most = 100 if name.endswith("_pct") else math.inf
    if not is_number(value) or not 0 <= value <= most:
        bound = f"0 to {most}" if math.isfinite(most) else "0 or more"
        raise ConfigError(f"{name} of a GPU budget must be a number of {bound}, but got {value!r}.")
    return float(value)


@dataclass(frozen=True)
class BudgetCheck:
    """What came of a budget: what was exceeded, what was kept, and why something is open, with its names by reason."""

    exceeded: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    open: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def line(self, seconds: float) -> str:
        """All of it in one line: the worst first."""
        parts = [f"not met: {', '.join(self.exceeded)}"] if self.exceeded else []
        parts += [f"not assessed: {listed(names)} ({reason})" for reason, names in self.open.items()]
        parts += [f"met: {', '.join(self.kept)}"] if self.kept else []
        return f"{'; '.join(parts) or 'recorded, without limits'}; {duration(seconds)}"


def check(budget: Budget, run: JudgedRun, seconds: float) -> BudgetCheck:
    """Compare a recording of a test of so many seconds with its budget; what it does not determine is open."""
    doubt = _doubt(run, seconds)
    exceeded: list[str] = []
    kept: list[str] = []
    open_: dict[str, list[str]] = {}
    for limit, name, amount in budget.limits():
        try:
            value = limit.of(run)
        except NotMeasurable as why:
            open_.setdefault(doubt or str(why).rstrip("."), []).append(limit.words)
            continue
        said = f"{limit.words} {named(name, value)} (at {'most' if limit.most else 'least'} {named(name, amount)})"
        beyond = value > amount if limit.most else value < amount
        if doubt and not (beyond and limit.proven):
            open_.setdefault(doubt, []).append(limit.words)
        else:
            (exceeded if beyond else kept).append(said)
    return BudgetCheck(tuple(exceeded), tuple(kept), open_)


def _doubt(run: JudgedRun, seconds: float) -> str:
    """Why a mean over this recording says too little about the test; '' where it says enough."""
    if seconds < SHORTEST_S:
        return f"the test took {duration(seconds)}; the counters of a GPU need {duration(SHORTEST_S)}"
    samples, observed_s = run.coverage()
    if samples < FEWEST_SAMPLES:
        return f"there are {plural(samples, 'sample')} of the GPU; {FEWEST_SAMPLES} are needed"
    if observed_s < LEAST_OBSERVED * seconds:
        return f"{duration(observed_s)} of {duration(seconds)} were observed"
    return ""
