"""The skill that teaches a coding assistant to use gpudiag."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from gpudiag.errors import ConfigError
from gpudiag.files import write

NAME = "gpudiag"
FILE = "SKILL.md"
OURS = f"---\nname: {NAME}\n"
"""How the file begins in every release, so that an earlier one may be replaced."""


def skill_text() -> str:
    """The skill, as Markdown with a head in YAML."""
    return files("gpudiag.agents").joinpath(FILE).read_text(encoding="utf-8")


def write_skill(folder: Path) -> Path:
    """Write it where assistants look for it in a folder of skills: ``gpudiag/SKILL.md``.

    Raises ConfigError where a file is there that is no skill of gpudiag.
    """
    path = folder / NAME / FILE
    if path.is_file() and not path.read_bytes().decode(errors="replace").replace("\r\n", "\n").startswith(OURS):
        raise ConfigError(f"{path}: is no skill of gpudiag and would be overwritten; choose another -o.")
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, skill_text())
    return path
