"""``gpudiag fleet`` as a command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commandline import called


def test_the_command_writes_table_and_report_and_says_where_to_start(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, "fleet", samples / "idle-second-gpu", "-o", tmp_path / "out", "--by", "host") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("2 runs held GPUs for 0.24 GPU-h")
    assert "A GPU was idle while another one worked" in lines[1] and lines[2].startswith("Start with ")
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
