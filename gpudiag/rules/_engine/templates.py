"""The sentence of a finding: a template over its evidence, in parts where it has alternatives.

    says=("{gpus} was idle for {lead_s} before its work", Given("held_mib", ", with {held_mib} held"), ".")

``{name}`` stands for a value of the evidence; how a number is written is not this layer's business.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from gpudiag.values import Value, Values


@dataclass(frozen=True)
class Given:
    """``then`` where the value of that name is known and neither zero, false nor empty, else ``otherwise``."""

    name: str
    then: Sentence
    otherwise: Sentence = ""


Sentence: TypeAlias = "str | Given | tuple[Sentence, ...]"

WORST_GPU: tuple[Sentence, ...] = ("{gpu}", Given("several", " (the worst of {gpus})"))
"""Of one GPU ``GPU 4``, of several ``GPU 4 (the worst of GPUs 4 and 5)``: the sentence gives its figures, the cost is
of all."""

EACH: tuple[Sentence, ...] = (Given("spread", "{least_s} to "), "{most_s}", Given("several", " each"))
"""How long it was for each of the GPUs, of :func:`lengths`: so that a reader can count up what it cost."""


def template(sentence: Sentence, values: Values) -> str:
    """The template that fits these values. Raises KeyError where a condition names none of them."""
    if isinstance(sentence, str):
        return sentence
    if isinstance(sentence, Given):
        return template(sentence.then if _stands(values[sentence.name]) else sentence.otherwise, values)
    return "".join(template(part, values) for part in sentence)


def parts(sentence: Sentence) -> Iterator[str]:
    """Every template within a sentence, whether it stands or not."""
    if isinstance(sentence, str):
        yield sentence
    else:
        for part in (sentence.then, sentence.otherwise) if isinstance(sentence, Given) else sentence:
            yield from parts(part)


def _stands(value: Value) -> bool:
    return value is not None and value == value and bool(value)
