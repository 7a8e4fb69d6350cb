"""The folders that an assistant may read, and nothing outside of them: neither by a path, nor by a link, nor by what a
run.toml names.

Paths are looked at before they are read. Who can change the folders between the two can also read what this user can.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gpudiag.errors import ConfigError, InputError, InputNotFound
from gpudiag.manifest import place_of, read_manifest
from gpudiag.readers._io.url import is_url, scheme_of, shown, sqlite_path
from gpudiag.report.format import listed

SUPPRESSIONS = "gpudiag.toml"
NEVER_READ = (".git", ".venv", "__pycache__", "node_modules")
"""Folders that no reader enters; an environment in a run folder always links out of it."""


@dataclass(frozen=True)
class Folders:
    """The folders as they were given, which may be read with all that lies below them."""

    given: tuple[Path, ...]

    @classmethod
    def of(cls, paths: Iterable[str | Path]) -> Folders:
        """Raises ConfigError where a path is no folder, InputNotFound where nothing is there."""
        folders = tuple(Path(path) for path in paths)
        for folder in folders:
            if is_url(str(folder)) or shown(folder) != str(folder):
                raise ConfigError(f"{shown(folder)}: is a storage URL; expected a folder of runs.")
            if not folder.exists():
                raise InputNotFound(f"{folder}: no such folder; expected a folder of runs.")
            if not folder.is_dir():
                raise ConfigError(f"{folder}: is a file; expected the folder that it lies in.")
        if not folders:
            raise ConfigError("no folder given; expected the folders of runs that may be read.")
        return cls(folders)

    def __str__(self) -> str:
        return listed(self.given)

    def hold(self, path: Path) -> bool:
        """Whether what is at that path, links followed, lies within one of the folders."""
        real = Path(os.path.realpath(path))
        return any(real.is_relative_to(os.path.realpath(folder)) for folder in self.given)

    def find(self, name: str) -> Path:
        """The path of a run, a folder or a plan: as the shell would take it, or below one of the folders.

        Raises ConfigError where it lies outside, whether or not anything is there; InputNotFound where nothing is
        there.
        """
        if is_url(name) or shown(name) != name:
            raise ConfigError(f"{shown(name)}: is a storage URL, which this server does not open; name a run folder.")
        if not name.strip() or "\0" in name:
            raise ConfigError("no path given; list_runs names the runs that may be read.")
        within = [path for path in (Path(name), *(folder / name for folder in self.given)) if self.hold(path)]
        if not within:
            raise ConfigError(
                f"{name}: lies outside of {self}, and nothing else may be read; list_runs names the runs."
            )
        for path in within:
            if os.path.exists(path):  # noqa: PTH110 - False where the name is too long
                return path
        raise InputNotFound(f"{name}: nothing is there; list_runs names the runs.")

    def check(self, run: Path) -> None:
        """Raise ConfigError where reading the run would leave the folders, open a storage URL or import a module, and
        what reading its run.toml raises.
        """
        self._check_place(run, run)
        folder, file = place_of(run)
        names, searched = tuple[str, ...](), True
        if file.suffix == ".toml" and os.path.lexists(file):
            self._check_place(file, run)
            self._check_place(folder / SUPPRESSIONS, run)
            manifest = read_manifest(file)
            if manifest.rule_modules:
                raise ConfigError(
                    f"{file}: names modules of rules ({listed(manifest.rule_modules)}), which this server does not "
                    "import; use gpudiag diagnose."
                )
            names = manifest.inputs
            searched = bool(manifest.kinds_to_find)
        places = [self._named(name, folder, file) for name in names]
        whole = folder if file.suffix == ".toml" else run
        for place in [*places, whole] if searched else places:
            self._check_links(place, run)

    def _named(self, name: str, folder: Path, file: Path) -> Path:
        """The path of an input that a run.toml names."""
        from gpudiag.load import locate  # heavy: a server starts without it

        place = locate(name, folder)
        if isinstance(place, Path):
            return place
        if scheme_of(place) != "sqlite":
            raise ConfigError(
                f"{file}: names the storage {shown(name)}, which this server does not open; use gpudiag diagnose."
            )
        return sqlite_path(place)

    def _check_place(self, path: Path, run: Path) -> None:
        if not self.hold(path):
            raise ConfigError(
                f"{run}: {path} leads out of {self}, and nothing else may be read; start gpudiag mcp with that folder "
                "as well."
            )

    def _check_links(self, place: Path, run: Path) -> None:
        """Raise ConfigError where a link leads out: of a folder any below it, of a file any beside it, for readers look
        there too.
        """
        from gpudiag._load.folder import MAX_FILES

        self._check_place(place, run)
        if not place.is_dir():
            for path in _entries(place.parent):
                self._check_place(path, run)
            return
        pending, met, n = [place], set[str](), 0
        while pending:
            here = pending.pop()
            if (real := os.path.realpath(here)) in met:
                continue
            met.add(real)
            for path in _entries(here):
                n += 1
                if n > MAX_FILES:
                    raise InputError(f"{run}: holds more than {MAX_FILES} files; name the inputs in a run.toml.")
                self._check_place(path, run)
                if os.path.isdir(path) and path.name not in NEVER_READ:  # noqa: PTH112 - False where it is forbidden
                    pending.append(path)


def _entries(folder: Path) -> Iterator[Path]:
    """What lies in a folder; nothing where it may not be listed."""
    try:
        yield from folder.iterdir()
    except OSError:
        return
