"""``gpudiag fleet DATA_SET``: from the command line to the table, the report and back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from commandline import called
from made import Host, steady, written

from gpudiag.errors import ConfigError
from gpudiag.fleets.fleet import fleet, read_fleet

SACCT = """JobID|User|Account|State|Start|End|NodeList|AllocTRES
7|ada|ml|COMPLETED|2026-03-04T00:10:00|2026-03-04T01:00:00|n1|gres/gpu=2
7.batch||ml|COMPLETED|2026-03-04T00:10:00|2026-03-04T01:00:00|n1|gres/gpu=2
8|<b>bob</b>|vision|FAILED|2026-03-04T01:00:00|2026-03-04T01:30:00|n1|gres/gpu=1
9|bob|vision|CANCELLED by 1|None|Unknown|None assigned|
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    quiet = Host("n2", {"0": steady("n2", {"0": 3.0}, 1).gpus["0"]})
    written(tmp_path / "data", steady("n1", {"0": 80.0, "1": 5.0}), quiet)
    (tmp_path / "sacct.txt").write_text(SACCT, encoding="utf-8")
    return tmp_path / "data"


def test_jobs_are_runs_and_the_rest_is_accounted_for(data: Path, tmp_path: Path) -> None:
    table = fleet(data, tmp_path / "out", scheduler_jobs=tmp_path / "sacct.txt", timezone="UTC")
    assert table.total.gpu_s == pytest.approx(2 * 7230 + 3630) and table.total.n_runs == 2
    assert {one.name: (one.n_runs, round(one.gpu_s)) for one in table.by("user")} == {
        "ada": (1, 6000),
        "<b>bob</b>": (1, 0),
        "shared": (0, 3600),
        "unallocated": (0, 8490),
    }
    assert table.document.headline.sentences[1] == "2 of 3 GPUs never worked."
    again = read_fleet(tmp_path / "out")
    assert again.rows == table.rows and again.cluster == table.cluster
    frame = pd.read_parquet(tmp_path / "out" / "table")
    assert set(frame["status"]) == {"accounted", "shared", "unallocated"} and frame["gpu_s"].sum() == table.total.gpu_s


@pytest.mark.slow
def test_the_report_shows_the_map_and_names_what_was_assumed(data: Path, tmp_path: Path) -> None:
    table = fleet(data, tmp_path / "out", scheduler_jobs=tmp_path / "sacct.txt", timezone="UTC")
    page = table.save(tmp_path / "fleet.html").read_text(encoding="utf-8")
    assert "Every GPU over time" in page and "2 of 3 GPUs never worked" in page and "Mean utilization of GPUs" in page
    assert "read as those of UTC" in page and "<b>bob" not in page
    assert "not checked" in page and "No check found a fault" not in page
    assert table._draw("heat") is not None
    top = table.to_markdown().partition("<details>")[0]
    assert "The GPUs were partly used (35 % on average), and 2 of 3 never worked." in top
    assert "2 GPUs never worked, in 3 GPU-h." in top and "ada 33 %" in top
    held = json.loads(table.anonymous().to_json())
    text = json.dumps(held)
    assert not any(name in text for name in ("n1", "ada", "bob", "GPU-n", "sacct"))


@pytest.mark.slow
def test_runs_and_a_data_set_are_one_fleet(data: Path, tmp_path: Path) -> None:
    samples = Path(__file__).resolve().parents[3] / "data" / "samples"
    shutil.copytree(samples / "tiny-batch-laptop", tmp_path / "runs" / "p" / "tiny")
    table = fleet([tmp_path / "runs", data], tmp_path / "out", jobs=1, timezone="UTC")
    assert [(row.run, row.status) for row in table.rows] == [
        ("p/tiny", "diagnosed"),
        ("n1", "accounted"),
        ("n2", "accounted"),
    ]
    assert table.total.n_runs == 3 and "No check found" not in table.to_markdown()
    alone = fleet(tmp_path / "runs", tmp_path / "out", jobs=1, timezone="UTC")
    assert alone.cluster is None and read_fleet(tmp_path / "out").cluster is None


def test_hosts_over_days_are_not_drawn_from_rows_with_holes(tmp_path: Path) -> None:
    """A host at 100 % on the second of three days alone, which a job had: idle time lies on both sides of it."""
    seconds = [60.0 * at for at in range(3 * 1440)]
    written(tmp_path / "data", Host("n1", {"0": (seconds, [100.0 * (1440 <= at < 2880) for at in range(3 * 1440)])}))
    jobs = SACCT.splitlines()[0] + "\n7|ada|ml|COMPLETED|2026-03-05T00:00:00|2026-03-06T00:00:00|n1|gres/gpu=1\n"
    (tmp_path / "sacct.txt").write_text(jobs, encoding="utf-8")
    table = fleet(tmp_path / "data", tmp_path / "out", scheduler_jobs=tmp_path / "sacct.txt", timezone="UTC")
    assert table._draw("hosts") is None, "the map of GPUs says it"
    heat = table._drawn["heat"]
    assert heat is not None
    days = heat.T.groupby(heat.columns.date).mean().iloc[:, 0]
    assert [round(pct) for pct in days] == [0, 100, 0], "half a sampling period before midnight is no day"


def test_the_headline_has_the_denominator_of_the_page(tmp_path: Path) -> None:
    """An hour of samples, five of silence, an hour of samples, idle throughout: of seven hours two were observed."""
    seconds = [*range(0, 3600, 30), *range(6 * 3600, 7 * 3600, 30)]
    written(tmp_path / "data", Host("n1", {"0": ([float(one) for one in seconds], [2.0] * len(seconds))}))
    table = fleet(tmp_path / "data", tmp_path / "out", timezone="UTC")
    assert table.total.gpu_s == pytest.approx(7 * 3600, abs=60)
    first = table.document.headline.sentences[0]
    assert first.startswith("The telemetry spans 7 GPU-h, 71 % of it without samples, at 2 % mean utilization;")
    assert first.endswith("GPUs were idle for 29 % of it.")


def test_jobs_need_a_data_set(tmp_path: Path, data: Path) -> None:
    (tmp_path / "runs").mkdir()
    with pytest.raises(ConfigError, match="--partition"):
        fleet(tmp_path / "runs", tmp_path / "out", scheduler_jobs=tmp_path / "sacct.txt")


@pytest.mark.slow
def test_the_command_line(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs, out = tmp_path / "sacct.txt", tmp_path / "out"
    assert called(monkeypatch, "fleet", data, "-o", out, "--scheduler-jobs", jobs, "--by", "user") == 0
    said = capsys.readouterr()
    assert "The telemetry spans 5 GPU-h at" in said.out and "1 job never began" in said.err
    assert (out / "fleet.html").is_file() and (out / "cluster.json").is_file()
    assert called(monkeypatch, "fleet", data, "-o", out, "--scheduler-jobs", tmp_path / "none.txt") == 2


def test_gpu_time_of_failed_jobs_is_said_by_state(tmp_path: Path) -> None:
    """Two GPUs of a host for 2 h: job 1 failed after 30 min with both, job 2 ran for 1 h with both."""
    written(tmp_path / "data", steady("n1", {"0": 80.0, "1": 60.0}))
    lines = [
        SACCT.splitlines()[0],
        "1|ada|ml|FAILED|2026-03-04T00:00:00|2026-03-04T00:30:00|n1|gres/gpu=2",
        "2|ada|ml|COMPLETED|2026-03-04T00:30:00|2026-03-04T01:30:00|n1|gres/gpu=2",
        "3|bob|ml|CANCELLED by 7|2026-03-04T01:30:00|2026-03-04T01:45:00|n1|gres/gpu=2",
    ]
    (tmp_path / "sacct.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    table = fleet(tmp_path / "data", tmp_path / "out", scheduler_jobs=tmp_path / "sacct.txt", timezone="UTC")
    hours: dict[str, float] = {}
    for one in table.rows:
        hours[one.state] = hours.get(one.state, 0.0) + (one.gpu_s or 0.0) / 3600
    assert (hours["FAILED"], hours["COMPLETED"], hours["CANCELLED"]) == pytest.approx((1.0, 2.0, 0.5), abs=0.01)
    text = table.to_markdown()
    assert "1.5 GPU-h of 3.5 GPU-h of jobs went to jobs that did not complete" in text and "| CANCELLED |" in text
