"""An executed notebook as one self-contained HTML page that loads nothing."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from functools import cache
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

from gpudiag import __version__
from gpudiag.errors import ConfigError
from gpudiag.plots._draw.dark import darkened
from gpudiag.report._render import fragments
from gpudiag.report.timeline import page as timeline
from gpudiag.report.timeline.page import PREFERS_DARK
from gpudiag.report.trial_table import page as trial_table

if TYPE_CHECKING:
    from nbconvert.exporters import HTMLExporter
    from nbformat import NotebookNode

TEMPLATES = Path(__file__).parent / "templates"
CALM = ('class="gd-summary gd-ok"', 'class="gd-summary gd-unknown"')
"""How the top of a report begins in which nothing was found: the rest of that page is short."""
THEMES = {"auto": PREFERS_DARK, "light": "not all", "dark": "screen"}
"""Where a page is dark, as a media query."""
_FIGURE = re.compile(r'<figure class="gd-figure.*?</figure>', re.DOTALL)
_SVG = re.compile(r'(src(?:set)?="data:image/svg\+xml;base64,)([A-Za-z0-9+/=]+)')
_HEADING = re.compile(r"<h([1-6])>(.*?)</h\1>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_H2 = re.compile(r'<h2 id="([^"]+)">(.*?)</h2>', re.DOTALL)


def page(notebook: NotebookNode, title: str) -> str:
    """The notebook as HTML: code behind a switch, contents from its second-level headings."""
    theme = notebook.metadata.get("papermill", {}).get("parameters", {}).get("theme", "auto")
    dark = THEMES.get(theme, "")
    lanes = {"style": timeline.style().replace(PREFERS_DARK, dark), "script": timeline.script(), "mark": timeline.MARK}
    shown = {
        "title": title,
        "version": __version__,
        "css": page_style(theme),
        "script": script(),
        "policy": timeline.policy(timeline.script(), script()),
        "lanes": lanes,
        "trials": {"style": trial_table.style(), "mark": trial_table.MARK},
        "calm": any(
            calm in output.get("data", {}).get("text/html", "")
            for cell in notebook.cells
            for output in cell.get("outputs", [])
            for calm in CALM
        ),
    }
    resources = {"gpudiag": shown}
    html, _ = _exporter().from_notebook_node(notebook, resources)
    return _FIGURE.sub(lambda figure: _SVG.sub(lambda svg: svg[1] + _dark(svg[2], THEMES[theme]), figure[0]), html)


@cache
def script() -> str:
    """What every page runs: buttons that copy, and the table of trials where there is one."""
    copy = (TEMPLATES / "gpudiag" / "copy.js").read_text(encoding="utf-8")
    return f'(() => {{\n"use strict";\n{copy}\n{trial_table.script()}}})();\n'


def _dark(image: str, media: str) -> str:
    """A figure's SVG, in base64, that is dark where its page is."""
    return b64encode(darkened(b64decode(image).decode(), media).encode()).decode()


@cache
def page_style(theme: str = "auto") -> str:
    """Style sheets of the page, one after the other. ``theme``: light, dark, or auto for what the reader prefers.

    Raises ConfigError for any other theme.
    """
    if theme not in THEMES:
        raise ConfigError(f"theme must be one of {', '.join(THEMES)}, but got {theme!r}.")
    folder = TEMPLATES / "gpudiag"
    sheets = ((folder / name).read_text(encoding="utf-8") for name in ("page.css", "code.css"))
    return "\n".join((fragments.style_sheet(), *sheets)).replace(f"@media {PREFERS_DARK}", f"@media {THEMES[theme]}")


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
    exporter.register_filter("timeline", timeline.element)
    exporter.register_filter("trial_table", trial_table.element)
    exporter.register_filter("own_html", fragments.on_page)
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
