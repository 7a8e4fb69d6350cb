"""What a search of a folder passed over, by reason, so that a folder without data can say what it holds."""

from __future__ import annotations

from dataclasses import dataclass, field

SHOWN = 5


def some(names: list[str]) -> str:
    """The first five of the names."""
    return ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")


@dataclass
class PassedOver:
    """Names of files and folders; each stands under one reason."""

    own: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    special: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return any(names for _, names in self._by_reason)

    def __str__(self) -> str:
        return ", ".join(f"{reason} ({some(names)})" for reason, names in self._by_reason if names)

    @property
    def _by_reason(self) -> tuple[tuple[str, list[str]], ...]:
        return (
            ("what gpudiag left there", self.own),
            ("hidden files and folders", self.hidden),
            ("links whose target is missing", self.broken),
            ("links to what is searched anyway or to a folder above", self.again),
            ("pipes, sockets and devices", self.special),
        )
