"""A diagnosis as JUnit XML: what test viewers of CI systems read. One test case a rule."""

from __future__ import annotations

import re
from datetime import datetime
from xml.etree import ElementTree

from gpudiag.report._sections.answers import to_do
from gpudiag.report.document import Document, VerdictEntry
from gpudiag.report.format import inert_lines, is_dated, safe
from gpudiag.rules._engine.verdict import Status

LEVELS = ("critical", "warning", "note")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(document: Document, fail_on: str = "never") -> str:
    """A suite of the run's name with a test case a rule, in the document's order.

    A finding is a failure, of ``type`` its severity; with a level in ``fail_on`` only from that level on, and lesser
    ones go into the case's output. A check that failed by a fault of gpudiag is an error. What could not be assessed,
    does not apply or is suppressed is skipped with the reason.
    """
    cases = [_case(verdict, fail_on, to_do(document, verdict)) for verdict in document.verdicts]
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
        "skipped": str(sum(case.find("skipped") is not None for case in cases)),
        "time": "0",
    }
    root = ElementTree.Element("testsuites", {"name": "gpudiag", **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": _text(document.run.name), **counts})
    if document.run.start and is_dated(datetime.fromisoformat(document.run.start)):
        suite.set("timestamp", document.run.start[:19])
    facts = ElementTree.SubElement(suite, "properties")
    head = document.headline
    for name, value in (("gpudiag", document.version), ("verdict", head.verdict), ("next", head.sentences[-1])):
        ElementTree.SubElement(facts, "property", {"name": name, "value": _text(value)})
    suite.extend(cases)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _case(verdict: VerdictEntry, fail_on: str, todo: str) -> ElementTree.Element:
    named = {"classname": f"gpudiag.{verdict.topic}", "name": _text(f"{verdict.rule}: {verdict.checks}")}
    case = ElementTree.Element("testcase", {**named, "time": "0"})
    if verdict.status is Status.FOUND:
        level = verdict.severity.value
        lines = (verdict.summary, todo and f"What to do: {todo}", verdict.refuted_by)
        words = _text("\n".join(filter(None, lines)))
        if fail_on == "never" or LEVELS.index(level) <= LEVELS.index(fail_on):
            failure = {"message": _text(verdict.summary or verdict.title), "type": level}
            ElementTree.SubElement(case, "failure", failure).text = words
        else:
            ElementTree.SubElement(case, "system-out").text = f"{level}: {words}"
    elif verdict.status is Status.ERROR:
        said = _text(f"{verdict.reason} {verdict.remedy}")
        ElementTree.SubElement(case, "error", {"message": said, "type": "gpudiag"}).text = said
    elif verdict.status is not Status.OK:
        said = verdict.status.value.lower().replace("_", " ")
        remedy = f" {verdict.remedy}" if verdict.status is Status.NOT_ASSESSED else ""
        ElementTree.SubElement(case, "skipped", {"message": _text(f"{said}: {verdict.reason}{remedy}")})
    return case


def _text(text: str) -> str:
    """Text that XML 1.0 can hold, each line without control characters."""
    return inert_lines("\n".join(_NOT_XML.sub("", safe(line)).replace("`", "") for line in text.split("\n")))
