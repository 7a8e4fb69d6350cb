"""An executed notebook as files: HTML, Markdown with its pictures, and the notebook itself."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpudiag.errors import ConfigError
from gpudiag.files import Content, write, write_all
from gpudiag.report._notebook.locate import find_notebook
from gpudiag.report._render.markdown import EVIDENCE, FIGURE, picture
from gpudiag.report._render.show import TRIALS

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from gpudiag.report._render.show import Output, OutputMetadata, Show

NOTEBOOK_ONLY = "notebook-only"
"""Tag of cells that speak to who opens the notebook, not to who reads the report."""

SECTION = "## "
"""How a section of a report begins in Markdown."""

_SECTION = re.compile(r"^\w+\.show\.(\w+)$", re.MULTILINE)
_IMAGES = {"image/svg+xml": ".svg", "image/png": ".png", "image/jpeg": ".jpg"}


@dataclass(frozen=True)
class MarkdownPage:
    """``text`` refers to ``images`` by their names, under the folder it was made for."""

    text: str
    images: Mapping[str, bytes]


def filled(name: str, show: Show[Any]) -> NotebookNode:
    """The shipped notebook with the sections that its cells show, as execution would leave it."""
    import nbformat

    notebook = nbformat.read(find_notebook(name), as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            sections = _SECTION.findall(cell.source)
            cell.outputs = [
                nbformat.v4.new_output("display_data", data, metadata=metadata)
                for section in sections
                for data, metadata in getattr(show, section).outputs()
            ]
    return notebook


def readable(notebook: NotebookNode) -> NotebookNode:
    """What a reader of the report needs: no cells about the notebook, no prose over a section without data."""
    import copy

    page = copy.deepcopy(notebook)
    page.cells = [cell for cell in page.cells if NOTEBOOK_ONLY not in cell.metadata.get("tags", [])]
    page.cells = _without_left_out(page.cells)
    for cell, following in pairwise(page.cells):
        outputs = following.get("outputs", [])
        if cell.cell_type == "markdown" and outputs and all(_is_empty(output) for output in outputs):
            cell.source = cell.source.partition("\n")[0]
    return page


def _without_left_out(cells: list[NotebookNode]) -> list[NotebookNode]:
    """A cell that shows a section and has no output was told to leave it out: it goes, with the prose over it."""
    left_out = {
        at
        for at, cell in enumerate(cells)
        if cell.cell_type == "code" and _SECTION.search(cell.source) and not cell.get("outputs")
    }
    prose = {at - 1 for at in left_out if at and cells[at - 1].cell_type == "markdown"}
    return [cell for at, cell in enumerate(cells) if at not in left_out | prose]


def _is_empty(output: NotebookNode) -> bool:
    return bool(output.get("metadata", {}).get("gpudiag", {}).get("empty"))


def title(notebook: NotebookNode) -> str:
    """The first first-level heading of the report."""
    for part in _parts(notebook):
        text = part if isinstance(part, str) else part[0].get("text/markdown", "")
        if text:
            found = re.search(r"^# (.+)$", text, re.MULTILINE)
            if found:
                return re.sub(r"\\(.)", r"\1", found[1])
    return "gpudiag report"


def html_page(notebook: NotebookNode) -> str:
    """The notebook as one self-contained HTML page."""
    from gpudiag.report._notebook.html import page

    return page(readable(notebook), title(notebook))


def markdown_page(
    notebook: NotebookNode, folder: str = "report_files", *, full: bool = False, more: str = "", opened: int = 1
) -> MarkdownPage:
    """Prose and outputs as Markdown without the code; pictures are referred to below ``folder``.

    It is short, for a pull request: what a section folds is left out, and sections but the first ``opened`` are folded.
    With ``full`` all of it is there and no section is folded. ``more``: how a short one ends, MORE unless given.
    """
    parts: list[str] = []
    images: dict[str, bytes] = {}
    for part in _parts(notebook):
        if isinstance(part, str):
            parts.append(part)
            continue
        data, metadata = part
        if TRIALS in data:
            continue
        if "text/markdown" in data:
            parts.append(_with_pictures(data["text/markdown"], metadata, folder, images))
            continue
        mime = next((m for m in _IMAGES if m in data), None)
        if mime:
            said = metadata.get("gpudiag", {})
            name = f"{said.get('name', f'figure-{len(images) + 1}')}{_IMAGES[mime]}"
            images[name] = data[mime].encode() if mime == "image/svg+xml" else b64decode(data[mime])
            parts.append(picture(f"{folder}/{name}", said.get("alt") or data.get("text/plain", "figure"),
                                 said.get("caption", "")))  # fmt: skip
        elif "text/plain" in data:
            parts.append(f"```text\n{data['text/plain'].rstrip()}\n```")
    kept = [part.strip() for part in parts if part.strip()]
    if not full:
        kept = [*_folded(_short(kept), opened), more or MORE]
    text = "\n\n".join(kept) + "\n"
    return MarkdownPage(text, {name: image for name, image in images.items() if f"]({folder}/{name})" in text})


MORE = "*Figures, evidence, all checks and recommendations: report.html, or* `gpudiag report --full`."
"""How a short report ends."""
_FOLD_SUMMARY = re.compile(r"<summary>(.*)</summary>")
_FOLD = re.compile(r"<details>\n|\n</details>")


def _short(parts: list[str]) -> list[str]:
    """The parts without what they fold, and without the headings below which nothing is left then."""
    first = [i for i, part in enumerate(parts) if part.startswith(SECTION)][:2]
    named = range(first[0], first[1]) if len(first) == 2 else ()  # what the first section folds is named
    kept = [one for one in (unfolded(part, named=i in named) for i, part in enumerate(parts)) if one]
    return [
        part
        for part, after in zip(kept, [*kept[1:], SECTION], strict=True)
        if not (part.startswith(SECTION) and after.startswith(SECTION))
    ]


def unfolded(text: str, *, named: bool = False) -> str:
    """Markdown without its ``<details>``, those within others included; ``named``: what each holds stays as an item of
    a list, unless it is the evidence of a finding.
    """
    out, depth, at = [], 0, 0
    for mark in _FOLD.finditer(text):
        if depth == 0:
            out.append(text[at : mark.start()])
            summary = _FOLD_SUMMARY.match(text, mark.end())
            if named and summary and summary[1] != EVIDENCE:
                out.append(f"- {summary[1]}\n")
        depth = max(depth + (1 if mark.group().startswith("<") else -1), 0)
        at = mark.end()
    out.append(text[at:] if depth == 0 else "")
    return re.sub(r"\n{3,}", "\n\n", "".join(out)).strip()


def _folded(parts: list[str], opened: int) -> Iterator[str]:
    """The parts, those after the first ``opened`` sections folded section by section."""
    sections = 0
    for part in parts:
        if part.startswith(SECTION):
            if sections > opened:
                yield "</details>"
            sections += 1
            if sections > opened:
                heading, _, prose = part.partition("\n")
                yield f"<details>\n<summary><b>{escape(heading.removeprefix(SECTION))}</b></summary>"
                part = prose.strip()
        if part:
            yield part
    if sections > opened:
        yield "</details>"


def _with_pictures(text: str, metadata: OutputMetadata, folder: str, images: dict[str, bytes]) -> str:
    """The Markdown of an output with the pictures among its words where the files will be."""
    for name, (mime, image) in metadata.get("gpudiag", {}).get("pictures", {}).items():
        file = f"{name}{_IMAGES[mime]}"
        images[file] = b64decode(image)
        text = text.replace(f"]({FIGURE}{name})", f"]({folder}/{file})")
    return text


def _parts(notebook: NotebookNode) -> list[str | Output]:
    """Markdown text, and outputs as (data, metadata), in reading order."""
    parts: list[str | Output] = []
    for cell in readable(notebook).cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        for output in cell.get("outputs", []):
            parts.append((output.get("data", {"text/plain": output.get("text", "")}), output.get("metadata", {})))
    return parts


def save(
    path: Path, notebook: Callable[[], NotebookNode], json: Callable[[], str], more: str = "", *, opened: int = 1
) -> Path:
    """Write a report in the format that the name tells: .html, .md (pictures beside it, ``more`` as its end, the first
    ``opened`` sections not folded) or .json; only that is made.

    Raises ConfigError for any other suffix.
    """
    if path.suffix == ".json":
        write(path, json())
    elif path.suffix == ".html":
        write(path, html_page(notebook()))
    elif path.suffix == ".md":
        write_markdown(path, notebook(), more=more, opened=opened)
    else:
        raise ConfigError(f"{path}: cannot tell the format; expected a name that ends in .html, .md or .json.")
    return path


def write_markdown(path: Path, notebook: NotebookNode, *, full: bool = False, more: str = "", opened: int = 1) -> None:
    """Write the Markdown at ``path`` and its pictures into the folder ``<stem>_files`` beside it."""
    write_all(path.parent, markdown_files(path, notebook, full=full, more=more, opened=opened))


def markdown_files(
    path: Path, notebook: NotebookNode, *, full: bool = False, more: str = "", opened: int = 1
) -> Iterator[tuple[Path, Content]]:
    """The Markdown after its pictures, for :func:`gpudiag.files.write_all`; pictures of an earlier report go: of which
    there are some is looked up only when they are asked for, and nobody else writes there.
    """
    folder = path.with_name(f"{path.stem}_files")
    page = markdown_page(notebook, folder.name, full=full, more=more, opened=opened)
    there = folder.iterdir() if folder.is_dir() else ()
    stale = [one for one in there if one.suffix in _IMAGES.values() and one.name not in page.images]
    yield from ((folder / name, image) for name, image in page.images.items())
    yield from ((old, None) for old in stale)
    yield path, page.text
