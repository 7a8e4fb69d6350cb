"""Sections that show themselves: ``diagnosis.show.findings`` as the last line of a notebook cell."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Generic, TypedDict, TypeVar

from gpudiag.faults import Fault, FaultEntry, attempt
from gpudiag.faults import strict as strictly
from gpudiag.report._render import fragments, markdown
from gpudiag.report._render.blocks import Block, Figure, Note

if TYPE_CHECKING:
    from gpudiag.plots import Picture

MAX_SVG_CHARS = 400_000
"""A picture that is larger as SVG is embedded as PNG, so that a report stays small."""

D = TypeVar("D")
Draw = Callable[[str], "Picture | None"]


class Mark(TypedDict, total=False):
    """What gpudiag notes about an output: a picture's words, a lone note on missing data, or what failed."""

    name: str
    alt: str
    caption: str
    empty: bool
    error: FaultEntry


class OutputMetadata(TypedDict, total=False):
    """Metadata of an output of a notebook cell, those that gpudiag reads and writes."""

    gpudiag: Mark


Output = tuple[dict[str, str], OutputMetadata]
"""Data by MIME type, and metadata: one output of a notebook cell."""


@dataclass(frozen=True, eq=False)
class Show(Generic[D]):
    """One attribute a section; ``dir()`` lists them in the order of a report. What is left out shows nothing.

    A section that fails by a fault of gpudiag is a note that says so; with ``strict`` it raises.
    """

    document: D = field(repr=False)
    draw: Draw = field(repr=False)
    sections: Mapping[str, Callable[[D], list[Block]]] = field(repr=False)
    left_out: frozenset[str] = field(default=frozenset(), repr=False)
    strict: bool | None = field(default=None, repr=False)

    def __getattr__(self, name: str) -> Display:
        if name not in self.sections:
            raise AttributeError(f"there is no section '{name}'; sections are {', '.join(self.sections)}")
        if name in self.left_out:
            return Display((), self.draw)
        return Display.of(name, lambda: self.sections[name](self.document), self.draw, self.strict)

    def __dir__(self) -> list[str]:
        return list(self.sections)


@dataclass(frozen=True, eq=False)
class Display:
    """One section: its blocks, and the pictures that stand between them."""

    blocks: tuple[Block, ...]
    draw: Draw
    strict: bool | None = None
    failed: Fault | None = None

    @classmethod
    def of(cls, name: str, make: Callable[[], Iterable[Block]], draw: Draw, strict: bool | None = None) -> Display:
        """The section of that name; where it fails by a fault of gpudiag, a note."""
        with strictly(strict):
            made = attempt(f"section {name}", lambda: tuple(make()))
        if isinstance(made, Fault):
            return cls((Note(str(made), "error"),), draw, strict, made)
        return cls(made, draw, strict)

    def outputs(self) -> Iterator[Output]:
        """Runs of blocks and the pictures between them, in order; a picture without data is left out."""
        run: list[Block] = []
        for block in self.blocks:
            if not isinstance(block, Figure):
                run.append(block)
            elif picture := self._picture(block.name):
                if run:
                    yield self._words(run)
                run = []
                yield picture
        if run:
            yield self._words(run)

    def _picture(self, name: str) -> Output | None:
        """The picture of that name, None where its data are missing; a note where it fails by a fault of gpudiag."""

        def make() -> Output | None:
            picture = self.draw(name)
            return image(picture) if picture else None

        with strictly(self.strict):
            made = attempt(f"figure {name}", make)
        return _failure(made) if isinstance(made, Fault) else made

    def _words(self, run: list[Block]) -> Output:
        if self.failed is not None:
            return _failure(self.failed)
        with strictly(self.strict):
            made = attempt("rendering of a section", lambda: words(tuple(run)))
        return _failure(made) if isinstance(made, Fault) else made

    def _ipython_display_(self) -> None:
        from IPython.display import display

        for data, metadata in self.outputs():
            display(data, metadata=metadata, raw=True)  # type: ignore[no-untyped-call]

    def _repr_html_(self) -> str:
        return "\n".join(data["text/html"] for data, _ in self.outputs())

    def _repr_markdown_(self) -> str:
        return markdown.render(self.blocks)

    def __repr__(self) -> str:
        return self._repr_markdown_()


def words(blocks: tuple[Block, ...]) -> Output:
    """Blocks as the output of a cell; a lone note on missing data is marked as such."""
    text = markdown.render(blocks)
    empty = len(blocks) == 1 and isinstance(blocks[0], Note) and blocks[0].level == "unknown"
    data = {"text/html": fragments.standalone(blocks), "text/markdown": text, "text/plain": text}
    return data, {"gpudiag": {"empty": True}} if empty else {}


def _failure(fault: Fault) -> Output:
    """A note on what failed, as the output of a cell; the notebook keeps its type, place and trace."""
    data, _ = words((Note(str(fault), "error"),))
    return data, {"gpudiag": {"error": fault.to_dict()}}


def image(picture: Picture) -> Output:
    """A picture as the output of a cell; its words go along for outputs that show the image alone."""
    svg = picture.svg()
    small = len(svg) <= MAX_SVG_CHARS
    mime = "image/svg+xml" if small else "image/png"
    encoded = b64encode(svg.encode() if small else picture.png()).decode()
    html = (
        f'<figure class="gd-figure" id="figure-{escape(picture.name)}">'
        f'<div class="gd-pan" tabindex="0" role="group" aria-label="Figure {escape(picture.name)}">'
        f'<img alt="{escape(picture.alt)}" src="data:{mime};base64,{encoded}"></div>'
        f"<figcaption>{fragments.inline(picture.caption)}</figcaption></figure>"
    )
    said: Mark = {"name": picture.name, "alt": picture.alt, "caption": picture.caption}
    data = {"text/html": html, mime: svg if small else encoded, "text/plain": picture.alt}
    return data, {"gpudiag": said}
