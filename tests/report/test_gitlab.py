"""Code Quality of GitLab: its properties and no other, and fingerprints that stay."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from toyrun import TOY_RULES, toy_run

from gpudiag.diagnosis import Diagnosis, diagnose
from gpudiag.faults import Fault
from gpudiag.report.gitlab import gitlab_issues
from gpudiag.report.location import location
from gpudiag.run import InputRecord

SAMPLES = Path(__file__).resolve().parent.parent.parent / "data" / "samples"

FORMAT = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "additionalProperties": False,
        "properties": {
            "description": {"type": "string", "minLength": 1, "pattern": r"^[^\n`]*$"},
            "check_name": {"type": "string", "minLength": 1},
            "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "additionalProperties": False,
                "properties": {
                    "path": {"type": "string", "pattern": r"^(?!\./)."},
                    "lines": {
                        "type": "object",
                        "required": ["begin"],
                        "additionalProperties": False,
                        "properties": {"begin": {"type": "integer", "minimum": 1}},
                    },
                },
            },
        },
    },
}
"""docs.gitlab.com, ci/testing/code_quality, "Code Quality report format"."""


def issues(made: Diagnosis, path: str = "runs/gpu.csv") -> list[dict[str, Any]]:
    held = json.loads(gitlab_issues(made.document, path))
    jsonschema.validate(held, FORMAT)
    return held


def test_each_finding_is_an_issue(toy: Diagnosis) -> None:
    held = issues(toy)
    assert {(one["check_name"], one["severity"]) for one in held} == {("toy-broken", "critical"), ("toy-dear", "info")}
    (broken,) = [one for one in held if one["check_name"] == "toy-broken"]
    assert broken["description"] == "The toy is broken. 7 cracks were seen. What to do: Mend it with glue."
    assert broken["location"] == {"path": "runs/gpu.csv", "lines": {"begin": 1}}


@pytest.mark.slow
def test_fingerprints_stay_with_the_fault_and_change_with_run_and_check(toy: Diagnosis) -> None:
    by_check = {one["check_name"]: one["fingerprint"] for one in issues(toy)}
    later = issues(diagnose(toy_run(samples=300, trials=6), rules=TOY_RULES), path="/elsewhere/other.csv")
    assert {one["check_name"]: one["fingerprint"] for one in later} == by_check
    renamed = replace(toy.document, run=replace(toy.document.run, name="tox"))
    another = json.loads(gitlab_issues(renamed, "runs/gpu.csv"))
    assert len({*by_check.values(), *(one["fingerprint"] for one in another)}) == 4


def test_a_fault_of_gpudiag_is_an_issue_and_nothing_found_is_an_empty_list(toy: Diagnosis) -> None:
    fault = Fault("measure power", "KeyError", "a.py:1")
    held = json.loads(gitlab_issues(replace(toy.document, verdicts=(), errors=(fault,)), "a"))
    jsonschema.validate(held, FORMAT)
    assert [one["check_name"] for one in held] == ["measure power"] and "ERROR" in held[0]["description"]
    assert json.loads(gitlab_issues(replace(toy.document, verdicts=()), "a")) == []


@pytest.mark.slow
def test_the_command_prints_it(gpudiag) -> None:
    code, out, _ = gpudiag("diagnose", SAMPLES / "tiny-batch-laptop", "--format", "gitlab", "--fail-on", "note")
    held = json.loads(out)
    jsonschema.validate(held, FORMAT)
    assert (
        code == 1
        and held
        and {one["location"]["path"] for one in held} == {str(SAMPLES / "tiny-batch-laptop" / "run.toml")}
    )


@pytest.mark.parametrize(
    ("inputs", "folder", "expected"),
    [
        (["gpu.csv", "a.db"], "runs/one", "runs/one/gpu.csv"),
        (["./runs/../runs/gpu.csv"], None, "runs/gpu.csv"),
        (["sqlite:///a.db", "gpu.csv"], None, "gpu.csv"),
        (["sqlite:///a.db"], "runs/one", "runs/one"),
        (["{root}/x/gpu.csv"], None, "x/gpu.csv"),
        (["/far/gpu.csv"], None, "/far/gpu.csv"),
        (["../gpu.csv"], None, "{above}/gpu.csv"),
    ],
)
def test_the_file_is_named_from_the_root(tmp_path: Path, inputs: list[str], folder: str | None, expected: str) -> None:
    root = tmp_path / "repository"
    records = [InputRecord(one.format(root=root), "telemetry") for one in inputs]
    given = None if folder is None else Path(folder)
    assert location(records, given, root) == expected.format(above=tmp_path)


def test_run_toml_goes_before_the_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.toml").touch()
    monkeypatch.chdir(tmp_path)
    assert location([InputRecord("gpu.csv", "telemetry")], Path("run"), tmp_path) == "run/run.toml"


def test_a_name_with_commands_does_nothing(toy: Diagnosis) -> None:
    made = gitlab_issues(replace(toy.document, run=replace(toy.document.run, name="##vso[x]\ud800")), "##[error]x")
    assert not re.search(r"##\w*\[", made) and json.loads(made)[0]["location"]["path"] == "##[error]x"
