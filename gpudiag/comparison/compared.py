"""What two runs were found to have in common and to differ in, before anything is said of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpudiag.advice._engine.plan import Plan
from gpudiag.comparison._quantities.whole_training import GPU, WALL
from gpudiag.comparison.check import GateCheck, is_invalid, reasons
from gpudiag.comparison.consistency import Consistency
from gpudiag.comparison.differences import Difference
from gpudiag.comparison.ledger_difference import CellDifference
from gpudiag.comparison.logged_steps import LOGGED, WHOLE
from gpudiag.comparison.match import Match
from gpudiag.comparison.plan_check import Outcome
from gpudiag.comparison.pruned_apart import agreed, prunes_apart, shows_more
from gpudiag.comparison.quantity import (
    COSTS_LESS,
    COSTS_MORE,
    EQUIVALENT,
    FAILS_LESS,
    FAILS_MORE,
    FASTER,
    HIGHER,
    INVALID,
    LOWER,
    NO_EVIDENCE,
    SAME_WITHIN,
    SLOWER,
    Quantity,
)
from gpudiag.comparison.same_steps import AT_SAME_STEPS
from gpudiag.comparison.same_training import died
from gpudiag.comparison.side import Side
from gpudiag.comparison.step_work import n_gpus
from gpudiag.faults import Fault

SAME_PARALLEL = 0.1
FAILING = ("failures", "failure_events")
MUCH_MORE = 0.1
"""Part by which the same steps must have cost more in all to fail a build: one observation a side has no interval, and
a start takes now more, now less (a default without a published source)."""
SPEEDS = {HIGHER: SLOWER, LOWER: FASTER}
"""What a price that leads is called as the verdict of the whole."""


@dataclass(frozen=True, eq=False)
class Compared:
    """What may be said of an experiment against its baseline.

    ``gate``: the eight checks in order; ``quantities``: numbers with intervals and verdicts; ``ledger``: GPU-hours
    cell by cell; ``differences``: how the two were set up; ``consistency``: statements that the numbers refute or
    allow; ``plan``: outcomes of the predictions of ``plan_made``; ``plan_note``: what is odd about that plan;
    ``errors``: parts that failed by a fault of gpudiag, and are left out.
    """

    baseline: Side
    experiment: Side
    matched: Match
    gate: tuple[GateCheck, ...]
    quantities: tuple[Quantity, ...]
    consistency: tuple[Consistency, ...]
    ledger: tuple[CellDifference, ...]
    differences: tuple[Difference, ...]
    plan_made: Plan | None = None
    plan_note: str = ""
    plan: tuple[Outcome, ...] = ()
    errors: tuple[Fault, ...] = ()

    @property
    def invalid(self) -> bool:
        """True if one of the first four checks failed: nothing may be called faster or slower."""
        return is_invalid(self.gate)

    @property
    def reasons(self) -> tuple[GateCheck, ...]:
        """The failed checks, the one that explains most first."""
        return reasons(self.gate)

    @property
    def leader(self) -> Quantity | None:
        """The quantity that the verdict is about: durations of the same items where as many ran at once, else wall
        time per item that did not fail; per COMPLETE item where trials were PRUNED, which are no unit of result, and
        where the whole run says more or the opposite, with pauses and failures: it takes longer for a COMPLETE one, or
        less long.
        Where trials were PRUNED it is their time at the same number of steps, if that shows smaller differences and
        as many were at work in both, pauses counted, so that wall time moves with it; where the runs prune apart, any
        pruner makes one of the times per item longer, so that these lead only where they say the same. Else None.
        Without trials it is the time of a step by the logs with its pauses, of a sample or a token where steps hold
        other numbers of these, or what the logs state of the whole training.
        """
        by_name = {quantity.name: quantity for quantity in self.quantities}
        paired = self.matched.named and len(self.matched.both_complete) > 0
        by_steps = by_name.get(AT_SAME_STEPS) if self._as_many_at_once else None
        by_steps = by_steps if by_steps is not None and by_steps.low > 0 else None
        if not paired and prunes_apart(by_name) and {"time_per_item", "time_per_complete"} <= set(by_name):
            return by_steps or agreed(by_name["time_per_item"], by_name["time_per_complete"])
        a, b = self.baseline.parallel, self.experiment.parallel
        apart = a > 0 and b > 0 and not math.isclose(a, b, rel_tol=SAME_PARALLEL)
        pruning = by_name.get("pruning")
        order = ["time_per_item", "time_per_complete", "duration"]
        if paired and (not self.matched.same_set or not apart):
            order = ["duration", "time_per_item"]
        elif pruning is not None:
            order = ["time_per_complete", "duration"]
            if by_steps is not None and shows_more(by_steps, by_name.get("time_per_complete")):
                order.insert(0, by_steps.name)
        order += LOGGED
        found = next((by_name[name] for name in order if name in by_name), None)
        complete = by_name.get("time_per_complete")
        if found is None or complete is None:
            return found
        more = {FASTER: (SLOWER,), SLOWER: (FASTER,)}.get(found.verdict, (SLOWER, FASTER))
        return complete if complete.verdict in more else found

    @property
    def _as_many_at_once(self) -> bool:
        """Whether wall time moves as the durations of items do: no more ran at once, nor did they wait for longer."""
        return math.isclose(self.baseline.at_once, self.experiment.at_once, rel_tol=SAME_PARALLEL)

    @property
    def fails_more(self) -> bool:
        """True if more of the experiment's items fail, by more than chance, or its training alone died."""
        return self._fails(HIGHER)

    @property
    def fails_less(self) -> bool:
        """True if fewer of the experiment's items fail, by more than chance, or the baseline's training alone died."""
        return self._fails(LOWER)

    def _fails(self, word: str) -> bool:
        worse, other = (self.experiment, self.baseline) if word == HIGHER else (self.baseline, self.experiment)
        if died(worse) != died(other):
            return died(worse)
        by_name = {quantity.name: quantity for quantity in self.quantities if quantity.name in FAILING}
        share = by_name.get("failures")
        if share is None:
            return False
        moved = share.experiment > share.baseline if word == HIGHER else share.experiment < share.baseline
        return moved and any(quantity.verdict == word for quantity in by_name.values())

    def costs_more(self, by: float = SAME_WITHIN) -> bool:
        """True if as many of the same steps took more wall time or GPU time in all, by that part, and neither less.

        GPU time counts where both had as many GPUs: more of them are there to save wall time.
        """
        as_many = n_gpus(self.baseline) == n_gpus(self.experiment)
        return _is_more(self._ratios((WALL, GPU, WHOLE) if as_many else (WALL, WHOLE)), by)

    def costs_less(self, by: float = SAME_WITHIN) -> bool:
        """The same the other way round. GPU time always counts: what takes more of it does not cost less."""
        return _is_more([1 / ratio for ratio in self._ratios((WALL, GPU, WHOLE))], by)

    def _ratios(self, names: tuple[str, ...]) -> list[float]:
        """Of what the whole trainings took."""
        return [q.ratio for q in self.quantities if q.name in names and q.verdict != INVALID and q.ratio > 0]

    @property
    def verdict(self) -> str:
        """faster, slower, equivalent, no evidence, fails more, fails less, costs more, costs less, or invalid."""
        if self.invalid:
            return INVALID
        speed = SPEEDS.get(self.leader.verdict, self.leader.verdict) if self.leader is not None else NO_EVIDENCE
        if self.fails_more and speed != SLOWER:
            return FAILS_MORE
        if self.costs_more() and speed != SLOWER:
            return COSTS_MORE
        if speed not in (NO_EVIDENCE, EQUIVALENT):
            return speed
        return FAILS_LESS if self.fails_less else COSTS_LESS if self.costs_less() else speed


def _is_more(ratios: list[float], by: float) -> bool:
    return max(ratios, default=math.nan) > 1 + by and min(ratios) >= 1 / (1 + by)
