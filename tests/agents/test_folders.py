"""Nothing outside of the folders served is read: whatever path is given, wherever a link or a run.toml leads."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gpudiag.agents.folders import Folders
from gpudiag.agents.found import found_runs
from gpudiag.errors import ConfigError, GpudiagError, InputError, InputNotFound


@pytest.fixture
def place(samples: Path, tmp_path: Path) -> Path:
    """``served/run`` may be read; ``other/run`` and ``other/secret.csv`` may not."""
    for name in ("served", "other"):
        shutil.copytree(samples / "tiny-batch-laptop", tmp_path / name / "run")
        for path in (tmp_path / name / "run").iterdir():
            if path.name == "truth.json":
                path.unlink()
    shutil.copy(samples / "tiny-batch-laptop" / "gpu.csv", tmp_path / "other" / "secret.csv")
    return tmp_path


@pytest.fixture
def folders(place: Path) -> Folders:
    return Folders.of([place / "served"])


def refused(folders: Folders, run: Path) -> str:
    with pytest.raises(ConfigError) as raised:
        folders.check(run)
    return str(raised.value)


def test_a_run_within_is_found_by_its_path_and_by_its_name(place: Path, folders: Folders) -> None:
    assert folders.find(str(place / "served" / "run")) == place / "served" / "run"
    assert folders.find("run") == place / "served" / "run"
    assert folders.find("run/../run") == place / "served" / "run" / ".." / "run"
    folders.check(folders.find("run"))


@pytest.mark.parametrize("name", ["../other/run", "run/../../other/run", "/etc", "/", "..", "/no/such/place", "~/x"])
def test_a_path_outside_is_refused_whether_or_not_something_is_there(folders: Folders, name: str) -> None:
    if name.startswith("~"):
        with pytest.raises(InputNotFound, match="nothing is there"):  # no shell: a folder of that name
            folders.find(name)
        return
    with pytest.raises(ConfigError, match="lies outside of"):
        folders.find(name)


def test_a_sibling_whose_name_begins_alike_is_outside(place: Path, folders: Folders) -> None:
    shutil.copytree(place / "other", place / "served-not")
    with pytest.raises(ConfigError, match="lies outside"):
        folders.find(str(place / "served-not" / "run"))


@pytest.mark.parametrize(
    "name", ["postgresql://me:hunter2@db/x", "postgresql:/me:hunter2@db/x", "sqlite:////etc/passwd", "s3://bucket/run"]
)
def test_a_storage_url_is_refused_and_its_password_is_not_said(folders: Folders, name: str) -> None:
    with pytest.raises(ConfigError, match="is a storage URL") as raised:
        folders.find(name)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("name", ["", "  ", "run\0", "x" * 5000])
def test_what_is_no_path_is_an_error_of_gpudiag(folders: Folders, name: str) -> None:
    with pytest.raises(GpudiagError):
        folders.find(name)


def test_a_run_that_is_a_link_out_is_refused(place: Path, folders: Folders) -> None:
    (place / "served" / "linked").symlink_to(place / "other" / "run")
    with pytest.raises(ConfigError, match="lies outside"):
        folders.find("linked")


@pytest.mark.parametrize("where", ["more.csv", "deep/er/more.csv", ".hidden/more.csv", "folder"])
def test_a_link_out_of_a_run_is_refused_however_deep(place: Path, folders: Folders, where: str) -> None:
    run = place / "served" / "run"
    (run / "run.toml").unlink(missing_ok=True)
    folders.check(run)
    link = run / where
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(place / "other" / ("run" if where == "folder" else "secret.csv"))
    assert f"{where} leads out of" in refused(folders, run)


def test_a_link_to_a_folder_within_is_followed_to_a_link_out(place: Path, folders: Folders) -> None:
    run = place / "served" / "run"
    (run / "run.toml").unlink(missing_ok=True)
    (place / "served" / "shared").mkdir()
    (run / "shared").symlink_to(place / "served" / "shared")
    folders.check(run)
    (place / "served" / "shared" / "more.csv").symlink_to(place / "other" / "secret.csv")
    assert "leads out of" in refused(folders, run)


def test_links_that_go_in_circles_end(place: Path, folders: Folders) -> None:
    run = place / "served" / "run"
    (run / "run.toml").unlink(missing_ok=True)
    (run / "again").symlink_to(run)
    (run / "itself").symlink_to(run / "itself")
    folders.check(run)


def test_an_environment_in_a_run_folder_does_not_forbid_it(place: Path, folders: Folders) -> None:
    run = place / "served" / "run"
    (run / "run.toml").unlink(missing_ok=True)
    (run / ".venv" / "bin").mkdir(parents=True)
    (run / ".venv" / "bin" / "python").symlink_to("/usr/bin/env")
    folders.check(run)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('telemetry = ["../../other/secret.csv"]', "leads out of"),
        ('telemetry = "{other}/secret.csv"', "leads out of"),
        ('artifacts = ["link.csv"]', "leads out of"),
        ('artifacts = ["linked"]', "leads out of"),
        ('trials = "sqlite:///../../other/x.db"', "leads out of"),
        ('trials = "sqlite:////etc/x.db"', "leads out of"),
        ('trials = "postgresql://me:hunter2@db/x"', "names the storage"),
        ('trials = "redis://:hunter2@host/0"', "names the storage"),
        ('telemetry = ["s3://bucket/gpu.csv"]', "names the storage"),
        ('rule_modules = "idlelib.idle"', "does not import"),
    ],
)
def test_a_run_toml_cannot_name_what_lies_elsewhere(place: Path, folders: Folders, line: str, said: str) -> None:
    run = place / "served" / "run"
    (run / "link.csv").symlink_to(place / "other" / "secret.csv")
    (run / "linked").symlink_to(place / "other" / "run")
    (run / "run.toml").write_text(line.format(other=place / "other"))
    message = refused(folders, run)
    assert said in message
    assert "hunter2" not in message
    assert said in refused(folders, run / "run.toml")


def test_a_run_toml_that_names_files_of_the_run_is_read(place: Path, folders: Folders) -> None:
    run = place / "served" / "run"
    (run / "run.toml").write_text('telemetry = "gpu.csv"\ntrials = "sqlite:///optuna.db"')
    folders.check(run)
    folders.check(run / "run.toml")


def test_a_run_toml_that_is_a_link_out_is_not_read(place: Path, folders: Folders) -> None:
    run = place / "served" / "run"
    (run / "run.toml").unlink(missing_ok=True)
    (place / "other" / "run.toml").write_text("secret = 'hunter2'")
    (run / "run.toml").symlink_to(place / "other" / "run.toml")
    message = refused(folders, run)
    assert "leads out of" in message
    assert "hunter2" not in message


def test_a_list_of_known_findings_that_is_a_link_out_is_not_read(place: Path, folders: Folders) -> None:
    run = place / "served" / "run"
    (run / "run.toml").write_text('telemetry = "gpu.csv"')
    (run / "gpudiag.toml").symlink_to(place / "other" / "gpudiag.toml")
    assert "gpudiag.toml leads out of" in refused(folders, run)


def test_files_beside_a_single_file_are_looked_at_too(place: Path, folders: Folders) -> None:
    file = place / "served" / "run" / "gpu.csv"
    folders.check(file)
    (file.parent / "hparams.yaml").symlink_to(place / "other" / "hparams.yaml")
    assert "hparams.yaml leads out of" in refused(folders, file)


def test_a_second_folder_makes_a_link_to_it_legal(place: Path) -> None:
    run = place / "served" / "run"
    (run / "more.csv").symlink_to(place / "other" / "secret.csv")
    (run / "run.toml").write_text('telemetry = ["gpu.csv", "more.csv"]')
    Folders.of([place / "served", place / "other"]).check(run)
    with pytest.raises(ConfigError, match="start gpudiag mcp with that folder as well"):
        Folders.of([place / "served"]).check(run)


def test_too_many_files_are_refused(place: Path, folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpudiag._load.folder.MAX_FILES", 3)
    run = place / "served" / "run"
    (run / "run.toml").unlink(missing_ok=True)
    for n in range(4):
        (run / f"{n}.txt").touch()
    with pytest.raises(InputError, match="more than 3 files"):
        folders.check(run)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "no folder given"),
        (["no-such-folder"], "no such folder"),
        (["file.csv"], "is a file"),
        (["postgresql://me:hunter2@db/x"], "is a storage URL"),
    ],
)
def test_what_is_served_is_a_folder(
    given: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file.csv").touch()
    with pytest.raises(GpudiagError, match=said) as raised:
        Folders.of(given)
    assert "hunter2" not in str(raised.value)


def test_runs_are_found_without_following_links(place: Path, folders: Folders) -> None:
    (place / "served" / "linked").symlink_to(place / "other")
    (place / "served" / "group").mkdir()
    shutil.copytree(place / "other" / "run", place / "served" / "group" / "second")
    (place / "served" / "group" / "empty").mkdir()
    found = [one.path.relative_to(place).as_posix() for one in found_runs(folders)]
    assert sorted(found) == ["served/group/second", "served/run"]
    below = found_runs(folders, place / "served" / "group")
    assert [one.path.name for one in below] == ["second"]


def test_a_folder_with_a_link_out_is_not_told_by_what_the_link_leads_to(place: Path, folders: Folders) -> None:
    odd = place / "served" / "odd"
    odd.mkdir()
    (odd / "gpu.csv").symlink_to(place / "other" / "secret.csv")
    assert [one.path.name for one in found_runs(folders)] == ["run"]
