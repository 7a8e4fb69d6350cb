"""A file or folder offered to the readers, as an inspection would."""

from __future__ import annotations

from pathlib import Path

from gpudiag.errors import InputError
from gpudiag.readers._io.source import Source
from gpudiag.readers.base import ReadOptions
from gpudiag.readers.identify import identify
from gpudiag.timezones import parse_zone

OPTIONS = ReadOptions(parse_zone("Asia/Taipei"))


def refusal(path: Path) -> str:
    """Have it read; the sentence with which it is refused, which is one line, or '' where it is not."""
    try:
        source = Source.open(path)
        found = identify(source)
        if found is not None:
            found[1].read(source, OPTIONS)
    except InputError as error:
        assert "\n" not in str(error), error
        return str(error)
    return ""
