"""A bug report says what failed and where, and nothing of whose run it was or what it held."""

from __future__ import annotations

import getpass
import re
import shutil
import socket
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import gpudiag as gd

ROOT = Path(__file__).resolve().parent.parent.parent
SECRETS = ("zoe", "node-of-zoe", "apollo", "tuning-apollo", "hunter2", "0.0271828", "quz")
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def private(samples: Path, tmp_path: Path) -> Path:
    """A run with a secret wherever names and values stand."""
    folder = tmp_path / "apollo" / "zoe"
    shutil.copytree(samples / "memory-exhaustion", folder)
    with closing(sqlite3.connect(folder / "optuna.db")) as study, study:
        study.execute("DELETE FROM trials WHERE number > 5")
        study.execute("UPDATE studies SET study_name = 'tuning-apollo'")
        study.execute("UPDATE trial_params SET param_name = param_name || '_of_apollo'")
    stated = (folder / "run.toml").read_text(encoding="utf-8")
    head = 'user = "zoe"\nhost = "node-of-zoe"\nproject = "apollo"\n'
    (folder / "run.toml").write_text(head + stated.replace("search", "tuning-apollo"), encoding="utf-8")
    (folder / "torn.csv").write_text("timestamp, index, utilization.gpu [%]\nquz@h, hunter2, 0.0271828\n")
    return folder


def no_secret_in(text: str) -> None:
    own = {getpass.getuser(), socket.gethostname()}
    assert [one for one in (*SECRETS, *own) if re.search(rf"(?<![^\W_]){re.escape(one)}(?![^\W_])", text)] == []


@pytest.mark.slow
def test_a_report_of_a_run_tells_how_it_was_read_and_names_nothing(gpudiag: Call, private: Path) -> None:
    code, out, err = gpudiag("bug-report", private, "--timezone", "Asia/Taipei")
    assert code == 0 and not err
    no_secret_in(out)
    assert "nothing was sent" in out and f"gpudiag {gd.__version__}, Python 3." in out and ", pandas " in out
    run = gd.load_run(private)
    (study,) = run.info.inputs[1].studies
    assert f"    optuna.db: optuna-sqlite, {len(run.trials):,} rows, " in out
    assert f"        study 1: {' '.join(f'{state} {n}' for state, n in study.states.items())}" in out
    assert "    torn.csv: not read: looks like nvidia-smi-query-csv" in out
    found = {one.rule for one in gd.diagnose(run).verdicts if one.status.value == "found"}
    assert found and set(re.findall(r"^- (?:critical|warning|note): (\S+)$", out, re.MULTILINE)) == found


@pytest.mark.slow
def test_what_ends_a_diagnosis_is_reported_with_its_place(
    gpudiag: Call, private: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = gpudiag("bug-report", private, "--study", "quz")
    assert code == 0 and "- StudyNotFound: optuna.db: has no study '***'" in out
    assert re.search(r"^      gpudiag/readers/_studies/stored\.py:\d+ pick_study$", out, re.MULTILINE)
    no_secret_in(out)

    def broken(*given: Any, **named: Any) -> None:
        raise LookupError("hunter2")

    monkeypatch.setattr("gpudiag.load.assemble", broken)
    code, out, _ = gpudiag("bug-report", private, "-o", "bug.md")
    assert code == 0 and "bug.md" in out
    written = (tmp_path / "bug.md").read_text(encoding="utf-8")
    assert re.search(r"^- loading the run: LookupError at \*\*\*:\d+, called at gpudiag/load\.py:", written, re.M)
    assert re.search(r"^      \*\*\*:\d+ \*\*\*$", written, re.M) and "bug_report" not in written
    no_secret_in(written)


OF_ONE_S_OWN = """
from gpudiag.measures import measure_memory
from gpudiag.rules import rule

class LaunchRoomError(LookupError):
    pass

@rule(measure=measure_memory, severity="note", title="Room for the launch", remedy="Run one trial less at once.")
def launch_room(memory):
    \"\"\"The launch needs room. Source: its own log.\"\"\"
    raise LaunchRoomError("hunter2")
"""


@pytest.mark.slow
def test_rules_of_one_s_own_are_reported_without_their_names(
    gpudiag: Call, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(samples / "tiny-batch-laptop", tmp_path / "run")
    (tmp_path / "launch_rules.py").write_text(OF_ONE_S_OWN)
    monkeypatch.syspath_prepend(tmp_path)
    stated = (folder / "run.toml").read_text(encoding="utf-8")
    (folder / "run.toml").write_text('rule_modules = ["launch_rules"]\n' + stated, encoding="utf-8")
    code, out, _ = gpudiag("bug-report", folder)
    assert code == 0
    assert re.search(r"^- rule \*\*\*: \*\*\* at \*\*\*:11, called at gpudiag/rules/", out, re.M)
    assert "      ***:11 ***\n" in out and "launch" not in out.lower()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("begins", "said"),
    [
        ("", ""),
        ("rank = 1\n", "ConfigError: run.toml: unknown key '***'; legal are "),
        ('artifacts = ["../zoe/hunter2/none.csv"]\n', "InputNotFound: none.csv: no such file or folder"),
        ('artifacts = ["hunter2/none.csv"]\n', "InputNotFound: 4/none.csv: no such file or folder"),
        ("notes = [launch\n", "ConfigError: run.toml: is not valid TOML (Invalid value (at line 1, column 10))."),
        ("settings.sampler = 4111\n", "key 'settings.sampler': Input should be a valid string, but got ***"),
    ],
)
def test_folders_are_numbered_and_listed_whatever_run_toml_says(
    gpudiag: Call, samples: Path, tmp_path: Path, begins: str, said: str
) -> None:
    folder = shutil.copytree(samples / "tiny-batch-laptop", tmp_path / "apollo")
    for name in ("gpu/launch-room/gpu.csv", "gpu/launch/gpu.csv"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / "gpu.csv", folder / name)
    (folder / "gpu" / "launch" / "empty.csv").touch()
    (folder / "run.toml").write_text(begins + 'user = "zoe"\n')
    code, out, _ = gpudiag("bug-report", folder)
    assert code == 0 and said in out and "launch" not in out and "4111" not in out
    listed = re.findall(r"^    ([\w./]+): nvidia-smi-query-csv, 90 rows", out, re.M)
    assert listed == ["gpu.csv", "1/2/gpu.csv", "1/3/gpu.csv"] and "    1/2/empty.csv: not read: " in out
    no_secret_in(out)


def test_inputs_are_listed_whatever_options_and_packages_say(gpudiag: Call, samples: Path) -> None:
    folder = samples / "tiny-batch-laptop"
    code, out, _ = gpudiag("bug-report", folder, "--timezone", "Mars/Apollo")
    assert code == 0 and "    gpu.csv: nvidia-smi-query-csv, 90 rows" in out
    assert "time zone '***' is not in the zone database; expected an IANA name such as 'Asia/Taipei'" in out
    code, out, _ = gpudiag("bug-report", "mlflow:apollo")
    assert code == 0 and re.search(r"^    mlflow:\*\*\*: not read: ", out, re.M)
    no_secret_in(out)


def test_without_a_run_it_states_versions_alone(gpudiag: Call) -> None:
    code, out, _ = gpudiag("bug-report")
    assert code == 0 and "## Versions" in out and "## Inputs" not in out


@pytest.mark.parametrize(("given", "said"), [(["nope"], "no such file"), (["-o", "."], "is a folder")])
def test_bad_usage_is_exit_2(gpudiag: Call, given: list[str], said: str) -> None:
    code, out, err = gpudiag("bug-report", *given)
    assert code == 2 and not out and said in err and len(err.splitlines()) == 1
