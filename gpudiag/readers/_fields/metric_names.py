"""Prometheus metrics of NVIDIA GPUs: dcgm-exporter, nvidia_gpu_exporter, the exporter of Princeton's jobstats and Ray,
and which GPU a series is of.

dcgm-exporter keeps DCGM's units; nvidia_gpu_exporter writes base units: ratios of 1, bytes, hertz, watts; that of
jobstats percents, bytes and milliwatts (https://github.com/plazonic/nvidia_gpu_prometheus_exporter).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gpudiag.readers._fields.dcgm_fields import BY_EXPORTER_NAME, ENGINE, FB_FREE, INSTANCE, Metric
from gpudiag.readers._fields.host_labels import ADDRESS, HOSTS, INDEXES, UUIDS, first_of
from gpudiag.readers._shape.snapshots import Snapshots
from gpudiag.units import MIB_PER_BYTE

_SMI = {
    "utilization_gpu_ratio": Metric("util_pct", 100),
    "utilization_memory_ratio": Metric("mem_util_pct", 100),
    "utilization_encoder_ratio": Metric("enc_pct", 100),
    "utilization_decoder_ratio": Metric("dec_pct", 100),
    "memory_used_bytes": Metric("mem_used_mib", MIB_PER_BYTE),
    "memory_total_bytes": Metric("mem_total_mib", MIB_PER_BYTE),
    "memory_reserved_bytes": Metric("mem_reserved_mib", MIB_PER_BYTE),
    "power_draw_watts": Metric("power_w"),
    "power_draw_average_watts": Metric("power_w", rank=1),
    "power_draw_instant_watts": Metric("power_w", rank=2),
    "enforced_power_limit_watts": Metric("power_limit_w"),
    "power_limit_watts": Metric("power_limit_w", rank=1),
    "temperature_gpu": Metric("temp_c"),
    "temperature_memory": Metric("mem_temp_c"),
    "clocks_current_sm_clock_hz": Metric("sm_clock_mhz", 1e-6),
    "clocks_current_memory_clock_hz": Metric("mem_clock_mhz", 1e-6),
    "fan_speed_ratio": Metric("fan_pct", 100),
    "pstate": Metric("pstate"),
    "ecc_errors_uncorrected_volatile_total": Metric("ecc_uncorrected"),
    "clocks_event_reasons_active": Metric("throttle_reasons"),
    "clocks_throttle_reasons_active": Metric("throttle_reasons", rank=1),
}
PREFIX = "nvidia_smi_"
JOBSTATS = {
    "nvidia_gpu_duty_cycle": Metric("util_pct"),
    "nvidia_gpu_memory_used_bytes": Metric("mem_used_mib", MIB_PER_BYTE),
    "nvidia_gpu_memory_total_bytes": Metric("mem_total_mib", MIB_PER_BYTE),
    "nvidia_gpu_power_usage_milliwatts": Metric("power_w", 1e-3),
    "nvidia_gpu_temperature_celsius": Metric("temp_c"),
}
"""Metrics of the exporter of jobstats, which gives a GPU under its minor number."""
METRICS: dict[str, Metric] = BY_EXPORTER_NAME | {PREFIX + name: metric for name, metric in _SMI.items()} | JOBSTATS
RAY = {
    "ray_node_gpus_utilization": Metric("util_pct"),
    "ray_node_gram_used": Metric("mem_used_mib"),
    "ray_node_gram_available": Metric(FB_FREE),
    "ray_node_gpu_power_milliwatts": Metric("power_w", 1e-3),
    "ray_node_gpu_temperature_celsius": Metric("temp_c"),
}
"""Metrics of Ray's agents. Its memory is in MiB, whatever its documentation says: its own dashboards multiply it."""
_RAY_INDEX = "GpuIndex"
"""Ray's label of a GPU; older versions export the sum of a node without it, which is of no GPU."""
PROCESS_MEMORY = PREFIX + "compute_app_used_memory_bytes"
_INFO = PREFIX + "gpu_info"
_INDEX = PREFIX + "index"


def metric_of(name: str, labels: Mapping[str, str]) -> Metric | None:
    """What a series is of; None where that is of no use, as most that is of one MIG instance and not of the board."""
    if name in RAY:
        return RAY[name] if labels.get(_RAY_INDEX) else None
    metric, instance = METRICS.get(name), labels.get("GPU_I_ID")
    if metric is None or not instance or not metric.instance:
        return metric
    return replace(metric, column=f"{INSTANCE}{instance}") if metric.column == ENGINE else None


@dataclass
class Cards:
    """Which GPU a series is of: its host, its index, or the index that another series states of its uuid.

    ``apart``: labels that tell GPUs without a uuid apart beside these (:mod:`gpudiag.readers._fields.rivals`).
    """

    apart: tuple[str, ...] = ()
    _index: dict[str, str] = field(default_factory=dict)
    _about: dict[tuple[str, str, str], dict[str, str]] = field(default_factory=dict)

    def key(self, labels: Mapping[str, str]) -> tuple[str, str, str]:
        """Host, index and uuid as far as the labels state them."""
        host = first_of(labels, (*HOSTS, ADDRESS))
        uuid = first_of(labels, UUIDS).removeprefix("GPU-")
        index = first_of(labels, INDEXES)
        if self.apart and not uuid:
            host = " ".join(filter(None, dict.fromkeys([host, *(labels.get(name, "") for name in self.apart)])))
        key = (host, index, uuid)
        about = self._about.setdefault(key, {})
        about.update(
            {
                label: labels[label]
                for label in ("modelName", "DCGM_FI_DRIVER_VERSION", "GpuDeviceName")
                if label in labels
            }
        )
        return key

    def learn(self, name: str, labels: Mapping[str, str], value: float | None) -> None:
        """Take the index, name and driver of a GPU from the series that state them."""
        if name == _INDEX and value is not None:
            self._index[self.key(labels)[2]] = f"{value:.0f}"
        elif name == _INFO and "index" in labels:
            key = self.key(labels)
            self._index[key[2]] = labels["index"]
            self._about[key].update(
                {label: labels.get(label, "") for label in ("name", "driver_version", "pci_bus_id")}
            )

    def label(self, key: tuple[str, str, str]) -> str:
        """The label of a GPU, with its host in front."""
        host, index, uuid = key
        uuids = [known[2] for known in self._about if known[0] == host and not known[1]]
        return f"{host}/{index or self._index.get(uuid) or (uuids.index(uuid) if uuid in uuids else 0)}"

    def relabel(self, snapshots: Snapshots) -> Snapshots:
        """The same snapshots with hosts left out where there is only one, and with what is known of each GPU."""
        several = len({host for host, *_ in self._about}) > 1
        for rows in (snapshots.gpu, snapshots.processes, snapshots.events):
            for row in rows:
                row["gpu"] = row["gpu"] if several else row["gpu"].split("/", 1)[1]
        sampled = {row["gpu"] for row in snapshots.gpu}
        for key, about in self._about.items():
            label = self.label(key) if several else self.label(key).split("/", 1)[1]
            if label in sampled:
                snapshots.describe(
                    label,
                    uuid=f"GPU-{key[2]}" if key[2] else None,
                    bus_id=about.get("pci_bus_id"),
                    name=about.get("name") or about.get("modelName") or about.get("GpuDeviceName"),
                    driver=about.get("driver_version") or about.get("DCGM_FI_DRIVER_VERSION"),
                )
        return snapshots
