"""The skill says what is true: its commands run on a sample, its keys and ids exist."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from gpudiag.agents.skill import skill_text
from gpudiag.plain_data import Json
from gpudiag.rules import RULES
from gpudiag.rules._engine.verdict import Status

Call = Callable[..., tuple[int, str, str]]


def commands() -> list[list[str]]:
    return [shlex.split(line.strip()) for line in skill_text().splitlines() if re.match(r" {4,}gpudiag ", line)]


def test_the_head_is_what_assistants_ask_for() -> None:
    head = yaml.safe_load(skill_text().split("---\n")[1])
    assert head.keys() == {"name", "description"}
    assert re.fullmatch(r"[a-z0-9-]{1,64}", head["name"])
    assert 1 <= len(head["description"]) <= 1024
    assert len(skill_text()) < 5000


@pytest.mark.slow
def test_every_command_runs(gpudiag: Call, samples: Path, tmp_path: Path) -> None:
    """But that which records, of which tests/record has its own tests: here its options are known to the help."""
    for name, sample in (("RUN", "before"), ("NEXT", "after")):
        shutil.copytree(samples / "starved-input-pipeline" / sample, tmp_path / name)
    ran = []
    for command in commands():
        name, *arguments = command[1:]
        if name == "record":
            code, out, _ = gpudiag("record", "--help")
            assert code == 0 and all(one in out for one in arguments if one.startswith("--") and one != "--")
            continue
        target = arguments[arguments.index(">") + 1] if ">" in arguments else ""
        if name == "whatif":  # needs a search
            arguments[0] = str(samples / "healthy")
        code, out, err = gpudiag(name, *(arguments[: arguments.index(">")] if target else arguments))
        assert code == 0, f"{command}: {err}"
        assert out.strip()
        if target:
            (tmp_path / target).write_text(out)
        ran.append(name)
    assert set(ran) == {"inspect", "diagnose", "rules", "compare", "whatif"}
    document = json.loads((tmp_path / "diagnosis.json").read_text())
    assert set(re.findall(r"^- `([a-z._]+)`:", skill_text(), re.MULTILINE)) <= {*document, "headline.sentences"}
    assert {"rule", "status", "caused_by", "reason", "remedy"} <= set(document["verdicts"][0])
    keys = {"changes", "gain", "verify_first", "verify", "refute", "rollback"}
    assert keys <= set(document["recommendations"][0])
    change: dict[str, Json] = document["recommendations"][0]["changes"][0]
    assert {"what", "present", "proposed", "code"} <= set(change)
    assert json.loads((tmp_path / "plan.json").read_text())["schema"].startswith("gpudiag.plan")


def test_ids_and_statuses_are_real() -> None:
    cited = set(re.findall(r"\(`([a-z]+(?:-[a-z]+)+)`\)", skill_text()))
    assert cited and cited <= {rule.id for rule in RULES}
    assert all(f"`{status.value}`" in skill_text() for status in Status)


def test_it_is_printed_and_written(gpudiag: Call, tmp_path: Path) -> None:
    code, out, _ = gpudiag("skill")
    assert (code, out) == (0, skill_text())
    code, out, _ = gpudiag("skill", "-o", ".claude/skills")
    written = tmp_path / ".claude" / "skills" / "gpudiag" / "SKILL.md"
    assert (code, out.strip()) == (0, str(written.relative_to(tmp_path)))
    assert written.read_text(encoding="utf-8") == skill_text()


def test_an_earlier_one_is_replaced_and_a_file_of_somebody_else_is_not(gpudiag: Call, tmp_path: Path) -> None:
    path = tmp_path / "gpudiag" / "SKILL.md"
    path.parent.mkdir()
    path.write_text("---\nname: gpudiag\ndescription: of an earlier release\n---\n")
    assert gpudiag("skill", "-o", tmp_path)[0] == 0
    assert path.read_text(encoding="utf-8") == skill_text()
    path.write_text("my own notes")
    code, _, err = gpudiag("skill", "-o", tmp_path)
    assert (code, path.read_text()) == (2, "my own notes")
    assert "is no skill of gpudiag" in err
