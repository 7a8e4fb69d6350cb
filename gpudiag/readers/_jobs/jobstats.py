"""What Princeton's jobstats leaves in Slurm's AdminComment: ``JS1:`` and base64 of gzip of JSON.

By node it holds the utilization of each GPU that the job had, under the number of the GPU
(https://github.com/PrincetonUniversity/jobstats, docs/setup/summaries.md).
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import zlib

MARK = "JS1:"
_NOTHING = ("", "Short", "None")
MOST_BYTES = 8 * 2**20


def gpu_use(comment: str) -> dict[str, dict[str, float]]:
    """Mean utilization in percent by node and number of the GPU; empty where the comment holds none.

    Raises ValueError for a comment with the mark and something else behind it.
    """
    if not comment.startswith(MARK) or comment.removeprefix(MARK) in _NOTHING:
        return {}
    try:
        inflate = zlib.decompressobj(wbits=31)
        text = inflate.decompress(base64.b64decode(comment.removeprefix(MARK)), MOST_BYTES)
        nodes = json.loads(text)["nodes"]
        return {str(node): _known(held.get("gpu_utilization")) for node, held in nodes.items()}
    except (binascii.Error, zlib.error, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("no record of jobstats follows JS1:") from error


def _known(use: object) -> dict[str, float]:
    held = use if isinstance(use, dict) else {}
    return {str(gpu): float(pct) if isinstance(pct, int | float) else math.nan for gpu, pct in held.items()}
