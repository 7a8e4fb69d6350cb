"""Passwords of storage URLs, taken out of an executed notebook before it is written, and of what a terminal says."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from gpudiag.readers._io.url import BEGINNING, HIDDEN, mended, secrets_of, shown, without_passwords
from gpudiag.report._render.show import LANES, TRIALS
from gpudiag.report.timeline.sealed import reworded

if TYPE_CHECKING:
    from gpudiag.report._notebook.parameters import Given

T = TypeVar("T")

LEAST_LETTERS = 4
"""A shorter password is taken out where it stands as in a URL, ``:abc@``: elsewhere its letters mean something else."""


def redacted(node: T, parameters: Given | Sequence[str]) -> T:
    """Text, or a notebook (nested dicts and lists of text), without the passwords in the values of these parameters.

    URLs that come from elsewhere lose what looks like a password.
    """
    swaps: dict[str, str] = {}
    for url in _urls(parameters):
        swaps |= {said: shown(url) for said in _spellings(url)}
        swaps |= {said: shown(Path(url)) for said in _spellings(str(Path(url)))}
        for secret in secrets_of(BEGINNING.sub(lambda found: f"{mended(found[1])}://", url, count=1)):
            around = ("", "") if len(secret) >= LEAST_LETTERS else (":", "@")
            swaps |= {said: HIDDEN.join(around) for said in _spellings(secret.join(around))}
    return _changed(node, swaps)


def _urls(values: Given) -> Iterator[str]:
    """Storage URLs that hold a secret, anywhere in the values; with one slash as well."""
    if isinstance(values, str):
        rests = [values[found.start() :] for found in BEGINNING.finditer(values)]
        parts = dict.fromkeys((*rests, *(rest.split()[0] for rest in rests)))
        yield from (part for part in parts if shown(part) != part)
    elif isinstance(values, dict):
        for value in values.values():
            yield from _urls(value)
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _urls(value)


def _spellings(text: str) -> Iterable[str]:
    """As it stands, as Python and JSON write it, and as HTML does."""
    return {text, repr(text)[1:-1], json.dumps(text)[1:-1], html.escape(text), html.escape(text, quote=False)}


def _changed(node: T, swaps: Mapping[str, str]) -> T:
    if isinstance(node, str):
        return cast(T, _changed_text(node, swaps))
    if isinstance(node, dict):
        for key, value in node.items():
            packed = key in (LANES, TRIALS) and isinstance(value, str)
            node[key] = reworded(value, lambda text: _changed_text(text, swaps)) if packed else _changed(value, swaps)
    elif isinstance(node, list):
        node[:] = [_changed(value, swaps) for value in node]
    return node


def _changed_text(text: str, swaps: Mapping[str, str]) -> str:
    for secret, instead in swaps.items():
        text = text.replace(secret, instead)
    return without_passwords(text)
