"""The versions that a bug report states: of gpudiag, Python, the system, and the packages that gpudiag names."""

from __future__ import annotations

import platform
import re
from importlib.metadata import PackageNotFoundError, requires, version

from gpudiag import __version__

_TOOLS = re.compile(r"extra\s*==\s*['\"]test['\"]")
"""In the requirements of those who work on gpudiag."""


def version_lines() -> list[str]:
    """gpudiag, Python and the system in one line, then each package that is installed of those gpudiag names."""
    python = f"Python {platform.python_version()} ({platform.python_implementation()})"
    found = ((name, _version(name)) for name in package_names())
    packages = ", ".join(f"{name} {at}" for name, at in found if at)
    return [f"gpudiag {__version__}, {python}, {platform.platform()}", packages or "gpudiag was not installed by pip"]


def package_names() -> list[str]:
    """Of the packages that gpudiag names, without those for work on it."""
    named = {re.split(r"[^\w.-]", asked, maxsplit=1)[0] for asked in _required() if not _TOOLS.search(asked)}
    return sorted(named, key=str.lower)


def _required() -> list[str]:
    try:
        return requires("gpudiag") or []
    except PackageNotFoundError:  # run from its sources
        return []


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
