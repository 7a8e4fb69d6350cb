"""Which framework a run uses, as far as its inputs show: code for another one is of no use to its owner."""

from __future__ import annotations

from gpudiag.run import Run

LIGHTGBM_PARAMS = frozenset({"num_leaves", "min_child_samples", "min_data_in_leaf", "gpu_use_dp", "gpu_device_id"})
"""Parameters that only gradient boosting of LightGBM has."""


def is_lightgbm(run: Run) -> bool:
    """True where the trials have parameters of LightGBM."""
    return any(str(name).removeprefix("params.") in LIGHTGBM_PARAMS for name in run.trials.columns)


def may_be_optuna(run: Run) -> bool:
    """False where the trials come from inputs of which none is Optuna's, such as a list of tasks."""
    readers = [record.reader for record in run.info.inputs if record.reader]
    return not readers or any("optuna" in reader for reader in readers)
