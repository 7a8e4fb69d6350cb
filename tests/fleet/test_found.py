"""Which folders are runs, what they are called, and when one counts as changed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from gpudiag.errors import ConfigError, InputNotFound
from gpudiag.fleets.found import runs_below


@pytest.fixture
def tree(samples: Path, tmp_path: Path) -> Path:
    top = tmp_path / "runs"
    for place in ("alpha/one", "alpha/two", "beta/host=n7/three"):
        (top / place).mkdir(parents=True)
        shutil.copy(samples / "healthy" / "gpu.csv", top / place)
    (top / "notes").mkdir()
    (top / "notes" / "read.me").write_text("nothing here", encoding="utf-8")
    (top / ".cache" / "x").mkdir(parents=True)
    shutil.copy(samples / "healthy" / "gpu.csv", top / ".cache" / "x")
    return top


def test_each_folder_with_data_is_a_run_with_a_name_a_project_and_a_host(tree: Path) -> None:
    found = runs_below([tree]).runs
    assert [run.name for run in found] == ["alpha/one", "alpha/two", "beta/host=n7/three"]
    assert [run.project for run in found] == ["alpha", "alpha", "beta"]
    assert [run.host for run in found] == ["", "", "n7"]
    assert all(run.user and run.fingerprint for run in found)


def test_folders_with_files_and_no_run_are_named_unless_runs_lie_below(tree: Path, samples: Path) -> None:
    (tree / "alpha" / "README").write_text("runs lie below", encoding="utf-8")
    (tree / "made").mkdir()
    (tree / "made" / "report.html").write_text('<meta name="generator" content="gpudiag 0.1">', encoding="utf-8")
    (tree / "empty").mkdir()
    assert runs_below([tree]).unread == ("notes",)


def test_data_beside_folders_with_a_run_toml_each_is_named_and_makes_no_run_of_them(tree: Path) -> None:
    for name in ("one", "two"):
        (tree / "alpha" / name / "run.toml").touch()
    shutil.copy(tree / "alpha" / "one" / "gpu.csv", tree / "alpha" / "stray.csv")
    (tree / "alpha" / "README").write_text("runs lie below", encoding="utf-8")
    found = runs_below([tree])
    assert [run.name for run in found.runs] == ["alpha/one", "alpha/two", "beta/host=n7/three"]
    assert found.unread == ("alpha/stray.csv", "notes")


def test_data_above_folders_of_data_are_one_run_with_them(tree: Path) -> None:
    shutil.copy(tree / "alpha" / "one" / "gpu.csv", tree / "alpha" / "hosts.csv")
    assert [run.name for run in runs_below([tree]).runs] == ["alpha", "beta/host=n7/three"]


def test_a_run_that_is_met_twice_is_found_once(tree: Path) -> None:
    (tree / "again").symlink_to(tree / "alpha")
    (tree / "alpha" / "loop").symlink_to(tree)
    assert len(runs_below([tree, tree / "alpha" / "one", f"{tree}/alpha/../alpha/two"]).runs) == 3


def test_names_of_two_trees_stay_apart(tree: Path, tmp_path: Path) -> None:
    shutil.copytree(tree / "alpha", tmp_path / "other" / "alpha")
    names = [run.name for run in runs_below([tree, tmp_path / "other"]).runs]
    assert names[-2:] == ["other/alpha/one", "other/alpha/two"] and len(set(names)) == 5


def test_the_output_is_no_run(tree: Path) -> None:
    shutil.copytree(tree / "alpha", tree / "out" / "alpha")
    assert len(runs_below([tree], tree / "out").runs) == 3 and len(runs_below([tree]).runs) == 5


def test_a_file_changes_the_fingerprint(tree: Path) -> None:
    before = {run.name: run.fingerprint for run in runs_below([tree]).runs}
    log = tree / "alpha" / "one" / "gpu.csv"
    os.utime(log, ns=(1, 1))
    after = {run.name: run.fingerprint for run in runs_below([tree]).runs}
    assert [name for name in before if before[name] != after[name]] == ["alpha/one"]


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputNotFound, match="no such file or folder"):
        runs_below([tmp_path / "none"])
    with pytest.raises(ConfigError, match="at least one"):
        runs_below([])
