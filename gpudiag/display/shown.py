"""Results that show themselves: in a terminal, in a notebook's theme, in Markdown."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from gpudiag.display.blocks import Block


class Shown:
    """A mixin: a class gives ``blocks()`` and shows itself everywhere.

    A dataclass that takes it needs ``repr=False``, for its own ``__repr__`` would go first.
    """

    def blocks(self) -> Sequence[Block]:
        """What is shown, as blocks of :mod:`gpudiag.display.blocks`."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it shows")

    def __repr__(self) -> str:
        from gpudiag.display import plain

        return plain.render(self.blocks(), min(shutil.get_terminal_size((88, 24)).columns, 120))

    def _repr_html_(self) -> str:
        from gpudiag.display import fragments

        return fragments.standalone(self.blocks())

    def _repr_markdown_(self) -> str:
        from gpudiag.display import markdown

        return markdown.render(self.blocks())
