"""The steps of the action for GitHub, run as a runner runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
EXPRESSION = re.compile(r"\$\{\{\s*(.+?)\s*\}\}")


class Runner:
    """What a runner gives a step: a folder to work in, its files, and the values of expressions."""

    def __init__(self, folder: Path, gpudiag: Path, **inputs: str) -> None:
        self.folder, self.summary, self.output = folder, folder / "summary.md", folder / "output"
        self.temp = folder / "temp"
        self.temp.mkdir()
        defaults = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()}
        assert inputs.keys() <= defaults.keys()
        self.values = {f"inputs.{name}": value for name, value in (defaults | inputs).items()} | {
            "github.action_path": str(ROOT),
            "steps.install.outputs.gpudiag": str(gpudiag),
            "steps.python.outputs.python-path || 'python3'": sys.executable,
        }

    def run(self, name: str) -> subprocess.CompletedProcess[str]:
        """The step of that name, by the command that GitHub documents for ``shell: bash``."""
        (step,) = [one for one in STEPS if one.get("name") == name]
        assert step["shell"] == "bash"
        script = self.folder / "step.sh"
        script.write_text(step["run"], encoding="utf-8")
        own = {key: EXPRESSION.sub(lambda one: self.values[one[1]], text) for key, text in step["env"].items()}
        files = {"GITHUB_STEP_SUMMARY": self.summary, "GITHUB_OUTPUT": self.output, "RUNNER_TEMP": self.temp}
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.folder,
            env={**os.environ, "GITHUB_ACTIONS": "true", "CI": "true", **{k: str(v) for k, v in files.items()}, **own},
            capture_output=True,
            text=True,
            check=False,
        )
