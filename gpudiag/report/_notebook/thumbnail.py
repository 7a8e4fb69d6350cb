"""The picture at the top of a report, small, for the index of a batch."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from io import BytesIO
from pathlib import Path

WIDTH_PX, COLORS = 240, 64
MOST_CHARS = 12_000
"""Of one picture in base64; a larger one is left out."""
_OVERVIEW = re.compile(r'id="figure-overview".{0,400}?srcset="data:image/png;base64,([A-Za-z0-9+/=]+)"', re.DOTALL)


def thumbnail(report: Path) -> str:
    """A PNG in base64 from a report's HTML; "" where that has no such picture or is not there."""
    from PIL import Image  # comes with matplotlib

    try:
        found = _OVERVIEW.search(report.read_text(encoding="utf-8"))
        if found is None:
            return ""
        with Image.open(BytesIO(b64decode(found[1])), formats=["PNG"]) as picture:
            height = round(picture.height * WIDTH_PX / picture.width)
            small = picture.convert("RGB").resize((WIDTH_PX, height), Image.Resampling.LANCZOS)
    except (OSError, ValueError, Image.DecompressionBombError):
        return ""
    out = BytesIO()
    # A rare color, of the few trials that failed, is kept: the usual choice of colors would merge it with another.
    small.quantize(COLORS, Image.Quantize.MAXCOVERAGE).save(out, format="PNG", optimize=True)
    encoded = b64encode(out.getvalue()).decode()
    return encoded if len(encoded) <= MOST_CHARS else ""
