"""Studies that an old Optuna wrote itself, in a venv of its own, against what that Optuna reads from them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gpudiag.readers.trials import read_trials
from gpudiag.timezones import parse_zone

pytestmark = [pytest.mark.slow, pytest.mark.server]

SCRIPT = Path(__file__).with_name("old_optuna_study.py")
ZONE = "Asia/Taipei"  # no summer time
# Schemas v2.6.0.a and v3.0.0.d. Both know SQLAlchemy 1 and numpy 1 only.
VERSIONS = ("2.10.1", "3.1.1")
BESIDE = ("sqlalchemy<1.5", "numpy<2", "pandas<3", "psycopg2-binary", "pymysql")


@pytest.fixture(scope="module")
def python_with(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The interpreter of one venv, with the version asked for installed into it."""
    folder = tmp_path_factory.mktemp("old")
    plain = {name: value for name, value in os.environ.items() if name != "PIP_CONSTRAINT"}

    @cache
    def install(version: str) -> Path:
        python = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--retries", "1", "--prefer-binary"]
        done = subprocess.run([*pip, f"optuna=={version}", *BESIDE], env=plain, capture_output=True, text=True)
        if done.returncode:
            said = f"Optuna {version} cannot be installed here: {done.stderr.strip().splitlines()[-1:]}"
            if os.environ.get("GPUDIAG_REQUIRE_SERVERS") == "1":
                pytest.fail(said)
            pytest.skip(said)
        return python

    return install


@pytest.mark.parametrize("version", VERSIONS)
def test_what_an_old_optuna_wrote_reads_as_it_reads_it(
    version: str, python_with: Callable[[str], Path], fresh_server_urls: tuple[str, str], tmp_path: Path
) -> None:
    python = python_with(version)
    postgres, mysql = fresh_server_urls
    urls = {
        "sqlite": f"sqlite:///{tmp_path / 'o.db'}",
        "postgres": postgres.replace("psycopg:", "psycopg2:"),
        "mysql": mysql,
    }
    for name, url in urls.items():
        frame, reports = tmp_path / f"{name}.csv", tmp_path / f"{name}.json"
        clock = os.environ | {"TZ": ZONE}
        subprocess.run([str(python), str(SCRIPT), url, str(frame), str(reports)], env=clock, check=True)
        out = read_trials(url.replace("psycopg2:", "psycopg:"), study="old", timezone=ZONE)
        assert out.problems == ()
        assert out.studies[["directions", "clock"]].to_numpy().tolist() == [["MAXIMIZE", "local"]]
        assert any(f"Optuna {version} created the storage" in note for note in out.notes)
        same(out.trials, pd.read_csv(frame, keep_default_na=False, dtype=str))
        told = json.loads(reports.read_text())
        assert out.reports[["trial", "step", "value"]].to_numpy().tolist() == sorted(told)
        assert np.isinf(out.reports["value"]).sum() == (name != "mysql")


def same(ours: pd.DataFrame, theirs: pd.DataFrame) -> None:
    """Every cell of the old Optuna's own frame, floats to the last bit."""
    assert set(theirs["state"]) == {"COMPLETE", "PRUNED", "FAIL"}
    assert ours["trial"].tolist() == theirs["number"].astype(int).tolist()
    assert ours["state"].tolist() == theirs["state"].tolist()
    for column, timestamp in (("start", "datetime_start"), ("end", "datetime_complete")):
        expected = (
            pd.to_datetime(theirs[timestamp], format="ISO8601").dt.tz_localize(parse_zone(ZONE)).dt.tz_convert("UTC")
        )
        assert (ours[column] == expected).all()
    for name in ("value", "params_lr", "params_depth", "params_momentum", "user_attrs_seconds"):
        numbers = ours[name.replace("_", ".", 1) if name != "user_attrs_seconds" else "user_attrs.seconds"]
        expected = [float(cell) if cell else np.nan for cell in theirs[name]]
        np.testing.assert_array_equal(numbers.to_numpy(dtype=float), expected)
    kinds = ["" if kind is None else str(kind) for kind in ours["params.optimizer"]]
    assert kinds == theirs["params_optimizer"].tolist()
