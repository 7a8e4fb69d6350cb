"""A column that names the GPU: each text is a GPU, in whatever order its rows come; what names none is counted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from gpudiag.errors import InputError
from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry

UTIL_PCT = (90, 10, 50)
UUIDS = ["GPU-8f3a1b2c-1111-2222-3333-444455556666", "GPU-8f3a1b2c-7777-8888-9999-aaaabbbbcccc"]


def clock(second: int) -> str:
    return f"2026-03-01T10:{second // 60:02d}:{second % 60:02d}Z"


def taking_turns(names: Sequence[str], seconds: int = 120) -> list[tuple[int, str, int]]:
    """Rows of second, GPU and utilization whose order changes from tick to tick."""
    pairs = list(zip(names, UTIL_PCT, strict=False))
    return [(at, *pair) for at in range(seconds) for pair in (pairs if at % 3 else reversed(pairs))]


def gpu_by_gpu(names: Sequence[str], seconds: int = 120) -> list[tuple[int, str, int]]:
    return [(at, name, util) for name, util in zip(names, UTIL_PCT, strict=False) for at in range(seconds)]


def read(folder: Path, rows: Iterable[tuple[int, str, int]], column: str = "gpu") -> Telemetry:
    lines = [f"{clock(at)},{name},{util},1000,80000" for at, name, util in rows]
    (folder / "gpu.csv").write_text("\n".join([f"time,{column},util_pct,mem_used_mib,mem_total_mib", *lines]) + "\n")
    return read_telemetry(folder / "gpu.csv", timezone="UTC")


def means(telemetry: Telemetry) -> dict[str, float]:
    return telemetry.gpu.groupby("gpu")["util_pct"].mean().to_dict()


NAMES = [
    (["cuda:0", "cuda:1"], ["0", "1"]),
    (["0.0", "1.0"], ["0", "1"]),
    (["node1/0", "node2/0"], ["node1/0", "node2/0"]),
    (["node1/0", "node1/1"], ["0", "1"]),
    (["n1", "n2"], ["n1", "n2"]),
    (["GPU-aaaa", "GPU-bbbb"], ["GPU-aaaa", "GPU-bbbb"]),
    (["0", "0b"], ["0", "0b"]),
    (["0", "cuda:0"], ["0", "cuda:0"]),
    (["0/1", "0/2", "1/1"], ["0/1", "0/2", "1/1"]),
    (["70", "7000"], ["70", "7000"]),
]


@pytest.mark.parametrize(("names", "labels"), NAMES)
def test_each_text_is_a_gpu(names: list[str], labels: list[str], tmp_path: Path) -> None:
    expected = dict(zip(labels, UTIL_PCT, strict=False))
    for rows in (taking_turns(names), gpu_by_gpu(names)) if names[0] != "70" else [taking_turns(names)]:
        telemetry = read(tmp_path, rows)
        assert means(telemetry) == expected and not telemetry.problems
        assert not any("order of rows" in note for note in telemetry.notes)


def test_uuids_are_told_and_the_host_of_a_name(tmp_path: Path) -> None:
    telemetry = read(tmp_path, taking_turns(UUIDS))
    assert sorted(means(telemetry).values()) == [10, 90] and set(telemetry.gpus["uuid"]) == set(UUIDS)
    assert read(tmp_path, taking_turns(["node1/0", "node2/0"])).gpus["host"].tolist() == ["node1", "node2"]


def test_a_name_of_a_host_outweighs_a_column_of_another(tmp_path: Path) -> None:
    telemetry = read(
        tmp_path, [(at, f"collector,{name}", u) for at, name, u in taking_turns(["n1/0", "n2/0"])], "host,gpu"
    )
    assert means(telemetry) == {"n1/0": 90, "n2/0": 10}


def test_rows_without_a_name_are_counted(tmp_path: Path) -> None:
    rows = taking_turns(["n1", "n2"])
    rows[6], rows[9] = (3, "", 77), (4, "N/A", 77)
    telemetry = read(tmp_path, rows)
    assert means(telemetry) == {"n1": 90, "n2": 10}
    assert [(one.kind, one.count, one.lost) for one in telemetry.problems] == [("row that names no GPU", 2, True)]


def test_boards_are_no_gpus_where_an_instant_has_several_of_one_name(tmp_path: Path) -> None:
    pair = [(at, "NVIDIA A100", util) for at in range(120) for util in (90, 10)]
    assert means(read(tmp_path, pair)) == {"0": 90, "1": 10}
    mixed = [
        (at, name, util)
        for at in range(120)
        for name, util in [("NVIDIA A100", 90), ("Tesla T4", 10), ("NVIDIA A100", 50)]
    ]
    telemetry = read(tmp_path, mixed)
    assert means(telemetry) == {"0": 90, "1": 10, "2": 50}
    assert telemetry.gpus["name"].tolist() == ["NVIDIA A100", "Tesla T4", "NVIDIA A100"]
    for rows in (taking_turns(["NVIDIA A100", "Tesla T4"]), gpu_by_gpu(["NVIDIA A100", "Tesla T4"])):
        assert sorted(means(read(tmp_path, rows)).values()) == [10, 90]


def test_a_column_called_gpu_that_measures_is_said(tmp_path: Path) -> None:
    for cell, most in (("{}", 101), ("{}%", 101), ("0.{}", 101), ("{}", 23)):
        telemetry = read(
            tmp_path, [(at, cell.format(at * 37 % most + (40 if most == 23 else 0)), at % 100) for at in range(120)]
        )
        assert telemetry.gpus["gpu"].tolist() == ["0"]
        assert "Column gpu holds no index or name of a GPU that could be used, and was left out." in telemetry.notes


def test_of_two_columns_one_is_enough(tmp_path: Path) -> None:
    telemetry = read(tmp_path, [(at, f"{name},{name}", u) for at, name, u in taking_turns(["0", "1"])], "gpu,gpu_index")
    assert means(telemetry) == {"0": 90, "1": 10}
    assert not any("left out" in note for note in telemetry.notes)


def test_numbers_of_many_gpus_at_once(tmp_path: Path) -> None:
    telemetry = read(tmp_path, [(at, str(gpu), gpu % 100) for at in range(20) for gpu in range(128)])
    assert means(telemetry) == {str(gpu): gpu % 100 for gpu in range(128)}


def test_a_text_in_each_row_names_no_gpu(tmp_path: Path) -> None:
    assert read(tmp_path, [(at, f"r{at}", 50) for at in range(40)], "id").gpus["gpu"].tolist() == ["0"]
    with pytest.raises(InputError, match=r"holds 5,000 different texts.*--columns"):
        read(tmp_path, [(at % 3600, f"r{at}", 50) for at in range(5000)])


def test_a_column_of_names_that_are_identities(tmp_path: Path) -> None:
    telemetry = read(tmp_path, taking_turns(["cuda:0", "cuda:1"]), "gpu_name")
    assert means(telemetry) == {"0": 90, "1": 10}


def test_boards_by_any_name_are_told_apart_by_it(tmp_path: Path) -> None:
    for rows in (taking_turns(["Foo 1", "Bar"]), gpu_by_gpu(["Foo 1", "Bar"])):
        telemetry = read(tmp_path, rows, "gpu_name")
        known = telemetry.gpus.set_index("gpu")["name"].to_dict()
        assert {known[gpu]: mean for gpu, mean in means(telemetry).items()} == {"Foo 1": 90, "Bar": 10}
    pair = [(at, "Foo 1", util) for at in range(120) for util in (90, 10)]
    assert means(read(tmp_path, pair, "gpu_name")) == {"0": 90, "1": 10}
    assert set(means(read(tmp_path, [(at, "train" if at < 60 else "eval", 50) for at in range(120)], "name"))) == {"0"}
    assert means(read(tmp_path, [(at, "N/A", util) for at, _, util in pair], "gpu_name")) == {"0": 90, "1": 10}


def test_in_json_as_well(tmp_path: Path) -> None:
    rows = [{"time": clock(at), "gpu": name, "util_pct": util} for at, name, util in taking_turns(["n1/0", "n2/0"])]
    (tmp_path / "gpu.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert means(read_telemetry(tmp_path / "gpu.jsonl", timezone="UTC")) == {"n1/0": 90, "n2/0": 10}
