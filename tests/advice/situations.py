"""Situations of which only what a test states is known: profiles by hand, no run behind them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import pandas as pd

from gpudiag.advice._engine.gains import GainBounds
from gpudiag.advice._engine.proposal import Proposal
from gpudiag.advice._engine.situation import Situation
from gpudiag.errors import NotMeasurable
from gpudiag.manifest import DataLoader, Settings
from gpudiag.measures.ledger import LedgerProfile
from gpudiag.measures.memory import MemoryProfile
from gpudiag.measures.trials import TrialsProfile, TrialState
from gpudiag.measures.utilization import UtilizationProfile
from gpudiag.rules._engine.verdict import Severity, Status, Verdict
from tests.rules.small_profiles import blank, profile

CELLS = (
    "unobserved", "idle_no_trial", "foreign", "startup_only", "tail_only", "waiting", "stalled", "busy_low", "busy",
)  # fmt: skip
HALF = GainBounds(busy_pct=40.0, idle_pct=50.0, busy_all_pct=30.0, coverage_pct=100.0, trial_gpu_h=10.0)
"""40 % utilization, so that filling all idle time brings 2.5 times as much."""


class Told:
    """An analysis that knows what it is told, and nothing else."""

    def __init__(self, *, n_trials: int = 1, capacity: Any = None, forecast: Any = None, replay: Any = None) -> None:
        self.run = SimpleNamespace(
            trials=pd.DataFrame(index=range(n_trials)),
            processes=pd.DataFrame(),
            profiled=pd.DataFrame(),
            collectives=pd.DataFrame(),
            steps=pd.DataFrame({"series": []}),
            info=SimpleNamespace(settings=Settings(), dataloader=DataLoader(), inputs=(), incomplete=frozenset()),
        )
        self.told = {"capacity": capacity, "forecast": forecast, "replay": replay}
        self.asked: list[Any] = []

    @property
    def capacity(self) -> Any:
        return self._known("capacity")

    def forecast(self, k: int) -> Any:
        return self._known("forecast", k)

    def replay(self, pruner: Any) -> Any:
        return self._known("replay", str(pruner))

    def _known(self, name: str, asked: Any = None) -> Any:
        self.asked.append(asked)
        if self.told[name] is None:
            raise NotMeasurable("Nobody told.")
        return self.told[name]


def found(rule: str, where: Mapping[str, Any] | None = None, **more: Any) -> Verdict:
    """A finding of that rule."""
    given = {"severity": Severity.WARNING, "summary": f"{rule} it is.", "where": where or {}, **more}
    return Verdict(rule, f"title of {rule}", Status.FOUND, **given)


def situation(
    *profiles: Any,
    rules: Iterable[str | Verdict] = (),
    bounds: GainBounds | None = None,
    analysis: Any = None,
    **stated: Any,
) -> Situation:
    """The situation with these profiles, findings and what run.toml states; ``bounds`` in place of those measured."""
    loader = {name: value for name, value in stated.items() if name in DataLoader.model_fields}
    settings = {name: value for name, value in stated.items() if name not in loader}
    verdicts = [found(rule) if isinstance(rule, str) else rule for rule in rules]
    now = Situation(
        Settings(**settings),
        DataLoader(**loader),
        {type(one).topic: one for one in profiles},
        {v.rule: v for v in verdicts},
        analysis or Told(),
    )
    if bounds is not None:
        vars(now)["bounds"] = bounds  # where cached_property keeps it
    return now


def use(mean_pct: float, gpus: Mapping[str, Mapping[str, Any]] | None = None) -> UtilizationProfile:
    """How busy the GPUs were."""
    made: UtilizationProfile = profile(UtilizationProfile, gpus, mean_pct=mean_pct)
    return made


def memory(max_used_pct: float = float("nan"), **gpus: Mapping[str, Any]) -> MemoryProfile:
    """Memory in use; ``g0`` is GPU 0."""
    named = {name.removeprefix("g"): row for name, row in gpus.items()}
    made: MemoryProfile = profile(MemoryProfile, named, max_used_pct=max_used_pct)
    return made


def trials(states: Mapping[str, Mapping[str, Any]] | None = None, **stated: Any) -> TrialsProfile:
    """Trials, by state."""
    rows = {state: {**blank(TrialState), **row} for state, row in (states or {}).items()}
    table = pd.DataFrame.from_dict(rows, orient="index", columns=list(TrialState.declared())).rename_axis("state")
    made: TrialsProfile = profile(TrialsProfile, by_state=table, **stated)
    return made


def ledger(seconds: Mapping[str, float], active: Mapping[str, float], **stated: Any) -> LedgerProfile:
    """Where the time of GPU 0 went, and how much of it computed."""
    cells = pd.DataFrame({"gpu": "0", "cell": CELLS, "gpu_s": [seconds.get(cell, 0.0) for cell in CELLS]})
    compute = pd.DataFrame({"gpu": "0", "cell": CELLS, "compute_gpu_s": [active.get(cell, 0.0) for cell in CELLS]})
    made: LedgerProfile = profile(LedgerProfile, cells=cells, compute=compute, **stated)
    return made


def checks(proposal: Proposal | None) -> list[tuple[str, str, float]]:
    """Measure, operator and value of each check."""
    assert proposal is not None
    return [(check.measure, check.op, check.value) for check in proposal.verify]


def predicted(proposal: Proposal | None) -> dict[str, tuple[float | None, float | None, float | None]]:
    """Baseline, low and high of each prediction, by measure."""
    assert proposal is not None
    return {p.measure: (p.baseline, p.low, p.high) for p in proposal.predictions}


def gain_of(proposal: Proposal | None) -> tuple[float, float, str, str] | None:
    """Low, high, unit and source of the gain."""
    assert proposal is not None
    gain = proposal.gain
    return None if gain is None else (gain.low, gain.high, gain.unit, gain.source)
