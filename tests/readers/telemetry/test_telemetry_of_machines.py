"""GPUs of one index in several logs that name none by uuid: of one machine recorded twice, or of two machines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gpudiag._load import inspection
from gpudiag._load.inspection import inspect
from gpudiag.readers._shape.log_names import machines, shortened
from gpudiag.readers._shape.merge_telemetry import merge
from gpudiag.readers.base import Telemetry
from gpudiag.schema import TABLES, conform

START = pd.Timestamp("2026-03-02 09:00", tz="UTC")
LONG_S = 600.0
STEP_S = 2.0
UNSURE = "by number alone"


def work(
    seed: int, step_s: float = 2.0, duty: float = 0.7, warmer_c: float = 0.0, held_mib: float = 61_000.0
) -> np.ndarray:
    """What a GPU does in each fiftieth of a second: busy, its power, its temperature, its memory."""
    rng = np.random.default_rng(seed)
    at = np.arange(0, LONG_S + 120, 0.02)
    phase = np.cumsum(0.02 / (STEP_S * (1 + 0.01 * rng.standard_normal(len(at)))))
    busy = (phase % 1 < duty) & (at > 60)
    power = 60 + 300.0 * busy
    warm = pd.Series(power).ewm(halflife=900, adjust=False).mean().to_numpy()
    return np.array([busy, power, 30 + 0.1 * warm + warmer_c, np.where(at > 30, held_mib, 4.0)])


def log(
    cells: np.ndarray, seed: int, every_s: float, first_s: float = 0.0, until_s: float = LONG_S, **known: str
) -> Telemetry:
    """The log of a recorder, which polls a few ms later each time; ``known``: number of the GPU, and tool."""
    rng = np.random.default_rng(seed)
    at = first_s + np.cumsum(every_s + 0.01 * rng.random(int((until_s - first_s) / every_s)))
    cell = (at / 0.02).astype(int)
    util = [100 * cells[0][max(0, one - 50) : one + 1].mean() for one in cell]
    columns = {
        "util_pct": np.round(util),
        "mem_used_mib": cells[3][cell],
        "power_w": np.round(cells[1][cell] * (1 + 0.01 * rng.standard_normal(len(cell))), 2),
        "temp_c": np.floor(cells[2][cell]),
    }
    time = (START + pd.to_timedelta(np.round(at, 3), unit="s")).astype("datetime64[us, UTC]")
    return telemetry(
        [pd.DataFrame({"time": time, "gpu": known.get("gpu", "0"), **columns})], known.get("reader", "smi")
    )


def telemetry(rows: list[pd.DataFrame], reader: str = "smi", **known: str) -> Telemetry:
    table = pd.concat(rows, ignore_index=True)
    gpus = pd.DataFrame({"gpu": sorted(set(table["gpu"]))}).assign(**known)
    return Telemetry(gpu=conform(table, TABLES["gpu"]), gpus=conform(gpus, TABLES["gpus"]), reader=reader, clock="utc")


def without(part: Telemetry, *columns: str) -> Telemetry:
    return telemetry([part.gpu.drop(columns=list(columns))], part.reader)


def n_gpus(parts: list[Telemetry], *paths: str) -> int:
    return merge(parts, paths or [f"{name}.csv" for name in "abcd"[: len(parts)]]).gpu["gpu"].nunique()


def moved(part: Telemetry, late: str) -> Telemetry:
    return telemetry([part.gpu.assign(time=part.gpu["time"] + pd.Timedelta(late))], part.reader)


SAME = {
    "at 1 s and at 5 s": [(1.0, 0.0, LONG_S), (5.0, 0.3, LONG_S)],
    "at 1 s, half a second apart": [(1.0, 0.0, LONG_S), (1.0, 0.5, LONG_S)],
    "at 1 s and at 10 s": [(1.0, 0.0, LONG_S), (10.0, 0.9, LONG_S)],
    "at 2 s, as long as a step": [(2.0, 0.2, LONG_S), (2.0, 1.7, LONG_S)],
    "at 10 s, five steps": [(10.0, 0.2, LONG_S), (10.0, 1.7, LONG_S)],
    "at 4 s, two steps": [(4.0, 0.2, LONG_S), (4.0, 1.7, LONG_S)],
    "restarted, with two minutes of both": [(1.0, 0.0, 350.0), (1.0, 230.4, LONG_S)],
    "one within the other": [(1.0, 0.0, LONG_S), (2.0, 200.3, 400.0)],
    "three recorders": [(1.0, 0.0, LONG_S), (1.0, 0.3, LONG_S), (5.0, 0.6, LONG_S)],
    "one after the other": [(1.0, 0.0, 290.0), (1.0, 300.0, LONG_S)],
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("lost", [(), ("power_w",)])
def test_recorders_of_one_machine_show_one_gpu(name: str, lost: tuple[str, ...]) -> None:
    parts = [without(log(work(1), seed, *one), *lost) for seed, one in enumerate(SAME[name])]
    merged = merge(parts, [f"{seed}.csv" for seed in range(len(parts))])
    assert set(merged.gpu["gpu"]) == {"0"}
    assert any(UNSURE in note for note in merged.notes) is (name != "one after the other")


OTHERS = {
    "idle, with another's memory": work(2, duty=0.0, held_mib=450.0),
    "idle, with as much memory": work(2, duty=0.0),
    "eight degrees warmer": work(1, warmer_c=8.0),
    "twelve MiB more": work(1, held_mib=61_012.0),
    "half as busy, and so ten degrees colder": work(2, duty=0.35),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("every_s", [1.0, 5.0])
def test_a_gpu_of_another_machine_is_another(name: str, every_s: float) -> None:
    parts = [log(work(1), 3, every_s), log(OTHERS[name], 4, every_s, 0.4)]
    assert n_gpus(parts) == 2 and n_gpus(parts[::-1]) == 2


@pytest.mark.parametrize("n_shared", [0, 1, 2, 3, 40])
def test_instants_that_two_machines_share_by_chance_change_nothing(n_shared: int) -> None:
    """Forty of six hundred are 7 %: the first machine is busy, the second idle."""
    one = log(work(1, duty=1.0), 3, 1.0)
    other = without(moved(one, "311ms"), "power_w", "temp_c").gpu.assign(util_pct=0.0, mem_used_mib=4.0)
    other.loc[: n_shared - 1, "time"] = one.gpu["time"][:n_shared]
    assert n_gpus([without(one, "power_w", "temp_c"), telemetry([other])]) == 2


def test_where_one_index_is_of_two_machines_so_are_all() -> None:
    """The first GPU holds 12 MiB more on the first machine; the others cannot be told apart by themselves."""
    one = [without(log(work(1, held_mib=61_000.0 + 12 * (gpu == "0")), 3, 1.0, gpu=gpu), "temp_c") for gpu in "012"]
    other = [without(log(work(1), 4, 1.0, 0.4, gpu=gpu), "temp_c") for gpu in "012"]
    nodes = [telemetry([part.gpu for part in parts]) for parts in (one, other)]
    merged = merge(nodes, ["a.csv", "b.csv"])
    assert sorted(set(merged.gpu["gpu"])) == ["a/0", "a/1", "a/2", "b/0", "b/1", "b/2"]
    assert merged.gpu["gpu"].value_counts().nunique() <= 2 and not any(UNSURE in note for note in merged.notes)


def test_a_bus_id_is_that_of_each_machine_of_one_kind() -> None:
    parts = [log(work(1), 3, 1.0), log(OTHERS["idle, with another's memory"], 4, 1.0, 0.4)]
    known = [telemetry([part.gpu], bus_id="00000000:07:00.0") for part in parts]
    assert n_gpus(known) == 2
    alike = [telemetry([log(work(1), seed, 1.0, seed / 9).gpu], bus_id="00000000:07:00.0") for seed in (3, 4)]
    assert any(UNSURE in note for note in merge(alike).notes)


@pytest.mark.parametrize(
    ("paths", "gpus"),
    [
        (("run/node1/gpu.csv", "run/node2/gpu.csv"), 4),
        (("run/gpu_node01.csv", "run/gpu_node02.csv"), 4),
        (("smi.r3i1n04.csv", "smi.r3i1n05.csv"), 4),
        (("telemetry-4711-gpu17.log", "telemetry-4711-gpu18.log"), 4),
        (("nodeA.csv", "nodeB.csv"), 4),
        (("ip-10-0-3-4.csv", "ip-10-0-3-5.csv"), 4),
        (("dgx1/gpu.csv", "dgx2/gpu.csv"), 4),
        (("gpu_0.csv", "gpu_1.csv"), 2),
        (("gpu0.csv", "gpu1.csv"), 2),
        (("1s.csv", "5s.csv"), 2),
        (("gpu.csv", "gpu_node2.csv"), 2),
        (("node1/1s.csv", "node1/5s.csv"), 2),
        (("node-1s.csv", "node-5s.csv"), 2),
        (("gpu_n1.csv", "gpu_n5.csv"), 2),
        (("n01.csv", "n02.csv"), 4),
        (("node1/run.csv", "node1/again.csv"), 2),
        (("rank0.csv", "rank1.csv"), 2),
    ],
)
def test_names_of_files_and_folders_that_name_machines(paths: tuple[str, str], gpus: int) -> None:
    """Two GPUs in each log, which nothing in their samples tells apart."""
    logs = [telemetry([log(work(1), seed, 1.0, seed / 9, gpu=gpu).gpu for gpu in "01"]) for seed in (3, 4)]
    merged = merge(logs, paths)
    assert merged.gpu["gpu"].nunique() == gpus and any(UNSURE in note for note in merged.notes) is (gpus == 2)
    later = [logs[0], moved(logs[1], "2h")]
    assert n_gpus(later, *paths) == 2, "a job that moved on to another machine"


def test_two_tools_on_each_of_two_machines() -> None:
    paths = ["node1/gpu.csv", "node1/dmon.log", "node2/gpu.csv", "node2/dmon.log"]
    tools = ["smi", "dmon", "smi", "dmon"]
    parts = [log(work(1), seed, 1.0, seed / 9, reader=tool) for seed, tool in enumerate(tools)]
    merged = merge(parts, paths)
    assert merged.gpus["gpu"].tolist() == ["node1/0", "node2/0"] and not any(UNSURE in note for note in merged.notes)


@pytest.mark.parametrize("paths", [("a.csv", "b.csv"), ("node1/gpu.csv", "node2/gpu.csv")])
@pytest.mark.parametrize("whole_s", [False, True])
def test_copies_of_one_log_are_of_one_machine_and_nothing_is_said(paths: tuple[str, str], whole_s: bool) -> None:
    one = log(work(1), 3, 1.0)
    if whole_s:
        one = telemetry([one.gpu.assign(time=one.gpu["time"].dt.floor("s")).drop_duplicates("time")])
    part = telemetry([one.gpu[one.gpu["time"] < START + pd.Timedelta("9min")]])
    merged = merge([one, part], paths)
    assert len(merged.gpu) == len(one.gpu) and not any(UNSURE in note for note in merged.notes)


def test_idle_machines_whose_seconds_coincide_are_no_copies() -> None:
    idle = pd.DataFrame({"time": pd.date_range(START, periods=600, freq="s"), "gpu": "0", "util_pct": 0.0})
    merged = merge([telemetry([idle]), telemetry([idle])], ["a.csv", "b.csv"])
    assert any(UNSURE in note for note in merged.notes)


def test_both_readings_are_told() -> None:
    logs = [telemetry([log(work(1), seed, 1.0, seed / 9, gpu=gpu).gpu for gpu in "01"]) for seed in (3, 4, 5)]
    (note,) = [note for note in merge(logs, [f"/r/x/gpu_{k}.csv" for k in range(3)]).notes if UNSURE in note]
    assert "name GPUs 0 and 1 by number alone (gpu_0.csv, gpu_1.csv and gpu_2.csv). They were assumed" in note
    assert "there are 6 GPUs, not 2, and GPU time is too small by as much" in note


def test_names_of_machines() -> None:
    held = [["0", "1"]] * 2
    assert machines(["/host7/r/gpu-node-03.csv", "/host7/r/gpu-node-04.csv"], held) == ["node-03", "node-04"]
    assert machines(["a/nid001.csv", "b/x.csv"], held) == ["nid001", ""]
    assert machines(["gpu16.csv", "gpu17.csv"], held) == ["gpu16", "gpu17"]
    assert machines(["gpu00.csv", "gpu17.csv"], held) == ["", "gpu17"]
    assert shortened(["/a/b/c.csv", "/a/d/c.csv"]) == ["b/c.csv", "d/c.csv"] and shortened(["/a/c"]) == ["c"]


@pytest.mark.parametrize(("names", "told"), [(("a.csv", "b.csv"), True), (("node1.csv", "node2.csv"), False)])
def test_inspect_says_what_is_taken_for_one_machine(names: tuple[str, str], told: bool, tmp_path: Path) -> None:
    for seed, name in enumerate(names):
        rows = log(work(1), seed, 1.0, seed / 9).gpu
        lines = [f"{t:%Y/%m/%d %H:%M:%S.%f}, 0, {u:.0f} %" for t, u in zip(rows["time"], rows["util_pct"], strict=True)]
        (tmp_path / name).write_text("\n".join(["timestamp, index, utilization.gpu [%]", *lines, ""]))
    notes = [note for record in inspect([tmp_path]) for note in record.notes if "log" in note.lower()]
    assert len(notes) == 1 and (UNSURE in notes[0]) is told
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "run.toml").write_text("")
    assert not [note for record in inspect([tmp_path]) for note in record.notes if UNSURE in note], "a folder of runs"


@pytest.mark.slow
def test_inspect_compares_few_logs_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with each: of 200 in a folder that takes most of the time."""
    compared: list[int] = []
    monkeypatch.setattr(inspection, "taken_for", lambda parts, paths: compared.append(len(parts)) or [])
    for n in range(inspection.MOST_LOGS + 1):
        line = f"2026/03/02 09:00:00.{n:03d}, 0, 5 %"
        (tmp_path / f"{n}.csv").write_text(f"timestamp, index, utilization.gpu [%]\n{line}\n", encoding="utf-8")
    assert len(list(inspect([tmp_path]))) == inspection.MOST_LOGS + 1 and compared == []
    (tmp_path / "0.csv").unlink()
    assert len(list(inspect([tmp_path]))) == inspection.MOST_LOGS and compared == [inspection.MOST_LOGS]
