"""One GPU in a log that states no zone, read in a wrong one, beside a log that states its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gpudiag as gd
from gpudiag import load
from gpudiag.alignment import other_zone
from gpudiag.alignment.other_zone import (
    ALIKE,
    DOUBT,
    MOVED,
    NO_ZONE,
    STATED,
    UNCLEAR,
    InOneZone,
    in_one_zone,
    in_same_zone,
)
from gpudiag.readers._shape.merge_telemetry import merge
from gpudiag.readers.base import Telemetry, Trials
from gpudiag.schema import STUDIES, TABLES, TRIALS, conform
from gpudiag.timezones import parse_zone

may_be_one = other_zone._may_be_one
BASE = pd.Timestamp("2026-03-10 08:00:00", tz="UTC")


def utilization(n: int = 7200, seed: int = 0, noise: int = 0) -> np.ndarray:
    """Each second of a study's: trials of one to ten minutes at their own level, with pauses; other noise by seed."""
    levels, random = np.random.default_rng(seed), np.random.default_rng(100 + noise)
    parts: list[np.ndarray] = []
    while sum(map(len, parts)) < n:
        parts += [np.full(levels.integers(60, 600), levels.choice([30, 60, 90])), np.zeros(levels.integers(5, 60))]
    util = np.concatenate(parts)[:n]
    return np.where(util > 0, util + random.normal(0, 5, n), 0).clip(0, 100)


def log(seconds: np.ndarray, util: np.ndarray, hours: float, clock: str, gpu: str = "0", **known: str) -> Telemetry:
    """Samples at some seconds, by a clock that is so many hours ahead of UTC but was read as UTC."""
    time = (BASE + pd.to_timedelta(seconds + 3600 * hours, unit="s")).astype("datetime64[us, UTC]")
    seen = util[seconds.astype(int)]
    frame = pd.DataFrame({"time": time, "gpu": gpu, "util_pct": seen, "power_w": 60 + 3 * seen})
    gpus = pd.DataFrame({"gpu": [gpu], **{name: [value] for name, value in known.items()}})
    tables = {"gpu": conform(frame, TABLES["gpu"]), "gpus": conform(gpus, TABLES["gpus"])}
    return Telemetry(**tables, reader="wandb" if clock == "utc" else "smi", clock=clock)


DENSE, SPARSE = np.arange(0.3, 7198, 3), np.arange(0.0, 7198, 15)


def span_h(placed: InOneZone) -> tuple[float, float]:
    hours = (merge(placed.logs).gpu["time"] - BASE) / pd.Timedelta("1h")
    return round(float(hours.min()), 2), round(float(hours.max()), 2)


def told(placed: InOneZone, template: str) -> bool:
    start, end = template.split("{")[0], template.split("}")[-1][-20:]
    return any(note.startswith(start) and note.endswith(end) for note in placed.notes)


def cluster(hosts: int, first: int, **without: object) -> Telemetry:
    """Four GPUs of each host, all in the same slots."""
    rows = [
        {"gpu": f"n{host}/{at}", "uuid": f"GPU-{host}-{at}", "host": f"n{host}", "bus_id": f"00000000:{at}0:00.0"}
        for host in range(first, first + hosts)
        for at in range(4)
    ]
    return Telemetry(gpus=pd.DataFrame(rows).assign(**without))


def test_gpus_are_held_against_those_alone_that_they_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(other_zone, "_may_be_one", lambda *both: asked.append(both) or may_be_one(*both))
    assert list(other_zone._shared(cluster(50, 0), cluster(50, 49))) == [(f"n49/{at}", f"n49/{at}") for at in range(4)]
    assert len(asked) == 4
    assert not list(other_zone._shared(cluster(50, 0, uuid=None), cluster(50, 50, uuid=None)))
    assert len(asked) == 4


def test_the_gpus_that_two_logs_may_share_are_those_that_nothing_tells_apart() -> None:
    """Whatever of them is known, against each asked with each."""
    values = {
        "uuid": ["GPU-A", "gpu-a", "GPU-B", None],
        "host": ["n1", "N1", "n2", "", None],
        "bus_id": ["00000000:01:00.0", "0000:01:00.0", "00000000:02:00.0", None],
        "name": ["NVIDIA A100", "A100", "NVIDIA H100", None],
    }
    random = np.random.default_rng(0)
    for _ in range(40):
        both = [
            Telemetry(gpus=pd.DataFrame({"gpu": list("0123"), **{k: random.choice(v, 4) for k, v in values.items()}}))
            for _ in range(2)
        ]
        one, other = (log.gpus.to_dict("records") for log in both)
        each = [(row["gpu"], its["gpu"]) for row in one for its in other if may_be_one(row, its)]
        assert list(other_zone._shared(*both)) == each


@pytest.mark.parametrize("hours", [1, -7, 5.5, 5.75, 13])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_log_without_a_zone_goes_where_the_other_shows_it(hours: float, swapped: bool) -> None:
    util = utilization()
    dense, sparse = (log(DENSE, util, hours, "local"), log(SPARSE, util, 0, "utc"))
    if swapped:
        dense, sparse = log(DENSE, util, 0, "utc"), log(SPARSE, util, hours, "local")
    for parts in ([dense, sparse], [sparse, dense]):
        placed = in_one_zone(parts, ["smi.csv", "wandb.csv"])
        assert merge(placed.logs).gpus["gpu"].tolist() == ["0"] and span_h(placed) == (0, 2)
        assert placed.moved_us == -hours * 3600e6 and told(placed, MOVED)


def test_logs_that_agree_as_they_are_stay() -> None:
    util = utilization()
    placed = in_one_zone([log(DENSE, util, 0, "local"), log(SPARSE, util, 0, "utc")])
    assert not placed.moved_us and span_h(placed) == (0, 2) and not told(placed, MOVED) and not told(placed, DOUBT)


def test_work_that_repeats_every_quarter_of_an_hour_is_told_by_its_noise() -> None:
    quarter = np.tile(np.where(np.arange(900) < 200, 0, 80), 8)
    util = np.where(quarter > 0, quarter + np.random.default_rng(0).normal(0, 5, 7200), 0).clip(0, 100)
    placed = in_one_zone([log(DENSE, util, 1, "local"), log(SPARSE, util, 0, "utc")])
    assert span_h(placed) == (0, 2)
    assert in_one_zone([log(DENSE, quarter, 1, "local"), log(SPARSE, quarter, 0, "utc")]).moved_us == 0, (
        "without noise, open"
    )


@pytest.mark.parametrize("minutes", [15, 60])
def test_another_gpu_with_the_same_work_is_not_moved_but_the_doubt_is_told(minutes: int) -> None:
    """The same job begun a quarter of an hour later: its levels are the same, its noise is its own."""
    one, other = log(DENSE, utilization(noise=1), minutes / 60, "local"), log(SPARSE, utilization(), 0, "utc")
    placed = in_one_zone([one, other])
    assert not placed.moved_us and told(placed, DOUBT) and any(UNCLEAR in note for note in placed.notes)


@pytest.mark.slow
def test_other_work_is_neither_moved_nor_doubted() -> None:
    for hours in (0, 1, 5):
        placed = in_one_zone([log(DENSE, utilization(seed=1), hours, "local"), log(SPARSE, utilization(), 0, "utc")])
        assert not placed.moved_us and not told(placed, DOUBT) and not told(placed, MOVED)


def test_another_uuid_is_another_gpu() -> None:
    util = utilization()
    one, other = (log(DENSE, util, 1, "local", uuid="GPU-aa"), log(SPARSE, util, 0, "utc", uuid="GPU-bb"))
    assert in_one_zone([one, other]).moved_us == 0
    same = replace(other, gpus=other.gpus.assign(uuid="GPU-aa"))
    assert in_one_zone([one, same]).moved_us == -3600e6


def test_two_logs_without_a_zone_are_left_and_the_doubt_is_told() -> None:
    util = utilization()
    placed = in_one_zone([log(DENSE, util, 1, "local"), log(SPARSE, util, 0, "local")], ["a.csv", "b.csv"])
    assert not placed.moved_us and any(NO_ZONE in note for note in placed.notes)
    later = in_one_zone([log(DENSE, util, 3, "local"), log(SPARSE, util, 0, "local")], ["a.csv", "b.csv"])
    assert not any(NO_ZONE in note for note in later.notes), "a log that follows another one"


def test_the_other_logs_without_a_zone_go_along() -> None:
    util = utilization()
    events = conform(pd.DataFrame({"time": [BASE + pd.Timedelta("2h")], "kind": ["x"]}), TABLES["events"])
    parts = [log(DENSE, util, 1, "local"), Telemetry(events=events, clock="local"), log(SPARSE, util, 0, "utc")]
    placed = in_one_zone(parts, ["gpu.csv", "kernel.log", "wandb.csv"])
    assert placed.logs[1].events["time"].tolist() == [BASE + pd.Timedelta("1h")]
    moved, alike = placed.notes
    assert moved.startswith("The times of gpu.csv, which state no zone, were moved by -1 h: so the samples agree")
    assert alike == ALIKE.format(logs="kernel.log"), "no sample of it was compared"


def test_where_the_zone_is_given_nothing_is_moved_and_the_doubt_is_told() -> None:
    util = utilization()
    parts = [log(DENSE, util, 1, "local"), log(SPARSE, util, 0, "utc")]
    placed = in_one_zone(parts, ["gpu.csv", "wandb.csv"], given=True)
    assert not placed.moved_us and placed.logs == parts and told(placed, DOUBT) and not told(placed, MOVED)
    assert any("of gpu.csv agree with those of wandb.csv if they are moved by -1 h" in note for note in placed.notes)
    assert all(STATED in note for note in placed.notes)
    assert not in_one_zone([log(DENSE, util, 0, "local"), parts[1]], given=True).notes


def test_trials_without_a_zone_go_along() -> None:
    rows: dict[str, Any] = {"study": ["s", "t"], "trial": [0, 0], "state": "COMPLETE", "start": BASE, "end": BASE}
    given = Trials(
        notes=("Study 's': read as local time of UTC.", "Study 't': timestamps are UTC."),
        trials=conform(pd.DataFrame(rows), TRIALS),
        studies=conform(pd.DataFrame({"study": ["s", "t"], "clock": ["local", "utc"]}), STUDIES),
    )
    hour = pd.Timedelta("1h")
    moved = in_same_zone(given, -3_600_000_000)
    assert moved.trials["start"].tolist() == moved.trials["end"].tolist() == [BASE - hour, BASE]
    assert moved.notes[0].startswith(f"{given.notes[0]} These times were then moved by -1 h")
    assert moved.notes[1] == given.notes[1]
    assert moved.trials.dtypes.equals(given.trials.dtypes) and in_same_zone(given, 0) is given


def test_trials_whose_heartbeats_show_their_zone_stay() -> None:
    rows: dict[str, Any] = {"study": ["s", "t"], "trial": [0, 0], "state": "COMPLETE", "start": BASE, "end": BASE}
    seen = pd.Series([BASE, pd.NaT], dtype="datetime64[us, UTC]")
    notes = tuple(f"Study '{name}': timestamps read as local time of UTC." for name in "st")
    given = Trials(
        trials=conform(pd.DataFrame(rows).assign(last_seen=seen), TRIALS),
        studies=conform(pd.DataFrame({"study": ["s", "t"], "clock": "local"}), STUDIES),
        notes=notes,
    )
    moved = in_same_zone(given, -3_600_000_000)
    assert moved.trials["start"].tolist() == [BASE, BASE - pd.Timedelta("1h")]
    assert moved.trials["last_seen"].tolist()[0] == BASE and moved.notes[0] == notes[0] != moved.notes[1]
    assert in_same_zone(replace(given, trials=given.trials.assign(last_seen=BASE)), -3_600_000_000).notes == notes


@pytest.mark.slow
def test_nvidia_smi_in_local_time_beside_wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    util = utilization()
    header = "timestamp, index, name, uuid, utilization.gpu [%], power.draw [W]\n"
    rows = [(BASE + pd.Timedelta(seconds=s)).tz_convert("Europe/Berlin") for s in DENSE]
    (tmp_path / "gpu.csv").write_text(
        header
        + "".join(
            f"{at:%Y/%m/%d %H:%M:%S.%f}, 0, NVIDIA A100-SXM4-80GB, GPU-0abc0000-1111-2222-3333-444455556666, "
            f"{util[int(s)]:.0f} %, {60 + 3 * util[int(s)]:.2f} W\n"
            for at, s in zip(rows, DENSE, strict=True)
        )
    )
    known = {"_timestamp": SPARSE + BASE.timestamp(), "system.gpu.0.gpu": util[SPARSE.astype(int)].round()}
    pd.DataFrame({**known, "system.gpu.0.powerWatts": 60 + 3 * util[SPARSE.astype(int)]}).to_csv(tmp_path / "wandb.csv")
    start, end = (f"{(BASE + pd.Timedelta(minutes=at)).tz_convert('Europe/Berlin'):%F %T}" for at in (10, 60))
    head = "number,state,datetime_start,datetime_complete,value,params_lr"
    (tmp_path / "trials.csv").write_text(f"{head}\n0,COMPLETE,{start},{end},0.5,0.1\n")
    right, stated = (gd.load_run(tmp_path, timezone=zone) for zone in ("Europe/Berlin", "UTC"))
    monkeypatch.setattr(load, "parse_zone", lambda name: parse_zone(name or "UTC"))  # this machine's zone
    wrong = gd.load_run(tmp_path)
    pd.testing.assert_frame_equal(wrong.gpu, right.gpu)
    assert any("gpu.csv, which state no zone, were moved by -1 h" in note for note in wrong.info.notes)
    assert not any("moved" in note for note in right.info.notes)
    ends = [[(one.start, one.end) for one in run.info.inputs] for run in (wrong, right)]
    assert ends[0] == ends[1], "what was moved is described as it is now"
    assert wrong.trials["start"].tolist() == right.trials["start"].tolist() == [BASE + pd.Timedelta("10min")]
    assumed = [note for note in wrong.info.notes if "read as local time of UTC" in note]
    assert len(assumed) == 1 and "These times were then moved by -1 h" in assumed[0]
    assert any(STATED in note for note in stated.info.notes)
    assert stated.trials["start"].tolist() == [BASE + pd.Timedelta("70min")]
    first = stated.gpu["time"].min(), stated.gpu["time"].max()
    assert first[0] == BASE and first[1] > BASE + pd.Timedelta("2h50min"), "gpu.csv is where the zone puts it"
