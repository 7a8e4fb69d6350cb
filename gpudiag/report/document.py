"""A diagnosis as one typed document, schema ``gpudiag.diagnosis/4``: fields are the keys of the JSON, in its order.

Times are ISO 8601 in UTC, unknown numbers are None, names carry their unit. The document holds no user attribute of a
trial, no NaN and no time of writing: the same run gives the same document.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Required, TypeVar, cast

from typing_extensions import TypedDict

from gpudiag import __version__
from gpudiag._run.tables import Confidence, InputRecord
from gpudiag.advice._engine.recommendation import Recommendation
from gpudiag.errors import InputError
from gpudiag.facts import Declared, Fact, Row
from gpudiag.faults import Fault
from gpudiag.plain_data import TIME, Json, JsonObject, Scalar, meaning
from gpudiag.rules._engine.gpudiag_toml import DOCS_URL
from gpudiag.rules._engine.suppression import SuppressionState
from gpudiag.rules._engine.verdict import Severity, Status, listed_by

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")

Level = Literal["critical", "warning", "note", "ok", "unknown"]
Use = Literal["well", "partly", "poorly", "unused", "unknown"]

COUNT: JsonObject = {"ge": 0}


class GpuEntry(TypedDict, total=False):
    """A GPU of the run; what no input tells is absent."""

    gpu: Required[str]
    uuid: str | None
    bus_id: str | None
    name: str | None
    mem_total_mib: float | None
    power_limit_w: float | None
    driver: str | None


@dataclass(frozen=True)
class RunEntry:
    """What the run is called and what it holds."""

    name: str
    timezone: str = field(metadata=meaning("zone of timestamps that carried none"))
    timezone_assumed: bool = field(metadata=meaning("nobody stated it: it is that of the machine that read the run"))
    start: str | None = field(metadata=TIME)
    end: str | None = field(metadata=TIME)
    gpus: tuple[GpuEntry, ...]
    n_samples: int = field(metadata=COUNT)
    n_trials: int = field(metadata=COUNT)
    studies: tuple[str, ...]
    settings: Mapping[str, Scalar] = field(metadata=meaning("[settings] of run.toml, only what it states"))
    dataloader: Mapping[str, Scalar] = field(metadata=meaning("[dataloader] of run.toml, or given to the recorder"))
    stated: Mapping[str, float] = field(metadata=meaning("[stated] of run.toml: counts written down by hand"))
    notes: tuple[str, ...]
    training: Mapping[str, Scalar] = field(
        default_factory=dict, metadata=meaning("[training] of run.toml, only what it states")
    )


@dataclass(frozen=True)
class Counts:
    """Verdicts by severity where something was found, else by status."""

    critical: int = field(default=0, metadata=COUNT)
    warning: int = field(default=0, metadata=COUNT)
    note: int = field(default=0, metadata=COUNT)
    ok: int = field(default=0, metadata=COUNT)
    not_assessed: int = field(default=0, metadata=COUNT)
    not_applicable: int = field(default=0, metadata=COUNT)
    suppressed: int = field(default=0, metadata=COUNT)
    error: int = field(
        default=0, metadata=COUNT | meaning("checks that failed by a fault of gpudiag or of an own rule")
    )


@dataclass(frozen=True)
class Headline:
    """The level of what was found, how well the GPUs were used, one line on both, and three sentences: the headline,
    the number that proves it, what to do next.
    """

    level: Level = "unknown"
    use: Use = "unknown"
    verdict: str = ""
    counts: Counts = Counts()
    sentences: tuple[str, str, str] = ("", "", "")


@dataclass(frozen=True)
class ClockEntry:
    """trials + offset_s = telemetry; ``joined`` is false where the two cannot be laid on one clock."""

    offset_s: float | None
    confidence: Confidence
    method: str
    evidence: str
    applied_s: float | None
    joined: bool


@dataclass(frozen=True)
class Measured:
    """One number of a measure, text or yes and no; ``unit`` is '' where there is none, '1' for a plain number."""

    value: Scalar
    unit: str


@dataclass(frozen=True)
class TopicValues:
    """The numbers of one topic by their handles; false where it was not measured."""

    held: Mapping[str, Measured]

    def __bool__(self) -> bool:
        return bool(self.held)

    def __getitem__(self, fact: Fact[T]) -> T:
        """A number that is always known where the topic was measured."""
        return cast(T, self.held[fact.name].value)

    def get(self, fact: Fact[T]) -> T | None:
        """A number; None where it is unknown or was not measured."""
        return cast("T | None", self.held[fact.name].value) if fact.name in self.held else None

    def by_row(self, row: type[Row]) -> dict[str, dict[str, Scalar]]:
        """The cells of a table with an index: by its rows, then by column."""
        out: dict[str, dict[str, Scalar]] = {}
        for name, measured in self.held.items():
            index, _, rest = name.partition(".")
            if rest and index == row.index:
                key, _, column = rest.rpartition(".")
                out.setdefault(key, {})[column] = measured.value
        return out


@dataclass(frozen=True)
class NotMeasured:
    """Why a topic was not measured, and what would fill it."""

    reason: str
    remedy: str


@dataclass(frozen=True)
class CellEntry:
    """GPU-seconds of one GPU in one cell of the ledger."""

    gpu: str
    cell: str
    gpu_s: float = field(metadata=COUNT)


@dataclass(frozen=True)
class LedgerEntry:
    """Every observed GPU-second in exactly one cell."""

    total_gpu_s: float = field(metadata=COUNT)
    cells: tuple[CellEntry, ...]

    def seconds(self) -> dict[str, float]:
        """GPU-seconds by cell over all GPUs."""
        out: dict[str, float] = {}
        for row in self.cells:
            out[row.cell] = out.get(row.cell, 0.0) + row.gpu_s
        return out


@dataclass(frozen=True)
class TrialOutcomeEntry:
    """What the trials of one outcome took, or the time between trials."""

    outcome: str
    n_trials: int | None
    worker_s: float | None
    gpu_s: float | None
    busy_gpu_s: float | None
    energy_kwh: float | None
    cost: float | None


@dataclass(frozen=True)
class CostsEntry:
    """Worker time, GPU time, energy and money by outcome."""

    currency: str
    outcomes: tuple[TrialOutcomeEntry, ...]


@dataclass(frozen=True)
class VerdictEntry:
    """What one rule concluded. ``reason``: why nothing could be said, why a finding is suppressed, or of a check that
    is ERROR the exception's type and place.
    """

    rule: str = field(metadata={"pattern": "^[a-z0-9-]+$"})
    topic: str
    title: str = field(metadata=meaning("headline of its finding"))
    checks: str = field(metadata=meaning("what the check looks at: its name where nothing was found"))
    status: Status
    severity: Severity
    summary: str
    reason: str
    evidence: Mapping[str, Json]
    thresholds: Mapping[str, float]
    changed: tuple[str, ...] = field(metadata=meaning("thresholds that are not the rule's own"))
    where: Mapping[str, Json]
    lost_gpu_h: float | None
    margin: float | None
    caused_by: str | None = field(metadata=meaning("rule of another finding of which this one is a symptom"))
    remedy: str
    refuted_by: str
    why: str

    @property
    def name(self) -> str:
        """What it is listed by: its title where the fault was found, else what it checks."""
        return listed_by(self.status, self.title, self.checks)


@dataclass(frozen=True)
class SuppressionEntry:
    """An entry of gpudiag.toml that is meant for this run; unused: nothing was found that it could suppress."""

    rule: str
    reason: str
    run: str = field(metadata=meaning("pattern of names of runs"))
    until: str | None = field(metadata={"json_schema_extra": {"format": "date"}})
    state: SuppressionState


@dataclass(frozen=True)
class CombinedEntry:
    """What the plan brings together, clipped where it would be more than the ceiling."""

    low: float
    high: float
    unit: Literal["x"]
    clipped: bool


@dataclass(frozen=True)
class AdviceEntry:
    """What bounds all gains, what the plan brings, and what the numbers refute."""

    busy_pct: float | None
    ceiling: float | None = field(metadata=meaning("1/u: no combination of changes at constant GPU work brings more"))
    plan: tuple[str, ...]
    combined: CombinedEntry | None
    saved_gpu_h: float | None
    corrections: tuple[str, ...]


@dataclass(frozen=True)
class Environment:
    """Versions of Python and of the libraries that numbers depend on."""

    python: str
    packages: Mapping[str, str]


@dataclass(frozen=True)
class Document:
    """Diagnosis of one run by gpudiag."""

    schema: Literal["gpudiag.diagnosis/4"]
    version: str = field(metadata=meaning("version of gpudiag"))
    run: RunEntry
    headline: Headline
    inputs: tuple[InputRecord, ...]
    clock: ClockEntry
    measures: Mapping[str, Mapping[str, Measured]] = field(metadata=meaning("by topic, then by name"))
    not_measured: Mapping[str, NotMeasured] = field(metadata=meaning("by topic"))
    ledger: LedgerEntry | None
    costs: CostsEntry | None
    preset: str | None = field(metadata=meaning("set of thresholds of another tool that was started from"))
    verdicts: tuple[VerdictEntry, ...] = field(
        metadata=meaning(
            "findings first: by GPU-hours lost, then severity, notes last, and before all what is critical at an "
            "unknown cost; a symptom directly after its cause"
        )
    )
    suppressions: tuple[SuppressionEntry, ...]
    recommendations: tuple[Recommendation, ...] = field(
        metadata=meaning("remedies best first; then the rules' own advice for findings that no remedy answers")
    )
    advice: AdviceEntry
    errors: tuple[Fault, ...] = field(
        metadata=meaning(
            "measures, rules and remedies that failed while all else stands; ``module`` is that of somebody's own rule "
            "or measure, empty for a fault of gpudiag"
        )
    )
    environment: Environment
    docs_url: str = field(
        default="",
        metadata={"pattern": f"^$|{DOCS_URL}"} | meaning("docs_url of gpudiag.toml: where the documentation is served"),
    )

    def of_status(self, status: Status) -> list[VerdictEntry]:
        """The verdicts of that status, in the document's order."""
        return [verdict for verdict in self.verdicts if verdict.status is status]

    @property
    def findings(self) -> list[VerdictEntry]:
        """The verdicts that found something."""
        return self.of_status(Status.FOUND)

    def values(self, profile: type[Declared]) -> TopicValues:
        """The numbers that a profile of that kind had."""
        return TopicValues(self.measures.get(profile.topic, {}))


@cache
def _adapter() -> TypeAdapter[Document]:
    from pydantic import TypeAdapter

    return TypeAdapter(Document)


def read_document(path: Path) -> Document:
    """The document in a diagnosis.json of this version. Raises InputError where it is none."""
    try:
        return _adapter().validate_json(path.read_bytes())
    except ValueError as error:
        raise InputError(f"{path}: is no diagnosis as gpudiag {__version__} writes it.") from error
