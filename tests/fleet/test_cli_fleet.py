"""``gpudiag fleet`` as a command."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from commandline import called


@pytest.mark.slow
def test_the_command_writes_table_and_report_and_says_where_to_start(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, "fleet", samples / "idle-second-gpu", "-o", tmp_path / "out", "--by", "host") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "The GPUs were poorly used (12 % on average)."
    assert lines[1].startswith("2 runs held GPUs for 0.24 GPU-h")
    assert "A GPU was idle while another one worked" in lines[2] and lines[3].startswith("Start with ")
    for name in ("fleet.html", "fleet.md", "fleet.json", "fleet.jsonl", "table"):
        assert (tmp_path / "out" / name).exists(), name
    held = json.loads((tmp_path / "out" / "fleet.json").read_text(encoding="utf-8"))
    assert held["schema"] == "gpudiag.fleet/1" and held["by"] == "host" and len(held["runs"]) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none-such"], "no such file or folder"),
        (["."], "holds no run"),
        ([".", "--by", "usr"], "--by"),
        ([".", "--executor", "ray"], "dask:local"),
        ([".", "--executor", "dask:local", "--jobs", "2"], "leave one"),
    ],
)
def test_bad_input_is_a_sentence_and_exit_2(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert called(monkeypatch, "fleet", *arguments) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_interrupted_fleet_says_what_is_kept_and_how_to_go_on(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C after the first of two runs; the command that is named ends it with the other one."""
    whole = import_module("gpudiag.fleets.fleet")
    outcomes = whole.outcomes

    def stopped(*given: object) -> Iterator[object]:
        yield next(outcomes(*given))
        raise KeyboardInterrupt

    monkeypatch.setattr(whole, "outcomes", stopped)
    arguments = ("fleet", samples / "idle-second-gpu", "-o", tmp_path / "my out", "--again", "--jobs", "1")
    assert called(monkeypatch, *arguments) == 130
    said = capsys.readouterr().err
    assert "1 of 2 runs are kept. To go on: gpudiag fleet " in said and "Ctrl-C" in said
    command = shlex.split(said.partition("To go on: gpudiag ")[2].splitlines()[0])
    assert "--again" not in command and str(tmp_path / "my out") in command
    monkeypatch.setattr(whole, "outcomes", outcomes)
    seen: list[int] = []
    keep = whole.FleetFolder.keep
    monkeypatch.setattr(whole.FleetFolder, "keep", lambda *given: (seen.append(1), keep(*given))[1])
    assert called(monkeypatch, *command, "--resume") == 0 and len(seen) == 1
