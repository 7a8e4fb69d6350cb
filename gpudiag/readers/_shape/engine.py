"""What DCGM's activity of the graphics and compute engine tells of utilization.

Field 1001 is the share of time in which any part of the engine was active (DCGM, feature overview): the utilization of
a whole GPU. Of a MIG instance it is less where not all of the instance works (NVIDIA/DCGM issue 138), and of a split
GPU the busiest instance is the least that the GPU was busy.
"""

from __future__ import annotations

import pandas as pd

from gpudiag.readers._fields.dcgm_fields import ENGINE, INSTANCE

AS_UTILIZATION = "Utilization is DCGM's activity of the engine (1001), since that of the GPU (203) is not in the log."
SPLIT = "It holds activity of MIG instances: that of the busiest is the least that the utilization of its GPU was."


def settle(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The table with utilization from the engine's activity where nothing says that the GPU is split, and notes.

    A GPU is split if it has instances. It may be if utilization was recorded, which is blank under MIG.
    """
    own = [name for name in table if str(name).startswith(INSTANCE)]
    readings = [*own, ENGINE] if ENGINE in table else own
    if not readings:
        return table, []
    split = table[own].notna().any(axis=1).groupby(table["gpu"]).transform("any")
    table = table.assign(**{ENGINE: table[readings].max(axis=1)}).drop(columns=own)
    notes = [SPLIT] if split.any() else []
    if "util_pct" not in table and not split.all():
        table["util_pct"] = table[ENGINE].where(~split)
        table[ENGINE] = table[ENGINE].where(split)
        notes.append(AS_UTILIZATION)
    return table, notes
