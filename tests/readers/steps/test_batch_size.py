"""What lines of logs state of the samples of a step."""

from __future__ import annotations

import pytest

from gpudiag.readers._steps.batch_size import UNKNOWN, StatedBatch, batch_size_of


@pytest.mark.parametrize(
    ("line", "n", "of_all"),
    [
        ("INFO args: batch_size=32 lr=0.001", 32, False),
        ("Namespace(batch_size=32, val_batch_size=64, test_batch_size=128)", 32, False),
        ('{"step": 5, "batch_size": 32, "eval_batch_size": 4}', 32, False),
        ("python train.py --batch-size 64 --lr 1", 64, False),
        ("Training with batch size 32.", 32, False),
        ("  Total train batch size (w. parallel, distributed & accumulation) = 1,024", 1024, True),
        ("| global batch size:    16 | lm loss: 1.07", 16, True),
        ("local batch size 1, global batch size 8, sequence length 4096", 8, True),
    ],
)
def test_stated(line: str, n: int, of_all: bool) -> None:
    assert batch_size_of(line) == (n, of_all)


@pytest.mark.parametrize(
    "line",
    [
        "  Instantaneous batch size per device = 32",
        "train_micro_batch_size_per_gpu: 4",
        "per_device_train_batch_size=8",
        "validation batch size: 64",
        "batch_size=[32, 64]",
        "batch size: 0.5",
        "batch 32/64",
        "batch_size=16 was tried before batch_size=32",
        "nothing of it",
    ],
)
def test_not_stated(line: str) -> None:
    assert batch_size_of(line) == UNKNOWN


def test_lines_before_hold_unless_they_disagree() -> None:
    log = StatedBatch()
    assert log.of_step("step 1") == UNKNOWN
    log.take("batch_size=32")
    assert log.of_step("step 1") == (32, False)
    assert log.of_step("step 2 batch_size=48") == (48, False)
    log.take("  Batch size = 8")  # of an evaluation
    assert log.of_step("step 3") == UNKNOWN
    log.take("global batch size: 64")
    assert log.of_step("step 4") == (64, True)
