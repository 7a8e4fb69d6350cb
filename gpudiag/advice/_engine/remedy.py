"""What a remedy is: a function from the situation of a run to a proposal, or to nothing.

    @remedy(title="Start more loader workers", answers=("loader-slow",), tier=1, ...)
    def loader_workers(now: Situation) -> Proposal | None:
        \"\"\"When it helps, and when it can't.\"\"\"

The function name becomes the id (``loader-workers``), its docstring the description in docs/remedies.md.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from gpudiag.advice._engine.proposal import TIERS, Apply, Proposal, Safety
from gpudiag.advice._engine.situation import Situation


@dataclass(frozen=True)
class Remedy:
    """One thing that can be done. ``answers``: ids of rules whose finding it answers.

    ``fills_idle``: offered without such a finding too, where a GPU has idle time worth filling.
    ``refute`` is the cheapest test that would show that it does not help.
    """

    id: str
    topic: str
    title: str
    answers: tuple[str, ...]
    tier: int
    effort: str
    apply: Apply
    pros: tuple[str, ...]
    cons: tuple[str, ...]
    refute: str
    rollback: str
    propose: Callable[[Situation], Proposal | None]
    fills_idle: bool = False

    @property
    def safety(self) -> Safety:
        """safe, moderate or risky."""
        return TIERS[self.tier][0]

    @property
    def docstring(self) -> str:
        """When it helps, and when it cannot."""
        return inspect.getdoc(self.propose) or ""


def remedy(
    *,
    title: str,
    answers: tuple[str, ...],
    tier: int,
    effort: str,
    pros: tuple[str, ...],
    cons: tuple[str, ...],
    refute: str,
    rollback: str,
    apply: Apply = "now",
    fills_idle: bool = False,
) -> Callable[[Callable[[Situation], Proposal | None]], Remedy]:
    """Make a function a Remedy; its name and docstring are used."""

    def make(propose: Callable[[Situation], Proposal | None]) -> Remedy:
        name = propose.__name__.replace("_", "-")
        topic = propose.__module__.rsplit(".", 1)[-1]
        return Remedy(
            name, topic, title, answers, tier, effort, apply, pros, cons, refute, rollback, propose, fills_idle
        )

    return make
