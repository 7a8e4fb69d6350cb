"""Which framework a run uses, as far as its inputs show: code for another one is of no use to its owner."""

from __future__ import annotations

from gpudiag.run import Run
from gpudiag.schema import has_values

LIGHTGBM_PARAMS = frozenset({"num_leaves", "min_child_samples", "min_data_in_leaf", "gpu_use_dp", "gpu_device_id"})
"""Parameters that only gradient boosting of LightGBM has."""


XGBOOST_PARAMS = frozenset(
    {"colsample_bytree", "colsample_bylevel", "colsample_bynode", "tree_method", "grow_policy", "scale_pos_weight"}
)
"""Parameters that gradient boosting has, by the names of XGBoost; networks have none of them."""


OF_TORCH = frozenset(
    {"mmengine", "mmcv", "detectron2", "yolox", "timm", "imagenet", "torchvision", "nanogpt", "deepspeed"}
)
"""Kinds of lines on steps that PyTorch programs write."""


def is_boosting(run: Run) -> bool:
    """True where the trials have parameters of LightGBM or XGBoost: of PyTorch they need nothing."""
    names = {str(name).removeprefix("params.") for name in run.trials.columns}
    return bool(names & (LIGHTGBM_PARAMS | XGBOOST_PARAMS))


def logs_like_torch(run: Run) -> bool:
    """True where lines on steps are of a PyTorch program, or name their rank as torchrun does."""
    ranks = has_values(run.steps, "rank")
    return ranks or bool(OF_TORCH & set(run.steps["series"]))


def may_be_optuna(run: Run) -> bool:
    """False where the trials come from inputs of which none is Optuna's, such as a list of tasks."""
    readers = [record.reader for record in run.info.inputs if record.reader]
    return not readers or any("optuna" in reader for reader in readers)
