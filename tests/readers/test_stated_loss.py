"""Which losses that lines state are no finite numbers."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from gpudiag.load import load_run
from gpudiag.readers._steps.stated_loss import not_finite, not_finite_of, not_finite_of_trainer


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("step 50/9000 | loss nan | lr 3.00e-04", 1),
        ("step 50/9000 | loss 3.1 | lr 3.00e-04 | inference 3 ms", 0),
        ("Epoch: [0][ 10/2400]\tTime 0.1 (0.1)\tLoss nan (nan)", 1),
        ("Epoch: [0][ 10/2400]\tTime 0.1 (0.1)\tLoss 2.31e+00 (nan)", 0),
        (" iteration 10/ 100 | lm loss: NAN | loss scale: 1.0 | grad norm: 1.0 | number of nan iterations: 1 |", 1),
        (" iteration 10/ 100 | lm loss: 8.1E+00 | loss scale: 1.0 | grad norm: nan |", 0),
        ("100%|##| 10/10 [00:01<00:00, 1it/s, loss=nan]", 1),
        ("iter 5: loss tensor(nan, device='cuda:0'), time 3ms", 1),
        ("step 3 train_loss: inf, val_loss: 2.1", 1),
        ("step 3 train_loss: 1.0, val_loss: nan", 0),
        ("val_loss: nan", None),
        ("step 5 total_loss 2.3 aux_loss nan", 0),
        ("step 5 loss_cls: nan loss_box: 0.3", 0),
        ("step 5 loss_cls: nan loss_box: nan", 1),
        ("epoch 3/20 acc 0.53 best_loss inf", None),
        ("step 5 loss 0.3 best_eval_loss inf min_loss inf", 0),
        ("epoch 3 dev loss nan", None),
        ("test batch 1/4 loss nan", None),
        ("Validation: step 3 loss nan", None),
        ("val acc 0.1 train loss nan", 1),
        ("tests_of_ours.py: step 3 loss nan", 1),
        ("step 5 loss: nan loss_cls: nan loss_box: 0.3", 1),
        ("step 5 lr 0.1", None),
    ],
)
def test_the_loss_that_is_trained_on_tells(line: str, expected: int | None) -> None:
    assert not_finite(line) == expected


def test_numbers_by_name_tell_the_same() -> None:
    said = ({"train/loss": math.nan}, {"loss": "NaN"}, {"loss": 1.0, "aux_loss": math.nan}, {"eval_loss": math.nan})
    assert [not_finite_of(one) for one in said] == [1, 1, 0, None]


def test_a_loss_of_hugging_face_without_any_finite_step_is_0() -> None:
    said = ({"loss": 0.0, "grad_norm": math.nan}, {"loss": 0.0, "grad_norm": 0.0}, {"loss": 0.0},
            {"loss": 2.0, "grad_norm": math.inf}, {"loss": math.nan})  # fmt: skip
    assert [not_finite_of_trainer(one) for one in said] == [1, 0, 0, 0, 1]


@pytest.mark.parametrize("bars", [False, True])
def test_the_lines_of_hugging_face_tell_beside_bars_and_alone(tmp_path: Path, bars: bool) -> None:
    lines = []
    for step in range(10, 101, 10):
        said = "'loss': 0.0, 'grad_norm': nan" if step > 60 else "'loss': 2.5, 'grad_norm': 1.2"
        lines += [f" {step}%|##| {step}/100 [00:{step // 2:02}<00:10,  2.00it/s]"] if bars else []
        lines += [f"{{{said}, 'learning_rate': 1e-05, 'epoch': {step / 50:.2f}}}"]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    told = load_run(tmp_path).steps["not_finite"].dropna().astype(int).tolist()
    assert told == [0] * 6 + [1] * 4
