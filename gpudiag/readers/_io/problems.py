"""What a reader met and survived, counted by kind."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpudiag.readers._io.url import without_passwords

INCOMPLETE = "incomplete:"
"""How the kind of a problem begins by which part of a study is missing, and not only a row here and there."""


@dataclass(frozen=True)
class Problem:
    """One kind of oddity in one input.

    ``line`` is the 1-based line of the first case (in Redis the number of an entry, from 0; None where lines make no
    sense), ``example`` a short extract of it. ``count`` is the number of cases. ``lost`` is True if rows were dropped.
    """

    kind: str
    count: int
    line: int | None = None
    example: str = ""
    lost: bool = False

    def __str__(self) -> str:
        where = f", first at line {self.line}" if self.line is not None else ""
        what = f": {self.example}" if self.example else ""
        return f"{self.count} x {self.kind}{where}{what}"


def _example(example: object) -> str:
    """What a problem shows of one case: a short line without passwords."""
    text = without_passwords(" ".join(str(example)[:1000].split()))
    return text if len(text) <= 80 else text[:77] + "..."


@dataclass
class ProblemLog:
    """Collects problems while a file is read."""

    _by_kind: dict[str, Problem] = field(default_factory=dict)

    def add(
        self, kind: str, count: int = 1, *, line: int | None = None, example: object = "", lost: bool = False
    ) -> None:
        """Count ``count`` more cases of ``kind``; the first line and example are kept."""
        if count <= 0:
            return
        old = self._by_kind.get(kind)
        if old is None:
            self._by_kind[kind] = Problem(kind, count, line, _example(example), lost)
            return
        earliest = old.line if line is None or (old.line is not None and old.line < line) else line
        shown = old.example or _example(example)
        self._by_kind[kind] = Problem(kind, old.count + count, earliest, shown, old.lost or lost)

    def extend(self, problems: tuple[Problem, ...]) -> None:
        """Add problems that another reader met."""
        for p in problems:
            self.add(p.kind, p.count, line=p.line, example=p.example, lost=p.lost)

    @property
    def all(self) -> tuple[Problem, ...]:
        """The problems in the order in which their kinds were first met."""
        return tuple(self._by_kind.values())
