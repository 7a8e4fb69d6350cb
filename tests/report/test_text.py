"""The terminal output: verdict, why, next, table; within the width; colours only when asked for."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sampleruns import diagnosed
from toyrun import typed

from gpudiag.diagnosis import Diagnosis
from gpudiag.report._render import fragments, markdown
from gpudiag.report._render.terminal import render
from gpudiag.report._sections.headline import first_finding
from gpudiag.report._sections.origin import data_quality
from gpudiag.report.sections import findings
from gpudiag.report.text import screen, whole


def test_the_verdict_comes_first_then_why_then_what_next(document: dict[str, Any]) -> None:
    lines = render(whole(typed(document)), width=100).splitlines()
    assert lines[:3] == [
        "toy",
        "■ The 2 GPUs were partly used (40 % on average), and the toy is broken.",
        "  7 cracks were seen. It cost 0.5 GPU-h.",
    ]
    assert any(line.endswith("  40 %  mean utilization of 2 GPUs, from 0 % to 80 %") for line in lines)
    assert any(line.startswith("Do next: Mend it with glue.") for line in lines)


def test_why_a_stated_gpu_is_not_believed_is_said(document: dict[str, Any]) -> None:
    assert "state GPU" not in render(screen(typed(document)), width=80)
    refuted = {"refuted_gpu": {"value": "0", "unit": ""}, "n_refuted": {"value": 56, "unit": "1"}}
    document["measures"]["attribution"] = refuted
    for blocks in (screen(typed(document)), whole(typed(document)), data_quality(typed(document))):
        said = " ".join(fragments.render(blocks).replace("&nbsp;", " ").split())
        assert "The trials state GPU 0, but 56 trials left their marks on other GPUs" in said


def test_why_exchanged_gpus_are_not_believed_is_said(document: dict[str, Any]) -> None:
    refuted = {"refuted_gpu": {"value": "0,1", "unit": ""}, "n_refuted": {"value": 56, "unit": "1"}}
    document["measures"]["attribution"] = refuted
    said = " ".join(render(screen(typed(document)), width=80).split())
    assert "The trials of GPUs 0 and 1 are exchanged: 56 trials left" in said
    assert "Set CUDA_DEVICE_ORDER=PCI_BUS_ID" in said


def test_a_screen_says_the_worst_and_how_to_see_the_rest(document: dict[str, Any]) -> None:
    one = document["verdicts"][0]
    many = [{**one, "rule": f"r{n}", "severity": "warning", "title": f"Fault {n}"} for n in range(5)]
    document["verdicts"] = [*many, *document["verdicts"][1:]]
    lines = render(screen(typed(document)), width=80).splitlines()
    assert [n for n in range(5) if any(line.startswith(f"▲ warning: Fault {n}") for line in lines)] == [0, 1, 2]
    assert lines[-1] == "6 findings: 3 here, 3 more. 8 checks (1 does not apply): add --all"
    assert len(lines) <= 40 and max(map(len, lines)) <= 80 and not any("Rule r" in line for line in lines)


@pytest.mark.parametrize(
    ("cause", "symptom", "mark", "named"),
    [
        ("note", "critical", "● note", "low use (critical)"),
        ("warning", "critical", "▲ warning", "low use (critical)"),
        ("note", "warning", "● note", "low use (warning)"),
        ("critical", "note", "■ critical", "low use"),
        ("warning", "warning", "▲ warning", "low use"),
    ],
)
def test_a_finding_has_one_severity_on_a_screen_and_on_pages(
    document: dict[str, Any], cause: str, symptom: str, mark: str, named: str
) -> None:
    """One that explains what is graver is shown first, with its own severity, and says how grave the other is."""
    one = document["verdicts"][0]
    folding = {**one, "rule": "late", "severity": cause, "title": "Idle at the end"}
    folded = {**one, "rule": "low", "severity": symptom, "title": "Low use", "caused_by": "late"}
    apart = {**one, "rule": "seen", "severity": "warning", "title": "Seen in part"}
    document["verdicts"] = [folding, folded, apart, *document["verdicts"][2:]]
    said = typed(document)
    out = " ".join(render(screen(said), width=80).split())
    assert f"{mark}: Idle at the end" in out and f"It explains: {named}." in out
    assert f"{mark}: Idle at the end" in render(whole(said), width=80)
    assert first_finding(said, said.findings).rule == "late"  # type: ignore[union-attr]
    assert not re.search("[0-9] (finding|note)s?[: ]", out.rpartition("It explains")[2]), "each is shown or named"
    for page in (markdown.render(findings(said)), fragments.render(findings(said))):
        assert named.replace("low", "Low") in page and f"{cause}" in page


@pytest.mark.slow
def test_the_findings_that_a_screen_counts_add_up(document: dict[str, Any]) -> None:
    """Those shown, those named as explained by them and those left out are all; an untold note is left out."""
    one, *others = document["verdicts"]
    apart = [{**one, "rule": f"r{n}", "severity": "warning", "title": f"Fault {n}"} for n in range(4)]
    named = [{**one, "rule": f"s{n}", "title": f"Symptom {n}", "caused_by": "r0"} for n in range(2)]
    notes = [{**one, "rule": f"t{n}", "severity": "note", "title": f"Note {n}"} for n in range(3)]
    rest = [v for v in others if v["status"] != "found"]
    n_checks, n_absent = len(rest), sum(v["status"] == "not_applicable" for v in rest)

    def last(findings: list[dict[str, Any]]) -> str:
        document["verdicts"] = [*findings, *rest]
        return " ".join(render(screen(typed(document)), width=200).splitlines()[-1].split())

    apply = f"({n_absent} does not apply)" if n_absent == 1 else f"({n_absent} do not apply)"
    total = f"{n_checks + 9} checks {apply}"
    assert last([*apart, *named, *notes]) == f"9 findings: 3 here, 2 explained by them, 4 more. {total}: add --all"
    assert last(notes) == f"3 findings: 1 in the headline, 2 more. {n_checks + 3} checks {apply}: add --all"
    assert last(apart[:2]) == f"{n_checks + 2} checks {apply}: add --all"
    untold = render(screen(diagnosed("real-h100/six-workers").document), width=80).splitlines()[-1]
    assert re.fullmatch(r"1 note and [0-9]+ checks \([0-9]+ do not apply\): add --all", untold)


@pytest.mark.parametrize("sample", ["hpo-aggressive-pruning", "memory-exhaustion", "healthy", "tiny-batch-laptop"])
def test_a_diagnosis_of_a_sample_fits_a_screen(sample: str) -> None:
    lines = render(screen(diagnosed(sample).document), width=80).splitlines()
    assert len(lines) <= 36 and max(map(len, lines)) <= 80


def test_what_to_do_is_said_once_on_a_screen(document: dict[str, Any]) -> None:
    said = render(screen(typed(document)), width=80)
    assert said.count("Mend it with glue.") == 1 and "Do next: Mend it with glue." in said


def test_every_finding_and_every_check_is_listed(document: dict[str, Any]) -> None:
    out = render(whole(typed(document)), width=100)
    assert "■ critical: The toy is broken (cost 0.5 GPU-h)\n    7 cracks were seen.\n    Do: Mend it with glue." in out
    assert "Rule toy-broken; limits: max cracks 3" in out
    table = out.partition("All checks\n")[2].splitlines()
    assert len(table) == len(document["verdicts"])
    assert "✓ ok" in table[2] and "– not applicable" in table[3]


def test_an_open_check_says_what_would_settle_it(document: dict[str, Any]) -> None:
    document["verdicts"][2] |= {"status": "not_assessed", "reason": "No log.", "remedy": "Record one."}
    margin = "\n" + " " * 20
    assert f"? not assessed    1 check{margin}No log. Record one.{margin}Age of the toy" in render(
        whole(typed(document))
    )


def test_open_checks_of_one_reason_stand_together(document: dict[str, Any]) -> None:
    for verdict in document["verdicts"][1:]:
        verdict |= {"status": "not_assessed", "reason": "No log.", "remedy": "Record one."}
    out = render(whole(typed(document)))
    assert out.count("No log. Record one.") == 1 and "? not assessed  3 checks" in out
    assert all(
        verdict["checks" if verdict["status"] == "not_assessed" else "title"] in " ".join(out.split())
        for verdict in document["verdicts"]
    )


@pytest.mark.parametrize("width", [20, 60, 80, 132])
def test_lines_fit_the_terminal(document: dict[str, Any], width: int) -> None:
    document["verdicts"][0]["summary"] = "many words " * 40
    assert max(map(len, render(whole(typed(document)), width=width).splitlines())) <= max(width, 40)


def test_colours_are_only_added(toy: Diagnosis) -> None:
    plain = render(whole(toy.document), width=80)
    colored = render(whole(toy.document), width=80, color=True)
    assert "\x1b" not in plain and "\x1b[1;31m" in colored
    assert re.sub("\x1b\\[[0-9;]*m", "", colored) == plain


def test_escape_codes_of_inputs_do_not_reach_the_terminal(document: dict[str, Any]) -> None:
    document["run"]["name"] = "\x1b[2Jgone"
    document["verdicts"][0]["summary"] = "\x1b]0;title\x07"
    assert "\x1b" not in render(whole(typed(document))) and "\x07" not in render(whole(typed(document)))
