"""What is made of a run once: results that a copy of the run keeps.

    @memoized
    def observe(run: Run) -> Observed: ...

    copy = MemoRun.of(run)
    observe(copy) is observe(copy)      # made once; observe(run) is made anew each time

A plain run keeps nothing beyond one call: people edit ``run.gpu`` in place in a notebook, and ask again. Who asks for
much of one run (an analysis, a forecast) makes a copy of its own, of the same tables, and what is kept goes with it.
Whoever gets a kept result must not change it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, fields
from functools import wraps
from threading import RLock
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

from gpudiag.errors import GpudiagError
from gpudiag.run import Run

P = ParamSpec("P")
T = TypeVar("T")


class Memo:
    """Results by key. Of several threads that ask for one, the first makes it and the others wait."""

    def __init__(self) -> None:
        self._made: dict[Hashable, Any] = {}
        self._errors: dict[Hashable, tuple[Exception, TracebackType | None]] = {}
        self._lock = RLock()

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What ``make`` gave for this key. What it raised is kept and raised each time, but for a full memory.

        Raised again, it has the way to where it was raised first, and one that says all in its words has none: else
        each time would add the way of all times before.
        """
        with self._lock:
            if key in self._errors:
                known, way = self._errors[key]
                raise known.with_traceback(way)
            if key not in self._made:
                try:
                    self._made[key] = make()
                except MemoryError:
                    raise
                except Exception as error:
                    self._errors[key] = error, None if isinstance(error, GpudiagError) else error.__traceback__
                    raise
            made: T = self._made[key]
            return made

    def keep(self, key: Hashable, made: Any) -> None:
        """Take ``made`` for what :meth:`once` gives for this key."""
        with self._lock:
            self._made[key] = made

    @property
    def errors(self) -> list[Exception]:
        """What was raised."""
        with self._lock:
            return [error for error, _ in self._errors.values()]

    def __reduce__(self) -> tuple[type[Memo], tuple[()]]:
        return Memo, ()  # a copy, or what goes to another process, begins empty


@dataclass(frozen=True, eq=False, repr=False)
class MemoRun(Run):
    """A run with a memo. What is derived from it by ``replace`` has a memo of its own, empty."""

    memo: Memo = field(default_factory=Memo, init=False)

    @classmethod
    def of(cls, run: Run) -> MemoRun:
        """The run itself where it has a memo, else a copy of the same tables that has one."""
        if isinstance(run, cls):
            return run
        return cls.fresh(run)

    @classmethod
    def fresh(cls, run: Run) -> MemoRun:
        """A copy of the same tables with an empty memo."""
        return cls(**{table.name: getattr(run, table.name) for table in fields(run) if table.name != "memo"})


def once(run: Run, key: Hashable, make: Callable[[], T]) -> T:
    """What ``make`` gives, made once for this key where the run has a memo."""
    return run.memo.once(key, make) if isinstance(run, MemoRun) else make()


def memoized(make: Callable[Concatenate[Run, P], T]) -> Callable[Concatenate[Run, P], T]:
    """Decorator: a function of a run, and of arguments that can be hashed, is called once where the run has a memo.

    Of a plain run it is made anew each time, but what several of its parts need is made once within the call.
    """

    @wraps(make)
    def remembered(run: Run, /, *args: P.args, **kwargs: P.kwargs) -> T:
        key = (make, args, tuple(sorted(kwargs.items())))
        return once(copy := MemoRun.of(run), key, lambda: make(copy, *args, **kwargs))

    return remembered
