"""JUnit XML and GitHub annotations: what a viewer reads out of them, whatever the run is called."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from toyrun import TOY_RULES, toy_run

from gpudiag.diagnosis import Diagnosis, diagnose
from gpudiag.report._render.blocks import FindingBlock
from gpudiag.report._sections.answers import to_do
from gpudiag.report.github import github_annotations
from gpudiag.report.gitlab import gitlab_issues
from gpudiag.report.junit import junit_xml
from gpudiag.report.sarif import sarif_log
from gpudiag.report.text import screen
from gpudiag.rules._engine.suppression import Suppression
from gpudiag.rules._engine.verdict import Severity

NASTY = 'x\n::error::y ##[error]z %0A <b>&"\x00\x1b]]>\ud800'


@pytest.fixture(scope="module")
def toy() -> Diagnosis:
    return diagnose(toy_run(NASTY), rules=TOY_RULES)


def cases(xml: str) -> dict[str, ElementTree.Element]:
    root = ElementTree.fromstring(xml.encode())
    return {case.attrib["name"].split(":")[0]: case for case in root.iter("testcase")}


@pytest.mark.slow
def test_a_test_case_a_rule(toy: Diagnosis) -> None:
    xml = junit_xml(toy.document)
    root = ElementTree.fromstring(xml.encode())
    by_status = {"found": "failure", "not_assessed": "skipped", "not_applicable": "skipped"}
    assert len(cases(xml)) == len(toy.verdicts)
    for verdict in toy.verdicts:
        kinds = [child.tag for child in cases(xml)[verdict.rule]]
        expected = by_status.get(verdict.status.value)
        assert kinds == ([expected] if expected else [])
    for element in (root, root[0]):
        assert int(element.attrib["tests"]) == len(toy.verdicts)
        assert int(element.attrib["failures"]) == len(toy.findings) == len(list(root.iter("failure")))
        assert int(element.attrib["skipped"]) == len(list(root.iter("skipped")))
    assert root[0].attrib["timestamp"] == "2026-03-01T10:00:00"


@pytest.mark.slow
def test_every_output_names_the_step_that_the_terminal_names(toy: Diagnosis) -> None:
    document = toy.document
    broken = document.findings[0]
    assert broken.rule == "toy-broken"
    (own,) = [one for one in document.recommendations if broken.rule in one.rules]
    weld = replace(own, id="weld", title="Weld it", text="tubes: 2 → 0")
    answered = replace(document, recommendations=(weld,))
    step = "Weld it (tubes: 2 → 0)"
    on_screen = next(one for one in screen(answered) if isinstance(one, FindingBlock))
    assert on_screen.advice == to_do(answered, broken) == step
    (issue,) = [one for one in json.loads(gitlab_issues(answered, "run.toml")) if one["check_name"] == broken.rule]
    results = json.loads(sarif_log(answered, "run.toml"))["runs"][0]["results"]
    (result,) = [one["message"]["text"] for one in results if one["ruleId"] == broken.rule]
    (line,) = [one for one in github_annotations(answered).splitlines() if one.startswith("::error title=gpudiag toy")]
    failure = cases(junit_xml(answered))[broken.rule].find("failure")
    assert failure is not None and failure.text is not None
    for said in (issue["description"], result, unquote(line), failure.text):
        assert f"What to do: {step}" in said and broken.remedy not in said


@pytest.mark.slow
def test_reasons_and_severity(toy: Diagnosis) -> None:
    found = cases(junit_xml(toy.document))
    for verdict in toy.verdicts:
        for child in found[verdict.rule]:
            assert (
                child.attrib["message"].endswith(
                    verdict.summary if child.tag == "failure" else f"{verdict.reason} {verdict.remedy}".rstrip()
                )
                or verdict.status.value == "not_applicable"
            )
            assert child.tag != "failure" or child.attrib["type"] == verdict.severity.value


def test_with_a_level_lesser_findings_pass(toy: Diagnosis) -> None:
    mild = tuple(replace(verdict, severity=Severity.NOTE) for verdict in toy.document.verdicts)
    document = replace(toy.document, verdicts=mild)
    assert "<failure" in junit_xml(document) and "<failure" in junit_xml(document, "note")
    passed = junit_xml(document, "warning")
    assert "<failure" not in passed and "<system-out>note: " in passed


@pytest.mark.slow
def test_a_suppressed_finding_is_skipped_with_its_reason() -> None:
    entries = [Suppression(rule="toy-broken", reason="known", until=date(2999, 1, 1))]
    document = diagnose(toy_run(), rules=TOY_RULES, suppress=entries).document
    (skipped,) = cases(junit_xml(document))["toy-broken"]
    assert skipped.attrib["message"] == "suppressed: known (until 2999-01-01)"
    assert "toy-broken" not in github_annotations(document)


def test_one_annotation_a_line_and_no_text_begins_a_command(toy: Diagnosis) -> None:
    lines = github_annotations(toy.document).splitlines()
    commands = [re.fullmatch(r"::(error|warning|notice) title=([^:,]*)::(.*)", line) for line in lines]
    assert all(commands)
    levels = {"critical": "error", "warning": "warning", "note": "notice"}
    said = [(match[1], unquote(match[2])) for match in commands if match and match[2].startswith("gpudiag ")]
    assert said == [(levels[v.severity.value], f"gpudiag {v.rule}: {v.title}") for v in toy.findings]
    assert all("%" not in re.sub(r"%(25|0A|0D|3A|2C)", "", line) for line in lines)


@pytest.mark.slow
def test_an_ended_suppression_is_said() -> None:
    entries = [Suppression(rule="toy-broken", reason="known", until=date(2020, 1, 1))]
    document = diagnose(toy_run(), rules=TOY_RULES, suppress=entries).document
    assert "ended on 2020-01-01" in github_annotations(document)
    assert cases(junit_xml(document))["toy-broken"][0].tag == "failure"
