"""Functions of a rule on their way to another process: by name where a module has them, else without their code."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from gpudiag.errors import ConfigError


class Elsewhere:
    """Stands for a function of a module that cannot be imported here, such as a file of rules: its name, its docstring
    and its parameters, which is all that a page says of it.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__name__, self.__qualname__ = function.__name__, function.__qualname__
        self.__module__, self.__doc__ = function.__module__, function.__doc__
        self.__signature__ = inspect.signature(function)

    def __call__(self, *_: object, **__: object) -> Any:
        """Raise ConfigError."""
        raise ConfigError(
            f"{self.__name__} of module {self.__module__} cannot be called in this process; diagnose anew."
        )


def named(module: str, name: str) -> Any:
    """What a module holds by that name."""
    return attrgetter(name)(importlib.import_module(module))


def known(function: Callable[..., Any]) -> Any:
    """What stands where a function says that it stands; None where nothing does."""
    try:
        return attrgetter(function.__qualname__)(sys.modules[function.__module__])
    except (KeyError, AttributeError):
        return None


def sendable(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as pickle can keep it."""
    return function if isinstance(function, Elsewhere) or known(function) is function else Elsewhere(function)
