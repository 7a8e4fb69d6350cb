"""Memory snapshots of PyTorch: known by their first bytes, never opened, and answered with what reads them."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import gpudiag as gd
from gpudiag.readers._io.source import Source
from gpudiag.readers.identify import identify


class Trap:
    """What runs when a pickle of it is opened."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (open_trap, ("opened",))


def open_trap(word: str) -> None:
    raise AssertionError(word)


def snapshot(**beside: object) -> dict[str, object]:
    """As ``torch.cuda.memory._snapshot()`` returns it."""
    block = {"address": 139_000_000, "size": 512, "requested_size": 400, "state": "active_allocated", "frames": []}
    segment = {
        "device": 0, "address": 139_000_000, "total_size": 2_097_152, "allocated_size": 512, "active_size": 512,
        "requested_size": 400, "stream": 0, "segment_type": "small", "segment_pool_id": (0, 0), "is_expandable": False,
        "frames": [], "blocks": [block],
    }  # fmt: skip
    event = {"action": "alloc", "addr": 139_000_000, "size": 512, "stream": 0, "time_us": 1_719_260_553_557_947}
    held = {"segments": [segment], "device_traces": [[event]], "allocator_settings": {}, "external_annotations": []}
    return held | beside


def said(path: Path) -> str:
    found = identify(Source.open(path))
    assert found is not None and found[1].name == "torch-memory"
    with pytest.raises(gd.InputError) as caught:
        gd.load_run(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_is_named_and_never_opened(tmp_path: Path, protocol: int) -> None:
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(snapshot(trap=Trap()), protocol))
    assert "opens no pickle" in said(path) and "https://pytorch.org/memory_viz" in said(path)
    with pytest.raises(gd.InputError, match="memory snapshot"):
        gd.read_trace(path)
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert "memory snapshot" in said(path)


def test_a_large_one_is_known_before_its_second_key(tmp_path: Path) -> None:
    segments = [dict(snapshot()["segments"][0], address=at) for at in range(20_000)]  # type: ignore[index]
    data = pickle.dumps(snapshot(segments=segments))
    assert b"device_traces" not in data[: 256 * 1024]
    (tmp_path / "x").write_bytes(data[:500_000])
    assert "memory snapshot" in said(tmp_path / "x")


@pytest.mark.parametrize("indent", [None, 2])
def test_json_made_of_one_is_named(tmp_path: Path, indent: int | None) -> None:
    (tmp_path / "x.json").write_text(json.dumps(snapshot(), indent=indent))
    assert "gpudiag record" in said(tmp_path / "x.json")


@pytest.mark.parametrize("held", [{"segments": [{"start": 0, "end": 3, "text": "hello"}]}, {"weights": [0.5]}])
def test_other_pickles_and_segments_are_none(tmp_path: Path, held: dict[str, object]) -> None:
    (tmp_path / "a").write_bytes(pickle.dumps(held))
    (tmp_path / "b").write_text(json.dumps(held))
    assert identify(Source.open(tmp_path / "a")) is None and identify(Source.open(tmp_path / "b")) is None


def test_beside_a_run_it_disturbs_nothing(samples: Path, tmp_path: Path) -> None:
    (tmp_path / "gpu.csv").write_bytes((samples / "healthy" / "gpu.csv").read_bytes())
    alone = gd.load_run(tmp_path)
    (tmp_path / "snapshot.pickle").write_bytes(pickle.dumps(snapshot()))
    run = gd.load_run(tmp_path)
    assert run.gpu.equals(alone.gpu)
    assert [one.path for one in run.info.inputs if one.error] == ["snapshot.pickle"]
