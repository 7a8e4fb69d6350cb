"""SARIF 2.1.0 by its JSON Schema and by what the standard asks beyond it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gpudiag.diagnosis import Diagnosis
from gpudiag.faults import Fault
from gpudiag.report.document import Document
from gpudiag.report.fingerprint import fingerprint
from gpudiag.report.sarif import sarif_log
from gpudiag.rules._engine.verdict import Status

SAMPLES = Path(__file__).resolve().parent.parent.parent / "data" / "samples"
SCHEMA = json.loads((Path(__file__).parent / "sarif" / "sarif-2.1.0-rtm.5.json").read_text(encoding="utf-8"))


def log_of(document: Document, path: str = "runs/gpu.csv") -> dict[str, Any]:
    """The run of the log, which fits the schema (formats included) and holds together."""
    held = json.loads(sarif_log(document, path))
    jsonschema.Draft4Validator(SCHEMA, format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER).validate(held)
    (run,) = held["runs"]
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(ids) == len(set(ids))
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]  # 3.27.6
        assert result["locations"] and result["partialFingerprints"]
    for one in run["invocations"][0].get("toolExecutionNotifications", []):
        assert "associatedRule" not in one or one["associatedRule"]["id"] in ids
    return run


def test_checks_are_rules_and_findings_are_results(toy: Diagnosis) -> None:
    run = log_of(toy.document)
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [v.rule for v in toy.document.verdicts]
    by_id = {result["ruleId"]: result for result in run["results"]}
    assert {rule: result["level"] for rule, result in by_id.items()} == {"toy-broken": "error", "toy-dear": "note"}
    assert by_id["toy-broken"]["message"]["text"] == (
        "The toy is broken. 7 cracks were seen.\nWhat to do: Mend it with glue."
    )
    place = by_id["toy-broken"]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "runs/gpu.csv"}, "region": {"startLine": 1}}


@pytest.mark.slow
def test_a_real_run_fits_the_schema(gpudiag) -> None:
    code, out, _ = gpudiag("diagnose", SAMPLES / "tiny-batch-laptop", "--format", "sarif", "--fail-on", "note")
    held = json.loads(out)
    jsonschema.Draft4Validator(SCHEMA).validate(held)
    (run,) = held["runs"]
    _, out, _ = gpudiag("diagnose", SAMPLES / "tiny-batch-laptop", "--format", "json")
    verdicts = json.loads(out)["verdicts"]
    assert code == 1
    assert {result["ruleId"] for result in run["results"]} == {v["rule"] for v in verdicts if v["status"] == "found"}
    uris = {result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in run["results"]}
    assert uris == {(SAMPLES / "tiny-batch-laptop" / "run.toml").as_uri()}
    told = [one["associatedRule"]["id"] for one in run["invocations"][0]["toolExecutionNotifications"]]
    assert told == [v["rule"] for v in verdicts if v["status"] == "not_assessed"]


def test_what_is_open_suppressed_or_failed_is_told_and_no_result(toy: Diagnosis) -> None:
    first, *_ = toy.document.verdicts
    document = replace(
        toy.document,
        verdicts=(
            replace(first, status=Status.SUPPRESSED, reason="known", remedy="Mend it."),
            replace(first, rule="io-wait", status=Status.NOT_ASSESSED, reason="No disk.", remedy="Record it."),
        ),
        errors=(Fault("measure power", "KeyError", "a.py:1"),),
    )
    run = log_of(document)
    (made,) = run["invocations"]
    assert run["results"] == [] and made["executionSuccessful"] is False
    assert [(one["level"], one["message"]["text"]) for one in made["toolExecutionNotifications"]] == [
        ("error", f"ERROR: {document.errors[0]}".replace("`", "")),
        ("note", f"Suppressed: {first.checks}. known"),
        ("note", f"Not assessed: {first.checks}. No disk. Record it."),
    ]
    clear = log_of(replace(document, verdicts=(), errors=()))
    assert clear["invocations"] == [{"executionSuccessful": True}]


def test_results_carry_the_fingerprints_of_the_faults(toy: Diagnosis) -> None:
    """tests/report/test_gitlab.py shows that these stay."""
    marks = {result["ruleId"]: result["partialFingerprints"] for result in log_of(toy.document)["results"]}
    assert marks == {rule: {"primaryLocationLineHash": f"{fingerprint('toy', rule)}:1"} for rule in marks}


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("a b/ü%.csv", "a%20b/%C3%BC%25.csv"),
        ("/far/a b.csv", "file:///far/a%20b.csv"),
        ("a:b.csv", "a%3Ab.csv"),
        ("x\ud800.csv", "x%3F.csv"),
    ],
)
def test_a_path_is_a_uri(toy: Diagnosis, path: str, uri: str) -> None:
    result = log_of(toy.document, path)["results"][0]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_a_message_holds_no_placeholder_and_no_link(toy: Diagnosis) -> None:
    """3.11.5 and 3.11.6: {0} stands for an argument, [text](address) for a link; doubled braces are braces."""
    verdict = replace(toy.document.findings[0], summary="{0} [click](http://x.example)\x1b[2J", remedy="")
    (result,) = log_of(replace(toy.document, verdicts=(verdict,)))["results"]
    assert result["message"]["text"].endswith(". {{0}} [click] (http://x.example)[2J")
