"""A diagnosis as a report of GitLab Code Quality: an issue a finding, for the widget of a merge request.

Format: docs.gitlab.com, "Code Quality", "Code Quality report format".
"""

from __future__ import annotations

from gpudiag.plain_data import JsonObject, json_text
from gpudiag.report._sections.answers import to_do
from gpudiag.report.document import Document, VerdictEntry
from gpudiag.report.fingerprint import fingerprint
from gpudiag.report.format import safe

SEVERITY = {"critical": "critical", "warning": "major", "note": "info"}


def gitlab_issues(document: Document, path: str) -> str:
    """JSON: the findings in the document's order, then the faults of gpudiag itself, each at the first line of
    ``path``; [] where there is none. What could not be assessed has no place in this format.
    """
    run = document.run.name
    found = [
        _issue(run, one.rule, SEVERITY[one.severity.value], _said(one, to_do(document, one)), path)
        for one in document.findings
    ]
    failed = [_issue(run, one.part, "minor", f"gpudiag ERROR: {one}", path) for one in document.errors]
    return json_text([*found, *failed])


def _issue(run: str, check: str, severity: str, said: str, path: str) -> JsonObject:
    return {
        "description": safe(said).replace("`", ""),
        "check_name": check,
        "fingerprint": fingerprint(run, check),
        "severity": severity,
        "location": {"path": path, "lines": {"begin": 1}},
    }


def _said(verdict: VerdictEntry, todo: str) -> str:
    parts = (f"{verdict.title}.", verdict.summary, todo and f"What to do: {todo}")
    return " ".join(part for part in parts if part)
