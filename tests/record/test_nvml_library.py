"""The recorder on a shared library that answers as NVML does: every value, error code and restart goes through ctypes.

Expected values are worked out from what the library answers (bytes, milliwatts, KiB/s) and by no code of gpudiag.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from stubdriver import MIB, Answers, StubDriver, build, h200

from gpudiag import read_telemetry
from gpudiag.readers.base import Telemetry

Make = Callable[..., StubDriver]
FAST = ("--interval", "0.05")
READINGS = {
    "util_pct": 85, "mem_util_pct": 40, "mem_used_mib": 12_000, "mem_total_mib": 143_771, "mem_reserved_mib": 600,
    "power_w": 410.25, "power_average_w": 409.5, "power_instant_w": 431.25, "power_limit_w": 700,
    "energy_j": 123_456.789, "temp_c": 61, "mem_temp_c": 72, "sm_clock_mhz": 1755, "mem_clock_mhz": 3201,
    "throttle_reasons": 4, "pstate": 0, "enc_pct": 1, "dec_pct": 2,
}  # fmt: skip
"""What an H200 of the stub reads in columns of gpudiag, PCIe apart."""


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def make(library: Path, tmp_path: Path) -> Make:
    def stub(*gpus: dict[str, Answers], **more: object) -> StubDriver:
        return StubDriver(library, tmp_path, list(gpus), **more)  # type: ignore[arg-type]

    return stub


def recorded(stub: StubDriver, *options: str, seconds: float = 0.4, prelude: str = "") -> Telemetry:
    ran = stub.record(*FAST, *options, seconds=seconds, prelude=prelude)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    return read_telemetry(stub.path)


def of(telemetry: Telemetry, gpu: str) -> pd.DataFrame:
    return telemetry.gpu[telemetry.gpu["gpu"] == gpu].reset_index(drop=True)


def events(telemetry: Telemetry, kind: str) -> list[str]:
    return list(telemetry.events.loc[telemetry.events["kind"] == kind, "detail"])


@pytest.mark.slow
def test_several_gpus_with_all_that_they_answer(make: Make) -> None:
    util = [[10, 20, 30, 40], [99, 98], [0]]
    stub = make(*(h200(n, util=list(values), power=100_500 + n) for n, values in enumerate(util)))
    told = recorded(stub)
    for n, values in enumerate(util):
        rows = of(told, str(n))
        assert len(rows) >= 5
        assert list(rows["util_pct"]) == [*values, *[values[-1]] * (len(rows) - len(values))]
        expected = {**READINGS, "power_w": 100.5 + n / 1000}
        for name in sorted(set(expected) - {"util_pct"}):
            np.testing.assert_allclose(rows[name].astype(float), expected[name], atol=5e-4, err_msg=name)
        gpu = told.gpus.set_index("gpu").loc[str(n)]
        assert gpu["uuid"] == f"GPU-{n}{'cd' * 8}" and gpu["bus_id"] == f"00000000:0{n}:00.0"
        assert gpu["name"] == "NVIDIA H200" and gpu["driver"] == "570.86.15"
        assert gpu["mem_total_mib"] == 143_771 and gpu["power_limit_w"] == 700
    assert stub.calls(8)["shutdown"] == 1, "let go of at the end"


@pytest.mark.slow
def test_pcie_is_read_in_turns_and_in_its_own_direction(make: Make) -> None:
    rows = of(recorded(make(h200(0))), "0")
    read = rows.dropna(subset="pcie_rx_mib_s")
    assert 0 < len(read) < len(rows), "40 ms of each 50 ms would go into it"
    assert set(read["pcie_rx_mib_s"]) == {2} and set(read["pcie_tx_mib_s"]) == {1}


@pytest.mark.slow
def test_what_a_gpu_does_not_support_is_absent_and_asked_once(make: Make) -> None:
    stub = make({"uuid": "GPU-bare", "power": 71_000, "mem_total": 8 * MIB})
    rows = of(recorded(stub), "0")
    assert set(rows.columns) == {"time", "gpu", "power_w"}
    calls = stub.calls(0)
    assert calls["power"] == len(rows) > 3
    assert {calls[key] for key in ("util", "energy", "temp", "fan", "event_reasons", "reasons", "encoder")} == {1}


@pytest.mark.slow
def test_a_fan_and_a_hiccup(make: Make) -> None:
    """NVML_ERROR_TIMEOUT passes: that value is absent once, and the others of that moment are there."""
    rows = of(recorded(make(h200(0, fan=35, temp=[50, "!10", 52, 53]))), "0")
    assert list(rows["temp_c"].fillna(-1)[:4]) == [50, -1, 52, 53]
    assert set(rows["fan_pct"]) == {35} and set(rows["util_pct"]) == {85}


@pytest.mark.slow
def test_a_gpu_in_mig_mode_has_no_utilization(make: Make) -> None:
    told = recorded(make(h200(0, mig=1, util=None), h200(1)))
    split = of(told, "0")
    assert "util_pct" not in split.dropna(axis="columns", how="all") and set(split["mem_used_mib"]) == {12_000}
    (event,) = told.events[told.events["kind"] == "mig"].to_dict("records")
    assert event["gpu"] == "0" and "no utilization" in event["detail"]
    assert set(of(told, "1")["util_pct"]) == {85}


@pytest.mark.parametrize(
    ("code", "words"), [(15, "GPU is lost"), pytest.param(16, "GPU requires restart", marks=pytest.mark.slow)]
)
@pytest.mark.slow
def test_a_gpu_that_is_lost_is_an_event_and_the_other_goes_on(make: Make, code: int, words: str) -> None:
    told = recorded(make(h200(0), h200(1, util=[40, 41, f"!{code}"])))
    assert list(of(told, "1")["util_pct"]) == [40, 41]
    assert len(of(told, "0")) >= 5 and set(of(told, "0")["util_pct"]) == {85}
    (event,) = told.events[told.events["kind"] == "gpu_lost"].to_dict("records")
    assert (event["gpu"], event["detail"]) == ("1", f"{words}: NVIDIA H200")


@pytest.mark.slow
def test_a_gpu_that_is_lost_while_its_processes_are_read(make: Make) -> None:
    told = recorded(make(h200(0, compute=["none", "none", "!15"])), "--processes")
    assert len(events(told, "gpu_lost")) == 1 and len(of(told, "0")) >= 2
    assert events(told, "command_end") == ["exit code 0"]


@pytest.mark.slow
def test_a_gpu_that_is_lost_before_the_start_hides_no_other(make: Make) -> None:
    told = recorded(make(h200(0, handle="!15"), h200(1)))
    assert set(told.gpu["gpu"]) == {"1"} and list(told.gpus["uuid"]) == [f"GPU-1{'cd' * 8}"]


@pytest.mark.slow
def test_a_driver_that_restarts_is_opened_again_and_its_gpus_keep_their_names(make: Make) -> None:
    """It is gone for two tries and numbers the GPUs the other way round when it is back."""
    uuids = [f"GPU-{'ab' * 8}", f"GPU-{'cd' * 8}"]
    first = h200(0, uuid=[*uuids], util=[11, 12, "restart", 21])
    second = h200(0, uuid=[*uuids[::-1]], util=[51, 52, 61])
    stub = make(first, second, init=["ok", "!9", "!18", "ok"])
    told = recorded(stub, seconds=0.8, prelude="import gpudiag.record.sampler as s; s.REOPEN_S = 0.1")
    assert events(told, "driver_gone") == ["the driver answers no more: Uninitialized"]
    assert events(told, "driver_back") == ["driver 570.86.15 answers again for 2 GPUs"]
    assert list(told.gpus.sort_values("gpu")["uuid"]) == uuids
    back = told.events.loc[told.events["kind"] == "driver_back", "time"].iloc[0]
    gone = told.events.loc[told.events["kind"] == "driver_gone", "time"].iloc[0]
    assert not told.gpu["time"].between(gone, back - pd.Timedelta("50ms")).any(), "nothing is made up for that time"
    for gpu, before, after in (("0", [11, 12], 61), ("1", [51, 52], 21)):
        rows = of(told, gpu)
        assert list(rows["util_pct"][:2]) == before
        assert len(rows) > 4 and set(rows["util_pct"][2:]) == {after}, "read with the handles of the new session"


@pytest.mark.slow
def test_slow_calls_leave_ticks_out_and_make_none_up(make: Make) -> None:
    told = recorded(make(h200(0, util=[*(f"{n}~180" for n in range(1, 20))])), seconds=0.8)
    rows = of(told, "0")
    assert list(rows["util_pct"]) == list(range(1, len(rows) + 1)), "one row a call"
    gaps_s = rows["time"].diff().dropna().dt.total_seconds()
    assert gaps_s.min() > 0.17 and 3 <= len(rows) <= 7
    (end,) = events(told, "record_end")
    ticks, missed = map(int, re.findall(r"\d+", end))
    assert ticks == len(rows)
    span_s = (rows["time"].iloc[-1] - rows["time"].iloc[0]).total_seconds()
    assert ticks + missed == pytest.approx(span_s / 0.05 + 4, abs=2), "those left out are counted"


@pytest.mark.slow
def test_processes_with_and_without_what_hides_them(make: Make) -> None:
    """The list grows between the question for its size and that for its entries; one process hides its memory."""
    compute: list[int | str] = ["4242:3145728", "4242:3145728 4243:N/A"] * 2 + ["4242:6291456 4243:N/A 4244:1048576"]
    stub = make(h200(0, compute=compute, graphics="4244:1048576", shares="4242:33 4244:255"), h200(1, compute="none"))
    told = recorded(stub, "--processes")
    assert set(told.processes["gpu"]) == {"0"}
    of_pid = {pid: rows for pid, rows in told.processes.groupby("pid")}
    assert set(of_pid) == {4242, 4243, 4244}
    used = of_pid[4242]["mem_used_mib"]
    assert list(used[:2]) == [3, 3] and set(used[2:]) == {6}
    assert of_pid[4243]["mem_used_mib"].isna().all() and set(of_pid[4244]["mem_used_mib"]) == {1}
    assert set(of_pid[4242]["sm_pct"]) == {33}
    assert of_pid[4244]["sm_pct"].isna().all() and of_pid[4243]["sm_pct"].isna().all(), "255 is no share"


@pytest.mark.slow
def test_an_old_driver_lacks_symbols_and_answers_by_those_that_it_has(tmp_path: Path) -> None:
    """470 knows no memory of version 2, no event reasons, no processes of version 3 and no power fields."""
    folder = tmp_path / "470"
    folder.mkdir()
    old = h200(
        0, field_185="!2", field_186=None, event_reasons=64, reasons=8, compute="7:2097152", graphics="9:1048576"
    )
    stub = StubDriver(build(folder, "-DNVML_STUB_R470"), tmp_path, [old], driver="470.256.02")
    told = recorded(stub, "--processes")
    rows = of(told, "0")
    assert not {"mem_reserved_mib", "power_average_w", "power_instant_w"} & set(rows.columns)
    assert set(rows["mem_used_mib"]) == {12_600}, "version 1 counts what the driver reserves as used"
    assert set(rows["throttle_reasons"]) == {8} and set(rows["mem_temp_c"]) == {72}
    assert set(zip(told.processes["pid"], told.processes["mem_used_mib"], strict=True)) == {(7, 2), (9, 1)}
    assert list(told.gpus["driver"]) == ["470.256.02"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("!9", "Driver Not Loaded"),
        ("!18", "RM has detected an NVML/RM version mismatch"),
        ("!31", "error 31 of the stub"),
    ],
)
def test_a_driver_that_does_not_start_is_one_sentence_and_the_command_is_not_started(
    make: Make, answer: str, why: str
) -> None:
    stub = make(h200(0), init=[answer])
    ran = stub.record()
    assert (ran.returncode, ran.stdout) == (2, "") and not stub.path.exists()
    assert ran.stderr == f"gpudiag: no NVIDIA driver on this machine: {why}.\n"


@pytest.mark.slow
def test_a_driver_without_a_gpu_is_one_sentence(make: Make) -> None:
    ran = make().record()
    assert (ran.returncode, ran.stderr) == (2, "gpudiag: the NVIDIA driver 570.86.15 sees no GPU on this machine.\n")


@pytest.mark.slow
def test_a_name_that_is_no_text_costs_no_more_than_the_name(make: Make) -> None:
    told = recorded(make(h200(0, name="NVIDIA \udcff\udcfe")))
    assert set(of(told, "0")["util_pct"]) == {85}
    assert told.gpus["uuid"].notna().all() and "name" not in told.gpus.dropna(axis="columns", how="all")


@pytest.mark.slow
def test_gpus_are_chosen_by_index_and_by_the_beginning_of_a_uuid(make: Make) -> None:
    told = recorded(make(h200(0), h200(1, util=7), h200(2)), "--gpus", f"GPU-1{'cd' * 4},2")
    assert set(told.gpu["gpu"]) == {"1", "2"} and set(of(told, "1")["util_pct"]) == {7}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["thread", "process"])
def test_recorder_in_a_training(make: Make, mode: str) -> None:
    stub = make(h200(0, util=[10, 20, 30]), h200(1))
    code = (
        "import sys, time, gpudiag as gd\n"
        "with gd.Recorder(sys.argv[1], interval_s=0.05, host=False, mode=sys.argv[2]) as rec:\n"
        "    time.sleep(0.5)\n"
        "    print(rec.status_line())\n"
    )
    ran = stub.python(code, str(stub.path), mode)
    assert ran.stderr == "" and ran.stdout == "GPU: 30/85% | VRAM:11.7/140.4GB(8.3%)\n"
    told = read_telemetry(stub.path)
    assert list(of(told, "0")["util_pct"][:3]) == [10, 20, 30] and set(of(told, "1")["util_pct"]) == {85}
