"""What a rule concluded: its status, how much it matters, and the verdict that holds both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from gpudiag.errors import nearest
from gpudiag.faults import Fault
from gpudiag.plain_data import Scalar
from gpudiag.shown import Shown
from gpudiag.units import unit_of
from gpudiag.values import Values

if TYPE_CHECKING:
    import pandas as pd


class Status(str, Enum):
    """What a rule concluded."""

    FOUND = "found"
    OK = "ok"
    NOT_ASSESSED = "not_assessed"
    NOT_APPLICABLE = "not_applicable"
    SUPPRESSED = "suppressed"
    """Found, and known: an entry of gpudiag.toml gives the reason."""
    ERROR = "error"
    """The check itself failed, by a fault of gpudiag or of somebody's own rule: nothing is known."""

    @classmethod
    def _missing_(cls, value: object) -> Status | None:
        former = str(value).lower()  # as documents up to gpudiag.diagnosis/3 have it
        return cls.OK if former == "clear" else cls._value2member_map_.get(former)  # type: ignore[return-value]


class Severity(str, Enum):
    """How much a finding matters, worst first."""

    CRITICAL = "critical"
    WARNING = "warning"
    NOTE = "note"

    @classmethod
    def _missing_(cls, value: object) -> Severity | None:
        return cls.NOTE if value == "info" else None  # its former name

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Severity).index(self)


@dataclass(frozen=True, repr=False)
class Verdict(Shown):
    """What one rule concluded about one run. ``reason`` says why it is not FOUND or OK; of a finding that
    is SUPPRESSED it is the reason given in gpudiag.toml.

    ``title`` is the headline of its finding, ``checks`` what the check looks at: ``name`` is the one that holds.
    ``caused_by``: id of another finding of the same run of which this one is a symptom, none of ``not_caused_by``,
    and none with this rule in its ``not_cause_of``. ``fault``: of a verdict that is ERROR.
    """

    rule: str
    title: str
    status: Status
    severity: Severity
    summary: str = ""
    reason: str = ""
    remedy: str = ""
    evidence: Values = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    where: Values = field(default_factory=dict)
    lost_gpu_h: float | None = None
    margin: float | None = None
    held_gpu_h: float | None = None
    lost_time_pct: float | None = None
    caused_by: str | None = None
    fault: Fault | None = None
    checks: str = ""
    not_caused_by: tuple[str, ...] = ()
    not_cause_of: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What it is listed by: its title where the fault was found, else what it checks."""
        return listed_by(self.status, self.title, self.checks)

    def to_frame(self) -> pd.DataFrame:
        """Place, evidence and thresholds: kind, name, value, unit."""
        import pandas as pd

        parts = (("where", self.where), ("evidence", self.evidence), ("threshold", self.thresholds))
        rows = [(kind, name, value, unit_of(name)) for kind, values in parts for name, value in values.items()]
        return pd.DataFrame(rows, columns=["kind", "name", "value", "unit"])


class Verdicts(Shown, tuple[Verdict, ...]):
    """Verdicts in their order: a tuple that shows itself as a table, and ``findings["gpu-unused"]`` by rule."""

    def __getitem__(self, key: Any) -> Any:
        """The verdict at a place or of a rule. Raises KeyError that names the rules there are."""
        if not isinstance(key, str):
            found = super().__getitem__(key)
            return Verdicts(found) if isinstance(key, slice) else found
        found = next((verdict for verdict in self if verdict.rule == key), None)
        if found is None:
            rules = [verdict.rule for verdict in self]
            raise KeyError(f"no verdict of a rule '{key}' here; {nearest(key, rules) if rules else 'there is none'}")
        return found

    def to_frame(self) -> pd.DataFrame:
        """A row a verdict: rule, status, severity, name, summary, reason, lost_gpu_h, margin, caused_by."""
        import pandas as pd

        columns = ["rule", "status", "severity", "name", "summary", "reason", "lost_gpu_h", "margin", "caused_by"]
        frame = pd.DataFrame([[_plain_value(getattr(v, name)) for name in columns] for v in self], columns=columns)
        return frame.astype({"lost_gpu_h": float, "margin": float})


def listed_by(status: Status, title: str, checks: str) -> str:
    """A title is the headline of a finding; a check that found nothing is named by what it looks at."""
    return title if status in (Status.FOUND, Status.SUPPRESSED) else checks or title


def _plain_value(value: Scalar | Enum) -> Scalar:
    return value.value if isinstance(value, Enum) else value


def worst_of(findings: Iterable[tuple[str, str, str | None]]) -> int | None:
    """The place of the finding to tell first, of (rule, severity, caused_by) in their order: the first that is more
    than a note, or else the first; of a symptom its cause. None without findings.
    """
    listed = tuple(findings)
    if not listed:
        return None
    places = {name: place for place, (name, _, _) in enumerate(listed)}
    first = next((place for place, (_, severity, _) in enumerate(listed) if severity != "note"), 0)
    seen = set()
    while (cause := listed[first][2]) in places and first not in seen:
        seen.add(first)
        first = places[cause]
    return first
