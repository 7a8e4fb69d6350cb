"""Nothing that gpudiag writes or clears away is an input of a run, or was made by somebody else."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpudiag import files
from gpudiag.files import write_all
from gpudiag.scratch import LOCK, scratch, sweep

Command = Callable[..., tuple[int, str, str]]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def run(samples: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(samples / "tiny-batch-laptop", tmp_path / "run"))


@pytest.mark.parametrize("name", ["gpudiag-evidence", ".gpudiag-evidence", "gpudiag-a1b2c3d4", ".gpudiag-a1b2c3d4"])
@pytest.mark.parametrize("lock", ["empty", "of another"])
def test_a_folder_that_looks_like_a_scratch_folder_stays(run: Path, tmp_path: Path, name: str, lock: str) -> None:
    """As a run folder may be called, also with a lock that came with it."""
    mine = run.rename(tmp_path / name)
    with scratch(tmp_path) as other:
        copied = (other / LOCK).read_bytes()
    (mine / LOCK).write_bytes(b"" if lock == "empty" else copied)
    before = contents(mine)
    sweep(tmp_path)
    with scratch(tmp_path):
        pass
    assert contents(mine) == before


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_what_a_kill_while_clearing_leaves_is_cleared_by_the_next(
    tmp_path: Path, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone: list[Path] = []
    unlink = Path.unlink

    def dies(path: Path, *args: Any, **more: Any) -> None:
        if len(gone) == kept:
            raise SystemExit
        gone.append(path)
        unlink(path, *args, **more)

    with pytest.raises(SystemExit), scratch(tmp_path) as folder:
        for n in range(5):
            (folder / str(n)).touch()
        monkeypatch.setattr(Path, "unlink", dies)
    monkeypatch.undo()
    assert len(list(folder.iterdir())) == 6 - kept
    sweep(tmp_path)
    assert not folder.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [("diagnose", "{run}", "--plan-out", "{run}/gpu.csv"), ("export", "{run}", "--to", "csv", "-o", "{run}"),
     ("export", "{run}", "--to", "openmetrics", "-o", "{run}/gpu.csv")],
)  # fmt: skip
def test_no_command_writes_over_an_input(gpudiag: Command, run: Path, command: tuple[str, ...]) -> None:
    before = contents(run)
    code, _, said = gpudiag(*(part.format(run=run) for part in command))
    assert code == 2 and "is an input of the run and would be overwritten" in said
    assert contents(run) == before


@pytest.mark.slow
def test_a_table_of_the_same_name_elsewhere_is_none(gpudiag: Command, run: Path, tmp_path: Path) -> None:
    assert gpudiag("export", str(run), "--to", "csv", "-o", str(tmp_path / "out"))[0] == 0
    assert gpudiag("export", str(run), "--to", "csv", "-o", str(tmp_path / "out"))[0] == 0, "once more"


def test_a_report_replaces_no_diagnosis_of_somebody_else(gpudiag: Command, run: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "diagnosis.json").write_text('[{"timestamp": "2026-01-01", "gpu": 0}]')
    code, _, said = gpudiag("report", str(run), "-o", str(tmp_path / "out"))
    assert code == 2 and "was not written by gpudiag" in said
    assert list(contents(tmp_path / "out")) == ["diagnosis.json"]


@pytest.mark.parametrize("at", range(1, 5))
def test_a_second_ctrl_c_while_a_swap_is_undone_changes_nothing(
    tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [tmp_path / name for name in ("a", "b", "c")]
    write_all(tmp_path, [(path, "old") for path in names])
    calls, rename = [0], Path.rename

    def interrupted(path: Path, target: Path) -> Path:
        calls[0] += 1
        if calls[0] in (at + 2, at + 3):
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_all(tmp_path, [(path, "new") for path in names])
    monkeypatch.undo()
    assert contents(tmp_path) == {"a": b"old", "b": b"old", "c": b"old"}


def test_what_is_stale_is_looked_up_when_nobody_else_writes_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    alone = files._alone

    def noted(folder: Path) -> Any:
        events.append("alone")
        return alone(folder)

    def given() -> Any:
        events.append("looked up")
        yield tmp_path / "x", "text"

    monkeypatch.setattr(files, "_alone", noted)
    write_all(tmp_path, given())
    assert events == ["alone", "looked up"]
