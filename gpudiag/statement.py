"""A sentence that is not in words yet: a template, and the typed values that it names.

    why = Statement("No telemetry lies within {reach_s} of the trials.", reach_s=51_300.0)
    why.values["reach_s"]      # 51300.0
    str(why)                   # 'No telemetry lies within 14 h 15 min of the trials.'

Results below the reports hold their evidence so. How a number is written is known to :mod:`gpudiag.report.sentence`
alone, which is asked when somebody reads the sentence. A value may be a statement itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gpudiag.errors import in_words
from gpudiag.values import Value, Values


@dataclass(frozen=True, init=False)
class Statement:
    """``template`` with a ``{name}`` for each of ``values``; ``str`` puts it into words, and without a template it is
    false.
    """

    template: str
    values: Values = field(hash=False)

    def __init__(self, template: str = "", /, **values: Value) -> None:
        object.__setattr__(self, "template", template)
        object.__setattr__(self, "values", values)

    def __str__(self) -> str:
        return in_words(self.template, self.values)

    def __bool__(self) -> bool:
        return bool(self.template)


NOTHING = Statement()


def joined(*parts: Statement, by: str = " ") -> Statement:
    """All parts that say something as one statement."""
    named = {f"part{place}": part for place, part in enumerate(part for part in parts if part)}
    return Statement(by.join(f"{{{name}}}" for name in named), **named)
