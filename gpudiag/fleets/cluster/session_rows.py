"""A row a session of a host, where no scheduler says who used it."""

from __future__ import annotations

from collections.abc import Iterator

from gpudiag.fleets.cluster.host_ledger import HostLedger
from gpudiag.fleets.cluster.tally import Tally, iso
from gpudiag.report.fleet.document import RunRow
from gpudiag.report.format import safe


def session_rows(ledger: HostLedger, source: str) -> Iterator[RunRow]:
    """The rows of a host; one without a session where no GPU has two samples."""
    host = safe(ledger.host)
    if not ledger.windows:
        yield RunRow(host, source, "accounted", "no GPU has two samples of its utilization in one session", host=host)
    for low, high in ledger.windows:
        tally = Tally()
        for stretch in ledger.stretches:
            if low <= stretch.start_us < high:
                tally.add(ledger, stretch.start_us, stretch.end_us, stretch.gpus)
        began = (iso(low) or "")[:16].replace("T", " ")
        name = f"{host}::{began}" if len(ledger.windows) > 1 else host
        yield RunRow(name, source, "accounted", host=host, **tally.columns())
