"""diagnose() and what a Diagnosis offers: order, thresholds, documents, files, figures."""

from __future__ import annotations

import json
import math
import re
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pandas as pd
import pytest
from documents import fits
from matplotlib.figure import Figure
from toyrun import TOY_RULES, renamed, toy_run

import gpudiag
from gpudiag.diagnosis import Diagnosis, diagnose
from gpudiag.errors import ConfigError, NotMeasurable
from gpudiag.measures import MEASURES
from gpudiag.plots import PLOTS
from gpudiag.rules import RULES
from gpudiag.rules._engine.suppression import Suppression
from gpudiag.rules._engine.verdict import Severity, Status, Verdict
from gpudiag.run import Run


@pytest.fixture(scope="module")
def toy() -> Diagnosis:
    return diagnose(toy_run(), rules=TOY_RULES)


@pytest.mark.slow
@pytest.mark.parametrize(
    "run", [toy_run(), toy_run(samples=0), toy_run(trials=0), Run()], ids=["toy", "trials", "gpu", "empty"]
)
def test_the_document_fits_its_schema(run: Run) -> None:
    document = json.loads(diagnose(run, rules=(*RULES, *TOY_RULES)).to_json())
    fits(document, "diagnosis-4")
    assert [v["rule"] for v in document["verdicts"] if v["status"] != "found"]
    assert len(document["verdicts"]) == len(RULES) + len(TOY_RULES)


@pytest.mark.slow
def test_the_document_holds_no_user_attribute_and_no_nan(toy: Diagnosis) -> None:
    text = toy.to_json()
    assert "hunter2" not in text and not re.search(r"\btoken\b", text) and "NaN" not in text
    assert toy.to_dict()["measures"]["toy"] == {
        "cracks": {"value": 7, "unit": "1"},
        "unknown_pct": {"value": None, "unit": "%"},
    }


@pytest.mark.slow
def test_the_same_run_gives_the_same_everything() -> None:
    first, second = (diagnose(toy_run(), rules=(*RULES, *TOY_RULES)) for _ in range(2))
    assert first.to_json() == second.to_json()
    assert first.to_markdown() == second.to_markdown()
    few = "findings,utilization"  # pictures are looked at in tests/plots
    assert first.showing(few)._repr_html_() == second.showing(few)._repr_html_()


@pytest.mark.slow
def test_to_dict_gives_a_copy(toy: Diagnosis) -> None:
    toy.to_dict()["verdicts"].clear()
    assert len(toy.to_dict()["verdicts"]) == 4


@pytest.mark.slow
def test_findings_come_before_notes_whatever_these_cost(toy: Diagnosis) -> None:
    assert [finding.rule for finding in toy.findings] == ["toy-broken", "toy-dear"]
    assert [v.rule for v in toy.verdicts] == [rule.id for rule in TOY_RULES]
    assert [r.rule for r in toy.recommendations if r.rule] == ["toy-broken", "toy-dear"]
    assert toy.recommendations is toy.advice.recommendations


def test_what_a_rule_advises_is_a_complete_recommendation(toy: Diagnosis) -> None:
    """Of the toy no remedy knows anything, so that nothing is computed, and it is said that nothing is."""
    one = next(advised for advised in toy.recommendations if advised.rule)
    assert (one.id, one.title, one.rules) == ("remedy-toy-broken", "Mend `it` with glue", ("toy-broken",))
    assert one.text == one.changes[0].proposed == "Mend `it` with glue." and one.changes[0].present is None
    assert (one.safety, one.tier) == ("moderate", 2) and not (one.safety_reason or one.effort or one.rollback)
    assert one.gain is None and not (one.predictions or one.assumption or one.verify_first or one.verify)
    assert toy.to_dict()["advice"]["plan"] == [], "general advice is in no plan by default"
    (planned,) = toy.plan(["remedy-toy-broken"]).remedies
    assert planned.verify == one.verify and planned.rollback == one.rollback
    named = [one for one in toy.recommendations.to_frame()["id"] if one.startswith("remedy-toy")]
    assert named == ["remedy-toy-broken", "remedy-toy-dear"]


def test_symptoms_follow_their_cause(toy: Diagnosis) -> None:
    def found(rule: str, severity: str, lost: float | None = None, cause: str | None = None) -> Verdict:
        return Verdict(rule, rule, Status.FOUND, Severity(severity), lost_gpu_h=lost, caused_by=cause)

    verdicts = (
        found("note", "note", 50.0),
        found("cheap", "warning", 1.0),
        found("dear", "warning", 9.0),
        found("symptom", "critical", 2.0, "cause"),
        found("cause", "warning", 0.5),
        found("of-absent", "note", None, "not-found"),
        found("of-symptom", "note", None, "symptom"),
    )
    order = [v.rule for v in replace(toy, verdicts=verdicts).findings]
    assert order == ["dear", "cause", "symptom", "of-symptom", "cheap", "note", "of-absent"]
    circle = (found("a", "note", None, "b"), found("b", "warning", None, "a"))
    assert sorted(v.rule for v in replace(toy, verdicts=circle).findings) == ["a", "b"]


def test_findings_are_ranked_by_gpu_hours(toy: Diagnosis) -> None:
    rows = [("warning", None), ("warning", 3), ("critical", 0.5), ("note", 8), ("critical", None), ("critical", 3)]
    verdicts = tuple(Verdict(f"r{n}", "", Status.FOUND, Severity(s), lost_gpu_h=h) for n, (s, h) in enumerate(rows))
    assert [v.rule for v in replace(toy, verdicts=verdicts).findings] == ["r4", "r5", "r1", "r2", "r0", "r3"]
    unknown = (*verdicts[:2], Verdict("nan", "", Status.FOUND, Severity.WARNING, lost_gpu_h=math.nan), *verdicts[2:])
    assert [v.rule for v in replace(toy, verdicts=unknown).findings] == ["r4", "r5", "r1", "r2", "r0", "nan", "r3"]


def test_of_findings_whose_gpu_hours_nobody_knows_what_took_a_tenth_of_the_time_comes_first(toy: Diagnosis) -> None:
    rows = [("warning", None), ("note", 90.0), ("warning", 9.9), ("warning", math.nan), ("warning", 10.0)]
    rows += [("warning", 30.0), ("critical", None)]
    found = [Verdict(f"r{n}", "", Status.FOUND, Severity(s), lost_time_pct=pct) for n, (s, pct) in enumerate(rows)]
    found.append(Verdict("gpus", "", Status.FOUND, Severity.WARNING, lost_gpu_h=0.5))
    order = [v.rule for v in replace(toy, verdicts=tuple(found)).findings]
    assert order == ["r6", "gpus", "r5", "r4", "r0", "r2", "r3", "r1"]


def test_fewer_sections_are_of_the_same_advice(toy: Diagnosis) -> None:
    advice, document = toy.advice, toy.document
    shown = toy.showing("findings")
    assert shown.advice is advice and shown.document is document


@pytest.mark.slow
def test_headline_and_fail_levels(toy: Diagnosis) -> None:
    assert toy.headline.startswith("The 2 GPUs were partly used (40 % on average), and the toy is broken. 7 cracks")
    assert "7 cracks were seen. It cost 0.5 GPU-h. Mend" in toy.headline
    assert [toy.fails(level) for level in ("critical", "warning", "note", "never")] == [True, True, True, False]
    mild = diagnose(toy_run(), rules=TOY_RULES[1:])
    assert [mild.fails(level) for level in ("critical", "warning", "note", "never")] == [False, False, True, False]
    assert mild.fails("info") and Severity("info") is Severity.NOTE, "the former name of a note"
    with pytest.raises(ConfigError, match="there is no level 'warn'; did you mean 'warning'"):
        mild.fails("warn")


@pytest.mark.slow
def test_profiles_by_topic_and_why_others_are_missing() -> None:
    seen = diagnose(toy_run())
    assert set(seen.profiles) | set(seen.missing) == {m.__name__.removeprefix("measure_") for m in MEASURES}
    assert not set(seen.profiles) & set(seen.missing)
    assert {"utilization", "memory", "trials", "pruning", "parallelism", "sampling", "ledger"} <= set(seen.profiles)
    blind = diagnose(toy_run(samples=0))
    assert "trials" in blind.profiles and isinstance(blind.missing["utilization"], NotMeasurable)
    assert blind.ledger is None


@pytest.mark.slow
def test_thresholds_of_run_toml_are_changed_by_the_argument() -> None:
    run = toy_run()
    stated = replace(run, info=replace(run.info, thresholds={"toy-broken": {"max_cracks": 9.0}}))
    assert diagnose(stated, rules=TOY_RULES).thresholds["toy-broken"] == {"max_cracks": 9.0}
    over = diagnose(stated, rules=TOY_RULES, thresholds="toy-broken.max_cracks=2")
    assert over.thresholds["toy-broken"] == {"max_cracks": 2.0}
    assert {v.rule: v.status for v in over.verdicts}["toy-broken"] is Status.FOUND
    assert diagnose(stated, rules=TOY_RULES).findings[0].thresholds == {"max_cracks": 9.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("toy-brokn.max_cracks=1", "did you mean 'toy-broken'"),
        ("toy-broken.max_crack=1", "did you mean 'max_cracks'"),
        ("toy-broken.max_cracks=lots", "threshold 'toy-broken.max_cracks=lots' is not understood"),
        ("toy-broken=1", "expected rule.threshold=number"),
        ("toy-broken.max_cracks=-1", "must be a finite number"),
    ],
)
def test_a_wrong_threshold_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        diagnose(toy_run(), rules=TOY_RULES, thresholds=text)


def test_a_wrong_threshold_of_run_toml_names_run_toml() -> None:
    run = toy_run()
    stated = replace(run, info=replace(run.info, thresholds={"no-such-rule": {"x": 1.0}}))
    with pytest.raises(ConfigError, match=r"run\.toml: there is no rule 'no-such-rule'"):
        diagnose(stated)


@pytest.mark.slow
def test_save(toy: Diagnosis, tmp_path: Path) -> None:
    toy = toy.showing("timeline")
    for name in ("r.json", "r.md", "r.html"):
        assert toy.save(tmp_path / "deep" / name) == tmp_path / "deep" / name
    assert json.loads((tmp_path / "deep" / "r.json").read_text())["schema"] == "gpudiag.diagnosis/4"
    assert (tmp_path / "deep" / "r.md").read_text().startswith("# toy\n")
    assert (tmp_path / "deep" / "r.html").read_text().startswith("<!DOCTYPE html>")
    assert (tmp_path / "deep" / "r_files" / "timeline.svg").exists()
    with pytest.raises(ConfigError, match=r"r\.pdf: cannot tell the format; expected a name that ends in"):
        toy.save(tmp_path / "r.pdf")


@pytest.mark.slow
def test_it_shows_itself(toy: Diagnosis) -> None:
    shown = repr(toy).splitlines()
    assert shown[:2] == ["toy", "■ The 2 GPUs were partly used (40 % on average), and the toy is broken."]
    assert shown[-2:] == [
        "  ■ critical  The toy is broken (cost 0.5 GPU-h)",
        "  ● note      The toy is dear (cost 2 GPU-h)",
    ]
    assert "The toy is broken" in toy._repr_html_() and toy._repr_html_().count("<article") == 2
    assert toy._repr_markdown_().startswith("# toy")
    assert toy.to_markdown().count("## ") >= 10 and "![" not in toy.to_markdown()


@pytest.mark.slow
def test_figures_by_name(toy: Diagnosis) -> None:
    assert "timeline" in dir(toy.plot) and isinstance(toy.plot.timeline(), Figure)
    blind = diagnose(toy_run(samples=0), rules=TOY_RULES)
    assert "utilization" not in dir(blind.plot)
    with pytest.raises(NotMeasurable):
        blind.plot.utilization()
    for plot in (toy.plot, blind.plot):
        for name in dir(plot):
            assert isinstance(getattr(plot, name)(), Figure)
        for name in set(PLOTS) - set(dir(plot)):
            with pytest.raises(NotMeasurable):
                getattr(plot, name)()
    with pytest.raises(AttributeError, match="did you mean 'timeline'"):
        toy.plot.timelin  # noqa: B018
    with pytest.raises(AttributeError, match="there is no section 'finding'"):
        toy.show.finding  # noqa: B018


@pytest.mark.slow
def test_the_name_of_the_report_can_be_given(toy: Diagnosis) -> None:
    named = diagnose(toy_run(), rules=TOY_RULES, name="Monday's search")
    assert named.to_dict()["run"]["name"] == "Monday's search"
    assert renamed(toy.run, "x").info.name == "x" and toy.run.info.name == "toy"


@pytest.mark.slow
def test_a_diagnosis_is_frozen_and_leaves_the_run_alone() -> None:
    run = toy_run()
    before = {name: pd.util.hash_pandas_object(getattr(run, name)).sum() for name in ("gpu", "gpus", "trials")}
    diagnosis = diagnose(run, rules=(*RULES, *TOY_RULES))
    diagnosis.to_markdown()
    assert {name: pd.util.hash_pandas_object(getattr(run, name)).sum() for name in before} == before
    with pytest.raises(FrozenInstanceError):
        diagnosis.verdicts = ()  # type: ignore[misc]


def test_diagnose_is_public() -> None:
    assert gpudiag.diagnose is diagnose


@pytest.mark.slow
def test_a_preset_goes_before_defaults_and_after_run_toml_and_arguments() -> None:
    run = toy_run()
    stated = replace(run, info=replace(run.info, thresholds={"memory-headroom": {"low_pct": 33.0}}))
    limits = diagnose(stated, preset="traceml", thresholds="memory-near-limit.high_pct=77").thresholds
    assert limits["gpu-low-utilization"]["low_pct"] == 30.0
    assert limits["memory-headroom"]["low_pct"] == 33.0
    assert limits["memory-near-limit"]["high_pct"] == 77.0
    with pytest.raises(ConfigError, match="there is no preset 'trace'; did you mean 'traceml'"):
        diagnose(run, preset="trace")
    assert diagnose(run, rules=TOY_RULES, preset="traceml").to_dict()["preset"] == "traceml"


@pytest.mark.slow
def test_a_suppressed_finding_is_shown_and_counts_for_nothing() -> None:
    entries = [Suppression(rule="toy-broken", reason="a <spare> board"), Suppression(rule="toy-old", reason="old")]
    d = diagnose(toy_run(), rules=TOY_RULES, suppress=entries)
    assert [v.rule for v in d.findings] == ["toy-dear"] and not d.fails("critical")
    document = d.to_dict()
    fits(document, "diagnosis-4")
    assert document["headline"]["counts"]["suppressed"] == 1
    assert "1 finding suppressed" in document["headline"]["verdict"]
    assert [one["state"] for one in document["suppressions"]] == ["applied", "unused"]
    assert all(r.rule != "toy-broken" for r in d.recommendations)
    assert "Suppressed: a &lt;spare&gt; board" in d.show.checks._repr_html_()
    assert "Suppressed: a \\<spare\\> board" in d.to_markdown()
    assert "has nothing to suppress" in d.to_markdown()
    with pytest.raises(ConfigError, match="suppress: suppresses rules that do not exist: 'toy-brken'"):
        diagnose(toy_run(), rules=TOY_RULES, suppress=[Suppression(rule="toy-brken", reason="x")])


@pytest.mark.slow
def test_results_show_themselves_escaped_and_within_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    d = diagnose(toy_run("<script>alert(1)</script>\x1b[31m"))
    shown = [d, d.findings, d.verdicts, d.recommendations, d.advice, d.plan(), d.ledger, *d.verdicts]
    shown += d.advice.recommendations
    code = {line.strip() for r in d.recommendations for change in r.changes for line in change.code.splitlines()}
    for one in shown:
        lines = [line.strip() for line in repr(one).splitlines() if len(line) > 72]
        assert not any(" " in line for line in lines if line not in code), "only a word that is longer sticks out"
        assert repr(one).strip() and one._repr_markdown_().strip()
        html = one._repr_html_()
        assert "<script>" not in html and "\x1b" not in html + repr(one)
        assert "--jp-" in html
    assert len(d.to_frame()) == len(d.verdicts) == len(d.verdicts.to_frame())
    assert list(d.findings.to_frame()["rule"]) == [v.rule for v in d.findings]
    assert set(d.findings[0].to_frame()["kind"]) <= {"where", "evidence", "threshold"}
    assert list(d.advice.to_frame()["id"]) and list(d.plan().to_frame()["remedy"]) == d.to_dict()["advice"]["plan"]


def test_completion_leads_to_public_names(toy: Diagnosis) -> None:
    assert not [name for name in dir(toy) if name.startswith("_")]
    assert {"findings", "verdicts", "advice", "plan", "ledger", "plot", "show", "save", "to_frame"} <= set(dir(toy))
