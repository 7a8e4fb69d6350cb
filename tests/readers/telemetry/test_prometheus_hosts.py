"""Which GPU a series of Prometheus is of where no UUID says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpudiag.errors import InputError
from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry

BUSY = {("a", "0"): 90, ("a", "1"): 70, ("b", "0"): 50, ("b", "1"): 10}
"""Of two hosts with two GPUs each; their mean is 55 %."""
TOLD_APART = "No label states the host of GPUs with the same index: they are told apart by {}."


def _read(form: str, found: list[tuple[dict[str, str], float]], folder: Path) -> Telemetry:
    """The same readings at 4 instants as answer of the API, or as scrapes of text."""
    instants = range(1_772_409_600, 1_772_409_660, 15)
    if form == "json":
        rows = [{"metric": labels, "values": [[at, str(value)] for at in instants]} for labels, value in found]
        text = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": rows}})
    else:
        lines = []
        for at in instants:
            for labels, value in found:
                shown = ",".join(f'{name}="{label}"' for name, label in labels.items() if name != "__name__")
                lines.append(f"{labels['__name__']}{{{shown}}} {value} {at}000\n")
        text = "".join(lines)
    (folder / "answer").write_text(text)
    return read_telemetry(folder / "answer", timezone="UTC")


def _labels(**more: str) -> dict[str, str]:
    return {"__name__": "DCGM_FI_DEV_GPU_UTIL", "modelName": "A100", **more}


def _means(telemetry: Telemetry) -> dict[str, float]:
    assert not telemetry.problems
    return telemetry.gpu.groupby("gpu", observed=True)["util_pct"].mean().to_dict()


@pytest.mark.parametrize("form", ["json", "text"])
@pytest.mark.parametrize(
    "label",
    ["node", "kubernetes_node", "exported_instance", "nodename", "node_name", "exported_hostname", "host", "instance"],
)
def test_the_host_is_known_by_each_of_its_labels(label: str, form: str, tmp_path: Path) -> None:
    """Behind a gateway the address is that of the gateway, and no host."""
    gateway = {} if label == "instance" else {"instance": "gateway:9091"}
    found = [(_labels(gpu=gpu, **{label: host}, **gateway), util) for (host, gpu), util in BUSY.items()]
    telemetry = _read(form, found, tmp_path)
    assert _means(telemetry) == {"a/0": 90, "a/1": 70, "b/0": 50, "b/1": 10} and not telemetry.notes


@pytest.mark.parametrize("form", ["json", "text"])
@pytest.mark.parametrize(("label", "instance"), [("rack_unit", "gateway:9091"), ("pod", None), ("job", None)])
def test_another_label_tells_hosts_apart_that_no_label_states(
    label: str, instance: str | None, form: str, tmp_path: Path
) -> None:
    known = {"instance": instance} if instance else {}
    found = [(_labels(gpu=gpu, **{label: host}, **known), util) for (host, gpu), util in BUSY.items()]
    telemetry = _read(form, found, tmp_path)
    host = f"{instance} " if instance else ""
    assert _means(telemetry) == {
        f"{host}a/0": 90, f"{host}a/1": 70, f"{host}b/0": 50, f"{host}b/1": 10,
    }  # fmt: skip
    assert telemetry.notes == (TOLD_APART.format(label),)


@pytest.mark.parametrize("form", ["json", "text"])
def test_two_labels_together_tell_hosts_apart_that_neither_does_alone(form: str, tmp_path: Path) -> None:
    busy = {("a", "x"): 90, ("a", "y"): 70, ("b", "x"): 50, ("b", "y"): 10}
    found = [(_labels(gpu="0", rack=rack, unit=unit), util) for (rack, unit), util in busy.items()]
    telemetry = _read(form, found, tmp_path)
    assert _means(telemetry) == {"a x/0": 90, "a y/0": 70, "b x/0": 50, "b y/0": 10}
    assert telemetry.notes == (TOLD_APART.format("rack and unit"),)


@pytest.mark.parametrize("more", [{"prometheus_replica": "r"}, {"job": "j"}, {"pod": "exporter-"}])
def test_one_gpu_of_a_stated_host_that_was_scraped_twice_stays_one(more: dict[str, str], tmp_path: Path) -> None:
    found = [
        (_labels(gpu="0", node="a", **{name: value + str(at) for name, value in more.items()}), 40.0 + at)
        for at in range(2)
    ]
    telemetry = _read("json", found, tmp_path)
    assert telemetry.gpu["gpu"].unique().tolist() == ["0"]
    assert {problem.kind for problem in telemetry.problems} == {
        "duplicate sample", "duplicate sample with other values",
    }  # fmt: skip


@pytest.mark.parametrize("metric", [{}, {"pod": "a"}])
def test_an_answer_without_names_of_metrics_says_why_it_is_not_read(metric: dict[str, str], tmp_path: Path) -> None:
    rows = [{"metric": metric, "values": [[1_772_409_600, "80"]]}]
    path = tmp_path / "answer.json"
    path.write_text(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": rows}}))
    with pytest.raises(InputError, match=r"do not say of which metric .* avg by \(__name__, Hostname, gpu, UUID\)"):
        read_telemetry(path)
