"""A run in, a diagnosis out: measures, verdicts, and every way to show them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpudiag.advice.engine import Advice, advise
from gpudiag.errors import ConfigError, NotMeasurable, nearest
from gpudiag.measures import MEASURES
from gpudiag.plots import PLOTS, Picture, draw
from gpudiag.report import document as documents
from gpudiag.report import pages
from gpudiag.report.show import Show
from gpudiag.rules import RULES
from gpudiag.rules.engine import Profiles, Rule, Severity, Status, Verdict, check_thresholds, judge_all
from gpudiag.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Thresholds = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What the rules concluded about a run, and what it was measured from.

    ``verdicts``: one a rule, in the order of the rules. ``profiles``: by topic, those that the run
    allows; ``missing``: by topic, why the others are not. ``thresholds``: those in force, by rule id.
    """

    run: Run
    verdicts: tuple[Verdict, ...]
    profiles: Mapping[str, Any]
    missing: Mapping[str, NotMeasurable]
    thresholds: Thresholds
    rules: tuple[Rule, ...]

    @property
    def findings(self) -> tuple[Verdict, ...]:
        """What was found: by severity, then GPU-hours lost, then the order of the rules.

        A symptom stands directly after its cause, and a cause where the worst of its symptoms would stand.
        """
        found = [verdict for verdict in self.verdicts if verdict.status is Status.FOUND]
        return _symptoms_after_causes(sorted(found, key=lambda v: (v.severity.rank, -(v.lost_gpu_h or 0.0))))

    @property
    def ledger(self) -> Any | None:
        """The profile of the GPU-time ledger, None where it was not measured."""
        return self.profiles.get("ledger")

    @property
    def headline(self) -> str:
        """Three sentences: where the time went, what is wrong most, what to do next."""
        return " ".join(self._document["headline"]["sentences"])

    @property
    def recommendations(self) -> tuple[Mapping[str, Any], ...]:
        """What to do, best first; the same as in the document."""
        return tuple(self.to_dict()["recommendations"])

    @cached_property
    def advice(self) -> Advice:
        """The remedies proposed for this run, and what they bring together."""
        return advise(self.run, self.profiles, self.findings)

    def save_plan(self, path: str | Path, ids: Iterable[str] | None = None) -> Path:
        """Write plan.json: the remedies named and what they are predicted to do; by default all that need not be
        verified first. Raises ConfigError for an id that is not recommended.
        """
        from gpudiag.advice.plan import make_plan, plan_json

        path = Path(path)
        pages.write(path, plan_json(make_plan(self.run, self.advice, ids)))
        return path

    def fails(self, level: str) -> bool:
        """True if there is a finding as bad as ``level`` (critical, warning, info) or worse; never for 'never'."""
        return level != "never" and any(v.severity.rank <= Severity(level).rank for v in self.findings)

    @property
    def show(self) -> Show:
        """Sections for a notebook: ``show.findings``, ``show.trials`` ..."""
        return Show(self._document, self._draw)

    @property
    def plot(self) -> Plotter:
        """Figures by name: ``plot.timeline()``; ``dir(plot)`` lists what this run can draw."""
        return Plotter(self)

    def picture(self, name: str) -> Picture:
        """The figure of that name with its text alternative and caption. Raises NotMeasurable, or KeyError."""
        return draw(name, self.profiles, timezone=self.run.info.timezone)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document, schema ``gpudiag.diagnosis/1``."""
        import copy

        return copy.deepcopy(self._document)

    def to_json(self) -> str:
        """The document as JSON text."""
        return documents.to_json(self._document)

    def to_markdown(self) -> str:
        """The report as Markdown without its pictures."""
        return pages.markdown_page(self._notebook(pictures=False)).text

    def save(self, path: str | Path) -> Path:
        """Write the report where ``path`` says: .html (self-contained), .md (pictures in a folder beside it) or .json.

        Raises ConfigError for any other suffix.
        """
        path = Path(path)
        if path.suffix == ".json":
            pages.write(path, self.to_json())
        elif path.suffix == ".html":
            pages.write(path, pages.html_page(self._notebook()))
        elif path.suffix == ".md":
            pages.write_markdown(path, self._notebook())
        else:
            raise ConfigError(f"{path}: cannot tell the format; expected a name that ends in .html, .md or .json.")
        return path

    def _repr_html_(self) -> str:
        return "\n".join(getattr(self.show, name)._repr_html_() for name in ("masthead", "verdict", "findings"))

    def _repr_markdown_(self) -> str:
        return "\n\n".join(getattr(self.show, name)._repr_markdown_() for name in ("masthead", "verdict", "findings"))

    def __repr__(self) -> str:
        return f"<Diagnosis of {self.run.info.name}: {self._document['headline']['verdict']}>"

    @cached_property
    def _document(self) -> dict[str, Any]:
        return documents.build(
            self.run,
            findings=self.findings,
            verdicts=self.verdicts,
            rules=self.rules,
            profiles=self.profiles,
            missing=self.missing,
            advice=self.advice,
        )

    def _draw(self, name: str) -> Picture | None:
        try:
            return self.picture(name)
        except NotMeasurable:
            return None

    def _notebook(self, *, pictures: bool = True) -> Any:
        """run_report as if executed: its prose with this diagnosis's sections, without a kernel."""
        show = self.show if pictures else Show(self._document, lambda name: None)
        return pages.filled("run_report", show)


def _symptoms_after_causes(found: Sequence[Verdict]) -> tuple[Verdict, ...]:
    by_rule = {verdict.rule: verdict for verdict in found}
    placed: dict[str, Verdict] = {}

    def place(verdict: Verdict) -> None:
        placed[verdict.rule] = verdict
        for symptom in found:
            if symptom.caused_by == verdict.rule and symptom.rule not in placed:
                place(symptom)

    for verdict in found:
        root, seen = verdict, {verdict.rule}
        while root.caused_by in by_rule and root.caused_by not in seen:
            root = by_rule[root.caused_by]
            seen.add(root.rule)
        if root.rule not in placed:
            place(root)
    return tuple(placed.values())


@dataclass(frozen=True, eq=False)
class Plotter:
    """Figures of one diagnosis by name."""

    diagnosis: Diagnosis

    def __getattr__(self, name: str) -> Callable[[], Figure]:
        if name not in PLOTS:
            raise AttributeError(f"there is no plot '{name}'; {nearest(name, PLOTS)}")
        return partial(self._figure, name)

    def __dir__(self) -> list[str]:
        have = self.diagnosis.profiles
        return [name for name, plot in PLOTS.items() if all(topic in have for topic in plot.needs)]

    def _figure(self, name: str) -> Figure:
        return self.diagnosis.picture(name).figure


def diagnose(
    run: Run,
    *,
    rules: Iterable[Rule] = RULES,
    thresholds: Thresholds | str = "",
    name: str = "",
) -> Diagnosis:
    """Measure a run and judge it.

    Args:
        run: what :func:`gpudiag.load_run` gave.
        rules: the rules to judge by; add your own with ``(*RULES, my_rule)``.
        thresholds: by rule id and name, or text such as ``"gpu-idle.max_idle_pct=10, memory-full.max_used_pct=95"``;
            they go before those of run.toml.
        name: a title in place of the run's own name.

    Raises:
        ConfigError: a threshold of run.toml or of the argument is unknown or out of range; nothing was measured then.
    """
    rules = tuple(rules)
    limits = effective_thresholds(run, rules, thresholds)
    if name:
        run = replace(run, info=replace(run.info, name=name))
    profiles = Profiles(run)
    verdicts = judge_all(rules, profiles, limits)
    made: dict[str, Any] = {}
    missing: dict[str, NotMeasurable] = {}
    for measure in dict.fromkeys((*MEASURES, *(rule.measure for rule in rules))):
        topic = measure.__name__.removeprefix("measure_")
        try:
            made[topic] = profiles[measure]
        except NotMeasurable as gap:
            missing[topic] = gap
    return Diagnosis(run, verdicts, made, missing, limits, rules)


def effective_thresholds(run: Run, rules: tuple[Rule, ...], given: Thresholds | str) -> dict[str, dict[str, float]]:
    """The rules' own defaults, changed by run.toml, changed by ``given``. Raises ConfigError."""
    known = tuple({rule.id: rule for rule in (*RULES, *rules)}.values())
    try:
        check_thresholds(known, run.info.thresholds)
    except ConfigError as error:
        raise ConfigError(f"run.toml: {error}") from error
    overrides = parse_thresholds(given) if isinstance(given, str) else given
    check_thresholds(rules, overrides)
    both = {
        rule.id: {**run.info.thresholds.get(rule.id, {}), **overrides.get(rule.id, {})} for rule in rules
    }  # run.toml may name rules that this call leaves out
    return check_thresholds(rules, both)


def parse_thresholds(text: str) -> dict[str, dict[str, float]]:
    """Thresholds from ``"rule.threshold=value, ..."``; a colon may stand for the equals sign.

    Raises ConfigError that quotes the part that is wrong.
    """
    out: dict[str, dict[str, float]] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        key, equals, value = part.replace(":", "=", 1).partition("=")
        rule, dot, name = key.strip().partition(".")
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not (equals and dot and rule and name) or number != number:
            raise ConfigError(f"threshold '{part}' is not understood; expected rule.threshold=number.")
        out.setdefault(rule, {})[name] = number
    return out
