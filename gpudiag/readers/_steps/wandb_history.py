"""What a training logged with W&B, in the records of its run file, as rows of metrics."""

from __future__ import annotations

from collections.abc import Iterator

from gpudiag.readers._io.wandb_log import HISTORY, KEY, VALUE_JSON
from gpudiag.readers._io.wire_format import Message, inner, text

_ITEM, _NESTED_KEY = 1, 2
"""Fields of HistoryRecord and of HistoryItem."""
_LONGEST = 32
"""Characters of a number as JSON."""


def history_rows(record: Message) -> Iterator[dict[str, float]]:
    """A row for each call of ``log``: its numbers by name, with W&B's own ``_step``, ``_timestamp`` and ``_runtime``.

    Raises ValueError for what is no message.
    """
    for history in inner(record, HISTORY):
        row: dict[str, float] = {}
        for item in inner(history, _ITEM):
            nested = [part.decode("utf-8", "replace") for part in item.get(_NESTED_KEY, []) if isinstance(part, bytes)]
            value = text(item, VALUE_JSON)
            if len(value) <= _LONGEST:
                try:
                    row[text(item, KEY) or ".".join(nested)] = float(value)
                except ValueError:
                    continue  # a text, a picture
        if row:
            yield row
