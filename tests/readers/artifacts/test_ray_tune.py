"""Ray Tune folders: states, times on one clock, and pickled text that stays text."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from gpudiag.load import load_run
from gpudiag.readers._io.source import Source
from gpudiag.readers.artifacts import ray_tune
from gpudiag.readers.base import ReadOptions, Trials
from gpudiag.readers.identify import identify
from gpudiag.timezones import parse_zone

BEGIN_S = 1599737035  # 2020-09-10 11:23:55 UTC, 19:23:55 in Taipei


def trial(folder: Path, number: int, results: list[dict], error: str = "", made: str = "19-23-55") -> Path:
    path = folder / f"Train_{number}_{number}_x={number}_2020-09-10_{made}abc{number}"
    path.mkdir(parents=True)
    (path / "params.json").write_text(json.dumps({"x": number / 2, "kind": "a"}))
    (path / "result.json").write_text("".join(json.dumps(result) + "\n" for result in results))
    if error:
        (path / "error.txt").write_text(error)
    return path


def result(step: int, *, done: bool = False, took: float = 100.0) -> dict:
    at = BEGIN_S + int(took * step)
    date = pd.Timestamp(at, unit="s", tz="UTC").tz_convert("Asia/Taipei").strftime("%Y-%m-%d_%H-%M-%S")
    return {
        "accuracy": step / 10, "other": 7.5, "is_bad": False, "done": done, "training_iteration": step, "date": date,
        "timestamp": at, "time_total_s": took * step, "pid": 41, "hostname": "node", "experiment_tag": f"tag{step}",
    }  # fmt: skip


def state(folder: Path, *trials: dict, ray2: bool = False) -> None:
    pickled = {"_type": "CLOUDPICKLE_FALLBACK", "value": "80049527000000000000008c05706f7369789404"}
    listed = [{"runner": pickled, **trial} for trial in trials]
    content = {"trial_data": [[json.dumps(t), "{}"] for t in listed]} if ray2 else {"checkpoints": listed}
    (folder / "experiment_state-2020-09-10_19-23-55.json").write_text(json.dumps(content))


def read(folder: Path, zone: str = "Europe/Paris") -> Trials:
    return ray_tune.read(Source.open(folder), ReadOptions(parse_zone(zone)))


@pytest.mark.parametrize("ray2", [False, True])
def test_states_times_and_values(tmp_path: Path, ray2: bool) -> None:
    folder = tmp_path / "exp"
    full = trial(folder, 1, [result(1), result(2, done=True)])
    early = trial(folder, 2, [result(1, done=True)])
    trial(folder, 3, [result(1)], error="Failure # 1 (occurred at 2020-09-10_19-40-00)\nTraceback\nKeyError: 'y'\n")
    trial(folder, 4, [], made="19-50-00")
    stop = {"training_iteration": 2}
    state(
        folder,
        {"logdir": f"/home/u/{full.name}", "status": "TERMINATED", "start_time": BEGIN_S, "stopping_criterion": stop},
        {"logdir": f"/home/u/{early.name}", "status": "TERMINATED", "stopping_criterion": stop},
        ray2=ray2,
    )
    out = read(folder)
    trials = out.trials
    assert trials["state"].tolist() == ["COMPLETE", "PRUNED", "FAIL", "RUNNING"]
    assert trials["start"].tolist() == [
        *[pd.Timestamp(BEGIN_S, unit="s", tz="UTC")] * 3,
        pd.Timestamp("2020-09-10 11:50", tz="UTC"),
    ]
    assert (trials["end"][0] - trials["start"][0]).total_seconds() == 200
    assert trials["end"][2] == pd.Timestamp("2020-09-10 11:40", tz="UTC"), "local timestamps by the results' own offset"
    assert trials["value"].tolist()[:2] == [0.2, 0.1] and trials["value"][2:].isna().all()
    assert trials["params.x"].tolist() == [0.5, 1.0, 1.5, 2.0]
    assert trials["detail"][2] == "KeyError: 'y'"
    assert out.reports[["trial", "step", "value"]].to_numpy().tolist() == [
        [0, 1, 0.1], [0, 2, 0.2], [1, 1, 0.1], [2, 1, 0.1],
    ]  # fmt: skip
    assert out.studies["clock"].tolist() == ["utc"]
    assert any("+8 h" in note for note in out.notes) and any("'accuracy'" in note for note in out.notes)


def test_without_results_timestamps_are_local_time(tmp_path: Path) -> None:
    trial(tmp_path / "exp", 1, [], error="Failure # 1 (occurred at 2020-09-10_19-40-00)\nboom")
    out = read(tmp_path / "exp", "Asia/Tokyo")
    assert out.trials["start"][0] == pd.Timestamp("2020-09-10 10:23:55", tz="UTC")
    assert out.studies["clock"].tolist() == ["local"]


def test_torn_results_and_progress_csv(tmp_path: Path) -> None:
    one = trial(tmp_path / "exp", 1, [result(1), result(2)])
    (one / "result.json").write_text((one / "result.json").read_text()[:-30])
    two = trial(tmp_path / "exp", 2, [])
    rows = [result(1), result(2, done=True)]
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    (two / "progress.csv").write_text("\n".join(lines) + "\n")
    out = read(tmp_path / "exp")
    assert out.trials["state"].tolist() == ["RUNNING", "COMPLETE"]
    assert [(problem.kind, problem.line) for problem in out.problems] == [("line of result.json that is no JSON", 2)]
    assert out.reports["step"].tolist() == [1, 1, 2]


def test_it_is_found_in_a_folder_and_taken_whole(tmp_path: Path) -> None:
    trial(tmp_path / "results" / "exp", 1, [result(1, done=True)])
    run = load_run(tmp_path, timezone="UTC")
    assert [record.reader for record in run.info.inputs] == ["ray-tune"] and len(run.trials) == 1


def test_an_ordinary_folder_is_none(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "params.json").write_text("{}")
    assert identify(Source.open(tmp_path)) is None


@pytest.mark.corpus
def test_real_experiments(corpus: Path) -> None:
    folders = sorted((corpus / "artifacts" / "ray_tune").glob("*/results/*"))
    outs = [read(folder) for folder in folders]
    errors = [p for folder in folders for p in folder.glob("*/error.txt") if p.read_text().strip()]
    results = sum(len(p.read_text().splitlines()) for folder in folders for p in folder.glob("*/result.json"))
    assert sum(len(out.trials) for out in outs) == 17
    assert sum((out.trials["state"] == "FAIL").sum() for out in outs) == len(errors)
    assert sum(len(out.reports) for out in outs) == results
    assert all((out.trials["end"] >= out.trials["start"]).loc[out.trials["end"].notna()].all() for out in outs)


@pytest.mark.parametrize(
    ("made", "beside", "start"),
    [
        ("2020-09-20", True, "2020-09-20 11:50"),  # as the experiment beside it, ten days apart, shows
        ("2020-12-10", True, "2020-12-10 18:50"),  # too far from it: the zone that was given
        ("2020-09-20", False, "2020-09-20 17:50"),
    ],
)
def test_an_experiment_without_results_has_the_offset_of_those_beside_it(
    tmp_path: Path, made: str, beside: bool, start: str
) -> None:
    if beside:
        trial(tmp_path / "told", 1, [result(1), result(2, done=True)])
    killed = trial(tmp_path / "killed", 1, [], made="19-50-00")
    killed.rename(killed.with_name(killed.name.replace("2020-09-10", made)))
    out = read(tmp_path / "killed")
    assert out.trials["start"].tolist() == [pd.Timestamp(start, tz="UTC")]
    assert any("beside it" in note for note in out.notes) is (start.endswith("11:50"))


@pytest.mark.parametrize("given", ["exp", ""])
def test_telemetry_within_the_folder_of_results_is_read(tmp_path: Path, given: str) -> None:
    """A recording that somebody puts there is no file of a trial, and neither is it passed over in silence."""
    folder = tmp_path / "exp"
    trial(folder, 1, [result(1), result(2, done=True)])
    rows = [f"{pd.Timestamp(BEGIN_S + s, unit='s'):%Y/%m/%d %H:%M:%S.000}, 0, {s % 100} %" for s in range(0, 200, 5)]
    (folder / "gpu.csv").write_text("\n".join(["timestamp, index, utilization.gpu [%]", *rows]) + "\n")
    run = load_run(tmp_path / given, timezone="UTC")
    assert len(run.trials) == 1 and len(run.gpu) == len(rows)
    assert sorted(one.kind for one in run.info.inputs) == ["artifacts", "telemetry"]
