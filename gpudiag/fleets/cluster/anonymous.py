"""What is known of a cluster, without names of hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gpudiag.report.fleet.document import ClusterDocument


def anonymous_cluster(about: ClusterDocument, number: Mapping[str, str]) -> ClusterDocument:
    """The same with hosts as in the rows, boards without serial numbers, and rows of the map numbered."""
    hosts = {gpu.host for gpu in (*about.never_used, *about.hardly_used)}
    rest = {name: f"host {len(number) + at}" for at, name in enumerate(sorted(hosts), 1)}
    unused, hardly = (
        tuple(replace(gpu, host=number.get(gpu.host) or rest[gpu.host], uuid="") for gpu in gpus)
        for gpus in (about.never_used, about.hardly_used)
    )
    heat = about.heat and replace(about.heat, gpus=tuple(f"row {at}" for at in range(1, len(about.heat.gpus) + 1)))
    return replace(about, never_used=unused, hardly_used=hardly, heat=heat, notes=())
