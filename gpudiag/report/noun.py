"""What the rows of the table of trials are called where people read of them: jobs, where a scheduler lists them and
there is no study; else trials.
"""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from gpudiag._run.allocated_gpus import are_jobs
from gpudiag.errors import NotMeasurable
from gpudiag.faults import Failed
from gpudiag.measures.trials import TrialsProfile
from gpudiag.report._render.blocks import Masthead, Number
from gpudiag.report.document import Document
from gpudiag.run import Run

if TYPE_CHECKING:
    from gpudiag.plots import Picture

TRIAL, JOB = "trial", "job"
KEPT = ("id", "rule", "rules", "name", "measure", "code", "finding", "page", "mime", "image", "packed")
"""Fields of blocks and entries that are no sentences."""
_WORD = re.compile(r"(?<![\w./\\'\"=&-])([Tt])rial(s?)(?![\w(=\\-]|/(?!h\b|day\b)|\.\w)")
"""The word by itself: not in a path, an option (``--trials``), a call, or a name."""

T = TypeVar("T")


def noun(document: Document) -> str:
    """That of a document."""
    return JOB if document.values(TrialsProfile).get(TrialsProfile.are_jobs) else TRIAL


def noun_of(run: Run) -> str:
    """That of a run."""
    return JOB if len(run.trials) and are_jobs(run.trials).all() else TRIAL


def said(text: str, name: str) -> str:
    """A sentence of ours, which speaks of trials, by that noun; what stands between `backticks` is code and stays."""
    if name == TRIAL or "rial" not in text:
        return text
    parts = text.split("`")
    parts[::2] = [_WORD.sub(lambda found: _cased(name, found[1]) + found[2], part) for part in parts[::2]]
    return "`".join(parts)


def _cased(name: str, first: str) -> str:
    return name.capitalize() if first.isupper() else name


def worded(value: T, name: str) -> T:
    """The same with all its sentences by that noun: text, a tuple or list of such, or a dataclass of what is shown."""
    if name == TRIAL:
        return value
    return _worded(value, name)


def picture_worded(picture: Picture, name: str) -> Picture:
    """The same with the words around it, and drawn in it, by that noun."""
    if name == TRIAL:
        return picture
    from matplotlib.text import Text
    from matplotlib.ticker import FixedFormatter

    for text in picture.figure.findobj(Text):
        if isinstance(text, Text) and text.get_text():
            text.set_text(said(text.get_text(), name))
    for axis in (axis for ax in picture.figure.axes for axis in (ax.xaxis, ax.yaxis)):
        labels = axis.get_major_formatter()
        if isinstance(labels, FixedFormatter):  # they are written anew where the picture is drawn
            labels.seq = [said(str(label), name) for label in labels.seq]
    return replace(picture, alt=said(picture.alt, name), caption=said(picture.caption, name))


def _worded(value: Any, name: str) -> Any:
    if isinstance(value, str):
        return said(value, name)
    if isinstance(value, NotMeasurable):
        reason, remedy = (said(text, name) for text in value.args)
        return value if isinstance(value, Failed) else type(value)(reason, remedy, **value.values)
    if isinstance(value, list):
        return [_worded(one, name) for one in value]
    if isinstance(value, tuple):
        parts = [_worded(one, name) for one in value]
        return type(value)(parts)  # also a tuple of a class of its own
    if is_dataclass(value) and not isinstance(value, type | Number):
        kept = (*KEPT, "title") if isinstance(value, Masthead) else KEPT
        own = {one.name: getattr(value, one.name) for one in fields(value) if one.name not in kept}
        return replace(value, **{key: _worded(held, name) for key, held in own.items()})
    return value
