"""What is held in memory, as a file for a reader of files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from gpudiag.errors import InputError
from gpudiag.readers._io.source import Source


@contextmanager
def held_file(path: Path, write: Callable[[Path], object]) -> Iterator[Source]:
    """A file of that name that ``write`` writes; an InputError about it speaks of ``path``."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / path.name
        write(file)
        try:
            yield Source.open(file)
        except InputError as error:
            raise InputError(str(error).replace(str(file), str(path))) from None
