"""A column that names the host tells GPUs of one index apart, in every kind of row; one host changes no name."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gpudiag.readers._fields.aliases import meaning_of
from gpudiag.readers._io.problems import Problem
from gpudiag.readers._shape.identity import HOSTS, GpuIdentity, resolve
from gpudiag.readers._shape.merge_telemetry import LOGS, merge
from gpudiag.readers.base import ReadOptions, Telemetry
from gpudiag.readers.frames import read_frame
from gpudiag.readers.telemetry import read_telemetry
from gpudiag.timezones import parse_zone

Row = tuple[int, str, int, int]
"""Second, host, index of the GPU, utilization."""
ROWS: list[Row] = [(10 * at, host, gpu, 90 - gpu - 50 * (host == "b7")) for at in range(30) for host in ("a7", "b7")
                   for gpu in range(2)]  # fmt: skip
MEANS = {"a7/0": 90.0, "a7/1": 89.0, "b7/0": 40.0, "b7/1": 39.0}


def clock(second: int) -> str:
    return f"2026-03-10 09:{second // 60:02d}:{second % 60:02d}"


def home_made(rows: Sequence[Row], name: str = "hostname") -> str:
    lines = [f"{clock(at)},{host},{gpu},{util},300.5" for at, host, gpu, util in rows]
    return "\n".join([f"time,{name},gpu,gpu_util,power_w", *lines]) + "\n"


def of_smi(rows: Sequence[Row]) -> str:
    lines = [f"{clock(at).replace('-', '/')}.000, {gpu}, {util} %, 512 MiB, {host}" for at, host, gpu, util in rows]
    return "\n".join(["timestamp, index, utilization.gpu [%], memory.used [MiB], hostname", *lines]) + "\n"


def of_json(rows: Sequence[Row]) -> str:
    objects = [{"ts": 1773133200 + at, "node": h, "gpu": g, "gpu_util": u, "power_w": 300} for at, h, g, u in rows]
    return "\n".join(map(json.dumps, objects)) + "\n"


def nested(rows: Sequence[Row]) -> str:
    pairs = zip(rows[::2], rows[1::2], strict=True)
    objects = [
        {"ts": 1773133200 + one[0], "host": one[1], "gpus": [{"index": g, "utilization": u} for _, _, g, u in pair]}
        for pair in pairs
        for one in pair[:1]
    ]
    return "\n".join(map(json.dumps, objects)) + "\n"


def wide(rows: Sequence[Row]) -> str:
    pairs = zip(rows[::2], rows[1::2], strict=True)
    lines = [f"{clock(one[0])},{one[1]},{one[3]},{other[3]}" for one, other in pairs]
    return "\n".join(["time,Hostname,gpu0_util,gpu1_util", *lines]) + "\n"


FORMS: list[Callable[[Sequence[Row]], str]] = [home_made, of_smi, of_json, nested, wide]


def read(folder: Path, text: str) -> Telemetry:
    path = folder / "log.txt"
    path.write_text(text)
    return read_telemetry(path, timezone="UTC")


def means(telemetry: Telemetry) -> dict[str, float]:
    return telemetry.gpu.groupby("gpu")["util_pct"].mean().to_dict()


@pytest.mark.parametrize("form", FORMS)
def test_gpus_of_several_hosts(form: Callable[[Sequence[Row]], str], tmp_path: Path) -> None:
    telemetry = read(tmp_path, form(ROWS))
    assert means(telemetry) == MEANS and telemetry.gpu["gpu"].value_counts().tolist() == [30] * 4
    assert telemetry.gpus["host"].tolist() == ["a7", "a7", "b7", "b7"]
    assert telemetry.notes[0] == HOSTS and not telemetry.problems


@pytest.mark.parametrize("form", FORMS)
def test_one_host_changes_no_name(form: Callable[[Sequence[Row]], str], tmp_path: Path) -> None:
    telemetry = read(tmp_path, form([row for row in ROWS if row[1] == "b7"]))
    assert means(telemetry) == {"0": 40.0, "1": 39.0} and HOSTS not in telemetry.notes


@pytest.mark.parametrize("form", [home_made, of_smi])
def test_hosts_one_after_the_other(form: Callable[[Sequence[Row]], str], tmp_path: Path) -> None:
    assert means(read(tmp_path, form(sorted(ROWS, key=lambda row: row[1])))) == MEANS


def test_a_dataframe() -> None:
    frame = pd.DataFrame(ROWS, columns=["time", "host", "gpu", "util_pct"])
    frame["time"] = pd.Timestamp("2026-03-10", tz="UTC") + pd.to_timedelta(frame["time"], unit="s")
    data = read_frame(frame, ReadOptions(parse_zone("UTC")))
    one = read_frame(frame[frame["host"] == "a7"], ReadOptions(parse_zone("UTC")))
    assert isinstance(data, Telemetry) and means(data) == MEANS
    assert isinstance(one, Telemetry) and means(one) == {"0": 90.0, "1": 89.0}


def test_one_gpu_a_host_and_no_index(tmp_path: Path) -> None:
    lines = [f"{clock(at)},{host},{util}" for at, host, gpu, util in ROWS if not gpu]
    telemetry = read(tmp_path, "\n".join(["time,hostname,gpu_util", *lines]) + "\n")
    assert means(telemetry) == {"a7/0": 90.0, "b7/0": 40.0} and not telemetry.problems


def test_several_gpus_a_host_and_no_index(tmp_path: Path) -> None:
    lines = [f"{clock(at)}.00{gpu},{host},{util},NVIDIA A{gpu}" for at, host, gpu, util in ROWS]
    header = "time,hostname,gpu_util,gpu_name"
    telemetry = read(tmp_path, "\n".join([header, *lines]) + "\n")
    assert means(telemetry) == MEANS
    assert telemetry.gpus["name"].tolist() == ["NVIDIA A0", "NVIDIA A1"] * 2
    alone = read(tmp_path, "\n".join([header, *(line for line in lines if "b7" in line)]) + "\n")
    assert means(alone) == {"0": 40.0, "1": 39.0} and alone.gpus["name"].tolist() == ["NVIDIA A0", "NVIDIA A1"]


def test_without_its_host_an_index_names_no_gpu(tmp_path: Path) -> None:
    rows = [(at, "" if at == 50 else host, gpu, util) for at, host, gpu, util in ROWS]
    telemetry = read(tmp_path, home_made(rows))
    assert means(telemetry) == MEANS
    assert [(problem.kind, problem.count, problem.lost) for problem in telemetry.problems] == [
        ("row that names no GPU", 4, True)
    ]
    single = read(tmp_path, home_made([row for row in rows if row[1] != "a7"]))
    assert set(single.gpu["gpu"]) == {"0", "1"} and not _lost(single.problems)


def _lost(problems: Sequence[Problem]) -> int:
    return sum(problem.count for problem in problems if problem.lost)


def test_cpu_of_several_hosts_is_left_out(tmp_path: Path) -> None:
    lines = [f"{clock(at)},{host},{gpu},{util},{20 + at % 7}" for at, host, gpu, util in ROWS]
    text = "\n".join(["time,host,gpu,gpu_util,cpu_percent", *lines]) + "\n"
    telemetry = read(tmp_path, text)
    assert not len(telemetry.host) and any("left out" in note for note in telemetry.notes)
    assert len(read(tmp_path, text.replace("b7", "a7")).host) == 30


@pytest.mark.parametrize(
    ("identities", "ids"),
    [
        ([("0", "u1", "a"), ("0", "u2", "b")], ["a/0", "b/0"]),
        ([("0", "u1", "a"), ("0", "u2", "a")], ["0", "0b"]),
        ([("0", "u1", "pod1"), ("0", "u1", "pod2"), ("1", "", "pod2")], ["0", "0", "1"]),
        ([("0", "", "n1"), ("0", "", "N1.cluster.org"), ("1", "", "n1")], ["0", "0", "1"]),
        ([("0", "", "n1.a.org"), ("0", "", "n1.b.org")], ["n1.a.org/0", "n1.b.org/0"]),
        ([("0", "", "a"), ("0", "", "")], ["0", "0"]),
        ([("a/0", "", "a"), ("b/0", "", "b"), ("0", "", "c")], ["a/0", "b/0", "c/0"]),
        ([("0", "u1", "a"), ("0", "u2", "a"), ("0", "", "b")], ["a/0", "a/0b", "b/0"]),
        ([("", "u1", "a"), ("", "u2", "a"), ("", "u3", "b")], ["a/0", "a/1", "b/0"]),
    ],
)
def test_machines(identities: list[tuple[str, str, str]], ids: list[str]) -> None:
    faces = [GpuIdentity(index=index, uuid=uuid, host=host) for index, uuid, host in identities]
    assert resolve(faces)[0] == ids


def test_logs_of_several_hosts(tmp_path: Path) -> None:
    parts = [read(tmp_path, home_made([row for row in ROWS if row[1] == host])) for host in ("a7", "b7")]
    merged = merge(parts)
    assert means(merged) == MEANS and merged.notes == (HOSTS,)
    both = merge([merged, read(tmp_path, home_made([(at, "c7", 0, 7) for at in range(0, 300, 10)]))])
    assert means(both) == {**MEANS, "c7/0": 7.0} and both.notes == (HOSTS,)


@pytest.mark.parametrize("name", ["host", "Host", "hostname", "HOSTNAME", "host_name", "node", "nodename", "Node ID"])
def test_names_of_the_column(name: str, tmp_path: Path) -> None:
    assert meaning_of(name).target == "host"
    assert means(read(tmp_path, home_made(ROWS, name))) == MEANS


@pytest.mark.parametrize("name", ["host_memory_used_mb", "system_gb", "host ram (GB)", "system_used_mb", "ram"])
def test_memory_of_the_host(name: str) -> None:
    assert meaning_of(name).target == "host.ram_used_mib"


@pytest.mark.parametrize("name", ["sys", "system", "node_1", "host_util"])
def test_what_names_no_host(name: str) -> None:
    assert meaning_of(name).target == ""


def test_numbers_with_fractions_are_no_host(tmp_path: Path) -> None:
    lines = [f"{clock(10 * at)},{1.5 * at + 0.1:.2f},0,{50 + at}" for at in range(30)]
    telemetry = read(tmp_path, "\n".join(["time,host,gpu,gpu_util", *lines]) + "\n")
    assert telemetry.gpu["gpu"].tolist() == ["0"] * 30
    assert np.array_equal(telemetry.gpu["util_pct"], np.arange(50.0, 80.0))


def _of_uuid(gpu: str, uuid: str, util_pct: float) -> Telemetry:
    times = pd.date_range("2026-03-10", periods=20, freq="10s", tz="UTC")
    samples = pd.DataFrame({"time": times, "gpu": gpu, "util_pct": util_pct})
    return Telemetry(gpu=samples, gpus=pd.DataFrame({"gpu": [gpu], "uuid": [uuid]}), reader="r")


@pytest.mark.parametrize(
    ("uuids", "paths", "labels"),
    [
        ("AB", ["run/node1.csv", "run/node2.csv"], ["node1/0", "node2/0"]),
        ("AB", ["run/node1/gpu.csv", "run/node2/gpu.csv"], ["node1/0", "node2/0"]),
        ("AB", ["run/node1.csv", "run/node1.old.csv"], ["node1/0", "node1-old/0"]),
        ("ABAB", ["a.1.csv", "b.1.csv", "a.2.csv", "b.2.csv"], ["a-1/0", "b-1/0"]),
        ("AA", ["run/node1.csv", "run/node2.csv"], ["0"]),
        ("AB", ["<DataFrame>", "<DataFrame>"], ["0", "0b"]),
        ("AB", [], ["0", "0b"]),
    ],
)
def test_logs_of_different_gpus_of_one_index(uuids: str, paths: list[str], labels: list[str]) -> None:
    merged = merge([_of_uuid("0", f"GPU-{uuid * 8}", ord(uuid)) for uuid in uuids], paths)
    assert means(merged) == dict(zip(labels, map(ord, sorted(set(uuids))), strict=True))
    assert (LOGS in merged.notes) == ("/" in labels[0])
