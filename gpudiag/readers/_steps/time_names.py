"""What the name of a column says of the times in it: of what they are, and in which unit."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from gpudiag.patterns import late
from gpudiag.readers._steps.step_object import is_of_evaluation

ELAPSED, OF_STEP, OF_EPOCH, OF_ROW, OPEN = "elapsed", "step", "epoch", "row", ""
"""Since the start, of one step, of one epoch, since the row before; OPEN: the name leaves it to the numbers."""

_UNITS_S = {
    **dict.fromkeys(("us", "usec", "microseconds"), 1e-6),
    **dict.fromkeys(("ms", "msec", "msecs", "millis", "milliseconds"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
}
_MINUTES = "min"
"""Of what counts from the start; of a step it is the least."""
_WORD = late(r"[a-z]+|\d+")
_HUMP = late(r"(?<=[a-z])(?=[A-Z])")
_WHOSE = ("train", "training", "perf", "performance", "timing", "timings", "timer", "timers", "stats", "metrics")
_STEP, _LENGTH = "(?:step|iter|iteration|it)", "(?:time|duration|dt)"
_OF_ONE = "(?:(?:avg|mean|average) )?"
_KINDS = {
    OF_STEP: rf"{_OF_ONE}{_STEP} {_LENGTH}|steptime|{_LENGTH}? ?per {_STEP}|{_LENGTH} per {_STEP}",
    OF_EPOCH: rf"{_OF_ONE}epoch (?:{_LENGTH}|runtime)|{_LENGTH}? ?per epoch|epoch",
    OF_ROW: "row time|time since (?:last|previous) (?:row|log)",
    ELAPSED: "elapsed(?: time)?|time elapsed|(?:total|cumulative|relative) time|time total|since (?:start|begin)"
    "|time since (?:start|begin)",
    OPEN: "(?:time|dt|duration|took|wall|(?:wall ?)?clock|wall ?(?:clock )?time|run ?time|delta (?:t|time))?",
}
_PATTERNS = {kind: late(pattern) for kind, pattern in _KINDS.items()}
_SLASH = late(rf"(?i)^(?:[\w/]*/)?(?P<length>time|duration|s|secs?|ms)/(?P<of>epoch|{_STEP})$")
_ABOUT_TIME = late(r"(?i)time(?!step|[_ ]step)|durat|elapsed|clock|runtime|(?<![a-z])(?:dt|secs?|seconds)(?![a-z])")
_RATE = late(
    r"(?i)^(?:[\w.-]*/)?(?:global[_ ]?)?(?:steps?|its?|iters?|iterations?)(?:[_ ]?per[_ ]?|/)s(?:ec(?:ond)?s?)?$"
)


class TimeName(NamedTuple):
    """``unit_s``: seconds of one."""

    of: str
    unit_s: float


def time_name(name: str) -> TimeName | None:
    """What a column of this name holds, one of rates once these are times; None where the name says nothing of the time
    of a training.
    """
    if is_of_evaluation(name) or name.startswith("_"):  # W&B's own begin so
        return None
    if is_rate(name):
        return TimeName(OF_STEP, 1.0)
    if found := _SLASH.match(name.strip()):  # time/step, not the count time_step
        of = OF_EPOCH if found["of"].lower() == "epoch" else OF_STEP
        return TimeName(of, _UNITS_S.get(found["length"].lower(), 1.0))
    words = _WORD.findall(_HUMP.sub(" ", name).lower().replace("µ", "u"))
    while len(words) > 1 and words[0] in _WHOSE:
        del words[0]
    if not words:
        return None
    if len(words) > 1 and words[0] in _UNITS_S:  # sec_per_step
        return _of_words(words[1:], _UNITS_S[words[0]]) if words[1] == "per" else None
    if words[-1] in _UNITS_S:
        return _of_words(words[:-1], _UNITS_S[words[-1]]) if len(words) > 1 or len(words[0]) > 1 else None
    if words[-1] == _MINUTES:
        found_name = _of_words(words[:-1], 60.0)
        return found_name if found_name and found_name.of == ELAPSED else None
    return _of_words(words, 1.0) if words != ["epoch"] and words[0] != "per" else None


def _of_words(words: list[str], unit_s: float) -> TimeName | None:
    said = " ".join(words)
    return next((TimeName(of, unit_s) for of, pattern in _PATTERNS.items() if pattern.fullmatch(said)), None)


@lru_cache(4096)  # the names of a log are few
def is_rate(name: str) -> bool:
    """Whether a column is of steps a second."""
    return _RATE.match(name.strip()) is not None and not is_of_evaluation(name)


def is_about_time(name: str) -> bool:
    """Whether somebody who looks for times would look at such a column."""
    return time_name(name) is not None or (_ABOUT_TIME.search(name) is not None and not is_of_evaluation(name))
