"""What lies in one place and is several runs keeps what run.toml says of the place."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import optuna
import pytest
from optuna.trial import FrozenTrial, TrialState
from test_counted import logged

from gpudiag.fleets.fleet import fleet

pytestmark = pytest.mark.usefixtures("warm")

TOML = """user = "ann"
project = "moon"
timezone = "Asia/Taipei"
[settings]
price_per_gpu_h = 2.0
currency = "EUR"
commit = "abc1234"
"""


@pytest.mark.slow
def test_sessions_months_apart_have_the_settings_of_their_run_toml(tmp_path: Path) -> None:
    """Noon in Taipei is 04:00 UTC; 400 samples, one every 3 s, at 2 EUR an hour."""
    folder = tmp_path / "runs" / "a"
    for name, day in (("one.csv", "2026-01-05"), ("two.csv", "2026-04-05")):
        logged(folder / name, f"{day} 12:00:00", 400, seed=len(day))
    (folder / "run.toml").write_text(TOML, encoding="utf-8")
    table = fleet(tmp_path / "runs", tmp_path / "out", jobs=1, timezone="UTC")
    assert [(one.user, one.project, one.commit, (one.start or "")[:13]) for one in table.rows] == [
        ("ann", "moon", "abc1234", "2026-01-05T04"),
        ("ann", "moon", "abc1234", "2026-04-05T04"),
    ]
    assert table.total.cost == {"EUR": pytest.approx(2 * table.total.gpu_s / 3600)}
    assert table.total.gpu_s == pytest.approx(2 * 1200, rel=0.02)


@pytest.mark.slow
def test_sessions_of_a_folder_that_is_an_input_itself(tmp_path: Path) -> None:
    """W&B's folder is read as its runs, and the files in it as telemetry, months apart."""
    folder = tmp_path / "wandb"
    for at, day in enumerate(("2026-01-05", "2026-04-05")):
        run = folder / f"run-{day.replace('-', '')}_120000-abcd{at}"
        logged(run / "gpu.csv", f"{day} 12:00:00", 400, seed=at)
        (run / "files").mkdir()
        (run / "files" / "wandb-metadata.json").write_text(f'{{"startedAt": "{day}T12:00:01Z", "gpu_count": 1}}')
    table = fleet(tmp_path, tmp_path / "out", jobs=1, timezone="UTC")
    assert [(one.status, (one.start or "")[:10]) for one in table.rows] == [
        ("diagnosed", "2026-01-05"),
        ("diagnosed", "2026-04-05"),
    ]


@pytest.mark.slow
def test_studies_at_the_top_have_their_folder_as_project(tmp_path: Path) -> None:
    (tmp_path / "vision").mkdir()
    storage = f"sqlite:///{tmp_path}/vision/optuna.db"
    for name in "ab":
        study = optuna.create_study(storage=storage, study_name=name)
        study.add_trial(optuna.trial.create_trial(value=1.0))
    for at, given in enumerate(("vision", "vision/optuna.db", ".")):
        table = fleet(tmp_path / given, tmp_path / f"out{at}", jobs=1, timezone="UTC")
        assert {one.project for one in table.rows} == {"vision"}, given


@pytest.mark.slow
def test_a_run_with_a_log_alone_has_the_week_of_the_log(tmp_path: Path) -> None:
    (tmp_path / "runs" / "a").mkdir(parents=True)
    lines = [f"2026-03-0{day} 10:00:00,000 INFO epoch {day}/9 loss 0.{day} time 60.0s" for day in (3, 4, 5)]
    (tmp_path / "runs" / "a" / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (row,) = fleet(tmp_path / "runs", tmp_path / "out", jobs=1, timezone="UTC").rows
    assert row.status == "diagnosed" and row.n_trials is None
    assert (row.start or "")[:10] == "2026-03-03" and (row.end or "")[:10] == "2026-03-05"


@pytest.mark.slow
def test_sessions_months_apart_have_the_trials_that_began_in_them(tmp_path: Path) -> None:
    """A study beside two logs: 2 trials in January, one of them before the log began, and 1 in April."""
    folder = tmp_path / "runs" / "a"
    for name, day in (("one.csv", "2026-01-05"), ("two.csv", "2026-04-05")):
        logged(folder / name, f"{day} 12:00:00", 400, seed=len(name))
    study = optuna.create_study(storage=f"sqlite:///{folder}/optuna.db", study_name="s")
    for number, begin in enumerate(("2026-01-05 11:59", "2026-01-05 12:05", "2026-04-05 12:01")):
        start = datetime.fromisoformat(begin)
        study.add_trial(
            FrozenTrial(
                number=number, trial_id=number, state=TrialState.COMPLETE, value=1.0, datetime_start=start,
                datetime_complete=start + timedelta(minutes=4), params={}, distributions={}, user_attrs={},
                system_attrs={}, intermediate_values={},
            )
        )  # fmt: skip
    table = fleet(tmp_path / "runs", tmp_path / "out", jobs=1, timezone="UTC")
    assert [(one.run, (one.start or "")[:7], one.n_trials) for one in table.rows] == [
        ("a::2026-01-05", "2026-01", 2),
        ("a::2026-04-05", "2026-04", 1),
    ]
    assert table.total.gpu_s == pytest.approx(600 + 240, rel=0.02), "from the first trial to the last"
