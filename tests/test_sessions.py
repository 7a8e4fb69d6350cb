"""Recordings that are months apart are not one run, and what has no date is not placed beside what has one."""

from __future__ import annotations

from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag._load.sessions import SessionsApart
from gpudiag.errors import InputError
from gpudiag.load import load_part
from gpudiag.measures.inputs import measure_inputs

HEAD = "timestamp, index, utilization.gpu [%]\n"
UNDATED = "# gpu     sm\n# Idx      %\n    0     30\n    0     31\n"


def log(folder: Path, name: str, day: str) -> Path:
    rows = "".join(f"{day} 10:00:{s:02d}.123, 0, {s} %\n" for s in range(5))
    (folder / name).write_text(HEAD + rows, encoding="utf-8")
    return folder / name


def test_recordings_months_apart_are_refused_with_what_each_holds(tmp_path: Path) -> None:
    paths = [log(tmp_path, name, day) for name, day in (("b.csv", "2025/06/09"), ("a.csv", "2025/01/05"))]
    with pytest.raises(InputError, match=r"2 recordings .* \(2025-01-05: a.csv; 2025-06-09: b.csv\)"):
        gd.load_run(tmp_path, timezone="UTC")
    with pytest.raises(InputError, match="not one run"):
        gd.load_run(paths, timezone="UTC")
    assert len(gd.load_run(paths[0], timezone="UTC").gpu) == 5


def test_a_session_names_each_input_by_its_path_in_the_folder(tmp_path: Path) -> None:
    """W&B's folder is an input itself, and so are the logs in it; in the folder its name means nothing."""
    folder = tmp_path / "wandb"
    held = folder / "run-20250105_100000-abcd0" / "files"
    held.mkdir(parents=True)
    (held / "wandb-metadata.json").write_text('{"startedAt": "2025-01-05T10:00:01Z", "gpu_count": 1}')
    for name, day in (("a.csv", "2025/01/05"), ("b.csv", "2025/06/09")):
        log(folder, name, day)
    with pytest.raises(SessionsApart) as caught:
        gd.load_run(folder, timezone="UTC")
    first, _ = caught.value.sessions
    assert first.files == ("a.csv", ".")
    run = load_part(folder, first.files, "UTC", since=first.since, before=first.before)
    assert len(run.gpu) == 5 and len(run.trials) == 1


def test_a_run_toml_that_names_them_says_that_they_are_one(tmp_path: Path) -> None:
    for name, day in (("a.csv", "2025/01/05"), ("b.csv", "2025/06/09")):
        log(tmp_path, name, day)
    (tmp_path / "run.toml").write_text('telemetry = ["a.csv", "b.csv"]\n')
    assert len(gd.load_run(tmp_path, timezone="UTC").gpu) == 10


def test_weeks_apart_are_one_run_and_so_is_a_chain_of_them(tmp_path: Path) -> None:
    for name, day in (("a.csv", "2025/01/05"), ("b.csv", "2025/02/01"), ("c.csv", "2025/03/01")):
        log(tmp_path, name, day)
    assert len(gd.load_run(tmp_path, timezone="UTC").gpu) == 15


PMON = (
    "# gpu        pid  type    sm   mem   enc   dec   command\n# Idx          #   C/G     %     %     %     %   name\n"
)
PMON += "    0       4711     C    30    10     -     -   python\n" * 2


@pytest.mark.parametrize(("name", "text"), [("dmon", UNDATED), ("pmon", PMON)])
def test_a_log_without_dates_beside_one_with_dates(name: str, text: str, tmp_path: Path) -> None:
    dated, undated = log(tmp_path, "a.csv", "2025/01/05"), tmp_path / f"{name}.txt"
    undated.write_text(text)
    with pytest.raises(InputError, match=rf"{name}.txt has no dates.*a.csv.*nvidia-smi {name} -o DT"):
        gd.load_run([dated, undated], timezone="UTC")
    run = gd.load_run(tmp_path, timezone="UTC")
    assert run.gpu["util_pct"].tolist() == [0, 1, 2, 3, 4] and not len(run.processes)
    unread = measure_inputs(run)
    assert unread.n_unread == 1 and f"nvidia-smi {name} -o DT" in unread.unread["error"].iloc[0]
    dated.unlink()
    alone = gd.load_run(tmp_path, timezone="UTC")
    assert len(alone.gpu) + len(alone.processes) == 2 and not alone.info.inputs[0].error


def test_a_clock_that_is_set_back_is_an_input_that_is_not_read_whole(tmp_path: Path) -> None:
    rows = [f"2026/01/05 10:{minute:02d}:00.000, 0, {minute} %" for minute in (*range(30), *range(20, 50))]
    (tmp_path / "gpu.csv").write_text("\n".join(["timestamp, index, utilization.gpu [%]", *rows, ""]))
    run = gd.load_run(tmp_path, timezone="UTC")
    unread = measure_inputs(run).unread["error"].tolist()
    assert (
        len(unread) == 1 and "from 2026-01-05T10:29:00 to 2026-01-05T10:20:00 UTC" in unread[0] and len(run.gpu) == 50
    )
