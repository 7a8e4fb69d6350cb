"""NVML behind its adapter: every name exists in the installed module, and every failure becomes what it means."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from gpudiag import schema
from gpudiag.record import nvml
from gpudiag.record.nvml import FIELDS, LASTING, Nvml
from gpudiag.record.readings import DriverGone, GpuLost, NoDriver

PACKAGE = Path(nvml.__file__).parent
TREE = ast.parse(Path(nvml.__file__).read_text(encoding="utf-8"))


def used() -> dict[str, list[ast.Attribute]]:
    found: dict[str, list[ast.Attribute]] = {}
    for node in ast.walk(TREE):
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", getattr(node.value, "attr", "")) in (
            "pynvml",
            "api",
            "_api",
        ):
            found.setdefault(node.attr, []).append(node)
    return found


def test_every_name_of_nvml_exists() -> None:
    assert len(used()) > 40
    missing = [name for name in used() if not hasattr(pynvml, name)]
    assert not missing


def test_every_call_of_nvml_fits_its_signature() -> None:
    checked = 0
    for node in ast.walk(TREE):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.startswith("nvml"):
            inspect.signature(getattr(pynvml, node.func.attr)).bind(*node.args)
            checked += 1
    assert checked > 20


def test_only_the_adapter_knows_pynvml() -> None:
    for path in PACKAGE.parent.rglob("*.py"):
        if path != Path(nvml.__file__):
            assert "pynvml" not in path.read_text(encoding="utf-8"), path


def test_every_reading_is_a_column_of_the_schema() -> None:
    values = first_reading(Nvml(Api()))
    assert set(values) <= set(schema.GPU.names)
    wanted = {
        "util_pct", "mem_util_pct", "mem_used_mib", "mem_total_mib", "mem_reserved_mib", "power_w", "power_instant_w",
        "power_average_w", "power_limit_w", "energy_j", "temp_c", "mem_temp_c", "sm_clock_mhz", "mem_clock_mhz",
        "throttle_reasons", "pstate", "pcie_rx_mib_s", "pcie_tx_mib_s", "fan_pct", "enc_pct", "dec_pct",
        "ecc_uncorrected",
    }  # fmt: skip
    assert set(values) == wanted


class Api:
    """Answers like pynvml for one GPU; ``failures`` maps the name of a function to an error code."""

    def __init__(self, **failures: int) -> None:
        self.failures = failures
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        getattr(pynvml, name)  # a name that pynvml lacks fails here too
        answer = ANSWERS.get(name)

        def call(*arguments: Any) -> Any:
            self.calls.append(name)
            if name in self.failures:
                raise pynvml.NVMLError(self.failures[name])
            return answer(*arguments) if callable(answer) else answer

        return call


def field_values(_: Any, ids: list[int]) -> list[Any]:
    out = []
    for number in ids:
        value = pynvml.c_nvmlFieldValue_t()
        value.fieldId, value.valueType = number, pynvml.NVML_VALUE_TYPE_UNSIGNED_INT
        units = {"power_average_w": 71_500, "power_instant_w": 80_250, "mem_temp_c": 66, "ecc_uncorrected": 2}
        value.value.uiVal = units[FIELDS[number][0]]
        out.append(value)
    return out


def memory(_: Any, version: int | None = None) -> Any:
    plain = {"total": 1024 * 2**20, "used": 300 * 2**20}
    return SimpleNamespace(**plain, reserved=50 * 2**20) if version else SimpleNamespace(**plain)


LISTS = ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2")
ANSWERS: dict[str, Any] = {
    "nvmlSystemGetDriverVersion": b"570.86.15",
    "nvmlDeviceGetCount": 1,
    "nvmlDeviceGetHandleByIndex": "handle",
    "nvmlDeviceGetUUID": "GPU-8a1b",
    "nvmlDeviceGetName": b"NVIDIA H200",
    "nvmlDeviceGetPciInfo": SimpleNamespace(busId=b"00000000:07:00.0"),
    "nvmlDeviceGetMigMode": [0, 0],
    "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=85, memory=40),
    "nvmlDeviceGetMemoryInfo": memory,
    "nvmlDeviceGetPowerUsage": 71_250,
    "nvmlDeviceGetEnforcedPowerLimit": 700_000,
    "nvmlDeviceGetPowerManagementDefaultLimit": 750_000,
    "nvmlDeviceGetMaxClockInfo": 1980,
    "nvmlDeviceGetTotalEnergyConsumption": 123_456,
    "nvmlDeviceGetFieldValues": field_values,
    "nvmlDeviceGetTemperature": 45,
    "nvmlDeviceGetClockInfo": 1755,
    "nvmlDeviceGetCurrentClocksEventReasons": 4,
    "nvmlDeviceGetCurrentClocksThrottleReasons": 8,
    "nvmlDeviceGetPerformanceState": 0,
    "nvmlDeviceGetFanSpeed": 30,
    "nvmlDeviceGetEncoderUtilization": [1, 100],
    "nvmlDeviceGetDecoderUtilization": [2, 100],
    "nvmlDeviceGetPcieThroughput": 2048,
    "nvmlDeviceGetComputeRunningProcesses_v3": [SimpleNamespace(pid=7, usedGpuMemory=3 * 2**20)],
    "nvmlDeviceGetGraphicsRunningProcesses_v3": [],
    "nvmlDeviceGetProcessUtilization": [SimpleNamespace(pid=7, timeStamp=10, smUtil=33)],
}


def first_reading(adapter: Nvml) -> dict[str, Any]:
    return adapter.read(adapter.open()[1][0], pcie=True)


def test_units() -> None:
    values = first_reading(Nvml(Api()))
    assert values["power_w"] == 71.25 and values["power_average_w"] == 71.5 and values["power_instant_w"] == 80.25
    assert values["energy_j"] == 123.456 and values["mem_used_mib"] == 300 and values["mem_reserved_mib"] == 50
    assert values["pcie_rx_mib_s"] == 2 and values["power_limit_w"] == 700 and values["throttle_reasons"] == 4


def test_what_a_gpu_is() -> None:
    driver, (gpu,) = Nvml(Api()).open()
    assert (driver, gpu.uuid, gpu.name, gpu.bus_id) == ("570.86.15", "GPU-8a1b", "NVIDIA H200", "00000000:07:00.0")
    assert (gpu.mem_total_mib, gpu.power_limit_w, gpu.mig) == (1024, 700, False)
    assert (gpu.power_default_w, gpu.sm_clock_max_mhz) == (750, 1980)


@pytest.mark.parametrize("code", LASTING)
def test_what_is_not_supported_is_absent_and_not_asked_again(code: int) -> None:
    api = Api(nvmlDeviceGetUtilizationRates=code)
    adapter = Nvml(api)
    gpu = adapter.open()[1][0]
    for _ in range(3):
        values = adapter.read(gpu, pcie=False)
        assert "util_pct" not in values and values["power_w"] == 71.25
    assert api.calls.count("nvmlDeviceGetUtilizationRates") == 1


@pytest.mark.parametrize("code", [pynvml.NVML_ERROR_TIMEOUT, pynvml.NVML_ERROR_UNKNOWN, pynvml.NVML_ERROR_NOT_READY])
def test_a_hiccup_is_absent_once(code: int) -> None:
    api = Api(nvmlDeviceGetPowerUsage=code)
    adapter = Nvml(api)
    gpu = adapter.open()[1][0]
    assert "power_w" not in adapter.read(gpu, pcie=False)
    api.failures.clear()
    assert adapter.read(gpu, pcie=False)["power_w"] == 71.25


def test_old_drivers_answer_the_older_calls() -> None:
    old = pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
    values = first_reading(Nvml(Api(nvmlDeviceGetCurrentClocksEventReasons=old)))
    assert values["throttle_reasons"] == 8

    class OldMemory(Api):
        def __getattr__(self, name: str) -> Any:
            if name != "nvmlDeviceGetMemoryInfo":
                return super().__getattr__(name)

            def call(handle: Any, version: int | None = None) -> Any:
                if version:
                    raise pynvml.NVMLError(old)
                return memory(handle)

            return call

    values = first_reading(Nvml(OldMemory()))
    assert values["mem_used_mib"] == 300 and "mem_reserved_mib" not in values


def test_lost_and_gone_are_told_apart() -> None:
    for code, kind in (
        (pynvml.NVML_ERROR_GPU_IS_LOST, GpuLost),
        (pynvml.NVML_ERROR_RESET_REQUIRED, GpuLost),
        (pynvml.NVML_ERROR_UNINITIALIZED, DriverGone),
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, DriverGone),
    ):
        adapter = Nvml(Api(nvmlDeviceGetPowerUsage=code, nvmlDeviceGetComputeRunningProcesses_v3=code))
        gpu = adapter.open()[1][0]
        with pytest.raises(kind):
            adapter.read(gpu, pcie=False)
        with pytest.raises(kind):
            adapter.processes(gpu)


def test_no_driver_is_one_sentence() -> None:
    api = Api(nvmlInit=pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
    with pytest.raises(NoDriver, match=r"^no NVIDIA driver on this machine: NVML Shared Library Not Found\.$"):
        Nvml(api).open()


def test_a_gpu_that_is_lost_from_the_start_hides_no_other() -> None:
    class Two(Api):
        def __getattr__(self, name: str) -> Any:
            if name == "nvmlDeviceGetCount":
                return lambda: 2
            if name == "nvmlDeviceGetHandleByIndex":
                return self._handle
            return super().__getattr__(name)

        def _handle(self, index: int) -> str:
            if index == 0:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
            return "handle"

    assert [gpu.gpu for gpu in Nvml(Two()).open()[1]] == ["1"]


def test_processes_with_and_without_what_hides_them() -> None:
    adapter = Nvml(Api())
    gpu = adapter.open()[1][0]
    assert adapter.processes(gpu) == [{"pid": 7, "mem_used_mib": 3, "sm_pct": 33}]
    assert adapter.processes(gpu) == [{"pid": 7, "mem_used_mib": 3}], "the same old sample is not new"
    for code in (pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_ERROR_NOT_SUPPORTED):
        adapter = Nvml(Api(nvmlDeviceGetProcessUtilization=code))
        assert adapter.processes(adapter.open()[1][0]) == [{"pid": 7, "mem_used_mib": 3}]
    adapter = Nvml(Api(**dict.fromkeys(LISTS, pynvml.NVML_ERROR_NOT_SUPPORTED)))
    assert adapter.processes(adapter.open()[1][0]) == []


def test_mig_is_told() -> None:
    class Mig(Api):
        def __getattr__(self, name: str) -> Any:
            return (lambda handle: [1, 1]) if name == "nvmlDeviceGetMigMode" else super().__getattr__(name)

    assert Nvml(Mig()).open()[1][0].mig
