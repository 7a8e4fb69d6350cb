"""A diagnosis as OpenMetrics text: gauges that a dashboard can follow from run to run.

Format: https://prometheus.io/docs/specs/om/open_metrics_spec/ (a family's lines together, escaped labels, # EOF).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gpudiag.files import write as write_file
from gpudiag.report.format import safe

if TYPE_CHECKING:
    from gpudiag.diagnosis import Diagnosis
    from gpudiag.report.document import Document, Measured


class MetricSample(NamedTuple):
    """One number and the labels that tell it from the others of its family."""

    labels: dict[str, str]
    value: float


class Family(NamedTuple):
    """A name, its unit (the last part of the name, or empty), what it means, and its samples."""

    name: str
    unit: str
    help: str
    samples: list[MetricSample]


def write(diagnosis: Diagnosis, path: Path) -> list[Path]:
    """Write the text to ``path``."""
    write_file(path, text(diagnosis))
    return [path]


def text(diagnosis: Diagnosis) -> str:
    """The diagnosis as OpenMetrics text; what is unknown has no line."""
    document = diagnosis.document
    return document_of(document.run.name, _families(document))


def document_of(run: str, families: Iterable[Family]) -> str:
    """These families with the label ``run`` at each sample; a family without samples is left out."""
    lines = [line for family in families if family.samples for line in _family(family, run)]
    return "\n".join([*lines, "# EOF", ""])


def _families(document: Document) -> Iterator[Family]:
    cells = document.ledger.cells if document.ledger else ()
    yield Family(
        "gpudiag_ledger_gpu_seconds", "seconds", "GPU time by cell of the ledger; the cells of a GPU add up.",
        [MetricSample({"gpu": c.gpu, "cell": c.cell}, c.gpu_s) for c in cells],
    )  # fmt: skip
    found = document.findings
    yield Family(
        "gpudiag_finding", "", "1 for each finding.",
        [MetricSample({"rule": v.rule, "severity": v.severity.value}, 1) for v in found],
    )  # fmt: skip
    yield Family(
        "gpudiag_finding_lost_gpu_hours", "hours", "GPU-hours that a finding cost, where it can be told.",
        [MetricSample({"rule": v.rule}, v.lost_gpu_h) for v in found if v.lost_gpu_h is not None],
    )  # fmt: skip
    statuses = Counter(v.status.value for v in document.verdicts)
    yield Family(
        "gpudiag_checks", "", "Checks by what they concluded.",
        [MetricSample({"status": status}, n) for status, n in sorted(statuses.items())],
    )  # fmt: skip
    yield from _measured(document.measures)


def _measured(measures: Mapping[str, Mapping[str, Measured]]) -> Iterator[Family]:
    """The few numbers that a dashboard wants, one family each."""

    def by(topic: str, kind: str, fact: str) -> Iterable[MetricSample]:
        for name, held in measures.get(topic, {}).items():
            prefix, _, rest = name.partition(".")
            key, _, last = rest.rpartition(".")
            if prefix == kind and last == fact and isinstance(held.value, int | float):
                yield MetricSample({kind: key}, held.value)

    def one(topic: str, fact: str) -> list[MetricSample]:
        held = measures.get(topic, {}).get(fact)
        return [MetricSample({}, held.value)] if held and isinstance(held.value, int | float) else []

    use = [*by("ledger", "gpu", "mean_util_pct")] or [*by("utilization", "gpu", "mean_pct")]
    yield Family("gpudiag_utilization_percent", "percent", "Mean utilization while the job ran, else recorded.", use)
    yield Family("gpudiag_memory_used_percent", "percent", "Peak memory.", [*by("memory", "gpu", "max_used_pct")])
    yield Family("gpudiag_trials", "", "Trials by state.", [*by("trials", "state", "n")])
    yield Family("gpudiag_parallelism", "", "Trials at once on average.", one("parallelism", "effective"))
    yield Family("gpudiag_coverage_percent", "percent", "Telemetry's coverage.", one("sampling", "coverage_pct"))
    yield Family(
        "gpudiag_energy_kilowatthours",
        "kilowatthours",
        "Energy, observed.",
        one("costs", "energy_kwh"),
    )


def _family(family: Family, run: str) -> list[str]:
    head = [f"# TYPE {family.name} gauge"]
    head += [f"# UNIT {family.name} {family.unit}"] if family.unit else []
    head.append(f"# HELP {family.name} {_escaped(family.help)}")
    return head + [_line(family.name, {"run": run, **sample.labels}, sample.value) for sample in family.samples]


def _line(name: str, labels: dict[str, str], value: float) -> str:
    inside = ",".join(f'{key}="{_escaped(safe(label))}"' for key, label in labels.items())
    return f"{name}{{{inside}}} {float(value)!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
