"""The errors that failed trials ended with, short and without what names a person or a place."""

from __future__ import annotations

import pandas as pd

from gpudiag._run.failure_text import classify, is_failure_text
from gpudiag.measures._time.trial_intervals import intervals_of
from gpudiag.patterns import late
from gpudiag.run import Run

MOST_LETTERS = 90
_VARIES = late(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?")
_PRIVATE = late(r"\w+://\S+|[\w.+-]+@[\w.-]+|(?:[A-Za-z]:)?(?:[\\/][\w .+@~-]+){2,}|\b[A-Za-z0-9_-]{32,}\b")
"""URLs, addresses of mail, paths and keys."""
_ERROR = late(
    r"(?:\w+\.)*\w*(?:Error|Exception|Interrupt)\b.*|\bCUDA .*|\bKilled\b.*|\bCANCELLED AT [^*]*[^*\s]"
    r"|\bWatchdog caught [\w ]+|\bDUE TO [^*]*[^*\s]|\btasks? [\d,-]+: .*|\bNode failure\b|\bTERM_[A-Z_]+: .*"
    r"|\bjob killed: .*|\b\d+ Workers \(tasks / actors\) killed [^,]*|\bexited on signal .*"
    r"|\b[Ll]oss is \S+, stopping training"
)
"""Where in a line of a log the error begins: a time, a worker and the name of the trial stand before it."""
_SENTENCE = late(r"(?<=[.!?])\s")
GONE = "..."


def failure_texts(run: Run) -> pd.Series:
    """The text of each failed trial by its place in the trials: its detail, or an attribute that run.toml's show_attrs
    names. Other attributes are the user's own and shown nowhere.
    """
    trials = run.trials.reset_index(drop=True)
    failed = trials[intervals_of(run)["state"] == "FAIL"]
    shown = [f"user_attrs.{name}" for name in run.info.show_attrs]
    names = [name for name in trials if name == "detail" or (name in shown and is_failure_text(str(name)))]
    out = pd.Series(None, failed.index, dtype=object)
    for name in names:
        out = out.where(out.notna(), failed[name].astype(object))
    return out


def error_texts(texts: pd.Series, kinds: pd.Series) -> pd.DataFrame:
    """kind, n and text of each error that failed trials ended with, the most frequent first; texts that differ in
    numbers alone are one, and "" is no text. Both series have a row a failed trial.
    """
    told = texts.fillna("").astype(str).map(short_error)
    kind = kinds.reindex(told.index)
    kind = kind.where(kind != "unknown", told.map(classify))  # what a line of the log says
    frame = pd.DataFrame({"kind": kind, "text": told, "alike": told.map(_without_numbers)})
    groups = frame.groupby(["kind", "alike"], sort=True)["text"]
    rows = [(str(kind), len(part), _one(part)) for (kind, _), part in groups]
    return pd.DataFrame(sorted(rows, key=lambda row: (-row[1], row[0], row[2])), columns=["kind", "n", "text"])


def _without_numbers(text: str) -> str:
    return _VARIES.sub("#", text)


def _one(texts: pd.Series) -> str:
    """The text, with a mark for each number in which they differ."""
    first = str(texts.iloc[0])
    return first if texts.nunique() == 1 else _VARIES.sub(GONE, first)


def short_error(text: str) -> str:
    """The first sentence of the error that a text ends with, without what names a person or a place."""
    line = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")  # a traceback ends with it
    error = _ERROR.search(line)
    said = _SENTENCE.split(_PRIVATE.sub(GONE, error[0] if error else line), maxsplit=1)[0]
    whole, _, _ = said[: MOST_LETTERS - len(GONE)].rpartition(" ")
    return said if len(said) <= MOST_LETTERS else (whole or said[: MOST_LETTERS - len(GONE)]) + GONE
