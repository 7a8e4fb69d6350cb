"""YAML of plain values, as Hydra, Lightning and Optuna write it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yaml import Node

MOST_VALUES = 100_000
"""What references (``*name``) may stand for, each counted as often as it is used."""


def load(text: str) -> Any:
    """The value of one document. Raises YAMLError where references multiply, and for Python's own tags."""
    import yaml  # where there is such a file

    if "*" in text:
        _check(yaml.compose(text, Loader=yaml.SafeLoader))
    return yaml.safe_load(text)


def _check(root: Node | None) -> None:
    import yaml

    pending, count = [root], 0
    while pending:
        node = pending.pop()
        count += 1
        if count > MOST_VALUES:
            raise yaml.YAMLError(f"its references stand for more than {MOST_VALUES} values")
        if isinstance(node, yaml.MappingNode):
            pending += [one for pair in node.value for one in pair]
        elif isinstance(node, yaml.SequenceNode):
            pending += node.value
