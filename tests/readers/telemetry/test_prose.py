"""Prose and JSON: what is taken from a sentence or an object, and what is left alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gpudiag.errors import UnknownInput
from gpudiag.readers._io.source import Source
from gpudiag.readers.base import Telemetry
from gpudiag.readers.identify import identify
from gpudiag.readers.telemetry import read_telemetry


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def read(text: str, **options: Any) -> Telemetry:
        (tmp_path / "log").write_text(text, encoding="utf-8")
        return read_telemetry(tmp_path / "log", timezone="UTC", **options)

    return read


def test_values_units_and_limits(read: Any) -> None:
    line = "[2021-03-25 @ 13:32:39] >  Temp: 58C  Power: 100/250 W  Fan: 3%  Utilization: 7%  Memory: 12/11019 MiB\n"
    row = read(line).gpu.iloc[0]
    wanted = {"temp_c": 58, "power_w": 100, "power_limit_w": 250, "fan_pct": 3, "util_pct": 7, "mem_used_mib": 12}
    assert {name: row[name] for name in wanted} == wanted and row["mem_total_mib"] == 11019
    assert row["time"] == pd.Timestamp("2021-03-25 13:32:39", tz="UTC")


def test_free_memory_and_names(read: Any) -> None:
    text = "=== 2024-11-19 19:40:10.2 ===\ncuda:1 NVIDIA A100 80GB PCIe: 56153 MiB free out of 81050 MiB total\n"
    telemetry = read(text)
    assert telemetry.gpu.loc[0, ["mem_used_mib", "mem_total_mib"]].tolist() == [81050 - 56153, 81050]
    assert telemetry.gpus.loc[0, ["gpu", "name"]].tolist() == ["1", "NVIDIA A100 80GB PCIe"]


def test_bare_rows_are_named_by_the_user_or_by_what_sentences_say(read: Any) -> None:
    said = "[2025-10-15 16:12:00] GPU 0: NVIDIA GeForce RTX 3090 - Memory: 8595MB/ 24576MB - Utilization: 45%\n"
    rows = "".join(f"[2025-10-15 16:12:{k:02d}] GPU Status:\n0, {k}, {8442 + k}, 24576, 49\n" for k in range(1, 6))
    told = read(said + rows)
    assert told.gpu["util_pct"].tolist() == [45, 1, 2, 3, 4, 5] and told.gpu["temp_c"].max() == 49
    assert any("by their values" in note for note in told.notes)
    unsaid = said.replace("24576", "24000") + rows
    lost = read(unsaid)
    assert [(p.kind, p.count, p.line, p.lost) for p in lost.problems] == [("row of numbers without names", 5, 3, True)]
    assert any("--columns" in note for note in lost.notes)
    named = read(unsaid, columns=("index", "gpu_util", "memory_used", "memory_total", "temp"))
    assert len(named.gpu) == 6 and not any(p.lost for p in named.problems)


@pytest.mark.parametrize(
    "line",
    [
        "[2025-10-15 16:12:26] epoch: 3 loss: 0.25 acc: 0.9 gpu_mem: 3456 MB",
        "[I 2025-10-15 16:12:26,123] Trial 3 finished with value: 0.25 and parameters: {'lr': 0.1, 'gpu': 0}.",
        "2025-10-15 16:12:26 INFO starting on cuda:0",
        "Power: 12 W and no time at all",
    ],
)
def test_prose_of_other_things_is_not_claimed(line: str, read: Any) -> None:
    with pytest.raises(UnknownInput):
        read((line + "\n") * 5)


def test_json_in_each_shape(read: Any) -> None:
    flat = [{"timestamp": 1736203508 + k, "gpu": 0, "gpu_util": k, "memory_used_mb": 100 + k} for k in range(4)]
    nested = [
        {"timestamp": 1736203508 + k, "gpus": [{"index": 0, "util": k, "memory_used_mb": 100 + k}]} for k in range(4)
    ]
    shapes = [
        "\n".join(map(json.dumps, flat)),
        json.dumps(flat, indent=2),
        "\n".join(map(json.dumps, nested)),
        json.dumps({"samples": flat}),
    ]
    frames = [read(text).gpu for text in shapes]
    for frame in frames[1:]:
        pd.testing.assert_frame_equal(frame, frames[0])
    assert frames[0]["util_pct"].tolist() == [0, 1, 2, 3]


def test_a_damaged_json_line_costs_itself(read: Any) -> None:
    lines = [json.dumps({"timestamp": 1736203508 + k, "gpu": 0, "gpu_util": k}) for k in range(6)]
    lines[3] = lines[3][:20]
    telemetry = read("\n".join(lines) + "\n")
    assert telemetry.gpu["util_pct"].tolist() == [0, 1, 2, 4, 5]
    assert [(p.count, p.line, p.lost) for p in telemetry.problems] == [(1, 4, True)]


def test_json_of_other_things_is_not_claimed(read: Any) -> None:
    with pytest.raises(UnknownInput):
        read("\n".join(json.dumps({"task": k, "status": "ok", "gpu": 0, "start": 1736203508}) for k in range(4)))


@pytest.mark.parametrize(
    ("used", "mib", "note"),
    [
        (20_500_000_000, 20_500_000_000 / 2**20, "taken as bytes"),
        (20_500, 20_500.0, "mem_used_mib in MiB"),
    ],
)
def test_memory_without_a_unit_is_told_by_its_size_as_in_tables(used: int, mib: float, note: str, read: Any) -> None:
    timestamps = [f"2026-03-01T10:00:{second:02d}Z" for second in range(9)]
    sentences = [
        f"{timestamp} GPU 0: utilization: {k}%, memory used: {used}\n" for k, timestamp in enumerate(timestamps)
    ]
    objects = [
        json.dumps({"timestamp": timestamp, "gpu": 0, "gpu_util": k, "gpu_memory_used": used}) + "\n"
        for k, timestamp in enumerate(timestamps)
    ]
    for lines, reader in ((sentences, "prose"), (objects, "json-samples")):
        telemetry = read("".join(lines))
        assert telemetry.reader == reader
        assert telemetry.gpu["mem_used_mib"].tolist() == pytest.approx([mib] * 9)
        assert any(note in told for told in telemetry.notes), telemetry.notes


def test_a_unit_that_a_sentence_tells_is_taken_at_its_word(read: Any) -> None:
    telemetry = read("".join(f"2026-03-01 10:00:0{k} GPU 0: memory: 5{k} MiB, power: 9{k} W\n" for k in range(6)))
    assert telemetry.gpu["mem_used_mib"].tolist() == [50 + k for k in range(6)]
    assert not any("unit" in note for note in telemetry.notes)


def test_sentences_of_one_second_are_several_samples(read: Any) -> None:
    telemetry = read("".join(f"[2021-03-25 @ 13:32:3{k // 4}] GPU 0: Utilization: {k}%\n" for k in range(12)))
    assert telemetry.gpu["util_pct"].tolist() == list(range(12))
    assert (telemetry.gpu["time"].diff().dropna() == pd.Timedelta(milliseconds=250)).all()


BLOCK = """=== 2024-10-31 18:47:{s:02d} ===
GPU Load: {s}.5%
GPU Memory: {s}.0MB / 6144.0MB (0.0%)
GPU Temperature: 48.{s}\N{DEGREE SIGN}C

"""


def test_a_block_below_a_date_is_one_sample(read: Any) -> None:
    gpu = read("".join(BLOCK.format(s=s) for s in range(6))).gpu
    assert gpu["time"].dt.second.tolist() == [0, 1, 2, 3, 4, 5] and gpu["util_pct"].tolist()[5] == 5.5
    assert gpu["mem_used_mib"].tolist()[5] == 5 and set(gpu["mem_total_mib"]) == {6144} and gpu["temp_c"][5] == 48.5


def test_blocks_of_two_gpus_and_of_the_host(read: Any) -> None:
    text = ""
    for s in range(4):
        text += f"--- 2024-10-31 18:47:0{s} ---\nCPU Usage: 90%\nGPU 0: NVIDIA RTX A2000\n------\nLoad: 1{s}%\n"
        text += f"GPU Memory: 1{s} / 6138 MB\nGPU 1: NVIDIA RTX A2000\nGPU Load: 2{s}%\nGPU Memory: 2{s} / 6138 MB\n"
        text += "System:\nMemory: 9999 MB\n"
    gpu = read(text).gpu
    assert gpu["gpu"].tolist() == ["0"] * 4 + ["1"] * 4
    assert gpu["mem_used_mib"].tolist() == [10, 11, 12, 13, 20, 21, 22, 23]
    assert gpu["util_pct"].tolist() == [10, 11, 12, 13, 20, 21, 22, 23]


def test_a_share_of_the_gpu_is_not_its_number(read: Any) -> None:
    gpu = read("".join(f"2024-10-31 18:47:0{s} GPU: {40 + s}%, Memory: 300/6144 MB\n" for s in range(3))).gpu
    assert gpu["gpu"].tolist() == ["0"] * 3 and gpu["util_pct"].tolist() == [40, 41, 42]


def test_memory_of_a_training_alone_is_no_log_of_a_gpu(read: Any) -> None:
    with pytest.raises(UnknownInput):
        read("".join(f"2024-10-31 18:47:0{s} step: {s} gpu_mem: 3{s} MB\n" for s in range(8)))


@pytest.mark.parametrize(
    ("line", "reader"),
    [
        ("2026-03-01 10:00:{k:02d} INFO gpu_util={k} power=100W", "prose"),
        ("2026-03-01 10:00:{k:02d} INFO step={k} loss=0.5 gpu_util={k} mem_used=2000MB", "training-log"),
        ("2026-03-01 10:00:{k:02d} step={k}/200 loss=0.5 lr=0.1 gpu_util={k} power=200W", "training-log"),
    ],
)
def test_names_and_values_beside_a_loss_are_a_training(line: str, reader: str, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("".join(line.format(k=k) + "\n" for k in range(60)))
    found = identify(Source.open(tmp_path / "a.log"))
    assert found is not None and found[1].name == reader


def test_numbers_are_taken_whole_with_their_own_unit(read: Any) -> None:
    line = "2026-03-01 10:00:00 INFO gpus=2 gpu_util=30percent power=150/700W mem_used=2,000MB temp=60\n"
    row = read(line).gpu.iloc[0]
    assert row["gpu"] == "0" and row[["util_pct", "power_w", "power_limit_w", "temp_c"]].tolist() == [30, 150, 700, 60]
    assert "mem_used_mib" not in row, "2,000 is not 2"


def test_the_time_of_a_line_is_that_of_each_gpu_in_it(read: Any) -> None:
    text = "".join(f"GPU 0: util={k}% GPU 1: util=70% at 2026-03-01 10:00:0{k}\n" for k in range(9))
    gpu = read(text).gpu
    assert gpu.groupby("gpu")["util_pct"].max().to_dict() == {"0": 8, "1": 70}
    assert gpu.groupby("gpu")["time"].nunique().tolist() == [9, 9]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("util=30% gpu 0, util=70% gpu 1", {"0": 30, "1": 70}),
        ("util=30% power=90 W gpu 0, util=70% power=80 W gpu 1, fan 40", {"0": 30, "1": 70}),
        ("GPU 0: util=30% GPU 1: util=70%", {"0": 30, "1": 70}),
        ("Device 0: util=30%, mem=500MB, Device 1: util=70%, mem=600MB", {"0": 30, "1": 70}),
        ("total power: 500 W, GPU 0: util=30% GPU 1: util=70%", {"0": 30, "1": 70}),
        ("gpu0_util=30 gpu0_power=90 gpu1_util=70 gpu1_power=80 gpu_avg_util=50 total_mem=900", {"0": 30, "1": 70}),
        ("gpu0.util: 30 gpu1.util: 70 gpu0.mem: 500 gpu1.mem: 600", {"0": 30, "1": 70}),
        ("GPU0 util 30% power 90 W | GPU1 util 70% power 80 W | peak power 95 W", {"0": 30, "1": 70}),
        ("util=30% mem=500MB (gpu0), util=70% mem=600MB (gpu1), all mem=11GB", {"0": 30, "1": 70}),
        ("gpu0_util=30 gpu1_util=70 cpu_util=90 ram_gb=50", {"0": 30, "1": 70}),
        ("host=a GPU 0: util=30%, power=90 W GPU 1: util=70%, power=80 W", {"0": 30, "1": 70}),
    ],
)
def test_each_value_of_a_line_is_of_the_gpu_it_stands_by(read: Any, line: str, wanted: dict[str, float]) -> None:
    gpu = read("".join(f"2026-03-01 10:00:0{k} {line}\n" for k in range(9))).gpu
    assert gpu.groupby("gpu")["util_pct"].unique().apply(list).to_dict() == {name: [at] for name, at in wanted.items()}
    assert len(gpu) == 18 and gpu.filter(regex="power_w").isin([80, 90]).all(axis=None) and "mem_total_mib" not in gpu
    if "mem" in line and "mem_used_mib" in gpu:
        assert gpu.groupby("gpu")["mem_used_mib"].unique().apply(list).to_dict() == {"0": [500], "1": [600]}


@pytest.mark.parametrize(
    ("also", "memory"),
    [
        ("", [1000, 1001, 1002, 1003]),
        ("Temperature: 60 C\n", [1000, 1001, 1002, 1003]),
        ("CPU Usage: 30 %\n", []),
        ("CPU Temp: 30 C\n", []),
        ("GPU Memory: 700 MiB\n", [700] * 4),
        ("loss: 0.5\n", [1000, 1001, 1002, 1003]),
    ],
    ids=[
        "alone",
        "beside a temperature",
        "beside the host's",
        "beside its temperature",
        "beside the GPU's",
        "beside a loss",
    ],
)
def test_a_line_that_names_nobody_is_of_the_gpu_where_nothing_tells_of_another(
    also: str, memory: list[float], read: Any
) -> None:
    block = "=== 2026-03-01 10:00:0{k} ===\nGPU Utilization: 5{k}%\n{also}Memory Used: 100{k} MiB\nPower Draw: 90 W\n\n"
    telemetry = read("".join(block.format(k=k, also=also) for k in range(4)))
    gpu = telemetry.gpu
    assert gpu["util_pct"].tolist() == [50, 51, 52, 53] and gpu["power_w"].tolist() == [90] * 4
    assert ("temp_c" in gpu) is also.startswith("Temp")
    assert (gpu["mem_used_mib"].tolist() if "mem_used_mib" in gpu else []) == memory
    unread = sum(problem.count for problem in telemetry.problems)
    assert unread == 4 * (also.startswith(("CPU", "loss")) + (len(set(memory)) < 4))


@pytest.mark.parametrize("written", [str, json.dumps])
@pytest.mark.parametrize("first", [True, False])
def test_dictionaries_behind_a_time_are_read(first: bool, written: Any, read: Any) -> None:
    def line(k: int) -> str:
        gpus = [{"util": 10 * n + k, "mem_mb": 500 + n, "power_w": 90.5 + n} for n in range(2)]
        named = [{"gpu": n, **gpu} if first else {**gpu, "gpu": n} for n, gpu in enumerate(gpus)]
        return f"2026-03-01 10:00:0{k},250 INFO monitor: {written(named)}\n"

    gpu = read("".join(map(line, range(9)))).gpu
    assert gpu["gpu"].tolist() == ["0"] * 9 + ["1"] * 9
    assert gpu["util_pct"].tolist() == [*range(9), *range(10, 19)]
    assert gpu["mem_used_mib"].tolist() == [500] * 9 + [501] * 9
    assert gpu["power_w"].tolist() == [90.5] * 9 + [91.5] * 9


def test_a_dictionary_with_a_loss_is_of_a_training(read: Any) -> None:
    said = [{"loss": 0.5, "gpu_util": k, "gpu_mem_mb": 5000, "power_w": 200} for k in range(9)]
    with pytest.raises(UnknownInput):
        read("".join(f"2026-03-01 10:00:0{k} {one}\n" for k, one in enumerate(said)))


def test_what_only_the_last_gpu_of_a_line_would_be_told_is_not_its(read: Any) -> None:
    line = "GPU 0: util=30% GPU 1: util=70% all: power: 500 W\n"
    telemetry = read("".join(f"2026-03-01 10:00:0{k} {line}" for k in range(9)))
    assert "power_w" not in telemetry.gpu and len(telemetry.gpu) == 18
    assert any("power_w behind their last GPU" in note for note in telemetry.notes)


def test_blocks_of_several_gpus_below_a_line_with_their_time(read: Any) -> None:
    one = "GPU: {gpu}\nUtilization: {util}%\nMemory: {mem} MiB\n"
    gpus = [one.format(gpu=n, util="{u}" if n else "7{u}", mem=500 + n) for n in range(2)]
    block = "Time: 2026-03-01 10:00:0{u}\n" + "".join(gpus) + "---\n"
    gpu = read("".join(block.format(u=u) for u in range(10))).gpu
    assert gpu["util_pct"].tolist() == [*range(70, 80), *range(10)]
    assert gpu["mem_used_mib"].tolist() == [500] * 10 + [501] * 10


@pytest.mark.parametrize(
    "line",
    [
        "Epoch 1 step {k} loss 0.5 GPU 0 mem 5 GB util 30%",
        "step {k}/400 | loss 0.5 | lr 1e-4 | gpu0 mem 5.1GB",
        "rank 0 cuda:0 step {k} took 0.32s, memory 5.1 GB, power 90 W",
        "INFO step {k} images/s 512 GPU 0 Temp 60C Power 300W",
        "GPU 0 benchmark: {k}% done, memory 5 GB copied",
        "CPU util 30% mem 5 GB temp 60 C",
        "Device 3: Temp: 40 C, fan: {k} %",
    ],
)
def test_names_without_a_mark_are_not_taken_from_trainings_and_other_sentences(line: str, read: Any) -> None:
    with pytest.raises(UnknownInput):
        read("".join(f"2026-03-01 10:00:{k:02d} {line.format(k=k)}\n" for k in range(40)))


def test_a_line_of_which_it_cannot_be_told_whose_each_value_is_says_nothing(read: Any) -> None:
    sure = "2026-03-01 10:00:00 GPU 0: util=30%\n2026-03-01 10:00:00 GPU 1: util=70%\n"
    doubtful = "2026-03-01 10:00:05 util=10% GPU 0 util=20% GPU 1 util=40%\n"
    doubtful += "2026-03-01 10:00:07 util=90% | GPU 0 20%, 90W | GPU 1 40%, 80W\n"
    assert read(sure * 3 + doubtful).gpu["util_pct"].tolist() == [30, 70]


@pytest.mark.parametrize("average", ["average power 999 W, average util 7%", "mean util: 7 %, max power: 999 W"])
def test_a_summary_below_samples_is_none(average: str, read: Any) -> None:
    lines = "".join(f"2026-03-01 10:00:0{k} GPU 0: util: 30 %, avg power: 80 W, power: 90 W\n" for k in range(9))
    telemetry = read(f"{lines}2026-03-01 10:01:00 GPU 0 {average}\n")
    assert telemetry.gpu["util_pct"].tolist() == [30] * 9 and telemetry.gpu["power_w"].tolist() == [90] * 9
    assert "power_limit_w" not in telemetry.gpu and [problem.line for problem in telemetry.problems] == [10]
    alone = read(lines.replace(", power: 90 W", "").replace("util", "avg util")).gpu
    assert alone["util_pct"].tolist() == [30] * 9 and alone["power_w"].tolist() == [80] * 9


def test_what_stands_beside_an_average_is_read(read: Any) -> None:
    block = "2026-03-01 10:00:0{k} GPU 0: util: 3{k} %\n2026-03-01 10:00:0{k} GPU 0: avg util: 7 %, temp: 6{k} C\n"
    end = "2026-03-01 10:01:00 GPU 0: util: 40 %\n2026-03-01 10:02:00 GPU 0: mean util: 7 %\n"
    telemetry = read("".join(block.format(k=k) for k in range(9)) + end)
    assert telemetry.gpu["util_pct"].tolist() == [*range(30, 39), 40]
    assert telemetry.gpu["temp_c"].tolist()[:9] == [*range(60, 69)]
    assert [problem.line for problem in telemetry.problems] == [20]


def test_lines_that_name_nobody_are_of_none_of_several_gpus(read: Any) -> None:
    block = "=== 2026-03-01 10:00:0{k} ===\nGPU 0 Utilization: 30%\nPower: 90 W\nGPU 1 Utilization: 70%\nPower: 95 W\n"
    telemetry = read("".join(block.format(k=k) for k in range(9)))
    assert telemetry.gpu["util_pct"].tolist() == [30] * 9 + [70] * 9 and "power_w" not in telemetry.gpu
    assert sum(problem.count for problem in telemetry.problems) == 18


def test_memory_beside_what_a_host_does_is_the_gpus_only_where_it_says_so(read: Any) -> None:
    line = "2026-03-01 10:00:0{k} {{'cpu_util': 90, 'mem': 50, 'gpu_util': 30, 'vram_mb': 700}}\n"
    gpu = read("".join(line.format(k=k) for k in range(9))).gpu
    assert gpu["util_pct"].tolist() == [30] * 9 and gpu["mem_used_mib"].tolist() == [700] * 9
    unsaid = read("".join(line.replace(", 'vram_mb': 700", "").format(k=k) for k in range(9))).gpu
    assert "mem_used_mib" not in unsaid


@pytest.mark.parametrize("load", ["load average: 0.52, 0.10", "Load avg: 0.5%", "load_average=3", "loadavg: 0.5"])
def test_the_load_average_of_a_host_is_no_utilization(load: str, read: Any) -> None:
    line = f"GPU 0: temp: 60 C, power: 200 W | {load}"
    gpu = read("".join(f"2026-03-01 10:00:0{k} {line}\n" for k in range(9))).gpu
    assert "util_pct" not in gpu and gpu["power_w"].tolist() == [200] * 9 and gpu["temp_c"].tolist() == [60] * 9


def test_a_total_is_of_the_size_behind_it(read: Any) -> None:
    gpu = read("".join(f"2026-03-01 10:00:0{k} GPU 0 util 30% memory 5 GB total memory 24 GB\n" for k in range(9))).gpu
    assert gpu["mem_total_mib"].tolist() == [24 * 1024] * 9


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("host=n{n} gpu=0 util={u}% power=90W", {"n0/0": [30], "n1/0": [70]}),
        ("[rank {n}] gpu_util={u} power_w=90", {"0": [30], "1": [70]}),
        ("[rank 1] gpu_util={u} power_w=90", {"0": [30, 70]}),
        ("gpu=0 util={u}% power=90W, host: 3{n} GB", {"0": [30, 70]}),
        ("GPU 0: util: {u}%, power: 90 W | Host: R{n}M: 20%", {"0": [30, 70]}),
        ("GPU 0: util: {u}%, power: 90 W | Host: R{n}M 20.5 %", {"0": [30, 70]}),
        ("GPU 0: util: {u}%, power: 90 W | Host: R{n}M: 0.5", {"0": [30, 70]}),
        ("Host: n{n}: GPU 0: util: {u}%, power: 90 W", {"n0/0": [30], "n1/0": [70]}),
        ("host=n{n}:9400 gpu 0: util: {u}%, power: 90 W", {"n0/0": [30], "n1/0": [70]}),
    ],
)
def test_hosts_and_ranks_tell_gpus_apart(line: str, wanted: dict[str, list[int]], read: Any) -> None:
    times = (f"2026-03-01 10:00:{k:02d} " for k in range(18))
    gpu = read("".join(time + line.format(n=k % 2, u=(30, 70)[k % 2]) + "\n" for k, time in enumerate(times))).gpu
    assert gpu.groupby("gpu")["util_pct"].unique().apply(list).to_dict() == wanted


def test_the_load_of_a_gpu_that_a_line_names_is_its_utilization(read: Any) -> None:
    line = "2026-03-01 10:00:0{k} - GPU 0 - fan (0): 55% - Load: {k}.0% - Memory: 900MB/8192MB\n"
    assert read("".join(line.format(k=k) for k in range(9))).gpu["util_pct"].tolist() == list(range(9))
