"""The password of a URL that stands in run.toml or in a line of a log is in no output."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

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


def test_no_output_holds_it(folder: Path, tmp_path: Path) -> None:
    run = gd.load_run(folder, timezone="UTC")
    assert len(run.events) and run.info.settings.command == (
        "python tune.py --storage postgresql://me:***@host/db?sslpassword=***"
    )
    found = gd.diagnose(run)
    assert SECRET not in json.dumps(found.to_dict()) + found.to_markdown() + found._repr_html_()
    written = write_csv(found, tmp_path / "out")
    assert all(SECRET not in path.read_text() for path in written) and "events.csv" in {path.name for path in written}
