"""Which node of the scheduler is which host of the telemetry: ``node7.cluster.local:9400`` is ``node7``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


def host_of_nodes(nodes: Iterable[str], hosts: Iterable[str]) -> dict[str, str]:
    """The host of each node that the telemetry has: of the same name, else of the same first label if one has it."""
    known = {host.lower(): host for host in hosts}
    short = Counter(_short(host) for host in known)
    by_short = {_short(host): known[host] for host in known if short[_short(host)] == 1}
    nodes = list(dict.fromkeys(nodes))
    alike = Counter(_short(node) for node in nodes)
    out = {}
    for node in nodes:
        host = known.get(node.lower())
        if host is None and alike[_short(node)] == 1:
            host = by_short.get(_short(node))
        if host is not None:
            out[node] = host
    return out


def _short(name: str) -> str:
    """Without port and domain; an address of numbers is itself."""
    name = name.lower().rpartition(":")[0] or name.lower() if name.count(":") == 1 else name.lower()
    return name if name.replace(".", "").isdecimal() else name.partition(".")[0]
