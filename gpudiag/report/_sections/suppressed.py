"""What somebody does not want to be told, told once: which findings are suppressed and which entries have ended."""

from __future__ import annotations

from gpudiag.report.document import Document
from gpudiag.report.format import safe


def suppression_notes(document: Document) -> list[str]:
    """A sentence for each entry of gpudiag.toml that ended or that suppresses nothing."""
    out = []
    for entry in document.suppressions:
        named = f"`{entry.rule}` ({safe(entry.reason)})"
        if entry.state == "expired":
            out.append(f"The suppression of {named} ended on {entry.until}: the rule counts again.")
        elif entry.state == "unused":
            out.append(f"The suppression of {named} has nothing to suppress: remove it from gpudiag.toml.")
    return out
