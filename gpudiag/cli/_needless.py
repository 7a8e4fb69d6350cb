"""Modules that libraries import and no command needs.

``rfc3987_syntax``, which nbformat asks for by way of jsonschema, compiles its grammars of international addresses at
import, in about a second; jsonschema does without where there is no such module. SciPy's special functions take every
name there is in NumPy, also ``numpy.f2py``, its compiler of Fortran, a twentieth of a small diagnosis: NumPy has to
find a module there, and gets an empty one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

ABSENT, EMPTY = "rfc3987_syntax", "numpy.f2py"


def leave_out() -> None:
    """Let this process import neither, but where it has done so already."""
    sys.modules.setdefault(ABSENT, None)  # type: ignore[arg-type]
    if not any(isinstance(finder, _Empty) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Empty())


class _Empty(MetaPathFinder, Loader):
    """Finds an empty module."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name == EMPTY else None

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is in it."""
