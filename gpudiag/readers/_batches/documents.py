"""Whether a text is a source or a document, which may quote a log, or the log itself.

A program may print anything: its settings, samples of code, its own script. So no line makes a text a document; one is
where its lines of a document are no fewer than those of a log.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpudiag.readers._batches.line_clocks import LineClock
from gpudiag.readers._batches.wrapped_lines import printed
from gpudiag.readers._io.source import Source
from gpudiag.readers._steps.step_line import step_of

OUTPUT = (".err", ".log", ".out", ".stderr")
"""How files are named that programs print to."""
_DOCUMENTS = (".md", ".rst", ".py", ".ipynb", ".html")
_NAME = r"[A-Za-z_][\w.]*"
_MARK = re.compile(
    r"#!|#{1,6} \S|\s*(?:```|~~~)"  # scripts and Markdown
    rf"|import {_NAME}(?: as \w+)?(?:, ?{_NAME}(?: as \w+)?)*\s*(?:#|$)|from [\w.]+ import [\w(*]"  # Python
    r"|(?:async )?def \w+\(|class [A-Za-z_]\w*(?:\(.*\))?:\s*(?:#|$)"
    r'|\s*(?:\{\s*(?:"|$)|\[\s*(?:["{\[]|$)|[}\]]|"[^"]*"\s*(?:[:,]|$))'  # JSON
    r"|\s*<(?:[?!]|/?[A-Za-z][\w:-]*(?:\s[^<>]*=[^<>]*|\s*/)?>)"  # XML
)
"""How a line of a source or a document begins."""
_FENCE = re.compile(r"\s*(?:```|~~~)")
_QUOTES = re.compile(r'\s*(?:[">#]|\{\s*"|\[\s*["{])')


def lines_of_log(source: Source) -> list[str]:
    """The lines of the head that may be of a log: none of a source or a document, else those that quote nothing."""
    lines = list(map(printed, source.lines))
    n_marks = sum(map(bool, map(_MARK.match, lines)))
    if not n_marks:
        return lines
    if source.path.suffix in _DOCUMENTS:
        return []
    fences = [number for number, line in enumerate(lines) if _FENCE.match(line)]
    fenced = {number for start, end in zip(fences[::2], fences[1::2], strict=False) for number in range(start, end)}
    own = [line for number, line in enumerate(lines) if number not in fenced and not _QUOTES.match(line)]
    return own if not set(OUTPUT).isdisjoint(source.path.suffixes) or _more_are_of_log(own, n_marks) else []


def _more_are_of_log(lines: Sequence[str], n_marks: int) -> bool:
    n, clock = 0, LineClock.of(lines)
    for line in lines:
        n += bool(clock.stamp(line)) or step_of(line, stamped=False) is not None
        if n > n_marks:
            return True
    return False
