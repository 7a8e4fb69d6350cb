"""A diagnosis as SARIF 2.1.0 (OASIS), which code scanning of GitHub, Azure DevOps and editors read.

Checks are the rules, findings the results. What could not be assessed, what gpudiag.toml suppresses and faults of
gpudiag itself are notifications of the tool: as results, viewers that know neither ``kind`` nor ``suppressions``,
GitHub's among them, would show them as faults of the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from urllib.parse import quote

from gpudiag.plain_data import JsonObject, json_text
from gpudiag.report._sections.answers import to_do
from gpudiag.report.check_address import check_address
from gpudiag.report.document import Document, VerdictEntry
from gpudiag.report.fingerprint import fingerprint
from gpudiag.report.format import safe
from gpudiag.rules._engine.verdict import Status

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVEL = {"critical": "error", "warning": "warning", "note": "note"}
FINGERPRINT = "primaryLocationLineHash"
"""The name under which GitHub looks for what tells a result again."""


def sarif_log(document: Document, path: str) -> str:
    """The JSON text of a log with one run; each result is at the first line of ``path``."""
    index = {verdict.rule: number for number, verdict in enumerate(document.verdicts)}
    run: JsonObject = {
        "tool": {
            "driver": {
                "name": "gpudiag",
                "version": document.version,
                "rules": [_rule(verdict, document.docs_url) for verdict in document.verdicts],
            }
        },
        "automationDetails": {"id": f"gpudiag/{safe(document.run.name)}/"},
        "invocations": [_invocation(document)],
        "results": [_result(document, verdict, index, path) for verdict in document.findings],
    }
    return json_text({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(verdict: VerdictEntry, docs_url: str) -> JsonObject:
    """A check, in words that are the same for every run."""
    page = check_address(docs_url, verdict.rule)
    help_ = "\n".join(line for line in (verdict.remedy, verdict.refuted_by) if line)
    return {
        "id": verdict.rule,
        "shortDescription": _text(verdict.checks or verdict.title),
        "fullDescription": _text(verdict.why or verdict.title),
        **({"helpUri": page} if page else {}),
        **({"help": _text(help_)} if help_ else {}),
    }


def _result(document: Document, verdict: VerdictEntry, index: Mapping[str, int], path: str) -> JsonObject:
    todo = to_do(document, verdict)
    said = [f"{verdict.title}. {verdict.summary}".rstrip(), todo and f"What to do: {todo}"]
    return {
        "ruleId": verdict.rule,
        "ruleIndex": index[verdict.rule],
        "level": LEVEL[verdict.severity.value],
        "message": _text("\n".join(filter(None, said))),
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(path)}, "region": {"startLine": 1}}}],
        "partialFingerprints": {FINGERPRINT: f"{fingerprint(document.run.name, verdict.rule)}:1"},
    }


def _invocation(document: Document) -> JsonObject:
    """Whether gpudiag itself worked, and what it says beside its results: faults of its own first."""
    said: list[JsonObject] = [{"level": "error", "message": _text(f"ERROR: {fault}")} for fault in document.errors]
    said += [_beside("Suppressed", verdict) for verdict in document.of_status(Status.SUPPRESSED)]
    said += [_beside("Not assessed", verdict) for verdict in document.of_status(Status.NOT_ASSESSED)]
    return {
        "executionSuccessful": not document.errors,
        **({"toolExecutionNotifications": said} if said else {}),
    }


def _beside(how: str, verdict: VerdictEntry) -> JsonObject:
    reasons = " ".join(part for part in (verdict.reason, verdict.remedy if how == "Not assessed" else "") if part)
    text = f"{how}: {verdict.checks or verdict.title}. {reasons}".rstrip()
    return {"level": "note", "message": _text(text), "associatedRule": {"id": verdict.rule}}


def _text(text: str) -> JsonObject:
    """A message: braces are doubled, since one would begin a placeholder, and ``[text](address)`` is no link."""
    lines = "\n".join(safe(line) for line in text.split("\n")).replace("`", "")
    return {"text": lines.replace("{", "{{").replace("}", "}}").replace("](", "] (")}


def _uri(path: str) -> str:
    place = PurePosixPath(path)
    return place.as_uri() if place.is_absolute() else quote(path, errors="replace")
