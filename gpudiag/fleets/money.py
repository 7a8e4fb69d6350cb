"""What GPU time costs in runs whose run.toml states no price."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gpudiag.manifest import Settings
from gpudiag.report.fleet.document import RunRow


def at_price(rows: Iterable[RunRow], price_per_gpu_h: float | None) -> tuple[RunRow, ...]:
    """The rows, those without a price of their own at this one, in the currency of their run.toml."""
    return tuple(rows) if price_per_gpu_h is None else tuple(_at(row, price_per_gpu_h) for row in rows)


def _at(row: RunRow, price_per_gpu_h: float) -> RunRow:
    if row.gpu_s is None and row.reason:
        return replace(row, cost=None)  # its GPU time, and what that costs, counts with another row
    if row.price_per_gpu_h is not None:
        return row
    cost = None if row.gpu_s is None else row.gpu_s / 3600 * price_per_gpu_h
    currency = row.currency or str(Settings.model_fields["currency"].default)
    return replace(row, cost=cost, currency=currency, price_per_gpu_h=price_per_gpu_h)
