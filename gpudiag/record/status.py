"""What the recorder says while a training runs: a status line, a summary per epoch, a warning on an idle GPU."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gpudiag.record.readings import RecordRow, Values
from gpudiag.report.format import duration, memory, quantity, share
from gpudiag.units import MIB_PER_GIB

LOW_PCT = 30.0
"""Mean utilization below which a training GPU is told to be starved."""
WATCH_S = 60.0
"""Over how long a mean is taken before it is called low: validation and checkpoints are shorter."""
AGAIN_S = 600.0
"""A warning is repeated after this at the earliest."""


@dataclass
class RunningStats:
    """Sum, number, largest of one quantity."""

    total: float = 0.0
    n: int = 0
    largest: float = 0.0

    def add(self, value: float) -> None:
        self.total += value
        self.n += 1
        self.largest = max(self.largest, value)

    @property
    def mean(self) -> float | None:
        return self.total / self.n if self.n else None


@dataclass
class StatusWindow:
    """What was seen since a moment: constant memory, however long it lasts."""

    began_s: float | None = None
    ended_s: float = 0.0
    util: RunningStats = field(default_factory=RunningStats)
    memory_mib: RunningStats = field(default_factory=RunningStats)
    power_w: RunningStats = field(default_factory=RunningStats)
    cpu: RunningStats = field(default_factory=RunningStats)
    waited_s: float = 0.0
    n_low: int = 0

    def add(self, row: RecordRow) -> None:
        self.began_s = row.mono_s if self.began_s is None else self.began_s
        self.ended_s = row.mono_s
        for name, tally in (
            ("util_pct", self.util),
            ("mem_used_mib", self.memory_mib),
            ("power_w", self.power_w),
            ("cpu_pct", self.cpu),
        ):
            value = _number(row.values, name)
            if value is not None and row.record in ("gpu", "host"):
                tally.add(value)
        util = _number(row.values, "util_pct")
        self.n_low += util is not None and util < LOW_PCT

    @property
    def span_s(self) -> float:
        return 0.0 if self.began_s is None else self.ended_s - self.began_s


class LiveStatus:
    """The newest reading of each GPU and of the host, and what was seen since the epoch began.

    ``settings`` are the user's present values (batch_size, num_workers, prefetch_factor, ...), which the warning
    repeats beside what to try; ``say`` prints it.
    """

    def __init__(self, say: Callable[[str], None], settings: Mapping[str, object] | None = None) -> None:
        self._say = say
        self._settings = dict(settings or {})
        self._lock = threading.Lock()
        self._gpus: dict[str, Values] = {}
        self._host: Values = {}
        self._epoch = StatusWindow()
        self._watch = StatusWindow()
        self._warned_s: float | None = None

    def update(self, rows: Sequence[RecordRow]) -> None:
        """Take in the rows of one tick."""
        warning = ""
        with self._lock:
            for row in rows:
                if row.record == "gpu":
                    self._gpus[str(row.values["gpu"])] = row.values
                elif row.record == "host":
                    self._host |= row.values
                if row.record in ("gpu", "host"):
                    self._epoch.add(row)
                    self._watch.add(row)
            if self._watch.span_s >= WATCH_S:
                warning, self._watch = self._warning(), StatusWindow()
        if warning:
            self._say(warning)

    def waited(self, seconds: float) -> None:
        """The training loop has waited that long for its next batch."""
        with self._lock:
            self._epoch.waited_s += seconds
            self._watch.waited_s += seconds

    def status_line(self) -> str:
        """``GPU: 85% | VRAM:12.3/24.0GB(51.2%) | CPU: 45.2% | RAM:18.4/64.0GB(28.8%)``.

        Several GPUs share it: all utilizations, and the memory of the fullest. Unknown is n/a.
        """
        with self._lock:
            gpus, host = list(self._gpus.values()), dict(self._host)
        parts = []
        if gpus:
            util = "/".join("n/a" if (u := _number(g, "util_pct")) is None else f"{u:.0f}" for g in gpus)
            used, total = max((_memory(gpu, "mem") for gpu in gpus), key=_share)
            parts += [f"GPU: {util}" + ("" if util.endswith("n/a") else "%"), f"VRAM:{_of(used, total)}"]
        if host:
            cpu = _number(host, "cpu_pct")
            parts += ["CPU: n/a" if cpu is None else f"CPU: {cpu:.1f}%", f"RAM:{_of(*_memory(host, 'ram'))}"]
        return " | ".join(parts)

    def postfix(self) -> dict[str, str]:
        """The same for a progress bar: ``bar.set_postfix(recorder.postfix())``."""
        parts = (part.partition(":") for part in self.status_line().split(" | ") if part)
        return {name: value.strip() for name, _, value in parts}

    def epoch_summary(self) -> str:
        """What was seen since the last summary, in one line; the next epoch begins here."""
        with self._lock:
            seen, self._epoch = self._epoch, StatusWindow()
        parts = [duration(seen.span_s)]
        if seen.util.mean is not None:
            low = 100 * seen.n_low / seen.util.n
            parts.append(f"GPU mean {share(seen.util.mean)} (below {share(LOW_PCT)} in {share(low)} of samples)")
        if seen.memory_mib.n:
            parts.append(f"VRAM peak {memory(seen.memory_mib.largest)}")
        if seen.power_w.mean is not None:
            parts.append(f"power mean {quantity(seen.power_w.mean, 'W')}")
        if seen.cpu.mean is not None:
            parts.append(f"CPU mean {share(seen.cpu.mean)}")
        if seen.waited_s:
            parts.append(f"waited {duration(seen.waited_s)} for data")
        return " | ".join(parts)

    def _warning(self) -> str:
        """A sentence on a GPU that is in use and mostly idle; empty if there is nothing to say, or too soon."""
        seen = self._watch
        mean, used = seen.util.mean, seen.memory_mib.largest
        if mean is None or not mean < LOW_PCT or used < MIB_PER_GIB:  # nobody trains in less than a GiB
            return ""
        if self._warned_s is not None and seen.ended_s - self._warned_s < AGAIN_S:
            return ""
        self._warned_s = seen.ended_s
        return f"GPU utilization is low: {share(mean)} over the last {duration(seen.span_s)}. {self._advice(seen)}"

    def _advice(self, seen: StatusWindow) -> str:
        waits = 100 * seen.waited_s / seen.span_s
        given = ", ".join(f"{name}={value}" for name, value in self._settings.items())
        present = f" (now {given})" if given else ""
        if seen.waited_s and waits < 10:
            return f"The loop waits for data only {share(waits)} of the time: try a larger batch{present}."
        advice = f"The loop waits for data {share(waits)} of the time: look at" if seen.waited_s else "Look at"
        timing = "" if seen.waited_s else "; time the loader by looping over recorder.timed(loader)"
        return f"{advice} the number of loader workers, the prefetch factor and the batch size{present}{timing}."


def _number(values: Values, name: str) -> float | None:
    value = values.get(name)
    return float(value) if isinstance(value, int | float) else None


def _memory(values: Values, of: str) -> tuple[float | None, float | None]:
    return _number(values, f"{of}_used_mib"), _number(values, f"{of}_total_mib")


def _share(held: tuple[float | None, float | None]) -> float:
    used, total = held
    return -1.0 if used is None else used / total if total else 0.0


def _of(used: float | None, total: float | None) -> str:
    if used is None:
        return "n/a"
    if not total:
        return f"{used / MIB_PER_GIB:.1f}GB"
    return f"{used / MIB_PER_GIB:.1f}/{total / MIB_PER_GIB:.1f}GB({100 * used / total:.1f}%)"
