"""The event loop: workers take trials from a queue and share GPUs, in exact continuous time."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gpudiag.simulation.life import Life
from gpudiag.simulation.sharing import SharedGpu
from gpudiag.simulation.spec import Spec
from gpudiag.simulation.trial_plan import TrialPlan, draw_plan, memory_ramp

ASSERT_TEXT = "RuntimeError: CUDA error: device-side assert triggered"
POISONED_TEXT = ASSERT_TEXT + " (the process is poisoned by an earlier error)"
FAIL_TEXT = "ValueError: loss is NaN"
POISONED_S = 2.5


@dataclass(frozen=True)
class History:
    """What happened. ``busy`` and ``used`` hold, per GPU, (time_s, value) at each change.

    ``busy`` is the share of time with a kernel running, ``used`` the memory in MiB.
    """

    lives: list[Life]
    busy: list[list[tuple[float, float]]]
    used: list[list[tuple[float, float]]]


@dataclass(slots=True)
class _Running:
    """A trial on its way: where it stands in its plan."""

    life: Life
    plan: TrialPlan
    segment: int = 0
    held_mib: float = 0.0


@dataclass(slots=True)
class _Worker:
    """``doomed`` counts the trials that its poisoned process will still fail; ``kept_mib`` its cached memory by GPU."""

    index: int
    alive: bool = False
    doomed: int = 0
    kept_mib: dict[int, float] = field(default_factory=dict)


class World:
    """Call :meth:`run` once."""

    def __init__(self, spec: Spec, seed: int) -> None:
        self._spec = spec
        self._seed = seed
        self._gpus = [SharedGpu(gpu) for gpu in spec.gpus]
        self._used = [float(gpu.base_mib) for gpu in spec.gpus]
        self._memory: list[list[tuple[float, float]]] = [[] for _ in spec.gpus]
        self._queue = deque(range(spec.n_trials))
        self._lives: list[Life] = []
        self._running: dict[int, _Running] = {}
        self._workers = [_Worker(i) for i in range(max(number for _, number in spec.worker_steps))]
        self._allowed = 0
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0
        self._referee = _referee(spec)

    def run(self) -> History:
        """Simulate until the queue is empty and the last trial has ended."""
        for at, number in self._spec.worker_steps:
            self._after(at, self._resize, number)
        for index, load in enumerate(self._spec.foreign):
            self._after(load.start_s, self._foreign, -1 - index, True)
            self._after(load.end_s, self._foreign, -1 - index, False)
        while self._step():
            pass
        numbers = range(self._spec.n_trials, self._spec.n_trials + self._spec.waiting)
        waiting = [Life(n, -1, -1, math.nan, state="WAITING") for n in numbers]
        return History(self._lives + waiting, [gpu.trace for gpu in self._gpus], self._memory)

    def _step(self) -> bool:
        """Handle what comes next: an event, or a GPU phase that ends. False where nothing is left."""
        at = self._events[0][0] if self._events else math.inf
        first: tuple[float, int] | None = None
        for gpu in self._gpus:
            end = gpu.next_end()
            if end is not None and end[0] < at:
                at, first = end[0], end
        if first is not None:
            self._gpu_phase_done(at, self._running[first[1]])
        elif self._events:
            at, _, handler, args = heapq.heappop(self._events)
            handler(at, *args)
        else:
            return False
        return True

    def _after(self, at: float, handler: Callable[..., None], *args: Any) -> None:
        self._count += 1
        heapq.heappush(self._events, (at, self._count, handler, args))

    def _later(self, at: float, running: _Running, handler: Callable[..., None], *args: Any) -> None:
        """Schedule what becomes of a trial, unless it has ended by then."""
        self._after(at, self._unless_ended, running, handler, args)

    def _unless_ended(self, at: float, running: _Running, handler: Callable[..., None], args: tuple[Any, ...]) -> None:
        if running.life.number in self._running:
            handler(at, running, *args)

    def _resize(self, at: float, number: int) -> None:
        """The number of workers changes; surplus workers stop after their trial."""
        self._allowed = number
        for worker in self._workers[:number]:
            if not worker.alive:
                worker.alive = True
                self._after(at + self._spec.stagger_s * worker.index, self._take, worker)

    def _foreign(self, at: float, key: int, starts: bool) -> None:
        load = self._spec.foreign[-1 - key]
        if starts:
            self._gpus[load.gpu].join(at, key, load.share_pct / 100.0, None)
        else:
            self._gpus[load.gpu].leave(at, key)
        self._occupy(at, load.gpu, load.mem_mib if starts else -load.mem_mib)

    def _take(self, at: float, worker: _Worker) -> None:
        """A worker takes the next trial, or retires."""
        if not self._queue or worker.index >= self._allowed:
            worker.alive = False
            self._release(at, worker)
            return
        number = self._queue.popleft()
        plan = draw_plan(self._spec, self._seed, number)
        life = Life(number, worker.index, self._assign(plan, number, worker), at, plan.params, plan.share)
        running = _Running(life, plan)
        self._lives.append(life)
        self._running[number] = running
        if self._referee:
            self._referee.start(number)
        if worker.doomed:
            worker.doomed -= 1
            self._later(at + POISONED_S, running, self._strike, "poisoned")
            return
        trial = self._spec.trial
        self._later(at + plan.startup_s * trial.context_at, running, self._grow, trial.context_mib)
        if trial.memory_at < 1:
            self._later(at + plan.startup_s * trial.memory_at, running, self._load)
        self._later(at + plan.startup_s, running, self._train)
        if plan.fault:
            self._later(at + plan.fault_at_s, running, self._strike, plan.fault)

    def _assign(self, plan: TrialPlan, number: int, worker: _Worker) -> int:
        count = len(self._gpus)
        match self._spec.assign:
            case "by_worker":
                return worker.index % count
            case "by_trial":
                return number % count
            case "random":
                return int(plan.lottery * count)
            case index:
                return int(index)

    def _load(self, at: float, running: _Running) -> None:
        for after, level in memory_ramp(self._spec.trial, running.plan.peak_mib):
            self._later(at + after, running, self._grow, level)

    def _train(self, at: float, running: _Running) -> None:
        if self._spec.trial.memory_at >= 1:
            self._load(at, running)
        self._gpu_phase(at, running)

    def _gpu_phase(self, at: float, running: _Running) -> None:
        life = running.life
        work_s, _ = running.plan.segments[running.segment]
        life.spans.append((at, math.nan))
        self._gpus[life.gpu].join(at, life.number, life.share, work_s)

    def _gpu_phase_done(self, at: float, running: _Running) -> None:
        work_s, dip_s = running.plan.segments[running.segment]
        self._leave_gpu(at, running, work_s)
        running.segment += 1
        self._later(at + dip_s, running, self._dip_done)
        plateau_mib = self._spec.trial.plateau * running.plan.peak_mib
        if running.segment % running.plan.per_epoch == 0 and running.held_mib >= 0.999 * plateau_mib:
            self._grow(at, running, running.plan.peak_mib)

    def _leave_gpu(self, at: float, running: _Running, work_s: float) -> None:
        life = running.life
        left = self._gpus[life.gpu].leave(at, life.number)
        life.work_s += (work_s - left) * life.share
        life.spans[-1] = (life.spans[-1][0], at)

    def _dip_done(self, at: float, running: _Running) -> None:
        life, plan = running.life, running.plan
        epoch, rest = divmod(running.segment, plan.per_epoch)
        if rest:
            self._gpu_phase(at, running)
            return
        value = plan.values[epoch - 1]
        life.reports.append((epoch, value, at))
        life.value = value
        if self._referee and self._referee.prunes(life.number, epoch, value):
            self._end(at, running, "PRUNED")
        elif running.segment == len(plan.segments):
            self._later(at + plan.tail_s, running, self._end, "COMPLETE")
        else:
            self._gpu_phase(at, running)

    def _grow(self, at: float, running: _Running, level_mib: float) -> None:
        """The trial's memory rises to a level, unless it holds that much or the GPU overflows."""
        life = running.life
        if level_mib <= running.held_mib:
            return
        kept = self._workers[life.worker].kept_mib
        more = max(level_mib - max(running.held_mib, kept.get(life.gpu, 0.0)), 0.0)
        total = self._spec.gpus[life.gpu].mem_total_mib
        if self._spec.faults.oom and self._used[life.gpu] + more > total:
            free = total - self._used[life.gpu]
            life.detail = (
                f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {more:.2f} MiB. GPU {life.gpu} has a "
                f"total capacity of {total / 1024:.2f} GiB of which {free:.2f} MiB is free."
            )
            self._strike(at, running, "oom")
            return
        running.held_mib = level_mib
        life.peak_mib = max(life.peak_mib, level_mib)
        life.memory.append((at, level_mib))
        if self._spec.trial.keeps_memory:
            kept[life.gpu] = kept.get(life.gpu, 0.0) + more
        self._occupy(at, life.gpu, more)

    def _occupy(self, at: float, gpu: int, more_mib: float) -> None:
        if more_mib:
            self._used[gpu] = round(self._used[gpu] + more_mib, 6)
            self._memory[gpu].append((at, self._used[gpu]))

    def _release(self, at: float, worker: _Worker) -> None:
        """The worker's process ends, and with it what it had cached."""
        for gpu, kept in worker.kept_mib.items():
            self._occupy(at, gpu, -kept)
        worker.kept_mib.clear()

    def _strike(self, at: float, running: _Running, kind: str) -> None:
        """A fault hits: the trial FAILs, or is abandoned; the worker goes on, poisoned or restarted."""
        life, faults = running.life, self._spec.faults
        worker = self._workers[life.worker]
        texts = {"assert": ASSERT_TEXT, "poisoned": POISONED_TEXT, "fail": FAIL_TEXT, "oom": life.detail}
        life.detail = texts.get(kind, "")
        if kind == "assert":
            worker.doomed = faults.poisoned
        poisoned_out = kind in ("assert", "poisoned") and not worker.doomed
        dies = kind == "abandoned" or poisoned_out or (kind == "oom" and faults.oom_kills)
        self._end(at, running, "RUNNING" if kind == "abandoned" else "FAIL", running.plan.restart_s if dies else 0.0)
        if dies:
            self._release(at, worker)

    def _end(self, at: float, running: _Running, state: str, restart_s: float = 0.0) -> None:
        """The trial stops for whatever reason, and its worker takes the next one."""
        life = running.life
        if self._gpus[life.gpu].holds(life.number):
            self._leave_gpu(at, running, running.plan.segments[running.segment][0])
        del self._running[life.number]
        life.end_s, life.state = at, state
        life.memory.append((at, 0.0))
        if not self._spec.trial.keeps_memory:
            self._occupy(at, life.gpu, -running.held_mib)
        if self._referee and state != "RUNNING":
            life.system_attrs = self._referee.end(life.number, state, life.value)
        self._after(at + running.plan.gap_s + restart_s, self._take, self._workers[life.worker])


def _referee(spec: Spec) -> Any:
    """The pruner's judge, or None; Optuna is imported only where a pruner is asked for."""
    if spec.pruner is None:
        return None
    from gpudiag.simulation.pruner import Referee

    return Referee(spec.pruner, spec.study, spec.curve.direction)
