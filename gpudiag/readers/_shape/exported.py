"""Tables that ``gpudiag export`` writes for other tools, known by their columns."""

from __future__ import annotations

from collections.abc import Sequence

from gpudiag.schema import TABLES

LEDGER = (("gpu", "cell", "gpu_s", "share_pct"), ("gpu", "start", "end", "cell"))


def exported_table(names: Sequence[str], *, also_gpu: bool = False) -> str:
    """Which table has these columns, all of them and in the order of the schema; empty for none.

    As text, table gpu may be anybody's who calls columns as the schema does, and is read as such.
    """
    if tuple(names) in LEDGER:
        return "ledger"
    for table in TABLES.values():
        own = [name for name in names if name in table.names]
        rest = set(names) - set(own)
        whole = own == sorted(own, key=table.names.index) and set(own) >= set(table.required)
        known = whole and len(names) > 1 and all(name.startswith(table.prefixes) for name in rest)
        if known and (also_gpu or table.name != "gpu"):
            return table.name
    return ""
