"""Which names of parameters and attributes say that a trial is other work, and what is said of the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from batchruns import batch

from gpudiag.comparison.compare import Comparison, compare
from gpudiag.comparison.named_work import sets_work

A = np.random.default_rng(2).normal(60, 5, 24)


@pytest.mark.parametrize(
    "name",
    [
        "limit_train_batches", "max_train_samples", "train_samples", "total_timesteps", "max_iter", "dataset_size",
        "data_fraction", "train_file", "n_folds", "folds", "cv", "epoch", "num_train_examples", "maxIter", "max-epochs",
        "trainer.max_steps", "val_split", "max_seq_len", "n_layer", "num_hidden_layers", "embed_dim", "MAX_EPOCHS",
    ],
)  # fmt: skip
def test_a_name_whose_parts_count_work_sets_it(name: str) -> None:
    assert sets_work(name)


@pytest.mark.parametrize(
    "name",
    [
        "num_workers", "batch_size", "train_batch_size", "warmup_steps", "eval_steps", "save_steps", "n_jobs",
        "patience",
        "gradient_accumulation_steps", "log_every_n_steps", "early_stopping_rounds", "best_epoch", "dataset_num_proc",
        "model_parallel_size", "max_size", "max_grad_norm", "output_dir", "precision", "git_commit", "num_shards",
    ],
)  # fmt: skip
def test_what_may_be_the_change_that_is_tested_does_not(name: str) -> None:
    assert not sets_work(name)


def compared(attribute: str, *, named: bool = False) -> tuple[Comparison, str, str]:
    runs = [
        batch(n, seconds, named=named, params={"lr": 0.1}, begin_s=begin)
        for n, seconds, begin in (("a", A, 0.0), ("b", 0.5 * A[::-1], 9e4))
    ]
    runs = [
        replace(one, trials=one.trials.assign(**{f"user_attrs.{attribute}": value}))
        for one, value in zip(runs, (50, 10), strict=True)
    ]
    found = compare(*runs)
    assert isinstance(found, Comparison)
    check = next(c for c in found.gate if c.check == "same-workload")
    return found, check.status, str(check.evidence)


@pytest.mark.slow
def test_less_data_is_not_faster() -> None:
    found, status, evidence = compared("max_train_samples")
    assert found.verdict == "invalid" and status == "fail" and "max_train_samples" in evidence
    of_names, status, evidence = compared("max_train_samples", named=True)
    assert status == "unknown" and "max_train_samples" in evidence and not of_names.invalid


@pytest.mark.slow
def test_a_changed_attribute_that_is_no_work_is_said() -> None:
    found, status, evidence = compared("attention_backend")
    assert found.verdict == "faster" and status == "pass"
    assert "attention_backend; this is taken for the change that is tested" in evidence
