"""NVML behind the adapter protocol: the only module that knows pynvml, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pynvml

from gpudiag.record.readings import Device, DriverGone, GpuLost, NoDriver, Values
from gpudiag.units import BYTES_PER_MIB

LOST = (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED)
GONE = (
    pynvml.NVML_ERROR_UNINITIALIZED,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
)
LASTING = (
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_NO_PERMISSION,
    pynvml.NVML_ERROR_INVALID_ARGUMENT,
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
)
"""Answers that will not change while we run: the call is not made again for that GPU."""

Read = Callable[[Any, Any], Values]


class Nvml:
    """Reads GPUs through NVML. ``api`` is the module pynvml, or one that answers like it."""

    def __init__(self, api: Any = pynvml) -> None:
        self._api = api
        self._plan: dict[str, list[Read]] = {}
        self._seen_us: dict[str, int] = {}

    def open(self) -> tuple[str, tuple[Device, ...]]:
        try:
            self._api.nvmlInit()
            driver = _text(self._api.nvmlSystemGetDriverVersion())
            found = [self._device(index) for index in range(self._api.nvmlDeviceGetCount())]
        except pynvml.NVMLError as error:
            raise NoDriver(f"no NVIDIA driver on this machine: {str(error).rstrip('.')}.") from error
        devices = tuple(device for device in found if device is not None)
        self._plan = {device.uuid: [*READS, *PCIE] for device in devices}
        return driver, devices

    def read(self, device: Device, *, pcie: bool) -> Values:
        out: Values = {}
        for read in list(self._plan[device.uuid]):
            if pcie or read not in PCIE:
                out |= self._ask(read, device)
        return out

    def processes(self, device: Device) -> list[Values]:
        found: dict[int, Values] = {}
        for read in (_compute_processes, _graphics_processes):
            for process in self._try(read, self._api, device.handle) or ():
                values = found.setdefault(process.pid, {"pid": process.pid})
                if process.usedGpuMemory is not None:  # the same memory in both lists
                    values["mem_used_mib"] = process.usedGpuMemory / BYTES_PER_MIB
        if found:
            self._add_share(device, found)
        return list(found.values())

    def close(self) -> None:
        with suppress(pynvml.NVMLError):  # a driver that is gone has nothing left to let go of
            self._api.nvmlShutdown()

    def _device(self, index: int) -> Device | None:
        """What does not change about a GPU; None if it is lost already, which costs the others nothing."""
        try:
            handle = self._api.nvmlDeviceGetHandleByIndex(index)
            uuid = _text(self._api.nvmlDeviceGetUUID(handle))
        except pynvml.NVMLError as error:
            if error.value in GONE:
                raise
            return None
        memory = _optional(_memory, self._api, handle)
        limit = _optional(_power_limit, self._api, handle) | _optional(_default_limit, self._api, handle)
        clock = _optional(_highest_clock, self._api, handle)
        info = _optional(lambda api, at: {"bus_id": _text(api.nvmlDeviceGetPciInfo(at).busId)}, self._api, handle)
        mode = _optional(lambda api, at: {"mig": api.nvmlDeviceGetMigMode(at)[0]}, self._api, handle)
        named = _optional(lambda api, at: {"name": _text(api.nvmlDeviceGetName(at))}, self._api, handle)
        return Device(
            gpu=str(index),
            uuid=uuid,
            name=str(named.get("name", "")),
            bus_id=str(info.get("bus_id", "")),
            mem_total_mib=_number(memory.get("mem_total_mib")),
            power_limit_w=_number(limit.get("power_limit_w")),
            power_default_w=_number(limit.get("power_default_w")),
            sm_clock_max_mhz=_number(clock.get("sm_clock_max_mhz")),
            mig=mode.get("mig") == pynvml.NVML_DEVICE_MIG_ENABLE,
            handle=handle,
        )

    def _ask(self, read: Read, device: Device) -> Values:
        try:
            return read(self._api, device.handle)
        except pynvml.NVMLError as error:
            if error.value in LASTING:
                self._plan[device.uuid].remove(read)
            _raise_if_gone(error)
            return {}  # a timeout or a hiccup: absent this once

    def _try(self, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except pynvml.NVMLError as error:
            _raise_if_gone(error)
            return None

    def _add_share(self, device: Device, found: dict[int, Values]) -> None:
        """SM share of each process: the newest sample since the last look; none is known for an idle process."""
        since = self._seen_us.get(device.uuid, 0)
        samples = self._try(self._api.nvmlDeviceGetProcessUtilization, device.handle, since) or ()
        for sample in sorted(samples, key=lambda sample: sample.timeStamp):
            if sample.pid in found and sample.timeStamp > since and sample.smUtil <= 100:
                found[sample.pid]["sm_pct"] = sample.smUtil
            self._seen_us[device.uuid] = max(self._seen_us.get(device.uuid, 0), sample.timeStamp)


def _raise_if_gone(error: Any) -> None:
    if error.value in LOST:
        raise GpuLost(str(error)) from error
    if error.value in GONE:
        raise DriverGone(str(error)) from error


def _optional(read: Read, api: Any, handle: Any) -> Values:
    try:
        return read(api, handle)
    except (pynvml.NVMLError, UnicodeDecodeError):  # pynvml decodes a name, which need not be text
        return {}


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace").rstrip("\0") if isinstance(value, bytes) else value


def _number(value: float | int | str | None) -> float | None:
    return None if value is None else float(value)


def _either(new: Callable[[], Any], old: Callable[[], Any]) -> Any:
    """The newer of two calls, or the one that older drivers know."""
    try:
        return new()
    except pynvml.NVMLError as error:
        if error.value not in LASTING:
            raise
        return old()


def _compute_processes(api: Any, handle: Any) -> Any:
    """By version: pynvml's call without one answers a driver that lacks it with an exception that is no NVMLError."""
    return _either(
        lambda: api.nvmlDeviceGetComputeRunningProcesses_v3(handle),
        lambda: api.nvmlDeviceGetComputeRunningProcesses_v2(handle),
    )


def _graphics_processes(api: Any, handle: Any) -> Any:
    return _either(
        lambda: api.nvmlDeviceGetGraphicsRunningProcesses_v3(handle),
        lambda: api.nvmlDeviceGetGraphicsRunningProcesses_v2(handle),
    )


def _utilization(api: Any, handle: Any) -> Values:
    rates = api.nvmlDeviceGetUtilizationRates(handle)
    return {"util_pct": rates.gpu, "mem_util_pct": rates.memory}


def _memory(api: Any, handle: Any) -> Values:
    """Version 2 tells what the driver reserves apart from what is used; version 1 adds both."""
    info = _either(
        lambda: api.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2), lambda: api.nvmlDeviceGetMemoryInfo(handle)
    )
    values: Values = {"mem_used_mib": info.used / BYTES_PER_MIB, "mem_total_mib": info.total / BYTES_PER_MIB}
    return values | ({"mem_reserved_mib": info.reserved / BYTES_PER_MIB} if hasattr(info, "reserved") else {})


def _power_limit(api: Any, handle: Any) -> Values:
    return {"power_limit_w": api.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000}


def _default_limit(api: Any, handle: Any) -> Values:
    return {"power_default_w": api.nvmlDeviceGetPowerManagementDefaultLimit(handle) / 1000}


def _highest_clock(api: Any, handle: Any) -> Values:
    return {"sm_clock_max_mhz": api.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM)}


def _reasons(api: Any, handle: Any) -> Values:
    return {
        "throttle_reasons": _either(
            lambda: api.nvmlDeviceGetCurrentClocksEventReasons(handle),
            lambda: api.nvmlDeviceGetCurrentClocksThrottleReasons(handle),
        )
    }


def _performance_state(api: Any, handle: Any) -> Values:
    state = api.nvmlDeviceGetPerformanceState(handle)
    return {} if state == pynvml.NVML_PSTATE_UNKNOWN else {"pstate": state}


FIELDS = {
    pynvml.NVML_FI_DEV_POWER_AVERAGE: ("power_average_w", 1000),
    pynvml.NVML_FI_DEV_POWER_INSTANT: ("power_instant_w", 1000),
    pynvml.NVML_FI_DEV_MEMORY_TEMP: ("mem_temp_c", 1),
    pynvml.NVML_FI_DEV_ECC_DBE_VOL_TOTAL: ("ecc_uncorrected", 1),
}
_MEMBER = {
    pynvml.NVML_VALUE_TYPE_DOUBLE: "dVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
    pynvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal",
}


def _fields(api: Any, handle: Any) -> Values:
    out: Values = {}
    for value in api.nvmlDeviceGetFieldValues(handle, list(FIELDS)):
        if value.nvmlReturn == pynvml.NVML_SUCCESS and value.valueType in _MEMBER:
            name, divisor = FIELDS[value.fieldId]
            out[name] = getattr(value.value, _MEMBER[value.valueType]) / divisor
    return out


READS: tuple[Read, ...] = (
    _utilization,
    _memory,
    lambda api, at: {"power_w": api.nvmlDeviceGetPowerUsage(at) / 1000},
    _power_limit,
    lambda api, at: {"energy_j": api.nvmlDeviceGetTotalEnergyConsumption(at) / 1000},
    _fields,
    lambda api, at: {"temp_c": api.nvmlDeviceGetTemperature(at, pynvml.NVML_TEMPERATURE_GPU)},
    lambda api, at: {"sm_clock_mhz": api.nvmlDeviceGetClockInfo(at, pynvml.NVML_CLOCK_SM)},
    lambda api, at: {"mem_clock_mhz": api.nvmlDeviceGetClockInfo(at, pynvml.NVML_CLOCK_MEM)},
    _reasons,
    _performance_state,
    lambda api, at: {"fan_pct": api.nvmlDeviceGetFanSpeed(at)},
    lambda api, at: {"enc_pct": api.nvmlDeviceGetEncoderUtilization(at)[0]},
    lambda api, at: {"dec_pct": api.nvmlDeviceGetDecoderUtilization(at)[0]},
)
PCIE: tuple[Read, ...] = (
    lambda api, at: {"pcie_rx_mib_s": api.nvmlDeviceGetPcieThroughput(at, pynvml.NVML_PCIE_UTIL_RX_BYTES) / 1024},
    lambda api, at: {"pcie_tx_mib_s": api.nvmlDeviceGetPcieThroughput(at, pynvml.NVML_PCIE_UTIL_TX_BYTES) / 1024},
)
