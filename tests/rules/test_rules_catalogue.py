"""What must hold for every rule of the registry."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from small_profiles import MEASURE_OF, profile, verdict

import gpudiag
from gpudiag.analysis import Analysis
from gpudiag.errors import NotGiven, NotMeasurable
from gpudiag.measures import MEASURES
from gpudiag.rules import RULES, TOPICS, catalogue
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.references import with_links
from gpudiag.rules._engine.rule import Rule, check_thresholds
from gpudiag.rules._engine.verdict import Status, Verdict
from gpudiag.run import Run

UNITS = ("_pct", "_s", "_ms", "_h", "_mib", "_w", "_c", "_ratio")
COUNTED = (
    "_periods",
    "_abandoned",
    "_trials",
    "_effective",
    "_events",
    "_columns",
    "_conflicts",
    "_trainings",
    "_fills",
    "_lines",
)
FOUND, OK = Status.FOUND, Status.OK
EVERY = pytest.mark.parametrize("rule", RULES, ids=lambda r: r.id)
KIND_OF = {measure: kind for kind, measure in MEASURE_OF.items()}


def test_ids_are_unique_and_the_catalogue_is_complete() -> None:
    ids = [rule.id for rule in RULES]
    assert len(set(ids)) == len(ids) and catalogue() == list(RULES)
    assert {rule.topic for rule in RULES} == {topic.__name__.rsplit(".", 1)[-1] for topic in TOPICS}


@EVERY
def test_words_are_complete(rule: Rule) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+", rule.id)
    assert rule.refuted_by.startswith("Not a problem if ")
    assert not rule.title.endswith(".") and rule.remedy.endswith(".") and rule.refuted_by.endswith(".")
    assert len(rule.why.split()) > 15
    assert rule.measure in MEASURES


SOURCES = r"METHODS|SageMaker|jobstats|PyTorch|DCGM|NVML|[Oo]ptuna|published\s+source|arXiv"


@EVERY
def test_the_docstring_names_the_source_of_the_thresholds(rule: Rule) -> None:
    assert re.search(SOURCES, rule.docstring), (
        "say whose threshold it is, or that it is a default without a published source"
    )


@EVERY
def test_references_to_the_methods_are_links_in_docs_and_absent_elsewhere(rule: Rule, root: Path) -> None:
    assert "METHODS" not in rule.why + with_links(rule.docstring), "write it as (METHODS 4) or (METHODS 4 and 6)"
    headings = re.findall(r"^## (.*)$", (root / "docs" / "methods.md").read_text(encoding="utf-8"), re.MULTILINE)
    anchors = {re.sub(r"[^a-z0-9 ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert set(re.findall(r"methods\.md#([\w-]+)", with_links(rule.docstring))) <= anchors


def test_no_two_checks_have_one_name() -> None:
    names = [rule.checks for rule in RULES]
    assert len(set(names)) == len(names)


@EVERY
def test_a_check_is_named_by_what_it_looks_at_and_its_finding_by_the_fault(rule: Rule) -> None:
    assert rule.checks != rule.title and len(rule.checks.split()) <= 6
    assert not re.search(r"\b(is|are|was|were|never|nearly)\b", rule.checks), "a topic, not a statement"
    found, passed = (Verdict(rule.id, rule.title, s, rule.severity, checks=rule.checks) for s in (FOUND, OK))
    assert (found.name, passed.name) == (rule.title, rule.checks)


@EVERY
def test_thresholds_are_legal_and_carry_their_unit(rule: Rule) -> None:
    assert check_thresholds((rule,), {rule.id: rule.thresholds})
    for name, value in rule.thresholds.items():
        assert isinstance(value, float), f"{rule.id}: threshold {name} must be a float such as 5.0"
        assert name.endswith((*UNITS, *COUNTED)), (
            f"{rule.id}: threshold {name} must end in its unit ({', '.join(UNITS)}) or in what it counts; "
            "a new noun goes into COUNTED here"
        )


@EVERY
def test_nothing_known_finds_nothing(rule: Rule) -> None:
    if rule.measure not in KIND_OF:
        pytest.skip("its profile has a builder of its own")
    known = {"joined": True} if rule.id == "clocks-apart" else {}  # whether clocks share time is always known
    assert verdict(rule, profile(KIND_OF[rule.measure], **known)).status is not Status.FOUND


@EVERY
def test_an_empty_run_is_not_assessed(rule: Rule) -> None:
    (one,) = judge_all((rule,), Analysis(Run()), check_thresholds((rule,), {}))
    if _few_have_it(rule):
        assert one.status is Status.NOT_APPLICABLE and one.reason
    else:
        assert one.status is Status.NOT_ASSESSED and one.reason and one.remedy


def _few_have_it(rule: Rule) -> bool:
    """Whether what it asks about is an input that few runs have."""
    try:
        rule.measure(Run())
    except NotGiven:
        return True
    except NotMeasurable:
        return False
    return False


def test_options_that_advice_names_exist() -> None:
    package = Path(gpudiag.__file__).parent
    wrong = [path for path in package.rglob("*.py") if re.search(r"--artifact\b", path.read_text(encoding="utf-8"))]
    assert not wrong, "the option is --artifacts"


def test_an_association_explains_nothing() -> None:
    """That memory was fuller before failures is no evidence that any of them ran out of it."""
    assert not any("failures-after-full-memory" in rule.explained_by for rule in RULES)
