"""``python -m gpudiag.schemas``: write the shipped schemas anew."""

from __future__ import annotations

import json
from pathlib import Path

from gpudiag.schemas import NAMES, derived

if __name__ == "__main__":
    for name in NAMES:
        text = json.dumps(derived(name), indent=2, ensure_ascii=False) + "\n"
        Path(__file__).with_name(f"{name}.json").write_text(text, encoding="utf-8")
