"""One line of a log as what it says of a training step."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from gpudiag.patterns import late
from gpudiag.readers._batches.log_lines import KINDS
from gpudiag.readers._steps.bars import BarLine, bar_of
from gpudiag.readers._steps.dialects import DIALECTS, Dialect
from gpudiag.readers._steps.rates import SAMPLES, TOKENS, named_time_of, rate_of, speed_of
from gpudiag.readers._steps.stated_loss import not_finite
from gpudiag.readers._steps.written_numbers import LENGTH, each_s, length_s, number

_LOOKED_AT = 4096
"""Characters of a line in which it says what it is."""
_LONGEST_S = 1e7
"""No step takes four months; a number that says so is something else."""
_COUNT = r"\d{1,3}(?:,\d{3}){1,3}|\d{1,9}"
"""A whole number; its thousands may be set apart."""
_COUNTED = late(
    r"(?i)(?<![a-z])(?<!s/)(?<!c/)(?<!per )"
    r"(?:(?P<of_all>(?:global|optim(?:izer)?|opt)[_ -]?(?:step|iteration|iter)|update)"
    r"|(?P<part>(?:micro|mini|accum(?:ulation)?)[_ -]?(?:step|iteration|iter|batch))"
    r"|train[_ ]?step|step|iteration|iter|batch)s?\s?[\]:=#]{0,2}\s{0,3}"
    rf"[\[(]?\s{{0,5}}(?P<step>{_COUNT})(?:\s?(?:/|of)\s{{0,5}}(?P<total>{_COUNT}))?(?![\d.%]|[-:]\d)"
)
"""Where an optimizer step takes several batches, ``of_all`` counts those steps and ``part`` the batches."""
_EPOCH = late(r"(?i)\bepochs?\b\s{0,3}[:=#]?\s{0,3}[\[(]?\s{0,4}(\d{1,6})(?:\s?(?:/|of)\s?(\d{1,6}))?(?![\d.])")
_TOOK = late(
    r"(?i)(?P<name>(?:\b[a-z]{1,20}\.?[ _-]){0,2}(?<![a-z])(?:time|took|elapsed|duration)(?:[ _-]elapsed)?)\b"
    rf"\s*[:=]?\s*(?:{LENGTH})(?!:?\d|\s?(?:/|per\b(?! epoch)|remaining\b|left\b))"
)
_NOT_OF_EPOCH = late(
    r"(?i)(?:^|[ _-])(?:eta|remaining|left|est|estimated|expected|finish|avg|average|mean|data|load(?:er|ing)?|wait"
    r"|batch|step|iter|iteration|it|compute|forward|backward|val|valid|validation|eval|evaluation|test"
    r"|inference)\.?[ _-]"
)
"""Words before a time that make it none of the epoch, or a part of it."""
_WITHIN = late(r"[\s\])|,:;(\[-]{0,8}(?:\d{1,9}\s{0,4}(?:/|\bof\b)\s{0,4}\d{1,9}(?![\d/:-])|\d{1,3}(?:\.\d{1,4})?\s?%)")
"""How far an epoch is, right behind its number: ``Epoch 1 [10/100]``, ``Epoch 1/5 (12%)``. What it took is not all."""
_RANK = late(r"(?i)\[(?:rank|default)_?(\d{1,5})\]|\brank[ =:]{1,2}(\d{1,5})\b")
_NOT_TRAINING = late(
    r"(?i)\b(?:eval|evaluate|valid|validate|validation|val|test|testing|evaluation|inference|predict)\b"
    r"[^|]{0,20}?(?:[\[:(|]|\b(?:at|after) (?:step|iter|epoch))"
    r"|\b(?:split|phase|mode|stage|subset)\s?[=:]\s?['\"]?(?:eval|valid|val|test|dev)"
)
_OF_OTHERS = late(
    r"(?i)(?<![a-z_\d/.-])(?:eval(?:uat(?:e|ing|ion))?|valid(?:at(?:e|ing|ion))?|val|test(?:ing)?|inference|predict(?:ion)?)"
    r"(?![a-z_\d])[\s\]\[|:,=)>-]{0,6}(?:epoch[\s:=#\[]{0,4}\d{1,6}(?:\s?(?:/|of)\s?\d{1,6})?[\s\]|:,-]{0,6})?\Z"
)
"""What stands right before a count of an evaluation: ``[val] step 20/50``, ``Eval epoch 2 step 20``."""
_WAITED = late(r"(?i)\bdata\s?loader avg\b\D{0,3}(\d{1,9}(?:\.\d{1,9})?)\s?ms\b")
_SAVES = late(r"(?i)\bsav(?:ed|ing)\b")
"""What it says next of an epoch is which one was saved, or how long that took."""
_EVALUATED = late(r"(?i)\b(?:eval(?:uation)?|valid(?:ation)?|val|test)[ _/.-]{0,2}loss")
_OF_TRAINING = late(r"(?i)(?<![a-z])train(?:ing)?[ _/.-]{0,2}loss")
_OF_STEPS = ("time", "elapsed")
_NAMES = ("epoch_time", *_OF_STEPS)
EVALUATIONS = "evaluations"
"""Lines that name a loss of the training beside that of an evaluation, and no speed. Where a log has others on steps,
these tell of evaluations alone."""
_WORDS = ("step", "iter", "epoch", "train", "batch", "update", "<", "━", "─")


class StepLine(NamedTuple):
    """What one line says. ``series`` tells lines of one kind from others; NaN and None are unknown. ``blur_s``: by how
    much ``elapsed_s`` is rounded, where that is known. ``time_name``: what a line on an epoch calls its ``step_s``,
    which may be a time since the start, and one on a step that states no speed.
    """

    series: str
    step: int
    total: int | None = None
    unit: str = "step"
    epoch: int | None = None
    meant: str = ""
    step_s: float = math.nan
    loader_s: float = math.nan
    samples_s: float = math.nan
    tokens_s: float = math.nan
    tokens_of: str | None = None
    mfu_pct: float = math.nan
    gpu_tflops: float = math.nan
    elapsed_s: float = math.nan
    rank: int | None = None
    trial: int | None = None
    blur_s: float = 0.0
    batch: int | None = None
    batch_of: str | None = None
    not_finite: int | None = None
    time_name: str = ""


def may_tell(line: str) -> bool:
    """False for a line without any word that all lines on steps have one of."""
    lower = line[:_LOOKED_AT].lower()
    return any(word in lower for word in _WORDS)


def step_of(line: str, *, stamped: bool) -> StepLine | None:
    """What a line says of a step of the training; None for every other line.

    A plain line counts that names a step and a speed with its unit, or one with a timestamp or a time, a step and a
    loss.
    """
    line = line[:_LOOKED_AT]
    said = _said(line, stamped) if may_tell(line) else None
    loss = not_finite(line) if said else None
    return said if said is None or loss is None else said._replace(not_finite=loss)


def _said(line: str, stamped: bool) -> StepLine | None:
    lower = line.lower()
    for dialect in DIALECTS:
        if any(word in lower for word in dialect.words) and (found := dialect.head.search(line)):
            return None if _evaluates(line, lower) else _of_dialect(dialect, found, line)
    if bar := bar_of(line):
        return of_bar(bar)
    return _plain(line, lower, stamped) if _COUNTED.search(line) else _epoch(line, stamped)


def of_bar(bar: BarLine) -> StepLine:
    """What a bar says; each total is a series of its own, since bars of evaluations have another."""
    known = bar.total or None
    name = f"{bar.name}|{known or ''}"
    meant = "window" if bar.unit == "epoch" and not known else "running"
    line = StepLine(name, bar.step, known, bar.unit, bar.epoch, meant, step_s=bar.step_s, elapsed_s=bar.elapsed_s)
    return line._replace(blur_s=bar.blur_s) if bar.blur_s else line


def _of_dialect(dialect: Dialect, found: re.Match[str], line: str) -> StepLine:
    rest = line.replace(",", "") if dialect.name in ("torchtitan", "build-nanogpt") else line
    values = {name: _value(pattern, factor, rest) for name, (pattern, factor) in dialect.values.items()}
    step_s = values.get("step_s", math.nan)
    if not step_s > 0 and values.get("steps_s", math.nan) > 0:
        step_s = each_s(values["steps_s"])
    samples_s = values.get("samples_s", math.nan)
    if not samples_s > 0 and step_s > 0:
        samples_s = values.get("samples", math.nan) / step_s
    of_gpu = values.get("gpu_tokens_s", math.nan)
    tokens_s, tokens_of = (of_gpu, "gpu") if of_gpu > 0 else (values.get("tokens_s", math.nan), dialect.tokens_of)
    epoch = _group(found, "epoch")
    if epoch is None and values.get("epoch", math.nan) >= 0:
        epoch = int(values["epoch"])
    step = int(found["step"] or found["count"]) + 1 - dialect.first
    return StepLine(
        dialect.name,
        step,
        _group(found, "total"),
        "step",
        epoch,
        "epoch" if step <= dialect.last else dialect.meant,
        _possible(step_s),
        _possible(values.get("loader_s", math.nan)),
        samples_s,
        tokens_s,
        (tokens_of or None) if tokens_s > 0 else None,
        _share(values.get("mfu_pct", math.nan)),
        values.get("gpu_tflops", math.nan),
        values.get("elapsed_s", math.nan),
        rank_of(line),
    )


def _epoch(line: str, stamped: bool) -> StepLine | None:
    """A line about an epoch as a whole: with the time that it took, or with a timestamp and a loss."""
    epoch = _EPOCH.search(line)
    if not epoch or _SAVES.search(line, 0, epoch.start()):
        return None
    if (others := _NOT_TRAINING.search(line)) and "loss" not in line[: others.start()].lower():
        return None
    name, took_s = _took(line, epoch.end()) if KINDS["epoch"].search(line) else ("", math.nan)
    if not name and not (stamped and "loss" in line.lower()):
        return None
    total = int(epoch[2]) if epoch[2] else None
    said = StepLine("epochs", int(epoch[1]), total, "epoch", None, "step" if name else "", took_s, rank=rank_of(line))
    return said._replace(time_name=name)


def _took(line: str, begin: int) -> tuple[str, float]:
    """The time that a line on an epoch states behind ``begin``: what a column with it would be called, and seconds. One
    that is said to be of the epoch comes first, one since the start last.
    """
    found = []
    for took in _TOOK.finditer(line, begin) if not _WITHIN.match(line, begin) else ():
        words = took["name"].lower()
        if not _NOT_OF_EPOCH.search(words) and not _SAVES.search(line, begin, took.start("name") + len(words)):
            of_epoch = words.endswith("took") or "epoch" in words
            name = "epoch_time" if of_epoch else "elapsed" if re.search("elapsed|total|since|cumul", words) else "time"
            found.append((name, _possible(length_s(took))))
    return min(found, key=lambda one: _NAMES.index(one[0]), default=("", math.nan))


def _plain(line: str, lower: str, stamped: bool) -> StepLine | None:
    counted, alike = _counted(line)
    if not counted:
        return None
    rates = "/" in line or "per" in lower
    speed_s = speed_of(line) if rates and alike else None
    speed_s = named_time_of(line) if speed_s is None and alike else speed_s
    samples, tokens = ((rate_of(unit, line) if rates else math.nan) for unit in (SAMPLES, TOKENS))
    said = speed_s is not None or samples > 0 or tokens > 0 or (stamped and "loss" in lower)
    name, took_s = "", math.nan
    if not said and alike and "loss" in lower:
        name, took_s = _took(line, counted.end())
        said = name in _OF_STEPS
    if not said or _NOT_TRAINING.search(line) or _OF_OTHERS.search(line, 0, counted.start()):
        return None
    if _evaluates(line, lower):
        return None
    no_rate = speed_s is None and not samples > 0 and not tokens > 0
    epoch, waited = _EPOCH.search(line), _WAITED.search(line) if "loader avg" in lower else None
    return StepLine(
        EVALUATIONS if no_rate and _evaluates(line, lower, _OF_TRAINING) else "steps",
        _whole(counted["step"]),
        _whole(counted["total"]) if counted["total"] else None,
        "step",
        int(epoch[1]) if epoch else None,
        "running" if speed_s is not None else "",
        took_s if speed_s is None else _possible(speed_s),
        _possible(float(waited[1]) / 1000) if waited else math.nan,
        samples_s=samples,
        tokens_s=tokens,
        rank=rank_of(line),
        time_name=name,
    )


def _evaluates(line: str, lower: str, beside: re.Pattern[str] | None = None) -> bool:
    """Whether it tells of no loss but that of an evaluation, and those ``beside`` it."""
    if "loss" not in lower or not (n := len(_EVALUATED.findall(line))):
        return False
    return n + (len(beside.findall(line)) if beside else 0) == lower.count("loss")


def _counted(line: str) -> tuple[re.Match[str] | None, bool]:
    """How far the training is, by the steps of its optimizer where a line counts these beside others; and whether a
    speed is that of what is counted: not if an optimizer step may take several of the others.
    """
    counts = list(_COUNTED.finditer(line))
    of_all = next((found for found in counts if found["of_all"]), None)
    parts = [found for found in counts if found["part"]]
    whole = next((found for found in counts if not found["of_all"] and not found["part"]), None)
    if not of_all or not (whole or parts):
        counted = of_all or whole or (parts[0] if parts else None)
        return counted, not (whole and parts)
    return of_all, not parts and whole is not None and _go_on_alike(whole, of_all)


def _go_on_alike(within: re.Match[str], of_all: re.Match[str]) -> bool:
    """Whether steps within an epoch and those in all differ by whole epochs, as they do where each is one of the other.
    At the ends of an epoch they may by chance.
    """
    step, total = _whole(within["step"]), _whole(within["total"] or "0")
    ahead = _whole(of_all["step"]) - step
    return ahead == 0 or (0 < step < total and ahead % total == 0)


def _whole(text: str) -> int:
    return int(text.replace(",", ""))


def _value(pattern: re.Pattern[str], factor: float, line: str) -> float:
    found = pattern.search(line)
    return number(next(filter(None, found.groups())).replace(",", "")) * factor if found else math.nan


def _possible(seconds: float) -> float:
    return seconds if 0 <= seconds <= _LONGEST_S else math.nan


def _share(pct: float) -> float:
    return pct if 0 < pct <= 100 else math.nan


def _group(found: re.Match[str], name: str) -> int | None:
    text = found.groupdict().get(name)
    return int(text) if text and text.isdigit() else None


def rank_of(line: str) -> int | None:
    """The rank that the line names."""
    found = _RANK.search(line)
    return int(found[1] or found[2]) if found else None
