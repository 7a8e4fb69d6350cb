"""Messages without what came from a run: of their words, those stay that gpudiag's own code holds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from gpudiag.bug_report.versions import package_names
from gpudiag.manifest import DataLoader, GpuOverride, Manifest, Settings, Training
from gpudiag.readers._io.url import HIDDEN
from gpudiag.rules import RULES

_PACKAGE = Path(__file__).resolve().parent.parent
_ONE_QUOTED = r"(?:(?<!\w)'[^'\n]*'(?!\w)|\"[^\"\n]*\"|`[^`\n]*`|“[^”\n]*”)"
_QUOTED = re.compile(rf"(\w+ )?({_ONE_QUOTED}(?:(?:, | or | and ){_ONE_QUOTED})*)")
"""Names and extracts of files stand in quotes, one or several, after a word. An apostrophe within a word is none."""
_SINGLE = re.compile(_ONE_QUOTED)
_GOT = r"\bgot (?!(?:nothing|more|several runs|an? run|the run|None|bool|int|float|str|list|dict|tuple)\b)"
"""Before what came instead of what was expected: a value, but for these words."""
_EXTRACT = re.compile(r"(\d+ x [^:()]+): (?:.*(?=\)\.?$)|.*)")
"""A problem with an extract of its first case, as an error quotes it: ``3 x torn row, first at line 2: 0, 17``."""
_COMMAND = re.compile(r"(Recorded while running: ).*")
_LIST = re.compile(r"(\(|\blegal (?:names )?are:? )([^()]+)")
_CHUNK = re.compile(r"[^\s()\[\]{}<>,;|]+")
_MARKS = ".:!?%…"
_NUMBER = re.compile(r"\d{1,8}|\d{4}-\d\d-\d\d|\d\d:\d\d(:\d\d)?")
"""Counts, lines, dates and times. A longer number may be one by which somebody is known, and one with a fraction the
value of a parameter."""
_VERSION = re.compile(r"\d{1,4}(\.\d{1,4}){1,3}")
_WORD = re.compile(r"[^\W_]+")
_KEPT = 0xE000
"""The first of the characters, which no text has, that stand for quotes that stay."""
MOST_KEPT = 255
"""Quotes that stay in one message."""
_UNASSIGNED = re.compile("[\ue000-\uf8ff]")
SHORTEST = 2
"""Letters of a name that is taken out wherever it stands; a shorter one is no name to be known by."""


class Masked:
    """Takes out of messages whatever gpudiag does not say itself, and names that are known to be private.

    Args:
        labels: what stands instead of each path or URL, by how messages spell it.
        people: names of hosts and users, which stand nowhere, names of files included.
        names: of studies, parameters and the like. One that is a single word of gpudiag's own tells nothing, but in
            quotes, where it is somebody's name for something.
    """

    def __init__(self, labels: Mapping[str, str], people: Iterable[str], names: Iterable[str]) -> None:
        self._every = dict(labels)
        self._labels = {spelled: label for spelled, label in labels.items() if not _tells_nothing(spelled)}
        self._paths = re.compile(rf"(?<!/){_any_of(self._labels).pattern}")
        self._people = _any_of(name for name in people if len(name) >= SHORTEST)
        self._private = frozenset(names)
        self._names = _any_of(name for name in self._private if len(name) >= SHORTEST and not _tells_nothing(name))
        self._got = re.compile(rf"{_GOT}.*?(?=; {self._paths.pattern}: |$)")

    def message(self, text: str) -> str:
        """A message in one line: paths as labels, words of gpudiag, whole numbers, and ``***`` for everything else."""
        kept: list[str] = []
        text = self._got.sub(f"got {HIDDEN}", _UNASSIGNED.sub(" ", " ".join(text.split())))
        text = _LIST.sub(self._listed, _COMMAND.sub(rf"\1{HIDDEN}", text))
        text = _EXTRACT.sub(rf"\1: {HIDDEN}", _QUOTED.sub(lambda found: self._quoted(found, kept), text))
        parts = self._paths.split(text)
        made = "".join(self._labels[part] if at % 2 else self._words(part) for at, part in enumerate(parts))
        return self.name(
            re.sub(f"[{chr(_KEPT)}-{chr(_KEPT + MOST_KEPT)}]", lambda one: kept[ord(one[0]) - _KEPT], made)
        )

    def name(self, text: str) -> str:
        """The name of a file within the run, without names of hosts and users."""
        return self._people.sub(HIDDEN, text)

    def _words(self, text: str) -> str:
        return _CHUNK.sub(_chunk, self._names.sub(HIDDEN, self.name(text)))

    def _listed(self, found: re.Match[str]) -> str:
        """A list of names; there a folder or study may be called by a word of gpudiag's own."""
        items = re.split(r"(, | and |\.$)", found[2])
        return found[1] + "".join(self._every.get(one, HIDDEN if one in self._private else one) for one in items)

    def _quoted(self, found: re.Match[str], kept: list[str]) -> str:
        """Quotes and the word before them; what stays is put aside into ``kept``, and a character stands for it."""
        before, quotes = found[1] or "", found[2]
        is_text = quotes[0] in "'`" or before == "install "  # else any literal of the code would do
        is_own = bool(before) and is_text and found[0] in _own_texts()
        key = re.search(r"\b(key|did you mean) $", found.string[: found.start(2)])

        def shown(one: re.Match[str]) -> str:
            text = one[0][1:-1]
            if text in self._labels:
                left = self._labels[text]
            elif is_own and (text not in self._private or one[0] != quotes):  # a gap in a list would tell
                left = text
            elif text in self._private or not key:
                left = HIDDEN
            else:
                left = ".".join(part if part in _keys() else HIDDEN for part in text.split("."))
            if left == HIDDEN or len(kept) > MOST_KEPT:
                return f"'{HIDDEN}'"
            kept.append(one[0][0] + left + one[0][-1])
            return chr(_KEPT + len(kept) - 1)

        return before + _SINGLE.sub(shown, quotes)


def _any_of(texts: Iterable[str]) -> re.Pattern[str]:
    """One group that matches any of the texts as a whole, the longest first; without texts it matches nothing."""
    longest = sorted({text for text in texts if text}, key=len, reverse=True)
    return re.compile(rf"(?<![^\W_])({'|'.join(map(re.escape, longest)) or '(?!)'})(?![^\W_])")


def _tells_nothing(name: str) -> bool:
    return name.lower() in _own_words()


def _chunk(found: re.Match[str]) -> str:
    chunk = found[0]
    core = chunk.strip(_MARKS + "'\"*")
    if not any(character.isalnum() for character in core) or _NUMBER.fullmatch(core):
        return chunk
    if _VERSION.fullmatch(core) and found.string[: found.start()].lower().endswith(_packages()):
        return chunk
    option = core.lstrip("-")
    parts = re.split(r"[-_.&'’]", option)
    if option[0].isalpha() and all(part.lower() in _own_words() or not part for part in parts):
        return chunk
    return HIDDEN + chunk[len(chunk.rstrip(_MARKS)) :]


@cache
def _sources() -> str:
    """The sources of gpudiag; without them every word is taken out."""
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(_PACKAGE.rglob("*.py")))


@cache
def _own_words() -> frozenset[str]:
    """Every word in the sources of gpudiag."""
    return frozenset(_WORD.findall(_sources().lower()))


@cache
def _own_texts() -> str:
    """The sources with texts that go on in the next line in one piece."""
    return re.sub(r"\"\n\s*f?\"", "", _sources())


@cache
def _keys() -> frozenset[str]:
    """Keys of run.toml, and checks with their thresholds."""
    models = (Manifest, Settings, DataLoader, Training, GpuOverride)
    rules = {name for rule in RULES for name in (rule.id, *rule.thresholds)}
    return frozenset(rules.union(*(model.model_fields for model in models)))


@cache
def _packages() -> tuple[str, ...]:
    """How a text ends before the version of a package."""
    return tuple(f" {name.lower()} " for name in package_names())
