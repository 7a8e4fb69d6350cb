"""Series that would be one GPU's but differ at one instant, and the labels by which they are several GPUs.

One GPU has one reading at one instant. Without a UUID, series of one host and index that differ there are of hosts that
no known label states, and some other label tells them apart.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from gpudiag.readers._fields.dcgm_fields import XID, Metric, is_blank
from gpudiag.readers._fields.host_labels import INDEXES, UUIDS, stated_host
from gpudiag.readers._shape.pods import LABELS, uid

_COPIES = frozenset({"prometheus", "prometheus_replica", "replica", "receive_replica", "__replica__"})
"""Which of several servers scraped the same exporter."""
_SCRAPED = LABELS | {"job", "endpoint", "service"}
"""Of what ran there, and of how it was scraped: one GPU of a known host may have several of them."""
_NEVER = frozenset({"__name__", *UUIDS, *INDEXES}) | _COPIES
_Labels = Mapping[str, str]


@dataclass
class Rivals:
    """Takes readings of one instant after the other, and keeps pairs of series that cannot be one GPU's."""

    _now: dict[Hashable, list[tuple[_Labels, float]]] = field(default_factory=dict)
    _pairs: dict[tuple[int, int], tuple[_Labels, _Labels]] = field(default_factory=dict)

    def add(self, of: Hashable, metric: Metric, labels: _Labels, value: float | None) -> None:
        """A reading; ``of`` is the GPU as the known labels state it, the metric and, if wanted, the instant.

        ``labels`` is one object a series. Left out are parts of a board, and a code that stays until another comes.
        """
        part = uid(labels) or labels.get("GPU_I_ID")
        if value is None or value != value or is_blank(value) or metric.column == XID or part:
            return
        there = self._now.setdefault(of, [])
        for other, known in there:
            if known != value and other is not labels:
                self._pairs.setdefault((id(other), id(labels)), (other, labels))
        there.append((labels, value))

    def next(self) -> None:
        """What was added is of an instant before."""
        self._now.clear()

    def told_apart_by(self) -> tuple[str, ...]:
        """The one label that separates most of the pairs, or all labels where these separate more; none of no use."""
        pairs = list(self._pairs.values())
        hosted = any(stated_host(labels) for pair in pairs for labels in pair)
        never = _NEVER | _SCRAPED if hosted else _NEVER
        names = sorted({name for pair in pairs for labels in pair for name in labels} - never)

        def left(by: tuple[str, ...]) -> int:
            return sum(all(one.get(name) == other.get(name) for name in by) for one, other in pairs)

        def n_values(by: tuple[str, ...]) -> int:
            return len({tuple(labels.get(name) for name in by) for pair in pairs for labels in pair})

        ways = [(), *((name,) for name in names), tuple(name for name in names if left((name,)) < len(pairs))]
        return min(ways, key=lambda by: (left(by), len(by), n_values(by)))


def hosts_note(labels: tuple[str, ...]) -> list[str]:
    """A sentence where labels tell GPUs apart that are of no host."""
    listed = " and ".join(labels)
    return [f"No label states the host of GPUs with the same index: they are told apart by {listed}."] if labels else []
