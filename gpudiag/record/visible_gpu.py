"""The GPU of this process, where it is one: what CUDA shows it, as NVML names it."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache

from gpudiag.record.nvml import Nvml
from gpudiag.record.readings import Device, NoDriver
from gpudiag.record.torch_cuda import torch_cuda


def visible_gpu() -> str:
    """Uuid of the one GPU that this process uses or may see; empty where that is none or several."""
    torch = torch_cuda()
    if torch is not None:
        with suppress(Exception):
            uuid = str(torch.get_device_properties(torch.current_device()).uuid)
            return uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
    devices = {device.gpu: device for device in known_devices()[1]}
    mask = _mask()
    names = list(devices) if mask is None else mask
    if len(names) != 1:
        return ""
    if names[0].startswith(("GPU-", "MIG-")):
        return names[0]
    # An index counts as CUDA orders GPUs, which is NVML's order only if it was asked to be.
    ordered = len(devices) == 1 or _in_order() or mask is None
    return devices[names[0]].uuid if ordered and names[0] in devices else ""


def visible_gpus() -> tuple[str, ...] | None:
    """Uuids of the GPUs that ``CUDA_VISIBLE_DEVICES`` leaves to this process, all of them without it; None where it
    does not tell which. An index counts as NVML's where ``CUDA_DEVICE_ORDER`` says so, and where all boards are alike.
    """
    devices = known_devices()[1]
    mask = _mask()
    if mask is None:
        return tuple(device.uuid for device in devices)
    ordered = len({device.name for device in devices}) == 1 or _in_order()
    found = []
    for name in mask:
        if name.startswith("MIG-"):
            return None
        one = next((d.uuid for d in devices if d.uuid.startswith(name) or d.gpu == name), "") if name else ""
        if not one:
            break  # CUDA takes those before the first that it does not know
        if not ordered and not name.startswith("GPU-"):
            return None
        found.append(one)
    return tuple(found)


def _mask() -> list[str] | None:
    """What ``CUDA_VISIBLE_DEVICES`` lists; None where it is not set."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    return None if given is None else [part.strip() for part in given.split(",")]


def _in_order() -> bool:
    """Whether CUDA was asked to count GPUs as NVML does."""
    return os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"


@cache
def known_devices() -> tuple[Nvml | None, tuple[Device, ...]]:
    """NVML, opened once a process, and its GPUs; None and () without a driver."""
    try:
        adapter = Nvml()
        return adapter, adapter.open()[1]
    except NoDriver:
        return None, ()
