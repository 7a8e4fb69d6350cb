"""The versions that are pinned install on the oldest Python that gpudiag promises."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parent.parent
OLDEST = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]


def _installed(pin: str) -> str | None:
    """The Pythons that a pinned version asks for ('' for any), where that version is installed here."""
    requirement = Requirement(pin)
    try:
        found = distribution(requirement.name)
    except PackageNotFoundError:
        return None
    if not requirement.specifier.contains(found.version):
        return None
    return found.metadata.get("Requires-Python", "")


def test_every_pin_takes_the_first_release_of_the_oldest_python() -> None:
    """soupsieve 4.1.1 asked for 3.11.5: setting up failed on Debian 12, which has 3.11.2."""
    first = re.fullmatch(r">=(\d+\.\d+)", OLDEST)
    assert first, OLDEST
    pins = [line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if "==" in line]
    asked = {pin: wants for pin in pins if (wants := _installed(pin)) is not None}
    assert asked, "no pinned version is installed"
    assert [pin for pin, wants in asked.items() if not SpecifierSet(wants).contains(f"{first[1]}.0")] == []
