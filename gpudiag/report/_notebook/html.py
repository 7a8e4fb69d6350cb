"""An executed notebook as one self-contained HTML page that loads nothing."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

from gpudiag import __version__
from gpudiag.errors import ConfigError
from gpudiag.report._render import fragments

if TYPE_CHECKING:
    from nbconvert.exporters import HTMLExporter
    from nbformat import NotebookNode

TEMPLATES = Path(__file__).parent / "templates"
PREFERS_DARK = "@media (prefers-color-scheme: dark)"
THEMES = {"auto": PREFERS_DARK, "light": "@media not all", "dark": "@media screen"}
_HEADING = re.compile(r"<h([1-6])>(.*?)</h\1>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_H2 = re.compile(r'<h2 id="([^"]+)">(.*?)</h2>', re.DOTALL)


def page(notebook: NotebookNode, title: str) -> str:
    """The notebook as HTML: code behind a switch, contents from its second-level headings."""
    theme = notebook.metadata.get("papermill", {}).get("parameters", {}).get("theme", "auto")
    resources = {"gpudiag": {"title": title, "version": __version__, "css": page_style(theme)}}
    html, _ = _exporter().from_notebook_node(notebook, resources)
    return html


@cache
def page_style(theme: str = "auto") -> str:
    """Style sheets of the page, one after the other. ``theme``: light, dark, or auto for what the reader prefers.

    Raises ConfigError for any other theme.
    """
    if theme not in THEMES:
        raise ConfigError(f"theme must be one of {', '.join(THEMES)}, but got {theme!r}.")
    folder = TEMPLATES / "gpudiag"
    sheets = ((folder / name).read_text(encoding="utf-8") for name in ("page.css", "code.css"))
    return "\n".join((fragments.style_sheet(), *sheets)).replace(PREFERS_DARK, THEMES[theme])


def _exporter() -> HTMLExporter:
    from nbconvert.exporters import HTMLExporter

    exporter = HTMLExporter(
        template_name="gpudiag",
        extra_template_basedirs=[str(TEMPLATES)],
        exclude_anchor_links=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )
    exporter.register_filter("headings", headings)
    exporter.register_filter("anchored", _anchors())
    exporter.register_filter("own_html", lambda html: html.replace(fragments.style(), ""))
    exporter.register_filter("encoded", lambda text: b64encode(text.encode()).decode())
    return exporter


def _anchors() -> Callable[[str], str]:
    """A filter that gives the headings of one page ids made from their text, each once."""
    used: set[str] = set()

    def anchored(html: str) -> str:
        return _HEADING.sub(_with_id, html)

    def _with_id(heading: re.Match[str]) -> str:
        name = base = fragments.slug(unescape(_TAG.sub("", heading[2]))) or "section"
        while name in used:
            name = f"{base}-{len(used)}"
        used.add(name)
        return f'<h{heading[1]} id="{name}">{heading[2]}</h{heading[1]}>'

    return anchored


def headings(html: str) -> list[tuple[str, str]]:
    """(id, text) of the second-level headings, in order; the text is HTML without elements."""
    return [(id_, _TAG.sub("", text).strip()) for id_, text in _H2.findall(html)]
