"""Modules that libraries import and no command needs: an empty one stands for each.

``rfc3987_syntax``, which nbformat asks for by way of jsonschema, compiles its grammars of international addresses at
import, in about a second; jsonschema does without. SciPy's special functions take every name there is in NumPy, also
``numpy.f2py``, its compiler of Fortran: a twentieth of a small diagnosis.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

NEEDLESS = ("rfc3987_syntax", "numpy.f2py")


def leave_out() -> None:
    """Let this process import nothing for these names, but where it has done so already."""
    if not any(isinstance(finder, _Empty) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Empty())


class _Empty(MetaPathFinder, Loader):
    """Finds an empty module under each of the names."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in NEEDLESS else None

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is in it."""
