"""Objects as blocks, one function a kind, and as text, HTML and Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from importlib import import_module

from gpudiag.report._render import fragments, terminal
from gpudiag.report._render import markdown as markdown_lines
from gpudiag.report._render.blocks import Block

KINDS = {
    "gpudiag.run": "contents",
    "gpudiag.readers._traces": "traces",
    "gpudiag.readers": "contents",
    "gpudiag.measures": "profiles",
    "gpudiag.rules": "verdicts",
    "gpudiag.advice._engine.plan": "plan",
    "gpudiag.advice": "recommendations",
    "gpudiag.forecast.parallelism": "forecast",
    "gpudiag.forecast.memory": "memory",
    "gpudiag.forecast.pruning": "pruning",
}
"""Where a class lies, and the file of ``report/kinds`` that shows its objects; the first that fits counts."""


@singledispatch
def shown_as(shown: object) -> Sequence[Block]:
    """What an object shows: files of ``report/kinds`` register a function for each class."""
    raise TypeError(f"nothing is known about how to show a {type(shown).__name__}")


@singledispatch
def sentences_of(shown: object) -> tuple[str, ...]:
    """The sentences that belong to an object, for documents that hold them."""
    raise TypeError(f"nothing is said about a {type(shown).__name__}")


def blocks_of(shown: object) -> Sequence[Block]:
    """An object as blocks; the kind of its class, or of the nearest of its bases, is imported when it is needed."""
    _import_kind(type(shown))
    return shown_as(shown)


def notes_of(shown: object) -> tuple[str, ...]:
    """The sentences that belong to an object."""
    _import_kind(type(shown))
    return sentences_of(shown)


def _import_kind(shown: type) -> None:
    for base in shown.__mro__:
        for place, kind in KINDS.items():
            if f"{base.__module__}.".startswith(f"{place}."):
                import_module(f"gpudiag.report.kinds.{kind}")
                return


def text(shown: object) -> str:
    """As lines that fit the terminal."""
    return terminal.text(blocks_of(shown))


def html(shown: object) -> str:
    """As HTML in the theme of a notebook."""
    return fragments.standalone(blocks_of(shown))


def markdown(shown: object) -> str:
    """As Markdown."""
    return markdown_lines.render(blocks_of(shown))
