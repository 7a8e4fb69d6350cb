"""What docs/ci.md shows is true: its YAML fits the action, its commands and its tests run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.version import Version

from gpudiag import __version__
from gpudiag.cli._options import LEVELS
from gpudiag.pytest_plugin.budget import FEWEST_SAMPLES, LEAST_OBSERVED, SHORTEST_S, Budget
from gpudiag.pytest_plugin.judged_run import judged_run

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_the_workflow_gives_the_action_what_it_takes() -> None:
    workflow, sarif, gitlab = (yaml.safe_load(block) for block in blocks("yaml"))
    (step,) = [one for one in workflow["jobs"]["train"]["steps"] if "gpudiag" in one.get("uses", "")]
    assert Version(step["uses"].partition("@v")[2]) <= Version(__version__)
    assert step["with"].keys() <= ACTION["inputs"].keys() and step["with"]["fail-on"] in LEVELS
    table = PAGE.partition("| input |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `([\w-]+)` \| ", table, re.MULTILINE) == list(ACTION["inputs"])
    assert all(f"`{name}`" in PAGE for name in ACTION["outputs"])
    assert sarif[0]["run"].endswith(sarif[1]["with"]["sarif_file"])
    report = gitlab["train"]["artifacts"]["reports"]["codequality"]
    assert gitlab["train"]["script"][-1].endswith(f" > {report}")


@pytest.mark.slow
def test_its_commands_run(gpudiag: Any, tmp_path: Path) -> None:
    sample = ROOT / "data" / "samples" / "tiny-batch-laptop"
    (tmp_path / "path" / "to").mkdir(parents=True)
    (tmp_path / "path" / "to" / "run").symlink_to(sample)
    (tmp_path / "gpu.csv").symlink_to(sample / "gpu.csv")
    found = re.findall(r"gpudiag (diagnose [^\n`]*--format [^\n`]*)", PAGE)
    assert set(re.findall(r"--format (\w+)", " ".join(found))) == {"github", "sarif", "gitlab"}
    for command in found:
        code, out, err = gpudiag(*shlex.split(command.partition(" > ")[0]))
        assert code == 0 and out, err


@pytest.mark.slow
def test_its_python_runs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    request.config.addinivalue_line("markers", "gpu_budget: of the plugin, where it is not installed")
    budget, assertions = blocks("python")
    held: dict[str, Any] = {}
    exec(budget, held)
    (mark,) = held["test_one_epoch"].pytestmark
    assert mark.name == "gpu_budget"
    assert Budget.of(mark.kwargs) == Budget(utilization_pct=60, idle_pct=20, memory_mib=20_000)
    text = " ".join(PAGE.split())
    assert f"A test below {SHORTEST_S:.0f} s is" in text and f"fewer than {FEWEST_SAMPLES} samples" in text
    assert f"less than {100 * LEAST_OBSERVED:.0f} % were" in text and f"every {Budget().interval_s} s" in text
    exec(assertions, held)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "nightly").symlink_to(ROOT / "data" / "samples" / "healthy")
    monkeypatch.chdir(tmp_path)
    held["test_the_nightly_training"](judged_run)


@pytest.mark.slow
def test_names_in_its_table_exist() -> None:
    made = judged_run(ROOT / "data" / "samples" / "tiny-batch-laptop")
    for name in re.findall(r"`d\.([\w.]+)", PAGE):
        value: Any = made
        for part in name.split("."):
            value = getattr(value, part)
        assert value is not None
