"""Names of parameters and attributes that say how much work a trial is."""

from __future__ import annotations

import re

REPEATS = (
    "n_estimators",
    "num_iterations",
    "num_boost_round",
    "iterations",
    "n_iter",
    "epoch",
    "epochs",
    "n_epochs",
    "num_epochs",
    "max_epochs",
    "max_steps",
    "n_steps",
    "num_steps",
    "num_train_epochs",
    "train_epochs",
    "total_timesteps",
)
"""Parameters that repeat the same work: twice the value is at least about twice the work."""
SIZES = ("num_leaves", "max_leaves")
"""Limits on the size of one repetition: work grows with them only where they bind, so they raise the upper bound."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WHOLE = frozenset((*REPEATS, *SIZES)) | _words(
    "dataset data corpus split fold folds kfold cv subset fraction resolution imgsz n_train n_ctx ctx_len block_size "
    "image_res crop_size model arch architecture backbone width depth hidden channels base_model model_type model_id "
    "model_name_or_path pretrained_model_name_or_path n_params num_params n_parameters num_parameters total_params "
    "trainable_params intermediate_size d_ff d_model max_depth max_leaf_nodes timesteps"
)
"""Names that stand for themselves; of the others each part must be in one of the lists below."""
_HOW_MANY = _words("n nb num number of max maximum limit total count train training env k data dataset")
_COUNTED = _words(
    "epoch epochs step steps timesteps iter iters iteration iterations updates episodes frames batches samples "
    "examples instances records rows images sequences documents tokens estimators trees rounds fold folds splits"
)
_OF_DATA = _words("data dataset train training corpus subset sample test val validation")
_PART = _words("size fraction frac percent pct portion ratio split subset len length")
_READ = _words("data dataset train training corpus")
_SOURCE = _words("path dir file files name version root folder url set dataset data")
_OF_INPUT = _words("max seq sequence context ctx input image img clip crop")
_LENGTH = _words("len length size resolution frames")
_OF_MODEL = _words(
    "n num number of hidden attention transformer encoder decoder model conv mlp ffn embed embedding embd feature "
    "features layer head"
)
_PIECE = _words(
    "layer layers head heads block blocks units neurons hidden dim dims width depth channels filters size embd "
    "features name experts"
)
_PAIRS = ((_HOW_MANY, _COUNTED), (_OF_DATA, _PART), (_READ, _SOURCE), (_OF_INPUT, _LENGTH), (_OF_MODEL, _PIECE))


def plain(name: str) -> str:
    """A name in one spelling: maxIter, max-iter and train.max_iter are max_iter."""
    last = re.split(r"[./:]", name)[-1]
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", last).lower().replace("-", "_").strip("_")


def sets_work(name: str) -> bool:
    """Whether another value is another amount of work: by the whole name, or by parts that all say so.

    max_train_samples counts data; num_workers, warmup_steps and train_batch_size do not, nor does max_size.
    """
    whole = plain(name)
    *parts, last = whole.split("_")
    first = frozenset(parts)
    if whole in _WHOLE or not first or whole == "max_size":
        return whole in _WHOLE
    return any(first <= before and last in behind for before, behind in _PAIRS)
