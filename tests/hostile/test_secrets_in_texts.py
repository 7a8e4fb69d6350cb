"""The password of a URL that stands in run.toml or in a line of a log is in no output."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import optuna
import pytest
from commandline import called

import gpudiag as gd
from gpudiag.export.tables import write_csv

SAMPLES = Path(__file__).resolve().parent.parent.parent / "data" / "samples"
SECRET = "0omPassw0rd"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    run.mkdir()
    for name in ("gpu.csv", "optuna.db"):
        shutil.copy(SAMPLES / "healthy" / name, run)
    (run / "run.toml").write_text(
        f'notes = ["see mysql://root:{SECRET}@h/db"]\n[settings]\n'
        f'command = "python tune.py --storage postgresql://me:{SECRET}@host/db?sslpassword={SECRET}"\n'
    )
    (run / "train.log").write_text(
        f"2026-03-01 10:00:00 CUDA out of memory, storage mysql://root:{SECRET}@h/db\n"
        f"2026-03-01 10:00:01 Trial 2 using GPU 3 redis://:{SECRET}@h\n"
    )
    (run / "tasks.csv").write_text(f"task,status,start,end\na,ok,1761645600,1761645601\nredis://:{SECRET}@h,x,1,2\n")
    return run


@pytest.mark.slow
def test_no_output_holds_it(folder: Path, tmp_path: Path) -> None:
    run = gd.load_run(folder, timezone="UTC")
    assert len(run.events) and run.info.settings.command == (
        "python tune.py --storage postgresql://me:***@host/db?sslpassword=***"
    )
    found = gd.diagnose(run)
    assert SECRET not in json.dumps(found.to_dict()) + found.to_markdown() + found._repr_html_()
    written = write_csv(found, tmp_path / "out")
    assert all(SECRET not in path.read_text() for path in written) and "events.csv" in {path.name for path in written}


@pytest.mark.slow
def test_no_name_holds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Of studies, parameters, GPUs and the run; those that differ by the password alone are still two."""
    urls = [f"redis://:{SECRET}{which}@h/0" for which in "ab"]
    for url in urls:
        study = optuna.create_study(storage=f"sqlite:///{tmp_path}/o.db", study_name=url)
        for value in (1.0, 2.0):
            trial = study.ask()
            trial.suggest_float(url, 0, 9)
            trial.suggest_categorical("url", [url])
            study.tell(trial, value)
    (tmp_path / "run.toml").write_text(f'name = "of {urls[0]}"\ntrials = "o.db"\n')
    run = gd.load_run(tmp_path, timezone="UTC")
    assert run.info.name == "of redis://:***@h/0"
    assert list(run.trials["study"].unique()) == ["redis://:***@h/0", "redis://:***@h/0 (2)"]
    assert set(run.trials["params.url"]) == {"redis://:***@h/0"} and len(run.trials) == 4
    found = gd.diagnose(run)
    assert SECRET not in json.dumps(found.to_dict()) + found.to_markdown() + found._repr_html_()
    assert all(SECRET not in path.read_text() for path in write_csv(found, tmp_path / "out"))
    for command in (("inspect", tmp_path / "o.db"), ("diagnose", tmp_path, "--study", f"x{urls[0]}")):
        for form in ("text", "json"):
            called(monkeypatch, *command, "--format", form)
            held = capsys.readouterr()
            assert SECRET not in held.out + held.err and held.out + held.err


@pytest.mark.parametrize("url", ["postgresql:me:{}@h/db", "postgresql//me:{}@h/db", "redis::{}@h", "mysql:/me:{}@h/db"])
def test_a_url_without_a_colon_or_slash(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = url.format(SECRET)
    for command in (("diagnose", given), ("inspect", given), ("diagnose", "--trials", given), ("compare", given, "x")):
        assert called(monkeypatch, *command) == 2
        held = capsys.readouterr()
        said = held.out + held.err
        assert SECRET not in said and url.format("***").replace("//", "/") in said.replace("//", "/")
