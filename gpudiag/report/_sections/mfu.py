"""Model FLOPs utilization in sentences: the bracket and what it is made of, the log's own number, the tensor cores."""

from __future__ import annotations

from gpudiag.measures.mfu import STATE, MfuProfile
from gpudiag.report._render.blocks import Block, Note
from gpudiag.report.document import Document, TopicValues
from gpudiag.report.format import abbreviated, count, interval, listed, number, quantity, safe, share

OWN = {
    "nanogpt": "of an A100's 312 TFLOP/s, whatever the GPU is",
    "torchtitan": "with attention, and of an A100's peak where it does not know the GPU",
    "llm.c": "with attention, by its own table of GPUs",
}
"""By the kind of line: what its MFU is a share of."""


def mfu(document: Document) -> list[Block]:
    """One note; nothing where neither tokens per second nor the activity of tensor cores are known."""
    facts = document.values(MfuProfile)
    if not facts:
        return []
    said = [text for text in (_bracket(facts), _own(facts), _tensor_cores(facts)) if text]
    return [Note(" ".join(said))] if said else []


def _bracket(facts: TopicValues) -> str:
    low, high = facts.get(MfuProfile.mfu_low_pct), facts.get(MfuProfile.mfu_high_pct)
    if low is None:
        if facts.get(MfuProfile.high_tokens_s_per_gpu) is None:
            return ""
        why = safe(str(facts[MfuProfile.withheld]))
        remedy = "" if facts[MfuProfile.parameters_from] else f" {STATE}"
        return f"MFU, the model's part of the FLOPs that the GPU can do, is unknown. {why}{remedy}"
    part = interval(low, high, "%") if high is not None else f"at least {share(low)}"
    gpus = "GPUs" if (facts.get(MfuProfile.training_gpus) or 0) > 1 else "GPU"
    said = f"The model did {part} of the FLOPs that the {gpus} can do (MFU): {_flops(facts)}, of {_peak(facts)}."
    said += " Attention is not in it; embeddings and all experts of a mixture are, though a token passes few of them."
    open_ = _open(facts)
    return said + (f" To narrow it, state {listed(open_)} under [training] in run.toml." if open_ else "")


def _flops(facts: TopicValues) -> str:
    """'6 × 124 M parameters × 142 k tokens/s a GPU'."""
    parameters, trained = facts.get(MfuProfile.parameters), facts.get(MfuProfile.trained_parameters)
    if parameters is None:
        made = f"6 × {abbreviated(trained)} trained parameters"
    elif trained is None or trained >= parameters:
        made = f"6 × {abbreviated(parameters)} parameters"
    else:
        sharded = facts[MfuProfile.sharded]
        bounds = (2 + 4 * trained / parameters, 6 if sharded else 4 + 2 * trained / parameters)
        least, most = (number(round(bound, 1)) for bound in bounds)
        factor = least if least == most else f"{least} to {most}"
        of_them = f"{abbreviated(trained)} of them trained{', or that is the share of one rank' if sharded else ''}"
        made = f"{factor} × {abbreviated(parameters)} parameters ({of_them})"
    low, high = facts[MfuProfile.low_tokens_s_per_gpu], facts[MfuProfile.high_tokens_s_per_gpu]
    tokens = abbreviated(high) if low == high else f"{abbreviated(low)} to {abbreviated(high)}"
    n_gpus = facts.get(MfuProfile.training_gpus)
    return f"{made} × {tokens} tokens/s a GPU" + (f" ({count(n_gpus)} GPUs)" if n_gpus and n_gpus > 1 else "")


def _peak(facts: TopicValues) -> str:
    """'312 TFLOP/s (bf16)'."""
    low, high = facts[MfuProfile.low_peak_tflops], facts[MfuProfile.high_peak_tflops]
    formats = listed(facts[MfuProfile.formats].split(", "), "or")
    least = "" if low == high else f"{number(low)} to "
    return f"{least}{quantity(high, 'TFLOP/s')} ({formats})"


def _open(facts: TopicValues) -> list[str]:
    """Keys of run.toml that would narrow the bracket."""
    needed = {
        "parameters": facts.get(MfuProfile.parameters) is None,
        "dtype": not facts[MfuProfile.dtype]
        and facts[MfuProfile.low_peak_tflops] != facts[MfuProfile.high_peak_tflops],
        "tokens_per_step": facts[MfuProfile.low_tokens_s_per_gpu] != facts[MfuProfile.high_tokens_s_per_gpu],
    }
    return [f"`{key}`" for key, open_ in needed.items() if open_]


def _own(facts: TopicValues) -> str:
    pct, tflops, kind = (
        facts.get(MfuProfile.log_mfu_pct), facts.get(MfuProfile.log_tflops), facts[MfuProfile.log_kind]
    )  # fmt: skip
    if pct is not None:
        return f"The log itself states {share(pct)} ({OWN.get(kind, 'by its own count')})."
    if tflops is not None:
        low, high = facts.get(MfuProfile.log_low_pct), facts.get(MfuProfile.log_high_pct)
        part = f", {interval(low, high, '%')} of what the GPU can do" if low is not None and high is not None else ""
        return f"The log itself states {quantity(tflops, 'TFLOP/s')} a GPU by its own count{part}."
    return ""


def _tensor_cores(facts: TopicValues) -> str:
    active = facts.get(MfuProfile.tensor_active_pct)
    if active is None:
        return ""
    return (
        f"The tensor cores were active in {share(active)} of the cycles at work (DCGM), so they did at most that part "
        "of their peak, recomputation included."
    )
