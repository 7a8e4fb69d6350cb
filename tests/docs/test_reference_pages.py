"""The generated pages of the reference, without Sphinx: what they show is true, and their links lead somewhere."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.main import get_command

import gpudiag
from gpudiag.advice import REMEDIES
from gpudiag.cli import app
from gpudiag.diagnosis import diagnose
from gpudiag.readers import artifacts, telemetry, trials
from gpudiag.readers._io.source import Source
from gpudiag.readers.base import ReadOptions
from gpudiag.readers.identify import identify
from gpudiag.report.check_address import PLACE
from gpudiag.rules import RULES
from gpudiag.rules._engine.references import SECTIONS
from gpudiag.schemas import NAMES, schema
from gpudiag.timezones import parse_zone

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "docs" / "_site"), str(ROOT / "benchmarks")]

from check_pages import list_of_checks, page_of_check  # noqa: E402
from commands_page import commands_page  # noqa: E402
from formats_page import FILES, WRITTEN, formats_page  # noqa: E402
from planted import FAULTS  # noqa: E402
from planted_cases import FIGURE_OF, Case, case_of, planted_as  # noqa: E402
from schemas_page import schemas_page  # noqa: E402

IDS = [rule.id for rule in RULES]


def test_every_check_has_a_page_whose_links_lead_somewhere() -> None:
    listed = re.findall(r"\]\(([a-z0-9-]+)\.md\)", list_of_checks())
    assert sorted(listed) == sorted(IDS) and PLACE == "reference/checks/{rule}.html"
    places = {f"../../remedies.md#{one.id}" for one in REMEDIES} | {f"{rule}.md" for rule in IDS}
    places |= {f"../../methods.md#{number}-{name}" for number, name in enumerate(SECTIONS)}
    for rule in RULES:
        page = page_of_check(rule, Case(planted_as(rule.id), "SAID", "ALT", "CAPTION"))
        links = set(re.findall(r"\]\(([^)]+)\)", page))
        assert links <= places, rule.id
        assert {f"../../remedies.md#{one.id}" for one in REMEDIES if rule.id in one.answers} <= links, rule.id
        assert "\n```text\nSAID\n```\n" in page and f"/{rule.id}.svg" in page
    assert set(FIGURE_OF) <= set(IDS) == set(FAULTS)


NO_SENTENCE = re.compile(
    r"``|\b(so many|a share|that full|where given|for a while|1 (trial|sample|reading|failure)s)\b|[()=]"
)


@pytest.mark.parametrize("rule", IDS)
def test_a_planted_case_is_one_sentence_with_its_values(rule: str) -> None:
    said = planted_as(rule)
    assert re.fullmatch(r"[A-Z](?:[^.]|\.(?=\w))+\.", said), said
    assert NO_SENTENCE.findall(said) == []


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "pictured"), [("gpu-unused", True), ("gpu-lost", False)])
def test_a_planted_case_is_what_gpudiag_says_of_it(rule: str, pictured: bool, tmp_path: Path) -> None:
    case = case_of(rule, tmp_path)
    found = diagnose(FAULTS[rule].make()).findings[rule]
    said = " ".join(case.said.split())
    assert found.title in said and found.summary in said and f"Rule {rule}" in said
    assert [path.name for path in tmp_path.iterdir()] == ([f"{rule}.svg"] if pictured else [])
    assert bool(case.alt) is pictured


@pytest.mark.parametrize("name", [*FILES, *WRITTEN])
def test_what_a_format_begins_with_is_read_by_that_name(name: str, tmp_path: Path) -> None:
    path = ROOT / "data" / "samples" / FILES[name] if name in FILES else tmp_path / "input"
    content = WRITTEN.get(name, "")
    if name in WRITTEN and isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    elif isinstance(content, Mapping):
        for file, text in content.items():
            (path / file).parent.mkdir(parents=True, exist_ok=True)
            (path / file).write_text(text, encoding="utf-8")
    found = identify(Source.open(path))
    assert found is not None and found[1].name == name
    assert found[1].read(Source.open(path), ReadOptions(parse_zone("UTC"))).rows > 0


def test_every_format_is_on_the_page_with_its_beginning() -> None:
    page = formats_page()
    for reader in (*telemetry.READERS, *trials.READERS, *artifacts.READERS):
        assert (f"| {reader.name} |" if reader.refuses else f"\n### {reader.name}\n") in page


def test_every_command_and_option_is_on_the_page() -> None:
    page = commands_page()
    names = {one.name or one.callback.__name__.replace("_", "-") for one in app.registered_commands if one.callback}
    for group in app.registered_groups:
        assert group.typer_instance is not None
        inner = group.typer_instance.registered_commands
        names |= {f"{group.name} {one.name or one.callback.__name__}" for one in inner if one.callback}
    assert names == set(re.findall(r"^## gpudiag (.+)$", page, re.MULTILINE))
    for option in ("`--open`", "`--set RULE.THRESHOLD=VALUE`", "`-o DIR`, `--output DIR`", "default: `never`"):
        assert option in page


def test_every_document_is_on_the_page_with_its_keys_and_where_it_is_from() -> None:
    page, commands = schemas_page(), get_command(app).commands
    for name, option in re.findall(r"`gpudiag (\w+) (--[a-z-]+)", page):
        assert any(option in one.opts for one in commands[name].params), (name, option)
    for name in NAMES:
        held = schema(name)
        tables = [held, *held["$defs"].values()]  # type: ignore[union-attr, misc, list-item]
        keys = {key for one in tables for key in one.get("properties", {})}  # type: ignore[union-attr]
        assert f"`{held['$id']}`, from" in page and all(f"| `{key}`" in page for key in keys), name


def test_every_public_name_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    named = {name.rpartition(".")[2] for name in re.findall(r"^\.\. auto\w+:: ([\w.]+)(?:\(\))?$", page, re.MULTILINE)}
    assert set(gpudiag.__all__) - {"__version__"} <= named
    assert set(gpudiag.rules.__all__) - {"RULES", "TOPICS"} <= named
