"""What run.toml and the lines of a training's log state of the model that is trained."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from gpudiag.patterns import late
from gpudiag.run import Run
from gpudiag.statement import NOTHING, Statement

SAME = 0.01
"""Numbers of parameters this close are of one model: summaries round to three digits, nanoGPT leaves out positions."""
MOST_RANKS = 8
"""Of one host, where the telemetry is that of fewer GPUs."""
_POWERS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
_WHOLE = r"(\d[\d,]{0,24})()"
_N = r"(\d[\d,]{0,24}(?:\.\d{1,12})?) ?([kmbt])?\b"
_IS = r"(?: count)?\s{0,30}[:=|]\s{0,30}"
_PARAMETERS = r"param(?:eter)?s?\b"
_TOTAL = (
    rf"\bsize: {_N} total parameters\b",  # torchtitan
    rf"(?<![-\w])(?:total|all|num|number of)[ _.]{{1,2}}(?:shared |model ){{0,2}}{_PARAMETERS}{_IS}{_N}",
    rf"^\s*{_N} {{1,9}}total params\s*$",  # Lightning
    r"\btotal number of parameters in billions: {0,4}(\d{1,9}(?:\.\d{1,12})?)()",  # Megatron's report on memory
    rf"\btotal parameter count: dense {_WHOLE}, sparse 0\b",  # torchtitan
)
_TRAINED = (
    rf"(?<!non[-_ ])\btrainable[ _]{_PARAMETERS}{_IS}{_N}",  # Hugging Face, PEFT, litgpt, Keras
    rf"^\s*{_N} {{1,9}}trainable params\s*$",  # Lightning
    rf"\bnum\. trained: {_N}",  # fairseq
)
_FROZEN = (rf"\bnon[-_ ]trainable[ _]{_PARAMETERS}{_IS}{_N}",)
_ACTIVE = (rf"\btotal parameter count: dense [\d,]{{1,25}}, sparse [1-9][\d,]{{0,24}},.{{0,40}} active {_WHOLE}",)
_EXPERTS = (rf"^\W{{0,9}}(?:num|n)_(?:local_|routed_)?experts\W{{1,60}}{_WHOLE}",)
_TOKENS = (rf"\btokens per iteration will be: {_WHOLE}",)
_OF_RANK = "number of parameters on (tensor, pipeline)"
_FORMAT = late(r"(?i)\busing (\w+)(?: native)? automatic mixed precision|^\| precision {1,30}\| (\w+)")
_FORMATS = {"bfloat16": "bf16", "bf16": "bf16", "16bit": "fp16", "fp16": "fp16", "fp32": "fp32"}


@dataclass(frozen=True)
class StatedModel:
    """Numbers that nobody states are NaN, a format is ''.

    ``parameters``: all that a token passes; ``trained``: of these, or all that is known where ``parameters`` is NaN.
    ``sharded``: ``trained`` may be the share of one rank. ``why``: why neither is known. ``tokens_per_step``: of all
    GPUs together.
    """

    parameters: float
    trained: float
    source: str
    dtype: str
    tokens_per_step: float
    sharded: bool
    why: Statement = NOTHING


def stated_model(run: Run) -> StatedModel:
    """What run.toml says, else what all lines of the log that say it agree on."""
    said, toml = _details(run), run.info.training
    formats = {_FORMATS.get((found[1] or found[2]).lower(), "") for found in map(_FORMAT.search, said) if found}
    dtype = toml.dtype or (formats.pop() if len(formats) == 1 else "")
    tokens = set(_numbers(_TOKENS, said))
    per_step = float(toml.tokens_per_step or (tokens.pop() if len(tokens) == 1 else math.nan))
    parameters, trained, why = _parameters(said, toml.parameters)
    known = not math.isnan(parameters) or not math.isnan(trained)
    source = "run.toml" if toml.parameters else "log" if known else ""
    sharded = bool(toml.parameters) and not _numbers(_TOTAL, said) and _is_share(trained, parameters, len(run.gpus))
    return StatedModel(parameters, trained, source, dtype, per_step, sharded, why)


def _is_share(trained: float, parameters: float, n_gpus: int) -> bool:
    """Whether it is all of them over a number of ranks, as Hugging Face counts a model that FSDP or ZeRO divides."""
    ranks = parameters / trained if trained > 0 else math.nan
    return 1.5 < ranks <= max(n_gpus, MOST_RANKS) and abs(ranks - round(ranks)) <= SAME * ranks


def _parameters(said: list[str], stated: int | None) -> tuple[float, float, Statement]:
    """Parameters, those that are trained, and why neither is known."""
    totals, trained, frozen = (_numbers(patterns, said) for patterns in (_TOTAL, _TRAINED, _FROZEN))
    active, experts = _numbers(_ACTIVE, said), _numbers(_EXPERTS, said)
    if stated:
        few = bool(trained) and _agree(trained) and trained[0] < (1 - SAME) * stated
        return float(stated), trained[0] if few else float(stated), NOTHING
    if active and _agree(active):
        return active[0], active[0], NOTHING
    if max(experts, default=0) > 1:
        why = Statement("The log tells of {n:expert}, and a token passes only some of the parameters.", n=max(experts))
        return math.nan, math.nan, why
    for numbers in (totals, trained):
        if not _agree(numbers):
            low, high = min(numbers), max(numbers)
            said_so = Statement(
                "Lines of the log state different numbers of parameters: {low:as abbreviated} and "
                "{high:as abbreviated}.",
                low=low, high=high,
            )  # fmt: skip
            return math.nan, math.nan, said_so
    if totals:
        most = trained[0] if trained else totals[0]
        return totals[0], min(most, totals[0]), NOTHING
    if trained:
        both = trained[0] + frozen[0] if frozen and _agree(frozen) else math.nan
        return both, trained[0], NOTHING
    if any(_OF_RANK in line for line in said):
        return math.nan, math.nan, Statement("The log states the parameters of single ranks, and not of the model.")
    return math.nan, math.nan, Statement("Nothing states how many parameters the model has.")


def _details(run: Run) -> list[str]:
    of_model = run.events.loc[run.events["kind"] == "model", "detail"]
    return [str(line) for line in of_model.dropna().drop_duplicates()]


def _numbers(patterns: Iterable[str], lines: list[str]) -> list[float]:
    """What the patterns find, in the order of the lines; 0 parameters are no statement."""
    compiled = [re.compile(pattern, re.IGNORECASE) for pattern in patterns]
    found = [match for line in lines for pattern in compiled if (match := pattern.search(line))]
    billions = ["billions" in match[0].lower() for match in found]
    values = [
        float(round(float(match[1].replace(",", "")) * (1e9 if large else _POWERS[(match[2] or "").lower()])))
        for match, large in zip(found, billions, strict=True)
    ]
    return [value for value in values if value > 0]


def _agree(numbers: list[float]) -> bool:
    return not numbers or max(numbers) <= (1 + SAME) * min(numbers)
