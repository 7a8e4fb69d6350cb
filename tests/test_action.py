"""The action for GitHub: its steps run as a runner runs them, and no input is ever part of a script. Its step that
installs gpudiag runs in test_wheel.py.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest
from actionrunner import ACTION, EXPRESSION, ROOT, STEPS, Runner

SAMPLE = ROOT / "data" / "samples" / "tiny-batch-laptop"

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")


@pytest.fixture
def gpudiag_here(tmp_path: Path) -> Path:
    """In place of the installed command: that of this tree, which makes a report without a kernel."""
    path = tmp_path / "gpudiag-here"
    direct = 'if [ "$1" = report ]; then shift; set -- report --no-notebook -p minimal=true "$@"; fi'
    path.write_text(f'#!/bin/sh\n{direct}\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -P -m gpudiag "$@"\n')
    path.chmod(0o755)
    return path


def test_no_expression_stands_in_a_script_and_every_input_is_used() -> None:
    for step in STEPS:
        assert "${{" not in step.get("run", "")
        assert "run" in step or re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"]), "pinned by commit"
    used = EXPRESSION.findall((ROOT / "action.yml").read_text(encoding="utf-8"))
    inputs = {name for text in used for name in re.findall(r"inputs\.([\w-]+)", text)}
    assert inputs == set(ACTION["inputs"]) and all("description" in one for one in ACTION["inputs"].values())


def test_the_report_is_uploaded_also_where_the_step_before_failed() -> None:
    uploads = [number for number, step in enumerate(STEPS) if step.get("uses", "").startswith("actions/upload")]
    assert uploads == [len(STEPS) - 1] and STEPS[-1]["if"] == "always()"
    assert STEPS[-1]["with"]["path"] == "${{ inputs.output }}"
    assert [step for step in STEPS if "continue-on-error" in step] == []


@pytest.mark.slow
def test_report_and_diagnosis_on_a_sample(tmp_path: Path, gpudiag_here: Path) -> None:
    given = {"path": f"{SAMPLE}\n", "output": "a report", "args": "--timezone=Asia/Taipei\n--preset=jobstats\n"}
    runner = Runner(tmp_path, gpudiag_here, **given, **{"fail-on": "note"})
    runner.summary.write_text("# Of a step before\n", encoding="utf-8")
    done = runner.run("Report")
    assert done.returncode == 0, done.stderr
    names = {path.name for path in (tmp_path / "a report").iterdir()}
    assert {"report.html", "report.md", "diagnosis.json"} <= names
    done = runner.run("Diagnose")
    assert done.returncode == 1 and "::notice title=gpudiag gpu-low-utilization" in done.stdout, done.stderr
    summary = runner.summary.read_text(encoding="utf-8")
    assert summary.startswith("# Of a step before\n\n\n# tiny-batch-laptop\n") and "## Findings" in summary


@pytest.mark.parametrize("name", ["path", "fail-on", "args", "output"])
@pytest.mark.parametrize("text", ["$(touch pwned)", '"; touch pwned; "', "`touch pwned`", "x' ; touch pwned ; '"])
def test_inputs_are_never_run(tmp_path: Path, gpudiag_here: Path, name: str, text: str) -> None:
    """Each arrives as one argument, as it was typed."""
    gpudiag_here.write_text('#!/bin/sh\nprintf "%s\\0" "$@"\n')
    given = {"path": "run", "output": "out", "fail-on": "never", "args": "", name: text}
    for step in ("Report", "Diagnose"):
        folder = tmp_path / step
        folder.mkdir()
        done = Runner(folder, gpudiag_here, **given).run(step)
        arguments = done.stdout.split("\0")[:-1]
        assert done.returncode == 0 and not (folder / "pwned").exists(), done.stderr
        own = {"path": text, "fail-on": f"--fail-on={text}", "args": text, "output": f"--output={text}"}[name]
        in_both = name in ("path", "args")
        if in_both or (name == "output") == (step == "Report"):
            assert own in arguments
        end = arguments.index("--")
        assert arguments[end + 1 :] == [given["path"]]


@pytest.mark.slow
def test_a_path_that_looks_like_an_option_is_a_path(tmp_path: Path, gpudiag_here: Path) -> None:
    done = Runner(tmp_path, gpudiag_here, path="--version").run("Diagnose")
    assert done.returncode == 2 and "--version: no such file or folder" in done.stderr
