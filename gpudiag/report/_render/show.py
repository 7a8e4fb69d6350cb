"""Sections that show themselves: ``diagnosis.show.findings`` as the last line of a notebook cell."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, TypedDict, TypeVar

from gpudiag.faults import Fault, FaultEntry, attempt
from gpudiag.faults import strict as strictly
from gpudiag.report._render import fragments, markdown
from gpudiag.report._render.blocks import Block, Figure, Folded, Note, Pictured, TrialTable

if TYPE_CHECKING:
    from gpudiag.plots import Picture

MAX_SVG_CHARS = 400_000
"""A picture that is larger as SVG is embedded as PNG, so that a report stays small."""
MAX_NARROW_SVG_CHARS = 320_000
"""The same of a picture for narrow screens, which stands beside the other one."""
LANES = "application/vnd.gpudiag.timeline"
"""The kind of an output's data from which the HTML report makes an interactive timeline; a notebook passes it by."""
TRIALS = "application/vnd.gpudiag.trials"
"""The same for the table of all trials."""

D = TypeVar("D")
Draw = Callable[..., "Picture | None"]
"""A picture by name, of the usual width or of the one given in inches; None where its data are missing."""
SVG = "image/svg+xml"
SMALL_IN = 3.2
"""Width of a picture for narrow screens: its letters stay legible at 360 pixels."""


class Mark(TypedDict, total=False):
    """What gpudiag notes about an output: a picture's words, a lone note on missing data, what failed, or the pictures
    among its blocks by name, as type and base64.
    """

    name: str
    alt: str
    caption: str
    empty: bool
    pictures: dict[str, tuple[str, str]]
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
        """Runs of blocks and the pictures between them, in order; a picture without data is left out, and for one
        within folded blocks that fails by a fault of gpudiag a note follows them.
        """
        run: list[Block] = []
        faults: list[Fault] = []
        for block in self.blocks:
            if not isinstance(block, Figure):
                run += self._drawn(block, faults)
            elif picture := self._picture(block):
                if run:
                    yield self._words(run)
                run = []
                yield picture
        if run:
            yield self._words(run)
        yield from map(_failure, faults)

    def _drawn(self, block: Block, faults: list[Fault]) -> Iterator[Block]:
        """The block with the pictures inside it drawn; without any content left, nothing."""
        if isinstance(block, Figure):
            with strictly(self.strict):
                made = attempt(f"figure {block.name}", lambda: _pictured(self.draw(block.name)))
            if isinstance(made, Fault):
                faults.append(made)
            elif made:
                yield made
        elif isinstance(block, Folded):
            inner = tuple(drawn for one in block.blocks for drawn in self._drawn(one, faults))
            if inner:
                yield replace(block, blocks=inner)
        else:
            yield block

    def _picture(self, figure: Figure) -> Output | None:
        """The picture of that name, None where its data are missing; a note where it fails by a fault of gpudiag."""

        def make() -> Output | None:
            picture = self.draw(figure.name)
            small = self.draw(figure.name, SMALL_IN) if picture and figure.small else None
            return image(picture, small, bare=figure.bare) if picture else None

        with strictly(self.strict):
            made = attempt(f"figure {figure.name}", make)
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
    """Blocks as the output of a cell; a lone note on missing data is marked as such, and pictures inside go along."""
    text = markdown.render(blocks) or markdown.render([one.still for one in blocks if isinstance(one, TrialTable)])
    mark: Mark = {}
    if len(blocks) == 1 and isinstance(blocks[0], Note) and blocks[0].level == "unknown":
        mark["empty"] = True
    if pictures := {one.name: (one.mime, one.image) for one in _pictures(blocks)}:
        mark["pictures"] = pictures
    data = {"text/html": fragments.standalone(blocks), "text/markdown": text, "text/plain": text}
    for block in blocks:
        if isinstance(block, TrialTable) and block.packed:
            data[TRIALS] = block.packed
    return data, {"gpudiag": mark} if mark else {}


def _pictures(blocks: Iterable[Block]) -> Iterator[Pictured]:
    for block in blocks:
        if isinstance(block, Pictured):
            yield block
        elif isinstance(block, Folded):
            yield from _pictures(block.blocks)


def _failure(fault: Fault) -> Output:
    """A note on what failed, as the output of a cell; the notebook keeps its type, place and trace."""
    data, _ = words((Note(str(fault), "error"),))
    return data, {"gpudiag": {"error": fault.to_dict()}}


def image(picture: Picture, small: Picture | None = None, *, bare: bool = False) -> Output:
    """A picture as the output of a cell; its words go along for outputs that show the image alone. ``small`` is the
    one for narrow screens.
    """
    mime, source = encoded(picture)
    caption = "" if bare else picture.caption
    narrow = _data_uri(*encoded(small, MAX_NARROW_SVG_CHARS)) if small else ""
    html = fragments.figure(picture.name, picture.alt, caption, _data_uri(mime, source), narrow)
    said: Mark = {"name": picture.name, "alt": picture.alt, "caption": picture.caption}
    data = {
        "text/html": html,
        mime: source.decode() if mime == SVG else b64encode(source).decode(),
        "text/plain": picture.alt,
    }
    if picture.lanes:
        data[LANES] = picture.lanes
    return data, {"gpudiag": said}


def _data_uri(mime: str, source: bytes) -> str:
    return f"data:{mime};base64,{b64encode(source).decode()}"


def _pictured(picture: Picture | None) -> Pictured | None:
    """A picture as a block among others."""
    if picture is None:
        return None
    mime, source = encoded(picture)
    return Pictured(picture.name, picture.alt, picture.caption, mime, b64encode(source).decode())


def encoded(picture: Picture, most_chars: int | None = None) -> tuple[str, bytes]:
    """The type and the bytes of a picture in a report: SVG, or PNG where that would be large."""
    svg = picture.svg()
    return (SVG, svg.encode()) if len(svg) <= (most_chars or MAX_SVG_CHARS) else ("image/png", picture.png())
