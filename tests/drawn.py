"""How many examples Hypothesis draws for a test that is slow."""

from __future__ import annotations

import math
import os


def few_of(examples: int) -> int:
    """A third of them in CI, which draws the same ones each time; whoever looks for new ones gets all."""
    return math.ceil(examples / 3) if os.environ.get("CI") else examples
