"""A diagnosed run whose numbers and findings say, in a failed assertion, what the run is like."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from gpudiag.diagnosis import Diagnosis, diagnose
from gpudiag.errors import ConfigError, NotMeasurable, expected, nearest
from gpudiag.facts import Fact
from gpudiag.load import load_run
from gpudiag.measures.base import Profile, profile_of
from gpudiag.measures.memory import MemoryProfile
from gpudiag.measures.utilization import UtilizationProfile
from gpudiag.report._sections.key_numbers import mean_util_pct
from gpudiag.report.format import named
from gpudiag.rules._engine.verdict import Severity, Status, Verdict


def judged_run(*paths: str | Path, **options: Any) -> JudgedRun:
    """Read a run folder, or several files of one run, and diagnose it; options are those of ``gpudiag.load_run``."""
    if not paths:
        raise expected("the path of a run", None)
    return JudgedRun(diagnose(load_run([str(path) for path in paths] if len(paths) > 1 else paths[0], **options)))


class FactValue(float):
    """A number of a run that knows its name and its run; arithmetic with it gives plain numbers."""

    name: str
    run: JudgedRun

    def __new__(cls, value: float, name: str, run: JudgedRun) -> FactValue:
        made = super().__new__(cls, value)
        made.name, made.run = name, run
        return made

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        return float, (float(self),)

    def said(self) -> str:
        """'gpu.utilization_pct 34 %'."""
        return f"{self.name} {named(self.name, float(self))}"


class JudgedRun:
    """What gpudiag says of a run, to assert on. ``diagnosis`` holds all of it.

    What the run does not tell is never a number: asking for it raises NotMeasurable with the reason and the remedy.
    """

    def __init__(self, diagnosis: Diagnosis) -> None:
        self.diagnosis = diagnosis
        self.gpu = GpuNumbers(self)
        self.memory = MemoryNumbers(self)

    @property
    def headline(self) -> str:
        """Where the time went, what is wrong most, what to do next."""
        return self.diagnosis.headline

    @property
    def not_assessed(self) -> list[str]:
        """The checks that the run had not the data for."""
        return [verdict.rule for verdict in self.diagnosis.verdicts if verdict.status is Status.NOT_ASSESSED]

    def findings(self, at_least: str = "note") -> Findings:
        """What was found, as bad as ``at_least`` (critical, warning, note) or worse, in the order of the report."""
        levels = [severity.value for severity in Severity]
        if at_least not in levels:
            raise ConfigError(f"there is no level {at_least!r}; {nearest(str(at_least), levels)}")
        worst = Severity(at_least).rank
        return Findings(self, [one for one in self.diagnosis.findings if one.severity.rank <= worst])

    def coverage(self) -> tuple[int, float]:
        """Samples, and observed seconds (NaN without utilization), of the GPU that has least of them."""
        samples = self.diagnosis.run.gpu
        counts = samples.groupby("gpu", observed=True).size()
        utilization = profile_of(self.diagnosis.profiles, UtilizationProfile)
        seconds = math.nan if utilization is None else float(utilization.per_gpu["observed_s"].min())
        return (int(counts.min()) if len(counts) else 0), seconds

    def value(self, name: str, profile: type[Profile], fact: Fact[float]) -> FactValue:
        """A fact of the run by that name. Raises NotMeasurable where it is unknown."""
        held = self.held(profile)
        return self.known(name, getattr(held, fact.name))

    def held(self, profile: type[Profile]) -> Any:
        """A profile of the run. Raises NotMeasurable with the reason that it was not measured."""
        made = profile_of(self.diagnosis.profiles, profile)
        if made is None:
            raise self.diagnosis.missing[profile.topic]
        return made

    def known(self, name: str, value: float) -> FactValue:
        """The number, if it is one. Raises NotMeasurable."""
        if math.isnan(value):
            raise NotMeasurable(f"The recording does not tell {name}.")
        return FactValue(value, name, self)

    def __repr__(self) -> str:
        return f"<{self.diagnosis.run.info.name}: {self.headline}>"


class GpuNumbers:
    """How busy the GPUs were, all of them together."""

    def __init__(self, run: JudgedRun) -> None:
        self._run = run

    @property
    def utilization_pct(self) -> FactValue:
        """Mean utilization, weighted by time: the one at the top of the report, from the first trial to the last where
        there are any.
        """
        mean = mean_util_pct(self._run.diagnosis.document)
        self._run.held(UtilizationProfile)  # without telemetry the reason why
        return self._run.known("gpu.utilization_pct", math.nan if mean is None else mean)

    @property
    def idle_pct(self) -> FactValue:
        """Share of the observed time below 10 % utilization."""
        return self._run.value("gpu.idle_pct", UtilizationProfile, UtilizationProfile.idle_pct)

    def __repr__(self) -> str:
        return f"<GPU of {self._run.diagnosis.run.info.name}>"


class MemoryNumbers:
    """How full the memory of the GPUs was: of the one that was fullest."""

    def __init__(self, run: JudgedRun) -> None:
        self._run = run

    @property
    def peak_mib(self) -> FactValue:
        """The most memory that was in use on one GPU."""
        return self._run.known("memory.peak_mib", float(self._run.held(MemoryProfile).per_gpu["max_mib"].max()))

    @property
    def peak_pct(self) -> FactValue:
        """The same of the GPU's memory."""
        return self._run.value("memory.peak_pct", MemoryProfile, MemoryProfile.max_used_pct)

    def __repr__(self) -> str:
        return f"<memory of {self._run.diagnosis.run.info.name}>"


class Findings(list[Verdict]):
    """Findings of a run; ``"pruning-rate" in findings`` asks for one by its check."""

    def __init__(self, run: JudgedRun, held: list[Verdict]) -> None:
        super().__init__(held)
        self.run = run

    def __contains__(self, rule: object) -> bool:
        """Raises ConfigError for a check that there is not, and NotMeasurable for one that was not assessed."""
        if not isinstance(rule, str):
            return super().__contains__(rule)
        verdicts = {verdict.rule: verdict for verdict in self.run.diagnosis.verdicts}
        if rule not in verdicts:
            raise ConfigError(f"there is no check '{rule}'; {nearest(rule, verdicts)}")
        if verdicts[rule].status in (Status.NOT_ASSESSED, Status.ERROR):
            raise NotMeasurable(f"{rule} was not assessed. {verdicts[rule].reason}", verdicts[rule].remedy)
        return any(verdict.rule == rule for verdict in self)

    def lines(self) -> list[str]:
        """A line a finding."""
        return [f"{one.severity.value} {one.rule}: {one.summary or one.title}" for one in self]

    def __repr__(self) -> str:
        return f"[{'; '.join(self.lines())}]"


def explained(op: str, left: object, right: object) -> list[str] | None:
    """The lines of a failed comparison, the headline of the run first; None where neither side is of a run."""
    for one in (left, right):
        if isinstance(one, FactValue):
            return [f"{_side(left)} {op} {_side(right)}", "", _about(one.run)]
        if isinstance(one, Findings) and op in ("==", "!="):
            return [f"{_number_of(left)} {op} {_number_of(right)}", "", _about(one.run), *one.lines()]
    return None


def _side(value: object) -> str:
    return value.said() if isinstance(value, FactValue) else repr(value)


def _number_of(value: object) -> str:
    return f"<{len(value)} findings>" if isinstance(value, Findings) else repr(value)


def _about(run: JudgedRun) -> str:
    return f"{run.diagnosis.run.info.name}: {run.headline}"
