"""A file that is appended to must be one of ours: rows below those of another tool make both unreadable."""

from __future__ import annotations

from pathlib import Path

from gpudiag.errors import ConfigError

_SHOWN_BYTES = 200


def refuse_others(path: Path, begins: bytes, what: str) -> None:
    """Raise ConfigError for a file that is there and does not begin like ours; one that a full disk cut short does.

    Raises OSError where it cannot be read.
    """
    if not path.is_file():
        return
    with path.open("rb") as file:
        head = file.read(max(_SHOWN_BYTES, len(begins)))
    if head[: len(begins)] != begins[: len(head)]:
        first = head.decode("utf-8", "replace").partition("\n")[0].strip()
        raise ConfigError(
            f"{path}: holds something else than {what} (its first line begins with {first[:40]!r}), and would be "
            "spoiled by rows of it; give another file, or move this one away."
        )
