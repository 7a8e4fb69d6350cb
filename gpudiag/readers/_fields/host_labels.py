"""Which labels of a series state the host, the index and the UUID of its GPU."""

from __future__ import annotations

from collections.abc import Mapping

_EXPORTER = ("Hostname", "hostname", "exported_hostname", "exported_instance")
_RELABELED = (
    "node",
    "kubernetes_node",
    "exported_node",
    "nodename",
    "node_name",
    "k8s_node_name",
    "host",
    "host_name",
    "exported_host",
)
HOSTS = (*_EXPORTER, *_RELABELED)
"""Those of the exporter, which Prometheus renames where it has such a label itself; then those of its own discovery."""
ADDRESS = "instance"
"""Where a series was scraped. Behind a gateway or a balancer it is one address for many hosts."""
UUIDS = ("UUID", "uuid")
"""The new name and that of old versions; one exporter writes it without ``GPU-``."""
INDEXES = ("gpu", "minor_number", "GpuIndex")
"""Those of dcgm-exporter, of jobstats and of Ray."""


def first_of(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    """The first of the labels that is not empty; empty where all are."""
    return next((labels[name] for name in names if labels.get(name)), "")


def stated_host(labels: Mapping[str, str]) -> str:
    """The host as a label names it; empty where none does."""
    return first_of(labels, HOSTS)
