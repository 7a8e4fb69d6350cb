"""A training step by step, in exact continuous time: what each rank's host does, and when its GPU runs a kernel."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from gpudiag.simulation.trainings.spec import Hang, LoaderSpec, TrainingSpec

AHEAD = 2
"""Steps that the host may be ahead of its GPU: the launch queue is finite."""
EVALUATION_PERIOD_S = 0.5
"""Of an evaluation's batches."""

Span = tuple[float, float]


@dataclass(frozen=True)
class StepTime:
    """One step of one rank: when the host began and ended it, and how long it waited for its batch."""

    number: int
    start_s: float
    end_s: float
    waited_s: float


@dataclass
class RankHistory:
    """``host``: (start, end, state), which tile the training. ``kernels``: spans in order of time, ``talks`` of them
    all-reduces; ``copies`` are no kernels. ``fetching``: spans in which each worker of the loader made a batch.
    """

    host: list[tuple[float, float, str]] = field(default_factory=list)
    kernels: list[Span] = field(default_factory=list)
    talks: list[Span] = field(default_factory=list)
    copies: list[Span] = field(default_factory=list)
    launches: list[tuple[float, float, int]] = field(default_factory=list)  # start, end, position in kernels
    steps: list[StepTime] = field(default_factory=list)
    fetching: list[list[Span]] = field(default_factory=list)


@dataclass(frozen=True)
class Moment:
    """What the log tells of at a time, and how many steps were done by then."""

    at_s: float
    what: str
    step: int = 0


@dataclass(frozen=True)
class TrainingHistory:
    """What happened: each rank, and what the first one logs."""

    ranks: list[RankHistory]
    moments: list[Moment]
    end_s: float


class _Loader:
    """Workers take turns; each goes on as soon as one of its batches was taken."""

    def __init__(self, spec: LoaderSpec, rng: np.random.Generator, fetching: list[list[Span]]) -> None:
        self._spec, self._rng, self._fetching = spec, rng, fetching
        fetching.extend([] for _ in range(spec.workers))
        self._free = [0.0] * spec.workers
        self._taken: deque[float] = deque()
        self._ready: deque[float] = deque()
        self._next = 0

    def begin(self, at: float) -> None:
        """An epoch begins: what was made for the one before is gone."""
        self._free = [at + self._spec.spawn_s] * self._spec.workers
        self._taken.clear()
        self._ready.clear()
        self._next = 0
        for _ in range(self._spec.workers * self._spec.prefetch):
            self._make(at)

    def _make(self, allowed: float) -> None:
        worker = self._next % self._spec.workers
        start = max(self._free[worker], allowed)
        took = self._spec.batch_s * _around_one(self._rng, self._spec.batch_cv)
        if self._rng.random() < self._spec.hiccup_rate:
            took *= self._spec.hiccup_times
        self._free[worker] = start + took
        self._fetching[worker].append((start, start + took))
        self._ready.append(start + took)
        self._next += 1

    def next_ready(self) -> float:
        """When the next batch is there."""
        return self._ready[0]

    def take(self, at: float) -> None:
        """The next batch was taken, and another is begun."""
        self._ready.popleft()
        self._make(at)


def _around_one(rng: np.random.Generator, cv: float) -> float:
    """A positive factor of mean 1 with this coefficient of variation."""
    if not cv:
        return 1.0
    sigma = math.sqrt(math.log1p(cv * cv))
    return float(np.exp(rng.normal(-sigma * sigma / 2, sigma)))


class _Rank:
    """Where one rank's host and GPU stand."""

    def __init__(self, spec: TrainingSpec, number: int, seed: int) -> None:
        self.spec, self.pace = spec, spec.pace[number]
        self.rng = np.random.default_rng([seed, 31, number])
        self.held = RankHistory()
        self.now = self.free = 0.0
        self.loader = _Loader(spec.loader, np.random.default_rng([seed, 32, number]), self.held.fetching)
        self._ends: deque[float] = deque(maxlen=AHEAD)

    def spend(self, state: str, seconds: float) -> None:
        """The host does this for so long."""
        if seconds > 0:
            self.held.host.append((self.now, self.now + seconds, state))
            self.now += seconds

    def until(self, state: str, time: float) -> None:
        self.spend(state, time - self.now)

    def _run(self, seconds: float) -> None:
        start = max(self.free, self.now)
        self.free = start + seconds
        self.held.kernels.append((start, self.free))

    def step(self, *, first: str, slows: float) -> float:
        """One step up to its communication; returns the wait for its batch. ``first``: what a first one counts as."""
        step, waited = self.spec.step, max(self.loader.next_ready() - self.now, 0.0)
        self.spend("loader", waited)
        self.loader.take(self.now)
        if len(self._ends) == AHEAD:
            self.until("sync", self._ends[0])
        if step.copy_s:
            self.until("sync", self.free)
            begin = self.now
            self.spend("copy", step.copy_s)
            self.held.copies.append((begin, self.now))
        if first:
            self.spend(first, self.spec.between.first_step_s)
        gpu_s = step.gpu_s * self.pace * _around_one(self.rng, step.gpu_cv)
        for _ in range(step.pieces):
            begin = self.now
            self.spend("launch", step.launch_s * slows / step.pieces)
            self._run(gpu_s / step.pieces)
            self.held.launches.append((begin, self.now, len(self.held.kernels) - 1))
        return waited

    def talk(self, until: float) -> None:
        """An all-reduce from the end of this rank's kernels until it is done everywhere."""
        self.held.launches.append((self.now, self.now, len(self.held.kernels)))
        self.held.talks.append((self.free, until))
        self.held.kernels.append((self.free, until))
        self.free = until

    def finish(self, number: int) -> None:
        """What follows the kernels of a step."""
        every = self.spec.step.sync_every
        if every and number % every == 0:
            self.until("sync", self.free)
        self.spend("host", self.spec.step.host_s)
        self._ends.append(self.free)

    def evaluate(self) -> None:
        """Batches that keep the GPU busy for a share of the time."""
        between = self.spec.between
        self.until("sync", self.free)
        end = self.now + between.evaluate_s
        while self.now < end - 1e-9:
            length = min(EVALUATION_PERIOD_S, end - self.now)
            idle = length * (1 - between.evaluate_share)
            self.spend("evaluation", idle)
            self._run(length - idle)
            self.spend("evaluation", length - idle)

    def pause(self, state: str, seconds: float) -> None:
        self.until("sync", self.free)
        self.spend(state, seconds)


def train(spec: TrainingSpec, seed: int) -> TrainingHistory:
    """Run the training to its end."""
    ranks = [_Rank(spec, number, seed) for number in range(len(spec.pace))]
    between, moments = spec.between, [Moment(0.0, "start")]
    crashes = sorted(set(between.crashes))
    total, number, saved, fresh = spec.epochs * spec.steps_per_epoch, 0, 0, "first_step"
    for rank in ranks:
        rank.spend("startup", between.startup_s)
        rank.loader.begin(rank.now)
    while number < total:
        if between.hang and number == between.hang.step:
            moments.append(_hang(between.hang, ranks, number))
            break
        _one_step(spec, ranks, number, fresh)
        number, fresh = number + 1, ""
        moments.append(Moment(max(rank.now for rank in ranks), "step", number))
        if crashes and number == crashes[0]:
            crashes.pop(0)
            _crash(spec, ranks, moments, saved)
            number, fresh = saved, "restart"
            continue
        if between.checkpoint_every and number % between.checkpoint_every == 0:
            saved = number
            _checkpoint(ranks, between.checkpoint_s)
            moments.append(Moment(ranks[0].now, "checkpoint", number))
        if number % spec.steps_per_epoch == 0 and between.evaluate_s:
            for rank in ranks:
                rank.evaluate()
            moments.append(Moment(ranks[0].now, "evaluation", number))
        if number % spec.steps_per_epoch == 0 and number < total:
            for rank in ranks:
                rank.loader.begin(rank.now)
    for rank in ranks:
        rank.until("sync", rank.free)
        rank.spend("end", between.trail_s)
    return TrainingHistory([rank.held for rank in ranks], moments, max(rank.now for rank in ranks))


def _one_step(spec: TrainingSpec, ranks: list[_Rank], number: int, fresh: str) -> None:
    profiler = spec.profiler
    profiled = profiler and profiler.first <= number < profiler.first + profiler.n_steps
    began = [rank.now for rank in ranks]
    waited = [rank.step(first=fresh, slows=profiler.slows if profiler and profiled else 1.0) for rank in ranks]
    if len(ranks) > 1 or spec.step.communication_s:
        done = max(rank.free for rank in ranks) + spec.step.communication_s
        for rank in ranks:
            rank.talk(done)
    for rank, start, wait in zip(ranks, began, waited, strict=True):
        rank.finish(number + 1)
        rank.held.steps.append(StepTime(number, start, rank.now, wait))


def _hang(hang: Hang, ranks: list[_Rank], number: int) -> Moment:
    """The step in which one rank does not come; it ends when the first of the others has waited for the timeout."""
    waiting = [rank for at, rank in enumerate(ranks) if at != hang.rank]
    for rank in waiting:
        rank.step(first="", slows=1.0)
    ends = min(rank.now for rank in waiting) + hang.timeout_s
    for rank in waiting:
        rank.talk(ends)
        rank.until("sync", ends)
    ranks[hang.rank].until("loader", ends)
    return Moment(ends, "timeout", number + 1)


def _checkpoint(ranks: list[_Rank], seconds: float) -> None:
    for rank in ranks:
        rank.pause("checkpoint", seconds)
    last = max(rank.now for rank in ranks)
    for rank in ranks:
        rank.until("checkpoint", last)


def _crash(spec: TrainingSpec, ranks: list[_Rank], moments: list[Moment], saved: int) -> None:
    """All ranks end at once, and after a while go on from what was saved."""
    at = max(max(rank.now, rank.free) for rank in ranks)
    for rank in ranks:
        rank.until("down", at)
        rank.spend("down", spec.between.down_s)
        rank.free = rank.now
    moments.append(Moment(ranks[0].now, "resumption", saved))
    for rank in ranks:
        rank.spend("restart", spec.between.startup_s)
        rank.loader.begin(rank.now)
