"""A diagnosis: what the rules concluded about one run, the advice on it, and every way to show and save both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpudiag._diagnosis.plotter import Plotter
from gpudiag.advice import REMEDIES
from gpudiag.advice._engine.advise import Advice, advise
from gpudiag.advice._engine.recommendation import Recommendations
from gpudiag.analysis import Analysis
from gpudiag.errors import ConfigError, NotMeasurable, nearest
from gpudiag.faults import Failed, Fault
from gpudiag.faults import strict as strictly
from gpudiag.files import write
from gpudiag.measures.base import profile_of
from gpudiag.measures.ledger import LedgerProfile
from gpudiag.plain_data import JsonObject, json_text, plain_object
from gpudiag.plots import WIDTH_IN, draw
from gpudiag.report._notebook import pages
from gpudiag.report._render.show import Show
from gpudiag.report._sections.topics import of_a_training
from gpudiag.report._sections.unchecked import once
from gpudiag.report.build import build
from gpudiag.report.document import Document
from gpudiag.report.noun import noun, noun_of, picture_worded, worded
from gpudiag.report.sections import MINIMAL, SECTIONS, Section
from gpudiag.rules._engine.finding_order import ranked_findings
from gpudiag.rules._engine.rule import Rule
from gpudiag.rules._engine.suppression import Applied
from gpudiag.rules._engine.thresholds import Thresholds
from gpudiag.rules._engine.verdict import Severity, Status, Verdict, Verdicts, worst_of
from gpudiag.run import Run

if TYPE_CHECKING:
    import pandas as pd

    from gpudiag.advice._engine.plan import Plan
    from gpudiag.forecast.memory.capacity import MemoryCapacity
    from gpudiag.forecast.parallelism.what_if import Forecast
    from gpudiag.plots import Picture
    from gpudiag.report.timeline.view import TimelineView

TIMELINE = "timeline"
"""The picture that is alive in the HTML report."""
QUOTING = ("data_quality", "provenance", "trial_table")
"""Sections that hold words of files, whose own words are chosen there."""
MOST_FORECAST = 5000
"""Trials up to which a report makes a forecast, which then takes seconds."""


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What the rules concluded about a run, and what it was measured from, which ``analysis`` keeps.

    ``verdicts``: one a rule, in the order of the rules. ``profiles``: by topic, those that the run
    allows; ``missing``: by topic, why the others are not. ``thresholds``: those in force, by rule id.
    ``docs_url``: where the documentation is served, '' where nobody said.
    ``strict``: faults of gpudiag are raised; None is what :func:`gpudiag.faults.strict` says.
    """

    analysis: Analysis
    verdicts: Verdicts
    profiles: Mapping[str, Any]
    missing: Mapping[str, NotMeasurable]
    thresholds: Thresholds
    rules: tuple[Rule, ...]
    preset: str = ""
    suppressions: tuple[Applied, ...] = ()
    docs_url: str = ""
    left_out: frozenset[str] = frozenset()
    strict: bool | None = None

    @property
    def run(self) -> Run:
        """The run that was diagnosed."""
        return self.analysis.given

    @property
    def findings(self) -> Verdicts:
        """What was found: by GPU-hours lost, then severity, then the order of the rules; mere notes last, and first
        what is critical though nobody can tell its cost.

        A symptom stands directly after its cause, and a cause where the worst of its symptoms would stand.
        """
        return Verdicts(ranked_findings(self.verdicts))

    @property
    def errors(self) -> tuple[Fault, ...]:
        """Measures, rules and remedies that failed, each once: faults of gpudiag, or of somebody's own rule."""
        return self._errors(self.advice)

    def _errors(self, advice: Advice) -> tuple[Fault, ...]:
        measures = [gap.fault for gap in self.missing.values() if isinstance(gap, Failed)]
        rules = [verdict.fault for verdict in self.verdicts if verdict.fault is not None]
        return tuple(dict.fromkeys((*measures, *rules, *advice.errors)))

    @property
    def ledger(self) -> LedgerProfile | None:
        """The profile of the GPU-time ledger, None where it was not measured."""
        return profile_of(self.profiles, LedgerProfile)

    @cached_property
    def headline(self) -> str:
        """Three sentences: where the time went, what is wrong most, what to do next."""
        document = self.document if "document" in vars(self) else self._built(self._next_advice())
        return " ".join(document.headline.sentences)

    def _next_advice(self) -> Advice:
        """The advice on the finding to tell first, which is all that a headline says of it."""
        known = [verdict for verdict in self.findings if verdict.remedy]
        place = worst_of((v.rule, v.severity.value, v.caused_by) for v in known)
        rule = None if place is None else known[place].rule
        remedies = [one for one in REMEDIES if rule in one.answers]
        with strictly(self.strict):
            return advise(self.analysis, self.profiles, self._judged, remedies)

    @property
    def _judged(self) -> tuple[Verdict, ...]:
        """The findings in their order, then what passed."""
        return (*self.findings, *(verdict for verdict in self.verdicts if verdict.status is Status.OK))

    @property
    def recommendations(self) -> Recommendations:
        """What to do, best first."""
        return worded(self.advice.recommendations, noun_of(self.run))

    @cached_property
    def advice(self) -> Advice:
        """The remedies proposed for this run, and what they bring together."""
        with strictly(self.strict):
            return advise(self.analysis, self.profiles, self._judged)

    def plan(self, ids: Iterable[str] | None = None) -> Plan:
        """The plan of these remedies, by default of all that need not be verified first. Raises ConfigError for an
        id that is not recommended.
        """
        from gpudiag.advice._engine.plan import make_plan

        return make_plan(self.run, self.advice, ids)

    def save_plan(self, path: str | Path, ids: Iterable[str] | None = None) -> Path:
        """Write plan.json: the remedies named and what they are predicted to do; by default all that need not be
        verified first. Raises ConfigError for an id that is not recommended.
        """
        from gpudiag.advice._engine.plan import plan_json

        path = Path(path)
        write(path, plan_json(self.plan(ids)))
        return path

    def fails(self, level: str) -> bool:
        """True if there is a finding as bad as ``level`` (critical, warning, note) or worse; never for 'never'.

        Raises ConfigError for another level.
        """
        if level == "never":
            return False
        try:
            worst = Severity(level)
        except ValueError as error:
            legal = (*(severity.value for severity in Severity), "never")
            raise ConfigError(f"there is no level {level!r}; {nearest(str(level), legal)}") from error
        return any(verdict.severity.rank <= worst.rank for verdict in self.findings)

    @property
    def show(self) -> Show[Document]:
        """Sections for a notebook: ``show.findings``, ``show.trials`` ..."""
        return Show(self.document, self._draw, self._sections, self.left_out, self.strict)

    @property
    def forecast(self) -> Forecast:
        """What other numbers of trials at once would bring. Raises NotMeasurable where nothing can be said, and for
        studies of so many trials that it takes long: ask for it with :func:`gpudiag.what_if`.
        """
        if len(self.run.trials) > MOST_FORECAST:
            raise NotMeasurable(
                "With {n_trials:trial} a forecast takes long.", "Use gpudiag whatif.", n_trials=len(self.run.trials)
            )
        with strictly(self.strict):
            return self.analysis.forecast()

    @property
    def _sections(self) -> Mapping[str, Section]:
        from gpudiag.report._sections import forecast as forecasts  # what only a page shows is loaded for a page
        from gpudiag.report.trial_table.section import trial_table

        made: dict[str, Section] = {
            **SECTIONS,
            "trial_table": lambda document: trial_table(self.analysis),
            "memory": lambda document: [*SECTIONS["memory"](document), *forecasts.memory_by_number(self._capacity)],
            "forecast": lambda document: [] if of_a_training(document) else forecasts.section(lambda: self.forecast),
        }
        made = {name: make if name in QUOTING else _in_its_noun(make) for name, make in made.items()}
        return made if "findings" in self.left_out else {name: _said_once(make) for name, make in made.items()}

    def _capacity(self) -> MemoryCapacity:
        """How many trials the memory holds; for studies of so many trials that it takes long, nobody asks."""
        if not 0 < len(self.run.trials) <= MOST_FORECAST:
            raise NotMeasurable("A capacity takes long.", "Use gpudiag whatif.")
        with strictly(self.strict):
            return self.analysis.capacity

    def showing(self, sections: str | Iterable[str] = "", *, minimal: bool = False) -> Diagnosis:
        """The same with fewer sections to show: those named (a list, or text with commas), or with ``minimal`` the
        verdict, the findings and what to do. Nothing named is everything. Raises ConfigError for an unknown name.
        """
        wanted = [sections] if isinstance(sections, str) else list(sections)
        names = {name.strip() for part in wanted for name in part.split(",") if name.strip()}
        for name in sorted(names - set(SECTIONS)):
            raise ConfigError(f"there is no section '{name}'; {nearest(name, SECTIONS)}")
        names = names or set(MINIMAL if minimal else SECTIONS)
        shown = replace(self, left_out=frozenset(SECTIONS) - names - {"masthead"})
        known = {"advice", "headline", "document"} & vars(self).keys()
        vars(shown).update({name: vars(self)[name] for name in known})  # the same for any sections, and slow to make
        return shown

    @property
    def plot(self) -> Plotter:
        """Figures by name: ``plot.timeline()``; ``dir(plot)`` lists what this run can draw."""
        return Plotter(self.profiles, self.picture)

    def timeline(self) -> TimelineView:
        """Trials, GPUs, ledger, events and findings on one time axis, to zoom into. Raises NotMeasurable."""
        from gpudiag.report.timeline.view import timeline_view

        with strictly(self.strict):
            return timeline_view(self.analysis, self.findings)

    def picture(self, name: str, *, width_in: float = WIDTH_IN) -> Picture:
        """The figure of that name with its text alternative and caption. Raises NotMeasurable, or KeyError."""
        made = draw(name, self.profiles, timezone=self.run.info.timezone, width_in=width_in)
        return picture_worded(made, noun_of(self.run))

    def to_dict(self) -> JsonObject:
        """The JSON document, schema ``gpudiag.diagnosis/4``."""
        return plain_object(self.document)

    def to_json(self) -> str:
        """The document as JSON text."""
        return json_text(self.document)

    def to_markdown(self, *, full: bool = True) -> str:
        """The report as Markdown without its pictures; with ``full`` False the short one, as for a pull request."""
        return pages.markdown_page(self._notebook(pictures=False), full=full).text

    def save(self, path: str | Path) -> Path:
        """Write the report where ``path`` says: .html (self-contained), .md (pictures in a folder beside it) or .json.

        Raises ConfigError for any other suffix.
        """
        return pages.save(Path(path), self._notebook, self.to_json)

    def _repr_html_(self) -> str:
        return "\n".join(getattr(self.show, name)._repr_html_() for name in ("masthead", "verdict", "findings"))

    def _repr_markdown_(self) -> str:
        return "\n\n".join(getattr(self.show, name)._repr_markdown_() for name in ("masthead", "verdict", "findings"))

    def to_frame(self) -> pd.DataFrame:
        """A row a verdict, the findings first."""
        others = (verdict for verdict in self.verdicts if verdict.status is not Status.FOUND)
        return Verdicts((*self.findings, *others)).to_frame()

    def __repr__(self) -> str:
        from gpudiag.report._render import terminal
        from gpudiag.report.text import brief

        return terminal.text(brief(self.document))

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.startswith("_")]

    @cached_property
    def document(self) -> Document:
        """All that is said of the run, typed; the same as :meth:`to_dict`."""
        return self._built(self.advice)

    def _built(self, advice: Advice) -> Document:
        with strictly(self.strict):
            return build(
                self.run,
                findings=self.findings,
                verdicts=self.verdicts,
                rules=self.rules,
                profiles=self.profiles,
                missing=self.missing,
                advice=advice,
                preset=self.preset,
                suppressions=self.suppressions,
                docs_url=self.docs_url,
                errors=self._errors(advice),
            )

    def _draw(self, name: str, width_in: float = WIDTH_IN) -> Picture | None:
        from gpudiag.report._sections import forecast as forecasts

        try:
            if name in forecasts.FIGURES:
                return forecasts.draw(name, self.forecast)
            picture = self.picture(name, width_in=width_in)
            return replace(picture, lanes=self.timeline().packed) if name == TIMELINE else picture
        except NotMeasurable:
            return None

    def _notebook(self, *, pictures: bool = True) -> Any:
        """run_report as if executed: its prose with this diagnosis's sections, without a kernel."""
        show = self.show if pictures else Show(self.document, lambda name: None, self._sections, strict=self.strict)
        return pages.filled("run_report", show)


def _said_once(section: Section) -> Section:
    """The section without the command that stands under Findings."""
    return lambda document: once(document, section(document))


def _in_its_noun(section: Section) -> Section:
    """The section with trials that are jobs called so."""
    return lambda document: worded(section(document), noun(document))
