"""A fault of gpudiag itself: one part fails, the rest stands.

    made = attempt("figure timeline", paint)     # what paint gives, or a Fault

An exception that nobody raised on purpose ends the part it came from, and no more: the part becomes a verdict or a
note of status ERROR with the type of the exception and its place. Under :func:`strict`, as in tests, it is raised.
A rule or a measure of somebody's own is a part as well: its fault is theirs, and named with their module.
Deliberate errors (:class:`~gpudiag.errors.GpudiagError`), a full memory and an interruption are always raised.

The text of an exception may quote the data of a run, so that it is kept out of all documents.
"""

from __future__ import annotations

import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict, TypeVar

from gpudiag.errors import GpudiagError, NotMeasurable
from gpudiag.plain_data import LEFT_OUT

T = TypeVar("T")

ERROR = "ERROR"
"""Status of a part that failed."""
REPORT = (
    "This is a fault of gpudiag, not of your run: please report this line, with what `gpudiag bug-report` prints of "
    "the same run; --debug shows the whole traceback."
)
DEEPEST = 12
"""Frames kept of a traceback, the innermost."""

_PACKAGE = Path(__file__).resolve().parent
_LIBRARIES = sorted(
    {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")},
    key=lambda path: -len(path.parts),
)


class FaultEntry(TypedDict):
    """A fault as documents and notebooks hold it."""

    part: str
    type: str
    place: str
    trace: list[str]
    module: str


@dataclass(frozen=True)
class Fault:
    """An unexpected exception in one part.

    ``part``: which, such as ``rule gpu-idle``. ``type``: of the exception. ``place``: file and line in gpudiag, and of
    code that it called which is neither its own nor a library's. ``trace``: the way there, without folders of this
    machine. ``module``: that of a part which is somebody's own, '' for a part of gpudiag. ``public``: of type and trace
    what is gpudiag's or a library's, so that its name tells nothing of whose run it was. ``traceback``: Python's own,
    for a terminal alone.
    """

    part: str
    type: str
    place: str
    trace: tuple[str, ...] = ()
    module: str = ""
    public: frozenset[str] = field(default=frozenset(), compare=False, repr=False, metadata=LEFT_OUT)
    traceback: str = field(default="", compare=False, repr=False, metadata=LEFT_OUT)

    @classmethod
    def of(cls, part: str, error: BaseException, module: str = "") -> Fault:
        """The fault that an exception is, as long as its traceback is known; ``module`` holds the part's code."""
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]
        named = [(*_shown(frame.filename), frame.lineno, frame.name) for frame in frames]
        own = [f"{file}:{line}" for file, kind, line, _ in named if kind == "own"]
        deepest = next(((f"{f}:{line}", kind) for f, kind, line, _ in reversed(named) if kind != "library"), ("", ""))
        place = own[-1] if own else deepest[0] or "an unknown place"
        if deepest[1] == "other" and own:
            place = f"{deepest[0]}, called at {own[-1]}"
        kinds = {f"{file}:{line} {name}": kind for file, kind, line, name in named[-DEEPEST:]}
        trace = tuple(f"{file}:{line} {name}" for file, _, line, name in named[-DEEPEST:])
        public = {frame for frame, kind in kinds.items() if kind != "other" and re.match(r"<frozen |[^<]", frame)}
        public |= {type(error).__name__} if _is_public(type(error)) else set()
        made = "".join(traceback.format_exception(error))
        whose = "" if module.partition(".")[0] == _PACKAGE.name else module
        return cls(part, type(error).__name__, place, trace, whose, frozenset(public), made)

    @property
    def reason(self) -> str:
        """What happened, in a sentence."""
        return f"{self.part[:1].upper()}{self.part[1:]} failed with {self.type} at {self.place}."

    @property
    def remedy(self) -> str:
        """Who mends it: gpudiag, or whose rule or measure it is."""
        kind = self.part.partition(" ")[0]
        return f"The {kind} is of module {self.module}, not of gpudiag: mend it there." if self.module else REPORT

    def __str__(self) -> str:
        return f"{self.reason} {self.remedy}"

    def to_dict(self) -> FaultEntry:
        """For JSON: part, type, place, trace and module."""
        return {
            "part": self.part, "type": self.type, "place": self.place, "trace": list(self.trace), "module": self.module,
        }  # fmt: skip


class Failed(NotMeasurable):
    """A measure failed: its profile is missing, and each rule on it is of status ERROR."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(f"{ERROR}: {fault.reason}", fault.remedy)
        self.fault = fault

    def __reduce__(self) -> tuple[type[Failed], tuple[Fault]]:
        return Failed, (self.fault,)


_STRICT: ContextVar[bool] = ContextVar("strict", default=False)
_HEARD: ContextVar[list[Fault] | None] = ContextVar("heard", default=None)


@contextmanager
def strict(on: bool | None = True) -> Iterator[None]:
    """Within it faults are raised, or with False kept; None changes nothing. It holds for this thread."""
    token = _STRICT.set(_STRICT.get() if on is None else on)
    try:
        yield
    finally:
        _STRICT.reset(token)


def is_strict() -> bool:
    """Whether faults are raised here."""
    return _STRICT.get()


@contextmanager
def heard() -> Iterator[list[Fault]]:
    """The list that faults are put into as they happen, each once; those of an inner call are in the outer one too."""
    faults: list[Fault] = []
    token = _HEARD.set(faults)
    try:
        yield faults
    finally:
        _HEARD.reset(token)
        for fault in faults:
            _hear(fault)


class Passing(BaseException):
    """An exception of who asked, on its way through :func:`attempt`."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def asked(call: Callable[[str], None]) -> Callable[[str], None]:
    """A function of who asked, such as one that shows progress and raises to cancel: no fault of gpudiag."""

    def called(what: str) -> None:
        try:
            call(what)
        except Exception as error:
            raise Passing(error) from error

    return called


def attempt(part: str, make: Callable[[], T], module: str = "") -> T | Fault:
    """What ``make`` gives, or the fault that ended it; ``module``: of the code of a part that may be somebody's own."""
    try:
        return make()
    except (GpudiagError, MemoryError):
        raise
    except Exception as error:
        if _STRICT.get():
            raise
        fault = Fault.of(part, error, module)
        _hear(fault)
        return fault


def _hear(fault: Fault) -> None:
    known = _HEARD.get()
    if known is not None and fault not in known:
        known.append(fault)


def _shown(filename: str) -> tuple[str, str]:
    """A source file without the folders of this machine, and whose it is: own, library or other."""
    path = Path(filename)
    if filename.startswith("<"):
        return filename, "library"
    if path.is_absolute():
        path = path.resolve()
    if path.is_relative_to(_PACKAGE):
        return f"gpudiag/{path.relative_to(_PACKAGE).as_posix()}", "own"
    for library in _LIBRARIES:
        if path.is_relative_to(library):
            return path.relative_to(library).as_posix(), "library"
    return path.name, "other"


def _is_public(kind: type[BaseException]) -> bool:
    """Whether an exception's type is of gpudiag, of Python or of an installed library."""
    if kind.__module__.partition(".")[0] in sys.stdlib_module_names:
        return kind.__module__ != "__main__"
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return file is not None and _shown(file)[1] != "other"
