"""Mean utilization of every GPU by day or hour, with as few rows and columns as a picture can show. A GPU and the one
that replaced it are one row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpudiag.fleets.cluster.host_ledger import HOUR_US, HostLedger
from gpudiag.fleets.cluster.tally import iso
from gpudiag.report.fleet.document import SHORT, HeatMap
from gpudiag.report.format import safe

MOST_ROWS, MOST_COLUMNS = 64, 96
MOST_DAYS = 800
"""Over a longer time, as one wrong clock makes it, there is no map."""
WIDTHS_H = (1, 2, 3, 6, 12, 24, 48, 7 * 24, 14 * 24)


def heat_map(ledgers: Sequence[HostLedger]) -> HeatMap | None:
    """The map; None where there is nothing to draw. More than MOST_ROWS GPUs are a row a host; of more hosts
    than that, several are a row.
    """
    known = [ledger for ledger in ledgers if len(ledger.bins_us)]
    if not known:
        return None
    low = min(int(ledger.bins_us[0]) for ledger in known)
    high = max(int(ledger.bins_us[-1]) + ledger.bin_us for ledger in known)
    if high - low > MOST_DAYS * 24 * HOUR_US:
        return None
    finest = max(ledger.bin_us for ledger in known)
    widths = [hours * HOUR_US for hours in WIDTHS_H if hours * HOUR_US >= finest]
    width = next((one for one in widths if (high - low) <= MOST_COLUMNS * one), widths[-1])
    low = low // width * width
    columns = -(-(high - low) // width)
    rows, names = _rows(known)
    work, seen = np.zeros((len(names), columns)), np.zeros((len(names), columns))
    for ledger, row_of_slot in zip(known, rows, strict=True):
        place = ((ledger.bins_us - low) // width).astype(int)
        for slot, own, observed in zip(ledger.slots, ledger.work, ledger.seen_us, strict=True):
            np.add.at(work[row_of_slot[slot]], place, own)
            np.add.at(seen[row_of_slot[slot]], place, observed)
    first, last = _full(seen.sum(axis=0))
    low, columns, work, seen = low + first * width, last - first, work[:, first:last], seen[:, first:last]
    with np.errstate(invalid="ignore"):
        mean = np.where(seen > 0, work / np.where(seen > 0, seen, 1), np.nan)
    return HeatMap(
        gpus=tuple(names),
        n_together=int(np.bincount(np.concatenate(rows)).max()),
        start=tuple(iso(low + column * width) or "" for column in range(columns)),
        width_h=width / HOUR_US,
        mean_pct=tuple(tuple(None if np.isnan(pct) else round(float(pct), 1) for pct in row) for row in mean),
    )


def _full(seen: np.ndarray) -> tuple[int, int]:
    """The columns from the first to the last that has more than next to nothing: half a sampling period that lies
    before midnight is no day.
    """
    known = seen[seen > 0]
    places = np.flatnonzero(seen >= SHORT * np.median(known)) if len(known) else np.arange(len(seen))
    return int(places[0]), int(places[-1]) + 1


def _rows(ledgers: Sequence[HostLedger]) -> tuple[list[np.ndarray], list[str]]:
    """The row of each slot of each host, and the names of the rows."""
    sizes = [len(ledger.slot_names) for ledger in ledgers]
    if sum(sizes) <= MOST_ROWS:
        rows = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
        return rows, [safe(f"{one.host}/{name}") for one in ledgers for name in one.slot_names]
    together = -(-len(ledgers) // MOST_ROWS)
    hosts = [safe(ledger.host) for ledger in ledgers]
    parts = [hosts[at : at + together] for at in range(0, len(hosts), together)]
    names = [part[0] if len(part) == 1 else f"{part[0]} to {part[-1]}" for part in parts]
    return [np.full(size, at // together) for at, size in enumerate(sizes)], names
