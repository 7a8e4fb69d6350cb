"""A pattern that is compiled late is the pattern."""

from __future__ import annotations

import re

import pytest

from gpudiag.patterns import late


def test_it_finds_what_the_pattern_finds() -> None:
    made, pattern = late(r"(?P<n>\d+)x", re.IGNORECASE), re.compile(r"(?P<n>\d+)x", re.IGNORECASE)
    for text in ("", "12X 3x", "none"):
        assert made.findall(text) == pattern.findall(text)
        assert [found["n"] for found in made.finditer(text)] == [found["n"] for found in pattern.finditer(text)]
    assert made.sub("-", "1x2") == "-2" and made.groups == 1 and made.pattern == pattern.pattern


def test_it_is_compiled_once_and_only_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(re, "compile", lambda text, flags=0, made=re.compile: asked.append(text) or made(text, flags))
    made = late("a+")
    assert asked == []
    assert [bool(made.search(text)) for text in ("a", "b", "aa")] == [True, False, True]
    assert asked == ["a+"]
