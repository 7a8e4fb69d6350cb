"""The manifest in docs/schedulers.md: its YAML, and its commands run by bash as the containers would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

import gpudiag as gd

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="containers of Linux")


@pytest.fixture(scope="module")
def pod() -> dict[str, Any]:
    text = (ROOT / "docs" / "schedulers.md").read_text(encoding="utf-8")
    manifest = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)[0])
    assert (manifest["apiVersion"], manifest["kind"]) == ("batch/v1", "Job")
    return dict(manifest["spec"]["template"]["spec"])


def test_the_recorder_is_a_sidecar_and_both_see_the_same_folder(pod: dict[str, Any]) -> None:
    (sidecar,), (training,) = pod["initContainers"], pod["containers"]
    assert sidecar["restartPolicy"] == "Always" and "resources" not in sidecar
    assert sidecar["volumeMounts"] == training["volumeMounts"]
    assert [mount["name"] for mount in sidecar["volumeMounts"]] == [volume["name"] for volume in pod["volumes"]]
    runs = [{one["name"]: one["value"] for one in container["env"]}["RUN"] for container in (sidecar, training)]
    assert runs[0] == runs[1] and runs[0].startswith(sidecar["volumeMounts"][0]["mountPath"] + "/")


@pytest.mark.slow
def test_the_sidecar_records_until_sigterm_and_then_reports(pod: dict[str, Any], tmp_path: Path) -> None:
    """Only the first process of a container gets the signal. The report is noted, not made: other tests make it."""
    (tmp_path / "bin").mkdir()
    stand_in = tmp_path / "bin" / "gpudiag"
    stand_in.write_text(
        f'#!/bin/bash\n[ "$1" = report ] && echo "$@" >>"{tmp_path}/reports" && exit 0\n'
        f'exec "{sys.executable}" -P -m gpudiag "$@"\n',
        encoding="utf-8",
    )
    (tmp_path / "bin" / "python").write_text("#!/bin/bash\necho step 1; echo step 2 >&2; exit 9\n", encoding="utf-8")
    for path in (tmp_path / "bin").iterdir():
        path.chmod(0o755)
    run = tmp_path / "run"
    env = os.environ | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "RUN": str(run), "PYTHONPATH": str(ROOT)}
    (sidecar,), (training,) = pod["initContainers"], pod["containers"]
    recorder = subprocess.Popen(sidecar["command"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(200):
        if (run / "gpu.csv").exists() and (run / "gpu.csv").read_text(encoding="utf-8").count(",host\n") > 1:
            break
        time.sleep(0.1)
    assert subprocess.run(training["command"], env=env, check=False, capture_output=True).returncode == 9
    assert (run / "train.log").read_text(encoding="utf-8") == "step 1\nstep 2\n"
    recorder.terminate()
    output, error = recorder.communicate(timeout=60)
    assert recorder.returncode == 0, error
    assert (tmp_path / "reports").read_text(encoding="utf-8") == f"report {run} -o {run}/report --no-notebook\n"
    assert "record_end" in (run / "gpu.csv").read_text(encoding="utf-8") and len(gd.load_run(run).host) >= 2
    assert output.strip(), "the diagnosis is what the log of the container shows"
