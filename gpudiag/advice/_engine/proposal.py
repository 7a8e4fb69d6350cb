"""What a remedy proposes for one run: changes, what they bring, how to tell that they worked, and how safe they are."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from gpudiag.facts import Key, Numeric
from gpudiag.plain_data import LEFT_OUT
from gpudiag.values import is_number

Value = bool | int | float | str
Safety = Literal["safe", "moderate", "risky"]
Apply = Literal["now", "next study"]
WHEN: dict[Apply, str] = {"now": "now", "next study": "next run"}
"""When to apply it, as a person reads it: a training is no study."""

TIERS: tuple[tuple[Safety, str], ...] = (
    ("safe", "it only observes, or writes something down"),
    ("safe", "it changes the CPU side, the input or how processes are kept; the same trials give the same values"),
    ("moderate", "results change: trials after it are not comparable with those before it"),
    ("risky", "more work or memory at once can end the whole run"),
    ("risky", "it changes the driver or the system, also for other users"),
)
"""Safety by tier (METHODS 9), and why."""
REVERSIBILITY = (1.0, 1.0, 0.8, 0.5, 0.3)
"""How much of a change can be taken back, by tier: a setting is restored at once, a search that saw other values is
not, a crash has cost its trials (defaults without a published source)."""


@dataclass(frozen=True)
class Change:
    """One thing to change: from what (None: not known, or absent) to what, and the lines that do it."""

    what: str
    present: Value | None
    proposed: Value
    code: str

    @property
    def text(self) -> str:
        """``num_workers: 2 → 8`` of a setting with two values, ``pin_memory=True`` of one that has no number now; else
        nothing, as the code says it.
        """
        if not isinstance(self.proposed, bool | int | float):
            return ""
        if is_number(self.present) and is_number(self.proposed):
            return f"{self.what}: {self.present} → {self.proposed}"
        return f"{self.what}={self.proposed}" if self.what.isidentifier() else ""


@dataclass(frozen=True)
class SuccessCheck:
    """A statement on a number of the JSON's ``measures``, e.g. ledger.mean_util_pct >= 90 %."""

    measure: Key
    op: str
    value: float
    unit: str

    @classmethod
    def of(cls, fact: Numeric, op: str, value: float) -> SuccessCheck:
        """A statement on that fact, in its unit."""
        return cls(fact.key, op, value, fact.unit)


@dataclass(frozen=True)
class Prediction:
    """What a measure is after the change: from ``low`` to ``high``; None where ``note`` says why it is unknown."""

    measure: Key
    baseline: float | None
    low: float | None
    high: float | None
    unit: str
    note: str = ""

    @classmethod
    def of(cls, fact: Numeric, baseline: float, low: float | None, high: float | None, note: str = "") -> Prediction:
        """What that fact will be, in its unit."""
        return cls(fact.key, baseline, low, high, fact.unit, note)


@dataclass(frozen=True)
class Gain:
    """What a change brings, as an interval.

    ``unit`` 'x': the same GPU work in 1/x of the time. 'GPU-h': hours of this run that need not be spent.
    ``source`` is what they are taken from: gains from the same source overlap.
    """

    low: float
    high: float
    unit: str = "x"
    source: str = field(default="idle", metadata=LEFT_OUT)

    @property
    def is_price(self) -> bool:
        """True for hours of which more may be spent than saved."""
        return self.unit == "GPU-h" and -self.low > max(self.high, 0.0)


@dataclass(frozen=True)
class Proposal:
    """What a remedy means for one run. ``assumption`` is what the gain rests on, or why there is none.

    ``verify_first``: why it must be tested before it is applied; empty where nothing speaks against it. ``leaves``:
    rules that the remedy answers, but not in this run.
    """

    changes: tuple[Change, ...]
    gain: Gain | None
    assumption: str
    verify: tuple[SuccessCheck, ...] = ()
    predictions: tuple[Prediction, ...] = ()
    verify_first: str = ""
    leaves: tuple[str, ...] = ()

    def doubted(self, reason: str) -> Proposal:
        """The same, to be verified first for that reason too."""
        return replace(self, verify_first=f"{self.verify_first} {reason}".strip()) if reason else self
