"""Whether the trials of a run are the epochs of one training, as some task logs record them."""

from __future__ import annotations

import pandas as pd

_EPOCH = r"(?i)epochs?[ _#-]*\d+"


def n_epochs(trials: pd.DataFrame) -> int:
    """How many trials there are where each is named 'epoch' and a number of its own; 0 elsewhere."""
    if "name" not in trials:
        return 0
    names = trials["name"].astype("string")
    return len(trials) if names.str.fullmatch(_EPOCH).fillna(False).all() and names.is_unique else 0
