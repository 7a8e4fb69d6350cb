"""Prometheus, as text and as JSON: names old and new, units, labels, time of a scrape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gpudiag.errors import InputError
from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry

GPU = '{gpu="0",UUID="GPU-1",modelName="A100",Hostname="n1",DCGM_FI_DRIVER_VERSION="535.1"}'
SMI = '{uuid="0000-01"}'
INDEX = f"nvidia_smi_index{SMI} 3\n"


def read(text: str, folder: Path) -> Telemetry:
    path = folder / "metrics"
    path.write_text(text, encoding="utf-8")
    return read_telemetry(path, timezone="UTC")


@pytest.mark.parametrize(
    ("series", "column", "value"),
    [
        (f"DCGM_FI_DEV_GPU_UTIL{GPU} 97", "util_pct", 97),
        (f"DCGM_FI_PROF_SM_ACTIVE{GPU} 0.341", "sm_active_pct", 34.1),
        (f"DCGM_FI_PROF_SM_UTIL_RATIO{GPU} 0.341", "sm_active_pct", 34.1),
        (f"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{GPU} 5e+09", "energy_j", 5_000_000),
        (f"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{GPU} 4", "throttle_reasons", 4),
        (f"DCGM_FI_DEV_CLOCKS_EVENT_REASONS{GPU} 4", "throttle_reasons", 4),
        (f"DCGM_FI_DEV_BOARD_POWER_WATTS{GPU} 71.5", "power_w", 71.5),
        ('DCGM_FI_DEV_SM_CLOCK{gpu="0",uuid="GPU-1"} 1410', "sm_clock_mhz", 1410),
        (f"{INDEX}nvidia_smi_utilization_gpu_ratio{SMI} 0.07", "util_pct", 7),
        (f"{INDEX}nvidia_smi_memory_used_bytes{SMI} 3.3934016512e+10", "mem_used_mib", 32362),
        (f"{INDEX}nvidia_smi_clocks_current_sm_clock_hz{SMI} 1.98e+09", "sm_clock_mhz", 1980),
    ],
)
def test_values(series: str, column: str, value: float, tmp_path: Path) -> None:
    telemetry = read(series + "\n", tmp_path)
    assert telemetry.gpu[column].tolist() == pytest.approx([value])
    assert telemetry.gpu["gpu"].tolist() == ["3" if "nvidia_smi" in series else "0"]


@pytest.mark.parametrize("value", ["NaN", "9223372036854775794", "2147483632", "+Inf"])
def test_blank_values_are_unknown(value: str, tmp_path: Path) -> None:
    telemetry = read(f"DCGM_FI_DEV_SM_CLOCK{GPU} 139\nDCGM_FI_DEV_MEMORY_TEMP{GPU} {value}\n", tmp_path)
    assert "mem_temp_c" not in telemetry.gpu and telemetry.gpu["sm_clock_mhz"].tolist() == [139]


def test_what_is_known_of_the_gpu(tmp_path: Path) -> None:
    row = read(
        f"DCGM_FI_DEV_GPU_UTIL{GPU} 97\nDCGM_FI_DEV_FB_USED{GPU} 96\nDCGM_FI_DEV_FB_FREE{GPU} 904\n", tmp_path
    ).gpus
    assert row[["uuid", "name", "driver", "mem_total_mib"]].to_numpy().tolist() == [["GPU-1", "A100", "535.1", 1000]]


def test_a_series_that_comes_again_is_a_new_scrape(tmp_path: Path) -> None:
    telemetry = read("".join(f"# HELP x\nDCGM_FI_DEV_GPU_UTIL{GPU} {n}\n" for n in (1, 2, 3)), tmp_path)
    assert telemetry.gpu["util_pct"].tolist() == [1, 2, 3] and "carry no time" in telemetry.notes[0]


def test_a_date_line_or_a_timestamp_is_the_time_of_a_scrape(tmp_path: Path) -> None:
    series = f"DCGM_FI_DEV_GPU_UTIL{GPU} 1"
    dated = read(f"Sat Mar  1 10:00:00 2025\n{series}\nSat Mar  1 10:00:15 2025\n{series}\n", tmp_path)
    assert dated.gpu["time"].dt.second.tolist() == [0, 15]
    stamped = read(f"{series} 1740823200000\n{series} 1740823215500\n", tmp_path)
    assert stamped.gpu["time"].tolist()[1] == pd.Timestamp(1740823215.5, unit="s", tz="UTC") and stamped.clock == "utc"


def test_readings_of_mig_instances_are_not_the_board(tmp_path: Path) -> None:
    mig = '{gpu="0",UUID="GPU-1",GPU_I_PROFILE="1g.5gb",GPU_I_ID="7"}'
    telemetry = read(f"DCGM_FI_DEV_FB_USED{mig} 20\nDCGM_FI_DEV_POWER_USAGE{mig} 66\n", tmp_path)
    assert telemetry.gpu["power_w"].tolist() == [66] and "mem_used_mib" not in telemetry.gpu


def test_xid_and_processes(tmp_path: Path) -> None:
    app = 'nvidia_smi_compute_app_used_memory_bytes{pid="7",process_name="a \\"b\\"",uuid="0000-01"} 1048576\n'
    telemetry = read(INDEX + f"nvidia_smi_pstate{SMI} 0\n" + app, tmp_path)
    assert telemetry.processes[["gpu", "pid", "name", "mem_used_mib"]].to_numpy().tolist() == [["3", 7, 'a "b"', 1]]
    scrapes = "".join(f"DCGM_FI_DEV_XID_ERRORS{GPU} {xid}\nDCGM_FI_DEV_GPU_UTIL{GPU} 5\n" for xid in (0, 79, 79))
    events = read(scrapes, tmp_path).events
    assert events["detail"].tolist() == ["last XID error is 79"] and events["gpu"].tolist() == ["0"]


def series(labels: dict[str, str], *points: tuple[float, str]) -> dict[str, Any]:
    return {"metric": labels, "values": [list(point) for point in points]}


def answer(*rows: dict[str, Any]) -> str:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": list(rows)}})


UTIL = {"__name__": "DCGM_FI_DEV_GPU_UTIL", "gpu": "0", "UUID": "GPU-1", "Hostname": "n1", "modelName": "A100"}


def test_json_values_are_text_and_timestamps_seconds(tmp_path: Path) -> None:
    used = UTIL | {"__name__": "DCGM_FI_DEV_FB_USED"}
    text = answer(series(UTIL, (1740823200.25, "97"), (1740823215.25, "NaN")), series(used, (1740823200.25, "4096")))
    telemetry = read(text, tmp_path)
    assert telemetry.gpu["time"].tolist()[0] == pd.Timestamp(1740823200.25, unit="s", tz="UTC")
    assert telemetry.gpu["util_pct"].tolist()[0] == 97 and telemetry.gpu["util_pct"].isna().tolist() == [False, True]
    assert telemetry.gpu["mem_used_mib"].tolist()[0] == 4096 and telemetry.gpus["name"].tolist() == ["A100"]


def test_json_of_an_instant_query_and_of_another_exporter(tmp_path: Path) -> None:
    one = {"metric": {"__name__": "nvidia_smi_utilization_gpu_ratio", "uuid": "a"}, "value": [1740823200, "0.5"]}
    index = {"metric": {"__name__": "nvidia_smi_index", "uuid": "a"}, "value": [1740823200, "2"]}
    gpu = read(answer(one, index), tmp_path).gpu
    assert gpu[["gpu", "util_pct"]].to_numpy().tolist() == [["2", 50]]


def test_json_series_that_do_not_say_their_metric_are_counted(tmp_path: Path) -> None:
    nameless = {key: value for key, value in UTIL.items() if key != "__name__"}
    point = (1740823200, "1")
    telemetry = read(answer(series(UTIL, point, (-5, "1"), (1740823230, "x")), series(nameless, point)), tmp_path)
    assert [(problem.kind, problem.count) for problem in telemetry.problems] == [
        ("point that is no number", 2), ("series without a metric name", 1),
    ]  # fmt: skip
    with pytest.raises(InputError, match="holds no usable sample"):
        read(answer(series(nameless, point), series(UTIL)), tmp_path)


@pytest.mark.parametrize("name", ["Hostname", "hostname"])
def test_gpus_of_two_hosts_stay_apart_by_the_old_label_and_the_new(name: str, tmp_path: Path) -> None:
    labels = [{"gpu": "0", "UUID": f"GPU-{host}", name: host} for host in ("n1", "n2")]
    texts = (",".join(f'{key}="{value}"' for key, value in one.items()) for one in labels)
    scrape = "".join(f"DCGM_FI_DEV_GPU_UTIL{{{text}}} {util}\n" for text, util in zip(texts, (10, 90), strict=True))
    rows = [
        series({"__name__": "DCGM_FI_DEV_GPU_UTIL", "instance": "lb:9400"} | one, (1740823200, util))
        for one, util in zip(labels, ("10", "90"), strict=True)
    ]
    for text in (scrape, answer(*rows)):
        gpu = read(text, tmp_path).gpu
        assert gpu[["gpu", "util_pct"]].to_numpy().tolist() == [["n1/0", 10], ["n2/0", 90]]


def _shared(metric: str, values: dict[str | None, float], **more: str) -> list[tuple[dict[str, str], float]]:
    """Series of one GPU as dcgm-exporter writes them for pods that share it; None is the board's own."""
    board = {"__name__": metric, "gpu": "0", "UUID": "GPU-1", "hostname": "n1"} | more
    pods = {pod: {"pod": pod, "namespace": "ml", "container": "c", "pod_uid": f"uid-{pod}"} for pod in values if pod}
    return [(board | (pods[pod] if pod else {}), value) for pod, value in values.items()]


def _both(found: list[tuple[dict[str, str], float]], folder: Path) -> list[Telemetry]:
    """The same scrape as text and as the API's answer."""
    lines = []
    for labels, value in found:
        shown = ",".join(f'{key}="{text}"' for key, text in labels.items() if key != "__name__")
        lines.append(f"{labels['__name__']}{{{shown}}} {value} 1740823200000\n")
    text = answer(*(series(labels, (1740823200, str(value))) for labels, value in found))
    return [read("".join(lines), folder), read(text, folder)]


UTILIZATION, MEMORY, POWER = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_POWER_USAGE"


@pytest.mark.parametrize("turned", [False, True])
def test_a_pods_part_is_not_taken_for_the_board(turned: bool, tmp_path: Path) -> None:
    """As dcgm-exporter of 2026 writes a shared GPU: the board's series, then what each pod's processes take."""
    found = _shared(UTILIZATION, {None: 90, "a": 60, "b": 25}) + _shared(MEMORY, {None: 9000, "a": 5000, "b": 3000})
    found += _shared(POWER, {"a": 300, "b": 300})  # of the board, whoever is named
    for telemetry in _both(found[::-1] if turned else found, tmp_path):
        assert telemetry.gpu[["util_pct", "mem_used_mib", "power_w"]].to_numpy().tolist() == [[90, 9000, 300]]
        assert not telemetry.notes and not telemetry.problems


def test_without_the_boards_series_the_parts_are_added_and_it_is_said(tmp_path: Path) -> None:
    found = _shared(UTILIZATION, {"a": 60, "b": 55}) + _shared(MEMORY, {"a": 5000, "b": 3000})
    for telemetry in _both(found, tmp_path):
        assert telemetry.gpu[["util_pct", "mem_used_mib"]].to_numpy().tolist() == [[100, 8000]]
        assert telemetry.notes == (
            "No series of mem_used_mib and util_pct is of a whole board: the sum over its pods stands for it.",
        )


def test_readings_of_the_board_that_are_repeated_for_each_pod_are_not_added(tmp_path: Path) -> None:
    """As versions before 2026 write them; with labels that Prometheus renamed, and with those of the exporter's pod."""
    repeated = _shared(UTILIZATION, {"a": 40, "b": 40}) + _shared(MEMORY, {"a": 5000, "b": 5000})
    renamed = [
        ({key.replace("pod", "exported_pod"): value for key, value in labels.items()} | {"pod": "exporter-x"}, value)
        for labels, value in repeated
    ]
    for found in (repeated, renamed):
        for telemetry in _both(found, tmp_path):
            assert telemetry.gpu[["util_pct", "mem_used_mib"]].to_numpy().tolist() == [[40, 5000]]
            assert not telemetry.notes


def test_two_exporters_of_one_board_are_no_parts_of_it(tmp_path: Path) -> None:
    """Two replicas of Prometheus, or an exporter that was restarted: pods without a uid, and other values."""
    two = [({"pod": f"exporter-{name}", **UTIL}, value) for name, value in (("x", 40), ("y", 44))]
    telemetry = read(answer(*(series(labels, (1740823200, str(value))) for labels, value in two)), tmp_path)
    assert telemetry.gpu["util_pct"].tolist() == [44]
    assert [(problem.kind, problem.count) for problem in telemetry.problems] == [
        ("duplicate sample", 1), ("duplicate sample with other values", 1),
    ]  # fmt: skip


def test_a_gpu_that_is_given_to_a_pod_and_back_has_one_course(tmp_path: Path) -> None:
    free, held = UTIL, UTIL | {"pod": "a", "namespace": "ml", "container": "c"}
    rows = series(free, (1740823200, "0"), (1740823230, "1")), series(held, (1740823215, "97"))
    assert read(answer(*rows), tmp_path).gpu["util_pct"].tolist() == [0, 97, 1]


def test_json_samples_that_come_twice_are_told_apart_by_their_values(tmp_path: Path) -> None:
    again = UTIL | {"prometheus": "b"}
    same, other = (1740823200, "50"), (1740823215, "60")
    telemetry = read(answer(series(UTIL, same, other), series(again, same, (1740823215, "61"))), tmp_path)
    assert telemetry.gpu["util_pct"].tolist() == [50, 61]
    assert [(problem.kind, problem.count) for problem in telemetry.problems] == [
        ("duplicate sample", 2), ("duplicate sample with other values", 1),
    ]  # fmt: skip


RAY = {"GpuIndex": "1", "GpuDeviceName": "NVIDIA A100", "SessionName": "s", "instance": "10.0.0.1:8080"}
RAY_VALUES = {"gpus_utilization": 57, "gram_used": 20_000, "gram_available": 61_920, "gpu_power_milliwatts": 251_500}


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_metrics_of_ray(form: str, tmp_path: Path) -> None:
    text = ",".join(f'{label}="{value}"' for label, value in RAY.items())
    lines = [f"ray_node_{name}{{{text}}} {value} 1700000000000" for name, value in RAY_VALUES.items()]
    series = [
        {"metric": RAY | {"__name__": f"ray_node_{name}"}, "values": [[1_700_000_000, str(value)]]}
        for name, value in RAY_VALUES.items()
    ]
    answer = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}})
    telemetry = read("\n".join(lines) + "\n" if form == "text" else answer, tmp_path)
    assert telemetry.gpus[["gpu", "name"]].to_numpy().tolist() == [["1", "NVIDIA A100"]]
    columns = ["util_pct", "mem_used_mib", "mem_total_mib", "power_w"]
    assert telemetry.gpu[columns].to_numpy().tolist() == [[57, 20_000, 81_920, 251.5]]


def test_a_sum_over_the_gpus_of_a_ray_node_is_of_no_gpu(tmp_path: Path) -> None:
    """Older versions export it under the same name, without the label of the GPU."""
    with pytest.raises(InputError, match="no usable sample"):
        read('ray_node_gpus_utilization{ip="10.0.0.1"} 157\n', tmp_path)
