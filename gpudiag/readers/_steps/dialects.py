"""How frameworks print a step: what such a line looks like, and what each of its numbers means.

Each pattern follows the code that prints the line; the comment names it. ``meant`` is what a stated time is the mean
of: ``window`` the steps since the report before, ``step`` that one step, ``epoch`` the steps since the epoch began,
``running`` everything so far, or a smoothed value, ``training`` everything so far by a clock that stands still for
evaluations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from gpudiag.patterns import late

NUMBER = r"(\d{1,15}(?:\.\d{0,12})?(?:[eE][+-]?\d{1,3})?)"
_N = NUMBER
_OF = r"(?P<step>\d{1,9})/\s{0,9}(?P<total>\d{1,9})"
"""The step, and how many there are."""
_EPOCH = r"\[\s{0,5}(?P<epoch>\d{1,6})(?:/\d{1,6})?\]"


@dataclass(frozen=True)
class Dialect:
    """``head`` finds the step (groups step, total, epoch, where stated), ``values`` columns behind it with a factor.

    A line is looked at closely only if it holds one of ``words`` in lower case. ``first`` is the number of the first
    step as the dialect counts. ``tokens_of``: whose tokens ``tokens_s`` counts, ``gpu``, ``all`` or '' where that is
    unknown; ``gpu_tokens_s`` is always of one. ``last``: the stated times are means of so many
    steps at most, of all of the epoch until there are as many; 0 for another mean.
    """

    name: str
    words: tuple[str, ...]
    head: re.Pattern[str]
    meant: str
    values: Mapping[str, tuple[re.Pattern[str], float]] = field(default_factory=dict)
    first: int = 1
    tokens_of: str = ""
    last: int = 0


def _dialect(
    name: str,
    words: str,
    head: str,
    meant: str = "",
    *,
    first: int = 1,
    tokens_of: str = "",
    last: int = 0,
    **values: str | tuple[str, float],
) -> Dialect:
    parts = {key: (value, 1.0) if isinstance(value, str) else value for key, value in values.items()}
    patterns = {key: (late(pattern), factor) for key, (pattern, factor) in parts.items()}
    return Dialect(name, tuple(words.split("|")), late(head), meant, patterns, first, tokens_of, last)


_MM_TIME, _MM_DATA = rf"\btime: {_N}", rf"\bdata_time: {_N}"

DIALECTS: tuple[Dialect, ...] = (
    # megatron/training/training.py, training_log: the mean over the log interval; tokens are those of
    # Megatron-DeepSpeed (tgs), Megatron-Bridge and Primus, a plain "tokens per second" is of forks
    _dialect(
        "megatron",
        "elapsed time per iteration",
        r"\biteration\s{1,9}(?P<step>\d{1,9})/\s{0,9}(?P<total>\d{1,9}|infinity)\s?\|",
        "window",
        step_s=(rf"elapsed time per iteration \(ms\): ?{_N}", 0.001),
        samples=rf"global batch size: {{0,9}}{_N}",
        tokens_s=rf"(?i)tokens per second(?! per gpu)[^:|]{{0,12}}: ?{_N}",
        gpu_tokens_s=rf"(?i)tokens (?:per second per gpu|per gpu per second|per gpu)[^:|]{{0,16}}: ?{_N}",
        gpu_tflops=rf"(?:throughput per GPU \(TFLOP/s/GPU\)|\bTFLOPs): ?{_N}",
    ),
    # fairseq/logging/progress_bar.py: ups is updates a second since the line before, wall since the start; wps adds up
    # the target tokens of all workers (fairseq_task.py, reduce_metrics)
    _dialect(
        "fairseq",
        "train_inner",
        r"train_inner\W.{0,400}?\bnum_updates\"?[=:] ?\"?(?P<step>\d{1,9})",
        "window",
        tokens_of="all",
        steps_s=rf"\bups\"?[=:] ?\"?{_N}",
        tokens_s=rf"\bwps\"?[=:] ?\"?{_N}",
        elapsed_s=rf"[ \"]wall\"?[=:] ?\"?{_N}",
        epoch=r"\bepoch\"?[=:]? ?(\d{1,6})",
    ),
    # mmengine/logging/logger.py and runner/log_processor.py: means over the window; mmcv before it wrote commas
    _dialect(
        "mmengine",
        "epoch(train)|iter(train)",
        rf"(?:Epoch|Iter)\(train\)\s{{1,4}}(?:{_EPOCH})?\[\s{{0,8}}{_OF}\]",
        "window",
        step_s=_MM_TIME,
        loader_s=_MM_DATA,
        tokens_s=rf"\btokens_per_sec: {_N}",
    ),
    _dialect(
        "mmcv",
        "data_time",
        rf"\b(?:Epoch {_EPOCH}|Iter )\[{_OF}\]\s{{0,3}}lr:",
        "window",
        step_s=_MM_TIME,
        loader_s=_MM_DATA,
    ),
    # detectron2/utils/events.py, CommonMetricPrinter: time is the mean of all steps, data_time that of the last 20
    _dialect(
        "detectron2",
        "total_loss",
        r"\biter: (?P<step>\d{1,9})\s.{0,400}?\btotal_loss:",
        "running",
        first=0,
        step_s=rf"\btime: {_N}",
        loader_s=rf"\bdata_time: {_N}",
    ),
    # YOLOX, yolox/core/trainer.py: means over the print interval
    _dialect(
        "yolox",
        "iter_time",
        r"\bepoch: (?P<epoch>\d{1,6})/\d{1,6}, iter: (?P<step>\d{1,9})/(?P<total>\d{1,9})",
        "window",
        step_s=rf"\biter_time: {_N}s",
        loader_s=rf"\bdata_time: {_N}s",
    ),
    # PaddleClas, PaddleOCR: means over the log interval
    _dialect(
        "paddle",
        "avg_batch_cost|batch_cost:",
        rf"(?i)\bepoch:? ?{_EPOCH}[,:]?\s{{0,3}}(?:global_step: ?(?P<count>\d{{1,9}})|\[\s{{0,8}}{_OF}\])",
        "window",
        step_s=rf"\b(?:avg_)?batch_cost: {_N}",
        loader_s=rf"\b(?:avg_reader_cost|data_cost): {_N}",
        samples_s=rf"\bips: {_N}",
    ),
    # timm, train.py: that step's and, in brackets, the mean of the epoch so far
    _dialect(
        "timm",
        "train: ",
        rf"\bTrain: (?P<epoch>\d{{1,6}}) \[\s{{0,8}}{_OF} ",
        "epoch",
        first=0,
        step_s=rf"\bTime: \d[\d.]{{0,12}}s,\s{{0,8}}[\d.]{{1,12}}/s\s{{1,4}}\({_N}s",
        loader_s=rf"\bData: \d[\d.]{{0,12}} \({_N}\)",
        samples_s=rf"\bTime: [^()]{{3,40}}\([\d.]{{1,12}}s,\s{{0,8}}{_N}/s",
    ),
    # pytorch/examples, imagenet/main.py, and Swin's and MoCo's copies of its meters
    _dialect(
        "imagenet",
        "time",
        rf"(?:\bEpoch: |\bTrain: ){_EPOCH}\s{{0,3}}\[\s{{0,8}}{_OF}\](?=.{{0,200}}?\b[Tt]ime\s{{1,8}}[\d.]{{1,12}} \()",
        "epoch",
        first=0,
        step_s=rf"\b[Tt]ime\s{{1,8}}[\d.]{{1,12}} \(\s{{0,8}}{_N}\)",
        loader_s=rf"\b[Dd]ata(?: time)?\s{{1,8}}[\d.]{{1,12}} \(\s{{0,8}}{_N}\)",
    ),
    # pytorch/examples, word_language_model/main.py: means over the log interval
    _dialect(
        "word-lm",
        "ms/batch",
        rf"\|\s{{0,4}}epoch\s{{1,6}}(?P<epoch>\d{{1,6}}) \|\s{{1,9}}{_OF} batches \|",
        "window",
        first=0,
        step_s=(rf"\bms/batch\s{{1,6}}{_N}", 0.001),
    ),
    # torchvision/references, utils.py, MetricLogger: means over the last 20 steps
    _dialect(
        "torchvision",
        "eta:",
        rf"\bEpoch: {_EPOCH}\s{{1,4}}\[\s{{0,8}}{_OF}\]\s{{1,4}}eta:",
        "running",
        first=0,
        last=20,
        step_s=rf"\btime: {_N}",
        loader_s=rf"\bdata: {_N}",
    ),
    # nanoGPT, train.py: that iteration, evaluation and checkpoint included; mfu is -100 % before it is known
    _dialect(
        "nanogpt",
        "iter ",
        r"\biter (?P<step>\d{1,9}): loss [\w.+-]{1,20}, time ",
        "step",
        first=0,
        step_s=(rf"\btime {_N}ms", 0.001),
        mfu_pct=rf"\bmfu {_N}%",
    ),
    # llm.c, train_gpt2.cu: tokens of all processes, smoothed
    _dialect(
        "llm.c",
        "tok/s",
        r"\bstep\s{1,9}(?P<step>\d{1,9})/(?P<total>\d{1,9}) \| ",
        "step",
        tokens_of="all",
        step_s=(rf"\| {_N} ms \|", 0.001),
        mfu_pct=rf"\| {_N}% (?:bf16 )?MFU",
        tokens_s=rf"\| {_N} tok/s",
    ),
    # build-nanogpt, train_gpt2.py, and nanochat: that step without evaluation and checkpoint; tokens of all processes
    _dialect(
        "build-nanogpt",
        "tok/sec:",
        r"\bstep\s{1,9}(?P<step>\d{1,9})(?:/(?P<total>\d{1,9}) \([\d.]{1,8}%\))? \| (?=.{0,200}?\bdt: [\d.]{1,12}ms)",
        "step",
        first=0,
        tokens_of="all",
        step_s=(rf"\bdt: {_N}ms", 0.001),
        tokens_s=rf"\btok/sec: {_N}",
    ),
    # modded-nanogpt: its clock stops for evaluations
    _dialect(
        "modded-nanogpt",
        "train_time:",
        r"\bstep:(?P<step>\d{1,9})/(?P<total>\d{1,9}) .{0,80}?\btrain_time:",
        "training",
        elapsed_s=(rf"\btrain_time:{_N}ms", 0.001),
        step_s=(rf"\bstep_avg:{_N}ms", 0.001),
    ),
    # torchtitan/components/metrics.py: tps of one device over the log interval
    _dialect(
        "torchtitan",
        "tps:",
        r"(?<!validate )\bstep:\s{1,4}(?P<step>\d{1,9})\s{1,4}loss:",
        "window",
        tokens_of="gpu",
        tokens_s=rf"\btps: {_N}",
        mfu_pct=rf"\bmfu: {_N}%",
        gpu_tflops=rf"\btflops: {_N}",
    ),
    # deepspeed/utils/timer.py, ThroughputTimer
    _dialect(
        "deepspeed",
        "currsamplespersec",
        r"/global_step=(?P<step>\d{1,9}), ",
        "",
        samples_s=rf"\bCurrSamplesPerSec={_N}",
    ),
    # MaxText, common/metric_logger.py: that step, of one device
    _dialect(
        "maxtext",
        "completed step:",
        r"\bcompleted step: (?P<step>\d{1,9}), ",
        "step",
        first=0,
        tokens_of="gpu",
        step_s=rf"\bseconds: {_N}",
        tokens_s=rf"\bTokens/s/device: {_N}",
        gpu_tflops=rf"\bTFLOP/s/device: {_N}",
    ),
    # NeMo 2, its progress printer: counts from 0 to the number of the last step
    _dialect(
        "nemo",
        "training epoch",
        r"\bTraining epoch (?P<epoch>\d{1,6}), iteration (?P<step>\d{1,9})/\d{1,9} \|",
        "running",
        first=0,
        step_s=rf"\btrain_step_timing in s: {_N}",
    ),
    # litgpt/pretrain.py
    _dialect(
        "litgpt",
        "iter time:",
        r"\bEpoch (?P<epoch>\d{1,6}) \| iter (?P<step>\d{1,9}) step \d{1,9} \|",
        "step",
        step_s=(rf"\biter time: {_N} ms", 0.001),
    ),
)
"""The first that fits a line says what it is; bars, Keras and plain lines come after them."""

FROM_EITHER = frozenset({"imagenet"})
"""Dialects whose first step is 0 in some copies and 1 in others: PyTorch's example itself counts from 1 since 2022."""
