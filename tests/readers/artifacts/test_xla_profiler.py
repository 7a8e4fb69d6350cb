"""Traces of TensorFlow's and JAX's profiler: known by the names of their planes, and answered with what reads them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.readers._io.source import Source
from gpudiag.readers.identify import identify


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes((number & 127 | 128,))
        number >>= 7
    return out + bytes((number,))


def plane(name: str, size: int = 300, number: int = 0) -> bytes:
    """Field 1 of an XSpace: a plane with its number (left out where it is 0), its name and something else."""
    body = (b"\x08" + varint(number) if number else b"") + b"\x12" + varint(len(name)) + name.encode()
    body += b"\x22" + varint(size) + b"\x01" * size
    return b"\x0a" + varint(len(body)) + body


def chrome(*processes: str, **beside: object) -> str:
    """As XLA writes ``*.trace.json.gz``."""
    events: list[dict[str, object]] = [
        {"ph": "M", "pid": at, "name": "process_name", "args": {"name": name}} for at, name in enumerate(processes)
    ]
    events.append({"ph": "X", "pid": 0, "tid": 3, "ts": 1.5, "dur": 2.0, "name": "fusion.1", "args": {"hlo_op": "a"}})
    held = {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": events}
    return json.dumps(held | beside, separators=(",", ":"))


def name_of(path: Path) -> str:
    found = identify(Source.open(path))
    return found[1].name if found else ""


@pytest.mark.parametrize(
    "data",
    [
        plane("/host:metadata") + plane("/host:CPU"),
        plane("/host:CPU", 5, 1) + plane("/device:GPU:0", 100_000, 2),
        plane("/device:GPU:0", 3_000_000, 200),
        plane("Task Environment"),
    ],
)
def test_an_xspace_is_named(tmp_path: Path, data: bytes) -> None:
    for name, written in (("vm.xplane.pb", data), ("vm.xplane.pb.gz", gzip.compress(data)), ("cut", data[:40])):
        (tmp_path / name).write_bytes(written)
        assert name_of(tmp_path / name) == "xla-profiler"
        for read in (gd.load_run, gd.read_trace):
            with pytest.raises(gd.InputError, match=r"TensorFlow's or JAX's.* nsys export") as caught:
                read(tmp_path / name)
            assert "\n" not in str(caught.value)


@pytest.mark.parametrize("processes", [("/device:GPU:0", "/host:CPU"), ("/host:CPU",), ("/device:TPU:3 (pid 3)",)])
def test_its_chrome_trace_is_named(tmp_path: Path, processes: tuple[str, ...]) -> None:
    path = tmp_path / "perfetto_trace.json.gz"
    path.write_bytes(gzip.compress(chrome(*processes).encode()))
    assert name_of(path) == "xla-profiler"
    for read in (gd.load_run, gd.read_trace):
        with pytest.raises(gd.InputError, match="TensorFlow's or JAX's"):
            read(path)


def test_a_trace_of_torch_that_has_such_a_name_stays_torchs(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(chrome("/host:CPU", schemaVersion=1, deviceProperties=[]))
    assert name_of(tmp_path / "t.json") == "torch-profiler"


@pytest.mark.parametrize(
    "data", [b"", b"\x0a", plane("weights"), plane("/tmp/a"), chrome("python 3").encode(), b'{"name": "/host:CPU"}']
)
def test_other_files_are_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)
    assert name_of(tmp_path / "x") == ""
