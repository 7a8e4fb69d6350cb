"""The page of a check, on a terminal and in a browser; and the ways to it from a finding."""

from __future__ import annotations

import html
import json
import re
import webbrowser
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
from commandline import called
from toyrun import TOY_RULES, toy_run

from gpudiag.advice import REMEDIES
from gpudiag.diagnosis import Diagnosis, diagnose
from gpudiag.report._render import terminal
from gpudiag.report.check_page import check_blocks, check_html, check_markdown, with_id_links
from gpudiag.report.sarif import sarif_log
from gpudiag.report.text import whole
from gpudiag.rules import RULES

AT = "https://docs.example.org/gpudiag"
PAGE = f"{AT}/reference/checks/gpu-unused.html"


@pytest.mark.slow
def test_every_check_is_explained_with_its_limits_and_what_may_be_advised() -> None:
    for rule in RULES:
        page = html.unescape(re.sub(r"<[^>]+>", "", check_html(rule).partition("<main>")[2]).replace("&nbsp;", " "))
        for text in (page, terminal.render(check_blocks(rule))):
            said = " ".join(text.split())
            told = " ".join(rule.why.replace("`", "").split())
            assert all(part in said for part in (rule.title, *told.split(". "))), rule.id
            assert all(f"{rule.id}.{name}" in said for name in rule.thresholds), rule.id
            assert all(one.title in said for one in REMEDIES if rule.id in one.answers), rule.id


def test_links_of_a_page_lead_where_they_are_told() -> None:
    rule = next(one for one in RULES if one.id == "gpu-unused")
    page = check_markdown(rule, {"pin-gpu": "../remedies.md#pin-gpu"}, "../methods.md")
    assert "([`pin-gpu`](../remedies.md#pin-gpu))" in page and "(`check-devices`)" in page
    assert with_id_links("`a` [`a`](x) `b`", {"a": "y"}) == "[`a`](y) [`a`](x) `b`"


def test_a_page_shows_a_hostile_rule_as_text() -> None:
    odd = '<script>alert(1)</script> ](javascript:x) "><img src=x>'
    page = check_html(replace(TOY_RULES[0], checks=odd, title=odd, remedy=odd, refuted_by=odd, topic=odd))
    assert "<script" not in page and "<img" not in page and page.count("&lt;script&gt;") >= 4
    said = check_markdown(replace(TOY_RULES[0], checks=odd, title=odd, remedy=odd, refuted_by=odd), {})
    assert not re.search(r"(?<!\\)[<\]]", said)


@pytest.mark.parametrize("there", [True, False])
def test_a_check_opens_in_a_browser(
    there: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(webbrowser, "open", lambda address: asked.append(address) or there)
    assert called(monkeypatch, "rules", "explain", "gpu-unused", "--open") == 0
    written = Path(url2pathname(urlsplit(asked[0]).path))
    assert "A GPU was never used" in written.read_text(encoding="utf-8")
    said = capsys.readouterr().out
    assert str(written) in said and ("no browser" in said) is not there


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Diagnosis:
    """With findings of a check that is documented, and of one of somebody's own."""
    toml = tmp_path_factory.mktemp("team") / "gpudiag.toml"
    toml.write_text(f'docs_url = "{AT}/"')
    return diagnose(toy_run(), rules=(*RULES, *TOY_RULES), suppress=toml)


@pytest.mark.slow
def test_findings_link_to_their_checks_where_the_documentation_is_known(linked: Diagnosis, toy: Diagnosis) -> None:
    shown = linked.show.findings._repr_html_()
    assert {"gpu-unused", "toy-broken"} <= {one.rule for one in linked.findings}
    assert f'<a href="{PAGE}">' in shown and f"[`gpu-unused`]({PAGE})" in linked.to_markdown()
    assert "checks/toy-" not in shown, "a rule of somebody's own has no page"
    assert AT not in toy.show.findings._repr_html_() and toy.to_dict()["docs_url"] == ""
    (rule,) = (one for one in json_rules(linked) if one["id"] == "gpu-unused")
    assert rule["helpUri"] == PAGE and all("helpUri" not in one for one in json_rules(toy))


def json_rules(diagnosis: Diagnosis) -> list[dict[str, object]]:
    return json.loads(sarif_log(diagnosis.document, "gpu.csv"))["runs"][0]["tool"]["driver"]["rules"]


@pytest.mark.slow
def test_a_terminal_links_and_a_pipe_does_not(linked: Diagnosis) -> None:
    blocks, plain = whole(linked.document), whole(replace(linked.document, docs_url=""))
    colored = terminal.render(blocks, color=True)
    assert re.search(rf"\x1b\]8;id=\d+;{re.escape(PAGE)}\x1b\\", colored)
    assert terminal.render(blocks) == terminal.render(plain)
    assert "\x1b]8" not in terminal.render(plain, color=True)
