"""The grammars of international addresses: nbformat imports them by way of jsonschema, and no notebook needs them.

Where JupyterLab is installed so is ``rfc3987_syntax``, which compiles 38 grammars on import: a second or two a report.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

PACKAGE = "rfc3987_syntax"


def put_off() -> None:
    """Let the package compile its grammars when an address is checked, not when it is imported."""
    spec = None if PACKAGE in sys.modules else find_spec(PACKAGE)
    if spec is not None:
        waiting = _Waiting(PACKAGE)
        waiting.__spec__, waiting.__file__, waiting.__path__ = (
            spec,
            spec.origin,
            list(spec.submodule_search_locations or ()),
        )
        sys.modules[PACKAGE] = waiting


class _Waiting(ModuleType):
    """Stands for the package until one of its names is used."""

    def is_valid_syntax(self, term: str, value: str) -> bool:
        """What jsonschema imports by name: asking for it must not compile."""
        return bool(_package(self).is_valid_syntax(term, value))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # who looks through all modules does not use them
        return getattr(_package(self), name)


def _package(waiting: ModuleType) -> ModuleType:
    """The package itself, from now on in its place."""
    if sys.modules.get(PACKAGE) is waiting:
        del sys.modules[PACKAGE]
    return import_module(PACKAGE)
