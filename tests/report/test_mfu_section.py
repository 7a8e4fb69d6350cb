"""What the report says of model FLOPs utilization."""

from __future__ import annotations

from typing import Any

import pytest
from toyrun import toy_diagnosis, typed

from gpudiag.measures.mfu import MfuProfile
from gpudiag.report._render.blocks import Note
from gpudiag.report._sections.mfu import mfu

KNOWN: dict[str, Any] = {
    "mfu_low_pct": 38.0, "mfu_high_pct": 38.0, "withheld": "", "parameters": 124e6, "trained_parameters": 124e6,
    "sharded": False,
    "parameters_from": "log", "low_tokens_s_per_gpu": 142_300.0, "high_tokens_s_per_gpu": 142_300.0,
    "training_gpus": 1.0, "dtype": "bf16", "formats": "bf16", "low_peak_tflops": 312.0, "high_peak_tflops": 312.0,
    "tensor_active_pct": None, "log_mfu_pct": None, "log_tflops": None, "log_kind": "",
    "log_low_pct": None, "log_high_pct": None,
}  # fmt: skip
NO_MFU = {"mfu_low_pct": None, "mfu_high_pct": None, "formats": "", "low_peak_tflops": None, "high_peak_tflops": None}
OF_WHAT = " Attention is not in it; embeddings and all experts of a mixture are, though a token passes few of them."


def said(**facts: Any) -> str:
    document = toy_diagnosis().to_dict()
    document["measures"]["mfu"] = {name: {"value": value, "unit": ""} for name, value in (KNOWN | facts).items()}
    notes = mfu(typed(document))
    assert all(isinstance(note, Note) for note in notes) and len(notes) < 2
    return "".join(note.text for note in notes if isinstance(note, Note))


def test_the_facts_here_are_those_of_the_measure() -> None:
    assert set(KNOWN) == set(MfuProfile.facts())


@pytest.mark.slow
def test_one_number_where_all_is_known() -> None:
    assert said() == (
        "The model did 38 % of the FLOPs that the GPU can do (MFU): 6 × 124 M parameters × 142 k tokens/s a GPU, of "
        f"312 TFLOP/s (bf16).{OF_WHAT}"
    )


@pytest.mark.slow
def test_a_bracket_says_what_would_narrow_it() -> None:
    text = said(
        mfu_low_pct=2.0, mfu_high_pct=76.0, dtype="", formats="tf32, bf16", low_peak_tflops=156.0, training_gpus=4.0,
        low_tokens_s_per_gpu=35_575.0,
    )  # fmt: skip
    assert text == (
        "The model did 2–76 % of the FLOPs that the GPUs can do (MFU): 6 × 124 M parameters × 35.6 k to 142 k tokens/s "
        f"a GPU (4 GPUs), of 156 to 312 TFLOP/s (tf32 or bf16).{OF_WHAT} To narrow it, state `dtype` and "
        "`tokens_per_step` under [training] in run.toml."
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trained", "words"),
    [(1.24e6, "2 to 4 × 124 M parameters (1.24 M of them trained)"), (62e6, "4 to 5 × 124 M parameters (62 M of")],
)
def test_frozen_parameters_take_less(trained: float, words: str) -> None:
    assert words in said(trained_parameters=trained)


@pytest.mark.slow
def test_a_count_that_may_be_of_one_rank_says_so() -> None:
    words = "2.5 to 6 × 124 M parameters (15.5 M of them trained, or that is the share of one rank)"
    assert words in said(trained_parameters=15.5e6, sharded=True)


@pytest.mark.slow
def test_trained_parameters_alone_are_a_lower_bound() -> None:
    text = said(parameters=None, mfu_high_pct=None)
    assert text.startswith(
        "The model did at least 38 % of the FLOPs that the GPU can do (MFU): 6 × 124 M trained param"
    )
    assert text.endswith("state `parameters` under [training] in run.toml.")


@pytest.mark.slow
def test_what_is_withheld_is_said_with_its_reason_and_once_with_a_remedy() -> None:
    text = said(**NO_MFU, parameters=None, trained_parameters=None, parameters_from="", withheld="Nothing states it.")
    assert text.startswith(
        "MFU, the model's part of the FLOPs that the GPU can do, is unknown. Nothing states it. State un"
    )
    assert said(**NO_MFU, withheld="It is too much.").endswith("is unknown. It is too much.")


@pytest.mark.slow
def test_the_tensor_cores_alone() -> None:
    unknown = dict.fromkeys(("low_tokens_s_per_gpu", "high_tokens_s_per_gpu"))
    assert said(**NO_MFU, **unknown, tensor_active_pct=41.2) == (
        "The tensor cores were active in 41 % of the cycles at work (DCGM), so they did at most that part of their "
        "peak, recomputation included."
    )
    assert said(**NO_MFU, **unknown) == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"log_mfu_pct": 12.1, "log_kind": "nanogpt"}, "states 12 % (of an A100's 312 TFLOP/s, whatever the GPU is)."),
        (
            {"log_mfu_pct": 40.4, "log_kind": "torchtitan", "log_tflops": 400.0},
            "states 40 % (with attention, and of an",
        ),
        ({"log_tflops": 153.38, "log_kind": "megatron"}, "states 153 TFLOP/s a GPU by its own count."),
        (
            {"log_tflops": 153.38, "log_kind": "megatron", "log_low_pct": 49.16, "log_high_pct": 98.3},
            "states 153 TFLOP/s a GPU by its own count, 49–98 % of what the GPU can do.",
        ),
    ],
)
def test_the_log_s_own_number_stands_beside_with_what_it_is_of(facts: dict[str, Any], words: str) -> None:
    assert words in said(**facts)


@pytest.mark.slow
def test_a_run_without_any_of_it_has_no_sentence() -> None:
    document = typed(toy_diagnosis().to_dict())
    assert mfu(document) == []
