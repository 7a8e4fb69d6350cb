"""What several measures of one call need is made once, and forgotten with the call.

Not kept with the run: people edit ``run.gpu`` in place in a notebook, and ask again. What is shared must not be
changed by those who get it, and must not refer to what it was made of, or it would live as long as the call.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeVar

About = TypeVar("About")
Made = TypeVar("Made")
Shelf = dict[tuple[Callable[[Any], Any], int], tuple["weakref.ref[Any]", Any]]
"""What was made, by its maker and the identity of what it was made of, which must still be alive."""

_SHELF: ContextVar[Shelf | None] = ContextVar("shelf", default=None)


@contextmanager
def sharing() -> Iterator[None]:
    """Within it, :func:`once` makes nothing twice. Also a decorator; inside another one it changes nothing."""
    if _SHELF.get() is not None:
        yield
        return
    token = _SHELF.set({})
    try:
        yield
    finally:
        _SHELF.reset(token)


def once(make: Callable[[About], Made], about: About) -> Made:
    """``make(about)``, or what it gave for the same object earlier in the same :func:`sharing`."""
    shelf, key = _SHELF.get(), (make, id(about))
    if shelf is None:
        return make(about)
    known = shelf.get(key)
    if known is not None and known[0]() is about:
        made: Made = known[1]
        return made
    made = make(about)
    shelf[key] = weakref.ref(about, lambda _: shelf.pop(key, None)), made
    return made


def made_once(make: Callable[[About], Made]) -> Callable[[About], Made]:
    """Decorator: the function makes nothing twice of the same object within :func:`sharing`."""

    @wraps(make)
    def shared(about: About) -> Made:
        return once(make, about)

    return shared
